/*
 * query.c
 *		Preparing vectors for a coded graph, and its entry points; see query.h.
 */
#include "postgres.h"

#include <math.h>

#include "graph/query.h"
#include "types/type_ops.h"

void
GraphQueryInit(const GraphHandle *handle, GraphQuery *query, const float *rotated)
{
	QvSpaceQueryInit(&query->base, &handle->space, rotated,
					 Max(handle->meta.code_bits, handle->meta.entry_bits));
	query->node_bias = QvQueryLutBias(&query->base.q, handle->meta.code_bits);
	query->entry_bias = QvQueryLutBias(&query->base.q, handle->meta.entry_bits);
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

		qv_kernels.fastscan(block->codes, query->base.q.lut,
							handle->meta.entry_bits / 4, sums);
		if (query->base.kind == QV_SPACE_L2)
			for (int j = 0; j < QV_BATCH; j++)
				est[j] = block->a[j] + query->base.q.norm2 - 2 * block->b[j] *
					(query->base.q.lut_scale * sums[j] + query->entry_bias);
		else
			for (int j = 0; j < QV_BATCH; j++)
				est[j] = -block->b[j] *
					(query->base.q.lut_scale * sums[j] + query->entry_bias);
		for (uint32 j = 0; j < block->count; j++)
			PoolInsert(&pool, est[j], block->ids[j], NULL);
	}
	found = pool.count;
	memcpy(out, items, found * sizeof(Candidate));
	pfree(items);
	return found;
}
