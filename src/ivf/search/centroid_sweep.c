/*
 * centroid_sweep.c
 *		Finding near centroids by their one-bit codes; see centroid_sweep.h.
 */
#include "postgres.h"

#include "ivf/page/centroid_codes.h"
#include "ivf/search/centroid_sweep.h"
#include "ivf/search/smallest.h"

/* Candidates by one-bit code for each list wanted. */
#define CANDIDATES(n) (4 * (n) + 32)

/* Groups are taken until they have this number of lists for each candidate. */
#define GROUP_SLACK 8

/* Estimated distances of all lists of some batches. */
static uint32
sweep(const IvfHandle *handle, const IvfQuery *query, uint32 from, uint32 to,
	  IvfNear *out)
{
	const IvfLists *lists = handle->lists;
	uint32		nbits = IvfCentroidBits(handle);
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

/* Estimated distances of the lists of the nearest groups. */
static uint32
sweep_groups(const IvfHandle *handle, const IvfQuery *query, uint32 n, IvfNear *out)
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
		groups[ngroups++].distance = handle->layout.space == QV_SPACE_L2 ?
			qv_kernels.l2sq_f32(x, center, pdim) : -qv_kernels.ip_f32(x, center, pdim);
	}
	IvfSelectNearest(groups, ngroups, ngroups);
	for (uint32 i = 0; i < ngroups && found < GROUP_SLACK * CANDIDATES(n); i++)
	{
		const IvfListGroup *group = &lists->groups[groups[i].list];

		found += sweep(handle, query, group->batch, group->batch + IVF_BATCHES(group->members),
					   out + found);
	}
	pfree(groups);
	return found;
}

uint32
IvfSweepCentroids(const IvfHandle *handle, const IvfQuery *query, uint32 n, IvfNear *out)
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
	found = lists->ngroups > 0 ? sweep_groups(handle, query, n, out) :
		sweep(handle, query, 0, lists->nbatches, out);
	if (n == 1 && found >= IVF_SELECT_FEW)
		return IvfSelectFew(out, found);
	return found > CANDIDATES(n) ? IvfSelect(out, found, CANDIDATES(n)) : found;
}
