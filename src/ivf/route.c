/*
 * route.c
 *		Preparing vectors, and choosing the lists nearest to one; see route.h.
 */
#include "postgres.h"

#include <math.h>

#include "ivf/route.h"
#include "utils/memutils.h"

/*
 * Up to so many lists every centroid's own code is measured: 9 ns each at 768
 * coordinates, where the one-bit code takes 1.4.
 */
#define EXACT_LISTS 128

/* Beyond so many, one-bit codes of the nearest groups only. */
#define FLAT_LISTS 8192

/* Coordinates in the one-bit codes of centroids. */
#define ROUTE_BITS(pdim) Min(pdim, 1024)

/* Candidates by one-bit code for each list wanted. */
#define CANDIDATES(n) (4 * (n) + 32)

/* For a row's home: keep_few(). */
#define LANES 32
#define KEPT_LEAST 20

/* Groups are taken until they have so many lists for each candidate. */
#define GROUP_SLACK 8

void
IvfQueryInit(const IvfHandle *handle, IvfQuery *query, const float *rotated, bool lut)
{
	uint32		nbits = 0;

	if (lut)
		nbits = handle->layout.scan_bits;
	if (handle->lists && handle->lists->nbatches > 0)
		nbits = Max(nbits, ROUTE_BITS(handle->layout.pdim));
	QvSpaceQueryInit(&query->base, &handle->space, rotated, nbits);
	query->value = NULL;
}

static inline float
centroid_ip(const IvfHandle *handle, const IvfQuery *query, uint32 list)
{
	const IvfLists *lists = handle->lists;

	return QvCodeIp(&query->base.q, lists->codes + list * lists->stride,
					handle->layout.centroid_bits, lists->scale[list]);
}

float
IvfCentroidDistance(const IvfHandle *handle, const IvfQuery *query, uint32 list)
{
	const IvfLists *lists = handle->lists;

	if (handle->layout.form == QV_FORM_PLAIN)
		return handle->space.opclass.type->distance(handle->space.opclass.metric, query->value,
											  lists->codes + list * lists->stride);
	if (handle->layout.space == QV_SPACE_IP)
		return -centroid_ip(handle, query, list);
	return query->base.q.norm2 + lists->norm2[list] - 2 * centroid_ip(handle, query, list);
}

/*
 * How far a row is from being at home in a list.  Inner product: by the angle,
 * or lists of long rows would draw everything.
 */
static float
assign_distance(const IvfHandle *handle, const IvfQuery *query, uint32 list)
{
	float		norm2 = handle->lists->norm2[list];

	if (handle->layout.form == QV_FORM_CODED && handle->layout.space == QV_SPACE_IP)
		return norm2 > 0 ? -centroid_ip(handle, query, list) / sqrtf(norm2) : 0;
	return IvfCentroidDistance(handle, query, list);
}

static inline bool
nearer(const IvfNear *a, const IvfNear *b)
{
	return a->distance < b->distance ||
		(a->distance == b->distance && a->list < b->list);
}

static int
compare_near(const void *a, const void *b)
{
	return nearer(a, b) ? -1 : nearer(b, a) ? 1 : 0;
}

/* Bring the n nearest of count to the front, in order. */
static void
select_nearest(IvfNear *items, uint32 count, uint32 n)
{
	uint32		lo = 0,
				hi = count;

	/* quickselect: everything before lo is nearer than everything after hi */
	while (n < hi && hi - lo > 16)
	{
		IvfNear		pivot = items[lo + (hi - lo) / 2];
		uint32		i = lo,
					j = hi - 1;

		for (;;)
		{
			while (nearer(&items[i], &pivot))
				i++;
			while (nearer(&pivot, &items[j]))
				j--;
			if (i >= j)
				break;
			{
				IvfNear		swap = items[i];

				items[i++] = items[j];
				items[j--] = swap;
			}
		}
		/* [lo, i) are not farther than the pivot, [i, hi) not nearer */
		if (i == lo)
			i++;
		if (n <= i)
			hi = i;
		else
			lo = i;
	}
	qsort(items, Min(hi, count), sizeof(IvfNear), compare_near);
}

/*
 * Bring the nearest few of count to the front, in any order, and return how
 * many: at least KEPT_LEAST, about 1.5 times that when distances are in random
 * order.  The items are dealt out to lanes; KEPT_LEAST lanes have their
 * nearest within a bound, so as many items are within it.  That is three
 * passes almost without a branch that the processor cannot foresee, which
 * took a partition and a heap most of their time.
 */
static uint32
keep_few(IvfNear *items, uint32 count)
{
	float		lanes[LANES];
	float		bound;
	uint32		kept = 0;

	Assert(count >= LANES);
	for (int j = 0; j < LANES; j++)
		lanes[j] = items[j].distance;
	for (uint32 i = LANES; i + LANES <= count; i += LANES)
		for (int j = 0; j < LANES; j++)
			lanes[j] = items[i + j].distance < lanes[j] ? items[i + j].distance : lanes[j];
	for (uint32 i = count / LANES * LANES; i < count; i++)
		lanes[0] = Min(lanes[0], items[i].distance);
	bound = lanes[0];
	for (int j = 0; j < LANES; j++)
	{
		int			below = 0;

		for (int i = 0; i < LANES; i++)
			below += lanes[i] < lanes[j] || (lanes[i] == lanes[j] && i < j);
		if (below == KEPT_LEAST - 1)
			bound = lanes[j];
	}
	for (uint32 i = 0; i < count; i++)
	{
		items[kept] = items[i];
		kept += items[i].distance <= bound;
	}
	return kept;
}

/* ---- one-bit codes of centroids ---- */

/* Estimated distances of all lists of some blocks. */
static uint32
sweep(const IvfHandle *handle, const IvfQuery *query, uint32 from, uint32 to,
	  IvfNear *out)
{
	const IvfLists *lists = handle->lists;
	uint32		nbits = ROUTE_BITS(handle->layout.pdim);
	float		bias = nbits == query->base.q.nbits ? query->base.q.lut_bias :
		QvQueryLutBias(&query->base.q, nbits);
	bool		l2 = handle->layout.space == QV_SPACE_L2;
	uint32		n = 0;

	for (uint32 block = from; block < to; block++)
	{
		const uint32 *list = lists->batch_list + block * QV_BATCH;
		const float *factor = lists->batch_factor + block * QV_BATCH;
		uint32		sums[QV_BATCH];

		qv_kernels.fastscan(lists->batch_codes + block * QvBatchBytes(nbits),
							query->base.q.lut, nbits / 4, sums);
		for (int i = 0; i < QV_BATCH && list[i] != IVF_NO_LIST; i++)
		{
			float		ip = factor[i] * (query->base.q.lut_scale * sums[i] + bias);

			out[n].list = list[i];
			out[n++].distance = l2 ? lists->norm2[list[i]] - 2 * ip : -ip;
		}
	}
	return n;
}

/* The lists that may be among the n nearest, by one-bit codes. */
static uint32
candidates(const IvfHandle *handle, const IvfQuery *query, uint32 n, IvfNear *out)
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
		select_nearest(groups, lists->ngroups, lists->ngroups);
		for (uint32 i = 0; i < lists->ngroups && found < GROUP_SLACK * CANDIDATES(n); i++)
			found += sweep(handle, query, lists->group_start[groups[i].list],
						   lists->group_start[groups[i].list + 1], out + found);
		pfree(groups);
	}
	if (n == 1 && found >= LANES)
		found = keep_few(out, found);
	else if (found > CANDIDATES(n))
	{
		select_nearest(out, found, CANDIDATES(n));
		found = CANDIDATES(n);
	}
	return found;
}

static uint32
nearest(const IvfHandle *handle, const IvfQuery *query, uint32 n, IvfNear *out,
		float (*distance) (const IvfHandle *, const IvfQuery *, uint32))
{
	uint32		count = handle->lists->count;

	n = Min(n, count);

	/*
	 * A search that began when there were few lists, and went on with the
	 * directory read again, may have no look-up table for these codes.
	 */
	if (handle->lists->nbatches > 0 && query->base.q.nbits >= ROUTE_BITS(handle->layout.pdim) &&
		(uint64) CANDIDATES((uint64) n) < count)
		count = candidates(handle, query, n, out);
	else
		for (uint32 i = 0; i < count; i++)
			out[i].list = i;
	for (uint32 i = 0; i < count; i++)
		out[i].distance = distance(handle, query, out[i].list);
	n = Min(n, count);
	if (n > 1)
		select_nearest(out, count, n);
	else
		for (uint32 i = 1; i < count; i++)
			if (nearer(&out[i], &out[0]))
				out[0] = out[i];
	return n;
}

uint32
IvfNearest(const IvfHandle *handle, const IvfQuery *query, uint32 n, IvfNear *out)
{
	return nearest(handle, query, n, out, IvfCentroidDistance);
}

uint32
IvfNearestList(const IvfHandle *handle, const IvfQuery *query)
{
	IvfNear    *near;
	uint32		list;

	if (handle->lists->count == 1)
		return 0;
	near = palloc(handle->lists->count * sizeof(IvfNear));
	(void) nearest(handle, query, 1, near, assign_distance);
	list = near[0].list;
	pfree(near);
	return list;
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

/* Put the one-bit code of a list's centroid, which is decoded, into its place. */
static void
put_code(const IvfHandle *handle, IvfLists *lists, uint32 list, uint32 block,
		 uint32 slot, const float *centroid, uint8 *bits)
{
	uint32		pdim = handle->layout.pdim;
	uint32		nbits = ROUTE_BITS(pdim);

	lists->batch_factor[block * QV_BATCH + slot] = QvEncodeBits(centroid, pdim, nbits, bits);
	lists->batch_list[block * QV_BATCH + slot] = list;
	QvPackSlot(lists->batch_codes + block * QvBatchBytes(nbits), nbits, slot, bits);
}

static void
decode_list(const IvfHandle *handle, const IvfLists *lists, uint32 list, float *out)
{
	qv_kernels.decode_u8(lists->codes + list * lists->stride, lists->scale[list],
						 QvCodeOffset(handle->layout.centroid_bits), out,
						 handle->layout.pdim);
}

/* Begin anew, with room for so many blocks. */
static void
make_batches(const IvfHandle *handle, IvfLists *lists, uint32 room)
{
	uint32		nbits = ROUTE_BITS(handle->layout.pdim);
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
flat_codes(const IvfHandle *handle, IvfLists *lists, float *centroid, uint8 *bits)
{
	make_batches(handle, lists, lists->allocated / QV_BATCH + 1);
	for (uint32 list = 0; list < lists->count; list++)
	{
		decode_list(handle, lists, list, centroid);
		put_code(handle, lists, list, list / QV_BATCH, list % QV_BATCH, centroid, bits);
	}
	lists->nbatches = (lists->count + QV_BATCH - 1) / QV_BATCH;
}

/* Codes in the order of the groups; a group's last block may be partly empty. */
static void
grouped_codes(const IvfHandle *handle, IvfLists *lists, float *centroid, uint8 *bits)
{
	uint32		pdim = handle->layout.pdim;
	uint32		tops = handle->meta.tops;
	uint32	   *order = palloc(lists->count * sizeof(uint32));
	uint32		group = 0,
				members = 0,
				block = 0,
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

		decode_list(handle, lists, list, centroid);
		put_code(handle, lists, list, block, slot, centroid, bits);
		qv_kernels.add_f32(center, centroid, pdim);
		members++;
		if (++slot == QV_BATCH)
		{
			slot = 0;
			block++;
		}
		if (i + 1 == lists->count || lists->refs[order[i + 1]].parent != lists->refs[list].parent)
		{
			for (uint32 j = 0; j < pdim; j++)
				center[j] /= members;
			members = 0;
			block += slot > 0;
			slot = 0;
			lists->group_start[++group] = block;
		}
	}
	lists->nbatches = block;
	lists->ngroups = group;
	pfree(order);
}

void
IvfRouteUpdate(const IvfHandle *handle, IvfLists *lists, uint32 list)
{
	float	   *centroid;
	uint8	   *bits;

	/* else all are made at the end */
	if (lists->group_center || list / QV_BATCH >= lists->batch_room)
		return;
	centroid = palloc(handle->layout.pdim * sizeof(float));
	bits = palloc(ROUTE_BITS(handle->layout.pdim) / 8);
	decode_list(handle, lists, list, centroid);
	put_code(handle, lists, list, list / QV_BATCH, list % QV_BATCH, centroid, bits);
	pfree(centroid);
	pfree(bits);
}

void
IvfRouteFinish(const IvfHandle *handle, IvfLists *lists)
{
	float	   *centroid;
	uint8	   *bits;

	if (lists->count <= EXACT_LISTS)
		return;
	centroid = palloc(handle->layout.pdim * sizeof(float));
	bits = palloc(ROUTE_BITS(handle->layout.pdim) / 8);
	if (lists->count > FLAT_LISTS && handle->meta.tops > 1)
		grouped_codes(handle, lists, centroid, bits);
	else if ((Size) lists->batch_room * QV_BATCH < lists->count || lists->group_center)
		flat_codes(handle, lists, centroid, bits);
	else
		lists->nbatches = (lists->count + QV_BATCH - 1) / QV_BATCH;
	pfree(centroid);
	pfree(bits);
}
