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

/* Batches for so many lists. */
#define BATCHES(n) (((n) + QV_BATCH - 1) / QV_BATCH)

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
	uint32		ngroups = 0;
	uint32		found = 0;

	if (lists->ngroups == 0)
		found = sweep(handle, query, 0, lists->nbatches, out);
	else
	{
		groups = palloc(lists->ngroups * sizeof(IvfNear));
		for (uint32 i = 0; i < lists->ngroups; i++)
		{
			const float *center = lists->group_center + (Size) i * handle->layout.pdim;

			if (lists->groups[i].members == 0)
				continue;
			groups[ngroups].list = i;
			groups[ngroups++].distance = handle->layout.space == QV_SPACE_L2 ?
				qv_kernels.l2sq_f32(query->base.q.x, center, handle->layout.pdim) :
				-qv_kernels.ip_f32(query->base.q.x, center, handle->layout.pdim);
		}
		IvfSelectNearest(groups, ngroups, ngroups);
		for (uint32 i = 0; i < ngroups && found < GROUP_SLACK * CANDIDATES(n); i++)
		{
			const IvfListGroup *group = &lists->groups[groups[i].list];

			found += sweep(handle, query, group->batch, group->batch + BATCHES(group->members),
						   out + found);
		}
		pfree(groups);
	}
	if (n == 1 && found >= IVF_SELECT_FEW)
		found = IvfSelectFew(out, found);
	else if (found > CANDIDATES(n))
		found = IvfSelect(out, found, CANDIDATES(n));
	return found;
}

/* ---- when a directory is read ---- */

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
	if (lists->ngroups > 0)
	{
		pfree(lists->groups);
		pfree(lists->group_center);
		lists->ngroups = 0;
	}
	lists->batch_room = 0;
	lists->batch_list = palloc((Size) room * QV_BATCH * sizeof(uint32));
	memset(lists->batch_list, 0xFF, (Size) room * QV_BATCH * sizeof(uint32));
	lists->batch_factor = palloc0((Size) room * QV_BATCH * sizeof(float));
	lists->batch_codes = MemoryContextAllocExtended(CurrentMemoryContext, room * QvBatchBytes(nbits),
													MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	lists->batch_room = room;
	MemoryContextSwitchTo(old);
}

/* Codes in the order of the lists. */
static void
flat_codes(const IvfHandle *handle, IvfLists *lists, SweepRoom *room)
{
	make_batches(handle, lists, BATCHES(lists->allocated));
	for (uint32 list = 0; list < lists->count; list++)
		put_code(handle, lists, list, list, room);
	lists->nbatches = BATCHES(lists->count);
}

/* Begin groups anew, with no codes yet, and room for changes of each and of all. */
static void
make_groups(const IvfHandle *handle, IvfLists *lists)
{
	uint32		tops = handle->meta.tops;
	uint32		batches = BATCHES(lists->count) + 2 * tops;
	MemoryContext old;

	make_batches(handle, lists, batches + batches / 4);
	old = MemoryContextSwitchTo(lists->part.context);
	lists->groups = palloc0(tops * sizeof(IvfListGroup));
	lists->group_center = MemoryContextAllocExtended(CurrentMemoryContext,
													 (Size) tops * handle->layout.pdim * sizeof(float),
													 MCXT_ALLOC_HUGE);
	MemoryContextSwitchTo(old);
	for (uint32 i = 0; i < tops; i++)
		lists->groups[i].changed = true;
	lists->ngroups = tops;
	lists->nbatches = 0;
}

/*
 * Give groups that changed batches for as many members as they have now, the end of the
 * batches when theirs are too few.  False when there is no more room.
 */
static bool
place_groups(IvfLists *lists)
{
	for (uint32 i = 0; i < lists->ngroups; i++)
		lists->groups[i].members = 0;
	for (uint32 list = 0; list < lists->count; list++)
		lists->groups[lists->refs[list].parent].members++;
	for (uint32 i = 0; i < lists->ngroups; i++)
	{
		IvfListGroup *group = &lists->groups[i];
		uint32		room = BATCHES(group->members);

		if (room <= group->room)
			continue;
		if (lists->nbatches + room > lists->batch_room)
			return false;
		/* a batch more, while there is room for it */
		room = Min(room + 1, lists->batch_room - lists->nbatches);
		group->batch = lists->nbatches;
		group->room = room;
		lists->nbatches += room;
	}
	return true;
}

/*
 * Codes and centers of the groups that changed, as if all were made anew: they depend on
 * the directory alone.
 */
static void
fill_groups(const IvfHandle *handle, IvfLists *lists, SweepRoom *room)
{
	uint32		pdim = handle->layout.pdim;
	uint32	   *filled = palloc0(lists->ngroups * sizeof(uint32));

	for (uint32 i = 0; i < lists->ngroups; i++)
	{
		const IvfListGroup *group = &lists->groups[i];

		if (!group->changed)
			continue;
		memset(lists->group_center + (Size) i * pdim, 0, pdim * sizeof(float));
		memset(lists->batch_list + (Size) group->batch * QV_BATCH, 0xFF,
			   (Size) group->room * QV_BATCH * sizeof(uint32));
	}
	for (uint32 list = 0; list < lists->count; list++)
	{
		uint32		i = lists->refs[list].parent;

		if (!lists->groups[i].changed)
			continue;
		put_code(handle, lists, list, lists->groups[i].batch * QV_BATCH + filled[i]++, room);
		qv_kernels.add_f32(lists->group_center + (Size) i * pdim, room->centroid, pdim);
	}
	for (uint32 i = 0; i < lists->ngroups; i++)
	{
		float	   *center = lists->group_center + (Size) i * pdim;

		if (!lists->groups[i].changed)
			continue;
		for (uint32 j = 0; j < pdim && filled[i] > 0; j++)
			center[j] /= filled[i];
		lists->groups[i].changed = false;
	}
	pfree(filled);
}

void
IvfSweepUpdate(const IvfHandle *handle, IvfLists *lists, uint32 list)
{
	SweepRoom	room;

	/* the group's codes are made at the end, or all are */
	if (lists->ngroups > 0)
	{
		if (lists->refs[list].parent < lists->ngroups)
			lists->groups[lists->refs[list].parent].changed = true;
		return;
	}
	if (list / QV_BATCH >= lists->batch_room)
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
	{
		bool		same = lists->ngroups == handle->meta.tops && place_groups(lists);

		if (!same)
		{
			make_groups(handle, lists);
			(void) place_groups(lists);
		}
		fill_groups(handle, lists, &room);
	}
	else if ((Size) lists->batch_room * QV_BATCH < lists->count || lists->ngroups > 0)
		flat_codes(handle, lists, &room);
	else
		lists->nbatches = BATCHES(lists->count);
	free_room(&room);
}
