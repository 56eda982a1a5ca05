/*
 * query.h
 *		A query, ready for a coded graph: with its look-up table for the codes of
 *		neighbors and of entry points.
 */
#ifndef QV_GRAPH_PAGE_QUERY_H
#define QV_GRAPH_PAGE_QUERY_H

#include "graph/page/handle.h"
#include "space/query.h"

typedef struct GraphQuery
{
	QvSpaceQuery base;
	float		node_bias;		/* bias of the look-up table over code_bits */
	float		entry_bias;		/* bias of the look-up table over entry_bits */
} GraphQuery;

/*
 * Prepares a search for rotated[pdim], as made by QvSpaceRotateValue().  Memory is allocated in
 * CurrentMemoryContext.
 */
extern void GraphQueryInit(const GraphHandle *handle, GraphQuery *query,
						   const float *rotated);

/*
 * Returns how far a search distance by a node's own code may be from the true one.  The
 * bound is certain.
 */
static inline float
GraphQueryError(const GraphQuery *query, float norm2, float residual)
{
	float		err = residual * query->base.norm +
		(sqrtf(norm2) + residual) * query->base.q.err16;

	if (query->base.shortened || QvIsShortened(query->base.kind, norm2))
		return INFINITY;
	return query->base.kind != QV_SPACE_IP ? 2 * err : err;
}

#endif							/* QV_GRAPH_PAGE_QUERY_H */
