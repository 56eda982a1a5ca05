/*
 * nearest.c
 *		The lists nearest to a value; see nearest.h.
 */
#include "postgres.h"

#include <math.h>

#include "containers/backlog.h"
#include "ivf/page/centroid_codes.h"
#include "ivf/search/nearest.h"

/* Candidates by one-bit code for each list wanted. */
#define CANDIDATES(n) (4 * (n) + 32)

/* Groups are taken until they have this number of lists for each candidate. */
#define GROUP_SLACK 8

uint32
IvfLutBits(const IvfHandle *handle)
{
	return Max(IvfCentroidBits(handle), handle->layout.scan_bits);
}

/* ---- choosing among lists ---- */

/* Bring the n nearest of count to the front, in order. */
static void
sort_nearest(IvfNear *near, uint32 count, uint32 n)
{
	BacklogItem *items = palloc_extended(count * sizeof(BacklogItem), MCXT_ALLOC_HUGE);

	for (uint32 i = 0; i < count; i++)
		items[i] = BacklogMake(near[i].distance, near[i].list);
	BacklogSortFront(items, count, Min(n, count));
	for (uint32 i = 0; i < count; i++)
		near[i] = (IvfNear) {BacklogDistance(items[i]), BacklogId(items[i])};
	pfree(items);
}

/* Lanes of select_few(), and items that it keeps at least. */
#define FEW_LANES 32
#define KEPT_LEAST 20

/*
 * Bring the nearest few of count, which is at least FEW_LANES, to the front, in any order.  Returns
 * how many: at least KEPT_LEAST, about 1.5 times that when distances are in random order.
 *
 * The items are dealt out to lanes; KEPT_LEAST lanes have their nearest within a
 * bound, so as many items are within it.  That is three passes almost without a
 * branch that the processor cannot foresee, which took a partition and a heap most
 * of their time.
 */
static uint32
select_few(IvfNear *items, uint32 count)
{
	float		lanes[FEW_LANES];
	float		bound;
	uint32		kept = 0;

	Assert(count >= FEW_LANES);
	for (int j = 0; j < FEW_LANES; j++)
		lanes[j] = items[j].distance;
	for (uint32 i = FEW_LANES; i + FEW_LANES <= count; i += FEW_LANES)
		for (int j = 0; j < FEW_LANES; j++)
			lanes[j] = items[i + j].distance < lanes[j] ? items[i + j].distance : lanes[j];
	for (uint32 i = count / FEW_LANES * FEW_LANES; i < count; i++)
		lanes[0] = Min(lanes[0], items[i].distance);
	bound = lanes[0];
	for (int j = 0; j < FEW_LANES; j++)
	{
		int			below = 0;

		for (int i = 0; i < FEW_LANES; i++)
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

/* ---- near centroids by their one-bit codes (page/centroid_codes.h) ---- */

/* Keep the lists that have a page.  Returns how many. */
static uint32
keep_filled(const IvfLists *lists, IvfNear *items, uint32 count)
{
	uint32		kept = 0;

	for (uint32 i = 0; i < count; i++)
	{
		items[kept] = items[i];
		kept += BlockNumberIsValid(lists->refs[items[i].list].head);
	}
	return kept;
}

/* Estimated distances of the lists of some batches; to search, only of lists with a page. */
static uint32
sweep(const IvfHandle *handle, const IvfQuery *query, IvfMeasure what, uint32 from, uint32 to,
	  IvfNear *out)
{
	const IvfLists *lists = handle->lists;
	uint32		nbits = IvfCentroidBits(handle);
	float		bias = nbits == query->base.q.nbits ? query->base.q.lut_bias :
		QvQueryLutBias(&query->base.q, nbits);
	bool		l2 = handle->layout.space != QV_SPACE_IP;
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
	return what == IVF_TO_SEARCH && lists->filled < lists->count ? keep_filled(lists, out, n) : n;
}

/* Estimated distances of the lists of the nearest groups. */
static uint32
sweep_groups(const IvfHandle *handle, const IvfQuery *query, IvfMeasure what, uint32 n, IvfNear *out)
{
	const IvfLists *lists = handle->lists;
	const float *x = query->base.q.x;
	uint32		pdim = handle->layout.pdim;
	IvfNear    *groups = palloc(lists->ngroups * sizeof(IvfNear));
	uint32		ngroups = 0;
	uint32		found = 0;

	for (uint32 i = 0; i < lists->ngroups; i++)
	{
		const float *center = lists->group_center + (Size) i * pdim;

		if (lists->groups[i].members == 0)
			continue;
		groups[ngroups].list = i;
		groups[ngroups++].distance = handle->layout.space != QV_SPACE_IP ?
			qv_kernels.l2sq_f32(x, center, pdim) : -qv_kernels.ip_f32(x, center, pdim);
	}
	sort_nearest(groups, ngroups, ngroups);
	for (uint32 i = 0; i < ngroups && found < GROUP_SLACK * CANDIDATES(n); i++)
	{
		const IvfListGroup *group = &lists->groups[groups[i].list];

		found += sweep(handle, query, what, group->batch,
					   group->batch + IVF_BATCHES(group->members), out + found);
	}
	pfree(groups);
	return found;
}

/*
 * Put the lists that may be among the n nearest into out.  Returns how many there are.  0: they are
 * not to be found by one-bit codes.
 */
static uint32
sweep_centroids(const IvfHandle *handle, const IvfQuery *query, IvfMeasure what, uint32 n,
				IvfNear *out)
{
	const IvfLists *lists = handle->lists;
	uint32		found;

	/*
	 * A search that began when there were few lists, and went on with the
	 * directory read again, may have no look-up table for these codes.
	 */
	if (lists->nbatches == 0 || query->base.q.nbits < IvfCentroidBits(handle) ||
		CANDIDATES((uint64) n) >= lists->count)
		return 0;
	found = lists->ngroups > 0 ? sweep_groups(handle, query, what, n, out) :
		sweep(handle, query, what, 0, lists->nbatches, out);
	/* nearly all lists are without a page */
	if (found < n)
		return 0;
	if (n == 1 && found >= FEW_LANES)
		return select_few(out, found);
	sort_nearest(out, found, CANDIDATES(n));
	return Min(found, CANDIDATES(n));
}

/* ---- the nearest lists ---- */

/*
 * The lists that may be among the n nearest, measured; returns how many.  A list without a page has
 * no row, and would use up a probe, so a search has it last.
 */
static uint32
measure_lists(const IvfHandle *handle, const IvfQuery *query, IvfMeasure what, uint32 n,
			  IvfNear *out)
{
	const IvfLists *lists = handle->lists;
	uint32		count = sweep_centroids(handle, query, what, n, out);

	if (count == 0)
		for (; count < lists->count; count++)
			out[count].list = count;
	handle->layout.codec->measure(handle, query, &lists->centroids, what, out, count);
	if (what == IVF_TO_SEARCH && lists->filled < lists->count)
		for (uint32 i = 0; i < count; i++)
			if (!BlockNumberIsValid(lists->refs[out[i].list].head))
				out[i].distance = INFINITY;
	return count;
}

/* Returns the place of the nearest; of the same distance, of the list of the lower number. */
static uint32
nearest_of(const IvfNear *near, uint32 count)
{
	uint32		best = 0;

	for (uint32 i = 1; i < count; i++)
		if (near[i].distance < near[best].distance ||
			(near[i].distance == near[best].distance && near[i].list < near[best].list))
			best = i;
	return best;
}

/* Measure more lists.  The first "read" keep their places: others may prove to be nearer now. */
static void
measure_more(const IvfHandle *handle, const IvfQuery *query, uint32 read, uint32 n,
			 IvfNearLists *near)
{
	uint32		lists = handle->lists->count;
	IvfNear    *out = palloc_extended(lists * sizeof(IvfNear), MCXT_ALLOC_HUGE);
	bool	   *was_read = palloc0(lists * sizeof(bool));
	uint32		count = measure_lists(handle, query, IVF_TO_SEARCH, n, out);

	near->sorted = near->measured = read;
	for (uint32 i = 0; i < read; i++)
		was_read[near->items[i].list] = true;
	for (uint32 i = 0; i < count; i++)
		if (!was_read[out[i].list])
			near->items[near->measured++] = out[i];
	pfree(was_read);
	pfree(out);
}

void
IvfSortNearest(const IvfHandle *handle, const IvfQuery *query, uint32 read, uint32 n,
			   IvfNearLists *near)
{
	if (near->measured < handle->lists->count)
		measure_more(handle, query, read, n, near);
	n = Min(n, near->measured);
	sort_nearest(near->items + near->sorted, near->measured - near->sorted, n - near->sorted);
	near->sorted = n;
}

/* The list that a row belongs to. */
static uint32
nearest_list(const IvfHandle *handle, const IvfQuery *query)
{
	IvfNear    *near;
	uint32		list;

	if (handle->lists->count == 1)
		return 0;
	near = palloc(handle->lists->count * sizeof(IvfNear));
	list = near[nearest_of(near, measure_lists(handle, query, IVF_TO_ASSIGN, 1, near))].list;
	pfree(near);
	return list;
}

uint32
IvfEncodeInNearest(const IvfHandle *handle, const void *value, float *centroid,
				   const IvfRowRoom *room, IvfQuery *query, IvfRow *row)
{
	const IvfLayout *layout = &handle->layout;
	uint32		list;

	layout->codec->prepare(handle, value, IvfCentroidBits(handle), query);
	list = nearest_list(handle, query);
	IvfDecodeCentroid(handle, list, centroid);
	layout->codec->encode(layout, centroid, query, room, row);
	return list;
}

uint32
IvfNearestPart(const IvfHandle *handle, const IvfQuery *query, const IvfCentroids *parts, uint32 n)
{
	IvfNear		near[IVF_MAX_PARTS];

	Assert(n <= lengthof(near));
	for (uint32 i = 0; i < n; i++)
		near[i].list = i;
	handle->layout.codec->measure(handle, query, parts, IVF_TO_ASSIGN, near, n);
	return nearest_of(near, n);
}
