/*
 * query.c
 *		A query, ready for a coded graph; see query.h.
 */
#include "postgres.h"

#include "graph/page/query.h"

void
GraphQueryInit(const GraphHandle *handle, GraphQuery *query, const float *rotated)
{
	QvSpaceQueryInit(&query->base, &handle->space, rotated,
					 Max(handle->meta.code_bits, handle->meta.entry_bits));
	query->node_bias = QvQueryLutBias(&query->base.q, handle->meta.code_bits);
	query->entry_bias = QvQueryLutBias(&query->base.q, handle->meta.entry_bits);
}
