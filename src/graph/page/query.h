/*
 * query.h
 *		A vector made ready to be searched for in a coded graph: with its
 *		look-up table for the codes of neighbors and of entry points.
 */
#ifndef QV_GRAPH_PAGE_QUERY_H
#define QV_GRAPH_PAGE_QUERY_H

#include "graph/page/handle.h"
#include "space/query.h"

typedef struct GraphQuery
{
	QvSpaceQuery base;
	float		node_bias;		/* LUT bias over the nodes' code_bits */
	float		entry_bias;		/* and over entry_bits */
} GraphQuery;

/*
 * Prepare a search for rotated[pdim], as QvSpaceRotate() made it.  Memory
 * from CurrentMemoryContext.
 */
extern void GraphQueryInit(const GraphHandle *handle, GraphQuery *query,
						   const float *rotated);

/* How far a search distance by a node's own code may be from the true one: certain. */
static inline float
GraphQueryError(const GraphQuery *query, float norm2, float residual)
{
	float		err = residual * query->base.norm +
		(sqrtf(norm2) + residual) * query->base.q.err16;

	if (QvIsShortened(query->base.kind, norm2) ||
		QvIsShortened(query->base.kind, query->base.q.norm2))
		return INFINITY;
	return query->base.kind == QV_SPACE_L2 ? 2 * err : err;
}

#endif							/* QV_GRAPH_PAGE_QUERY_H */
