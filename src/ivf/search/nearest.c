/*
 * nearest.c
 *		The lists nearest to a value; see nearest.h.
 */
#include "postgres.h"

#include "ivf/page/centroid_codes.h"
#include "ivf/search/centroid_sweep.h"
#include "ivf/search/nearest.h"
#include "ivf/search/smallest.h"

uint32
IvfLutBits(const IvfHandle *handle, bool scans)
{
	uint32		nbits = IvfCentroidBits(handle);

	return scans ? Max(nbits, handle->layout.scan_bits) : nbits;
}

/* The lists that may be among the n nearest, measured; returns how many. */
static uint32
measure_lists(const IvfHandle *handle, const IvfQuery *query, IvfMeasure what, uint32 n,
			  IvfNear *out)
{
	uint32		count = IvfSweepCentroids(handle, query, n, out);

	if (count == 0)
		for (; count < handle->lists->count; count++)
			out[count].list = count;
	handle->layout.codec->measure(handle, query, &handle->lists->centroids, what, out, count);
	return count;
}

static uint32
nearest_of(const IvfNear *near, uint32 count)
{
	uint32		best = 0;

	for (uint32 i = 1; i < count; i++)
		if (IvfNearer(&near[i], &near[best]))
			best = i;
	return best;
}

/* Drop the lists of out[count] that are among the first n of "near"; returns how many are left. */
static uint32
drop_first(const IvfNear *near, uint32 n, uint32 lists, IvfNear *out, uint32 count)
{
	bool	   *first = palloc0(lists * sizeof(bool));
	uint32		left = 0;

	for (uint32 i = 0; i < n; i++)
		first[near[i].list] = true;
	for (uint32 i = 0; i < count; i++)
		if (!first[out[i].list])
			out[left++] = out[i];
	pfree(first);
	return left;
}

/* Measure more lists.  The first "read" keep their places: others may prove to be nearer now. */
static void
measure_more(const IvfHandle *handle, const IvfQuery *query, uint32 read, uint32 n,
			 IvfNearLists *near)
{
	uint32		lists = handle->lists->count;
	IvfNear    *out = near->items;
	uint32		count;

	if (read > 0)
		out = palloc_extended(lists * sizeof(IvfNear), MCXT_ALLOC_HUGE);
	count = measure_lists(handle, query, IVF_TO_SEARCH, n, out);
	if (read > 0)
	{
		count = drop_first(near->items, read, lists, out, count);
		memcpy(near->items + read, out, count * sizeof(IvfNear));
		pfree(out);
	}
	near->sorted = read;
	near->measured = read + count;
}

void
IvfSortNearest(const IvfHandle *handle, const IvfQuery *query, uint32 read, uint32 n,
			   IvfNearLists *near)
{
	uint32		lists = handle->lists->count;

	n = Min(n, lists);
	if (n <= near->sorted)
		return;
	if (near->measured < lists)
	{
		measure_more(handle, query, read, n, near);
		n = Min(n, near->measured);
	}
	IvfSelectNearest(near->items + near->sorted, near->measured - near->sorted, n - near->sorted);
	near->sorted = n;
}

uint32
IvfNearestList(const IvfHandle *handle, const IvfQuery *query)
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
IvfNearestPart(const IvfHandle *handle, const IvfQuery *query, const IvfCentroids *parts, uint32 n)
{
	IvfNear		near[IVF_MAX_PARTS];

	Assert(n <= lengthof(near));
	for (uint32 i = 0; i < n; i++)
		near[i].list = i;
	handle->layout.codec->measure(handle, query, parts, IVF_TO_ASSIGN, near, n);
	return nearest_of(near, n);
}
