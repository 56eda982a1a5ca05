/*
 * query.h
 *		A vector made ready for a coded graph: normalized when the metric asks
 *		for it, rotated, centered, with its look-up table.
 */
#ifndef QV_GRAPH_QUERY_H
#define QV_GRAPH_QUERY_H

#include "graph/cache.h"
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

/*
 * The n nearest entry points by estimate, ascending.  Returns
 * how many there are.
 */
extern int	GraphNearestEntryPoints(const GraphHandle *handle, const GraphQuery *query,
							Candidate *out, int n);

/* How far that may be from the true search distance: certain. */
static inline float
GraphQueryError(const GraphQuery *query, float norm2, float residual)
{
	float		err = residual * query->base.norm +
		(sqrtf(norm2) + residual) * query->base.q.err16;

	return query->base.kind == QV_SPACE_L2 ? 2 * err : err;
}

#endif							/* QV_GRAPH_QUERY_H */
