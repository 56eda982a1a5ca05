/*
 * query.c
 *		Preparing vectors for a coded graph, and its entry points; see query.h.
 */
#include "postgres.h"

#include <math.h>

#include "graph/query.h"
#include "types/type_ops.h"

bool
GraphRotate(const GraphHandle *handle, const float *value, float *out)
{
	return QvSpaceRotate(&handle->rotation, handle->meta.metric == QV_METRIC_COSINE,
						 value, out);
}

void
GraphQueryInit(const GraphHandle *handle, GraphQuery *query, const float *rotated)
{
	uint32		pdim = handle->meta.pdim;
	uint32		nbits = Max(handle->meta.code_bits, handle->meta.entry_bits);
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
	query->entry_bias = QvQueryLutBias(&query->q, handle->meta.entry_bits);
}

int
GraphNearestEntryPoints(const GraphHandle *handle, const GraphQuery *query,
				Candidate *out, int n)
{
	GraphEntryPoints *entry_points = handle->entry_points;
	Pool		pool;
	Candidate  *items = palloc((n + 1) * sizeof(Candidate));
	int			found;

	PoolReset(&pool, items, n);
	for (uint32 i = 0; i < entry_points->nbatches; i++)
	{
		const GraphEntryBatch *block = GraphEntryBatchAt(entry_points, i);
		uint32		sums[QV_BATCH];
		float		est[QV_BATCH];

		qv_kernels.fastscan(block->codes, query->q.lut,
							handle->meta.entry_bits / 4, sums);
		if (query->space == GRAPH_SPACE_L2)
			for (int j = 0; j < QV_BATCH; j++)
				est[j] = block->a[j] + query->q.norm2 - 2 * block->b[j] *
					(query->q.lut_scale * sums[j] + query->entry_bias);
		else
			for (int j = 0; j < QV_BATCH; j++)
				est[j] = -block->b[j] *
					(query->q.lut_scale * sums[j] + query->entry_bias);
		for (uint32 j = 0; j < block->count; j++)
			PoolInsert(&pool, est[j], block->ids[j], NULL);
	}
	found = pool.count;
	memcpy(out, items, found * sizeof(Candidate));
	pfree(items);
	return found;
}
