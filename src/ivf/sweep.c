/*
 * sweep.c
 *		One-bit codes of all centroids; see sweep.h.
 */
#include "postgres.h"

#include "ivf/select.h"
#include "ivf/sweep.h"
#include "utils/memutils.h"

/*
 * Up to so many lists every centroid's own code is measured: 9 ns each at 768
 * coordinates, where the one-bit code takes 1.4.
 */
#define EXACT_LISTS 128

/* Beyond so many, one-bit codes of the nearest groups only. */
#define FLAT_LISTS 8192

/* Coordinates in the one-bit codes of centroids. */
#define SWEEP_BITS(pdim) Min(pdim, 1024)

/* Candidates by one-bit code for each list wanted. */
#define CANDIDATES(n) (4 * (n) + 32)

/* Groups are taken until they have so many lists for each candidate. */
#define GROUP_SLACK 8

uint32
IvfSweepBits(const IvfHandle *handle)
{
	return handle->lists->nbatches > 0 ? SWEEP_BITS(handle->layout.pdim) : 0;
}

bool
IvfWantsSweep(const IvfHandle *handle, const IvfQuery *query, uint32 n)
{
	/*
	 * A search that began when there were few lists, and went on with the
	 * directory read again, may have no look-up table for these codes.
	 */
	return handle->lists->nbatches > 0 &&
		query->base.q.nbits >= SWEEP_BITS(handle->layout.pdim) &&
		CANDIDATES((uint64) n) < handle->lists->count;
}

/* Estimated distances of all lists of some batches. */
static uint32
sweep(const IvfHandle *handle, const IvfQuery *query, uint32 from, uint32 to,
	  IvfNear *out)
{
	const IvfLists *lists = handle->lists;
	uint32		nbits = SWEEP_BITS(handle->layout.pdim);
	float		bias = nbits == query->base.q.nbits ? query->base.q.lut_bias :
		QvQueryLutBias(&query->base.q, nbits);
	bool		l2 = handle->layout.space == QV_SPACE_L2;
	uint32		n = 0;

	for (uint32 batch = from; batch < to; batch++)
	{
		const uint32 *list = lists->batch_list + batch * QV_BATCH;
		const float *factor = lists->batch_factor + batch * QV_BATCH;
		uint32		sums[QV_BATCH];

		qv_kernels.fastscan(lists->batch_codes + batch * QvBatchBytes(nbits),
							query->base.q.lut, nbits / 4, sums);
		for (int i = 0; i < QV_BATCH && list[i] != IVF_NO_LIST; i++)
		{
			float		ip = factor[i] * (query->base.q.lut_scale * sums[i] + bias);

			out[n].list = list[i];
			out[n++].distance = l2 ? lists->centroids.norm2[list[i]] - 2 * ip : -ip;
		}
	}
	return n;
}

uint32
IvfSweep(const IvfHandle *handle, const IvfQuery *query, uint32 n, IvfNear *out)
{
	const IvfLists *lists = handle->lists;
	IvfNear    *groups;
	uint32		found = 0;

	if (lists->group_center == NULL)
		found = sweep(handle, query, 0, lists->nbatches, out);
	else
	{
		groups = palloc(lists->ngroups * sizeof(IvfNear));
		for (uint32 i = 0; i < lists->ngroups; i++)
		{
			const float *center = lists->group_center + (Size) i * handle->layout.pdim;

			groups[i].list = i;
			groups[i].distance = handle->layout.space == QV_SPACE_L2 ?
				qv_kernels.l2sq_f32(query->base.q.x, center, handle->layout.pdim) :
				-qv_kernels.ip_f32(query->base.q.x, center, handle->layout.pdim);
		}
		IvfSelectNearest(groups, lists->ngroups, lists->ngroups);
		for (uint32 i = 0; i < lists->ngroups && found < GROUP_SLACK * CANDIDATES(n); i++)
			found += sweep(handle, query, lists->group_start[groups[i].list],
						   lists->group_start[groups[i].list + 1], out + found);
		pfree(groups);
	}
	if (n == 1 && found >= IVF_SELECT_FEW)
		found = IvfSelectFew(out, found);
	else if (found > CANDIDATES(n))
	{
		IvfSelectNearest(out, found, CANDIDATES(n));
		found = CANDIDATES(n);
	}
	return found;
}

/* ---- when a directory is read ---- */

static int
compare_parents(const void *a, const void *b, void *arg)
{
	const IvfListRef *refs = arg;
	uint32		x = *(const uint32 *) a,
				y = *(const uint32 *) b;

	if (refs[x].parent != refs[y].parent)
		return refs[x].parent < refs[y].parent ? -1 : 1;
	return (x > y) - (x < y);
}

/* Room for a centroid, decoded, and its one-bit code. */
typedef struct SweepRoom
{
	float	   *centroid;		/* pdim */
	uint8	   *bits;
} SweepRoom;

static SweepRoom
get_room(const IvfHandle *handle)
{
	uint32		pdim = handle->layout.pdim;

	return (SweepRoom)
	{
		.centroid = palloc(pdim * sizeof(float)),
			.bits = palloc(SWEEP_BITS(pdim) / 8)
	};
}

static void
free_room(SweepRoom *room)
{
	pfree(room->centroid);
	pfree(room->bits);
}

/* Put the one-bit code of a list's centroid into its place; it is left decoded. */
static void
put_code(const IvfHandle *handle, IvfLists *lists, uint32 list, uint32 place, SweepRoom *room)
{
	uint32		pdim = handle->layout.pdim;
	uint32		nbits = SWEEP_BITS(pdim);

	handle->layout.codec->decode_centroid(&handle->layout, &lists->centroids, list, room->centroid);
	lists->batch_factor[place] = QvEncodeBits(room->centroid, pdim, nbits, room->bits);
	lists->batch_list[place] = list;
	QvPackSlot(lists->batch_codes + place / QV_BATCH * QvBatchBytes(nbits), nbits, place % QV_BATCH,
			   room->bits);
}

/* Begin anew, with room for so many batches. */
static void
make_batches(const IvfHandle *handle, IvfLists *lists, uint32 room)
{
	uint32		nbits = SWEEP_BITS(handle->layout.pdim);
	MemoryContext old = MemoryContextSwitchTo(lists->part.context);

	if (lists->batch_room > 0)
	{
		pfree(lists->batch_list);
		pfree(lists->batch_factor);
		pfree(lists->batch_codes);
	}
	if (lists->group_center)
	{
		pfree(lists->group_start);
		pfree(lists->group_center);
		lists->group_center = NULL;
	}
	lists->batch_room = 0;
	lists->batch_list = palloc(room * QV_BATCH * sizeof(uint32));
	memset(lists->batch_list, 0xFF, room * QV_BATCH * sizeof(uint32));
	lists->batch_factor = palloc0(room * QV_BATCH * sizeof(float));
	lists->batch_codes = MemoryContextAllocExtended(CurrentMemoryContext, room * QvBatchBytes(nbits),
													MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	lists->batch_room = room;
	MemoryContextSwitchTo(old);
}

/* Codes in the order of the lists. */
static void
flat_codes(const IvfHandle *handle, IvfLists *lists, SweepRoom *room)
{
	make_batches(handle, lists, lists->allocated / QV_BATCH + 1);
	for (uint32 list = 0; list < lists->count; list++)
		put_code(handle, lists, list, list, room);
	lists->nbatches = (lists->count + QV_BATCH - 1) / QV_BATCH;
}

/* Codes in the order of the groups; a group's last batch may be partly empty. */
static void
grouped_codes(const IvfHandle *handle, IvfLists *lists, SweepRoom *room)
{
	uint32		pdim = handle->layout.pdim;
	uint32		tops = handle->meta.tops;
	uint32	   *order = palloc(lists->count * sizeof(uint32));
	uint32		group = 0,
				members = 0,
				batch = 0,
				slot = 0;

	make_batches(handle, lists, lists->count / QV_BATCH + 1 + tops);
	lists->group_start = MemoryContextAllocZero(lists->part.context, (tops + 1) * sizeof(uint32));
	lists->group_center = MemoryContextAllocExtended(lists->part.context, (Size) tops * pdim * sizeof(float),
													 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (uint32 i = 0; i < lists->count; i++)
		order[i] = i;
	qsort_arg(order, lists->count, sizeof(uint32), compare_parents, lists->refs);
	for (uint32 i = 0; i < lists->count; i++)
	{
		uint32		list = order[i];
		float	   *center = lists->group_center + (Size) group * pdim;

		put_code(handle, lists, list, batch * QV_BATCH + slot, room);
		qv_kernels.add_f32(center, room->centroid, pdim);
		members++;
		if (++slot == QV_BATCH)
		{
			slot = 0;
			batch++;
		}
		if (i + 1 == lists->count || lists->refs[order[i + 1]].parent != lists->refs[list].parent)
		{
			for (uint32 j = 0; j < pdim; j++)
				center[j] /= members;
			members = 0;
			batch += slot > 0;
			slot = 0;
			lists->group_start[++group] = batch;
		}
	}
	lists->nbatches = batch;
	lists->ngroups = group;
	pfree(order);
}

void
IvfSweepUpdate(const IvfHandle *handle, IvfLists *lists, uint32 list)
{
	SweepRoom	room;

	/* else all are made at the end */
	if (lists->group_center || list / QV_BATCH >= lists->batch_room)
		return;
	room = get_room(handle);
	put_code(handle, lists, list, list, &room);
	free_room(&room);
}

void
IvfSweepFinish(const IvfHandle *handle, IvfLists *lists)
{
	SweepRoom	room;

	if (lists->count <= EXACT_LISTS || handle->layout.scan_bits == 0)
		return;
	room = get_room(handle);
	if (lists->count > FLAT_LISTS && handle->meta.tops > 1)
		grouped_codes(handle, lists, &room);
	else if ((Size) lists->batch_room * QV_BATCH < lists->count || lists->group_center)
		flat_codes(handle, lists, &room);
	else
		lists->nbatches = (lists->count + QV_BATCH - 1) / QV_BATCH;
	free_room(&room);
}
