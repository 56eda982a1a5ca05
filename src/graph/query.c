/*
 * query.c
 *		Preparing vectors for a coded graph, and its entry table; see query.h.
 */
#include "postgres.h"

#include <math.h>

#include "graph/query.h"
#include "types/type_ops.h"

/*
 * Longer vectors are shortened to this length inside the index, so that no
 * square or product overflows float32.  Their rows are still returned, in
 * exact order among what a search finds: distances come from the table.
 */
#define MAX_LENGTH 1e17

bool
GraphRotate(const GraphHandle *handle, const float *value, float *out)
{
	const GraphMetaData *meta = &handle->meta;

	if (meta->metric == QV_METRIC_COSINE)
	{
		double		norm2 = 0;
		float		inv;

		for (uint32 i = 0; i < meta->dims; i++)
			norm2 += (double) value[i] * value[i];
		if (norm2 == 0)
		{
			memset(out, 0, meta->pdim * sizeof(float));
			return false;
		}
		inv = 1 / sqrt(norm2);
		if (likely(isfinite(inv) && inv > 0))
			for (uint32 i = 0; i < meta->dims; i++)
				out[i] = value[i] * inv;
		else
			for (uint32 i = 0; i < meta->dims; i++)
				out[i] = value[i] / sqrt(norm2);
	}
	else
	{
		double		length = qv_kernels.maxabs_f32(value, meta->dims) * sqrt(meta->dims);

		memcpy(out, value, meta->dims * sizeof(float));
		if (unlikely(length > MAX_LENGTH))
			for (uint32 i = 0; i < meta->dims; i++)
				out[i] = value[i] * (MAX_LENGTH / length);
	}
	QvRotate(&handle->rotation, out, out);
	return true;
}

void
GraphQueryInit(const GraphHandle *handle, GraphQuery *query, const float *rotated)
{
	uint32		pdim = handle->meta.pdim;
	uint32		nbits = Max(handle->meta.code_bits, handle->meta.route_bits);
	Size		size = TYPEALIGN(64, QvQuerySize(pdim, nbits));
	char	   *mem = palloc(size + 64 + pdim * sizeof(float));
	float	   *x = (float *) (TYPEALIGN(64, mem) + size);

	query->space = handle->meta.space;
	if (query->space == GRAPH_SPACE_L2)
	{
		for (uint32 i = 0; i < pdim; i++)
			x[i] = rotated[i] - handle->mean[i];
		query->offset = 0;
	}
	else
	{
		/* <o, q> = <o - mean, q> + <mean, q>: the query stays where it is */
		memcpy(x, rotated, pdim * sizeof(float));
		query->offset = -qv_kernels.ip_f32(handle->mean, rotated, pdim);
	}
	QvQueryInit(&query->q, (void *) TYPEALIGN(64, mem), x, pdim, nbits);
	query->norm = sqrtf(query->q.norm2);
	query->node_bias = QvQueryLutBias(&query->q, handle->meta.code_bits);
	query->route_bias = QvQueryLutBias(&query->q, handle->meta.route_bits);
}

int
GraphRouteQuery(const GraphHandle *handle, const GraphQuery *query,
				Candidate *out, int n)
{
	GraphRoutes *routes = handle->routes;
	Pool		pool;
	Candidate  *items = palloc((n + 1) * sizeof(Candidate));
	int			found;

	PoolReset(&pool, items, n);
	for (uint32 i = 0; i < routes->nblocks; i++)
	{
		const GraphRouteBlock *block = GraphRoutesBlock(routes, i);
		uint32		sums[QV_BLOCK];
		float		est[QV_BLOCK];

		qv_kernels.fastscan(block->codes, query->q.lut,
							handle->meta.route_bits / 4, sums);
		if (query->space == GRAPH_SPACE_L2)
			for (int j = 0; j < QV_BLOCK; j++)
				est[j] = block->a[j] + query->q.norm2 - 2 * block->b[j] *
					(query->q.lut_scale * sums[j] + query->route_bias);
		else
			for (int j = 0; j < QV_BLOCK; j++)
				est[j] = -block->b[j] *
					(query->q.lut_scale * sums[j] + query->route_bias);
		for (uint32 j = 0; j < block->count; j++)
			PoolInsert(&pool, est[j], block->ids[j], NULL);
	}
	found = pool.count;
	memcpy(out, items, found * sizeof(Candidate));
	pfree(items);
	return found;
}
