/*
 * query.h
 *		A vector made ready for a coded graph: normalized when the metric asks
 *		for it, rotated, centered, with its look-up table.
 */
#ifndef QV_GRAPH_QUERY_H
#define QV_GRAPH_QUERY_H

#include "graph/cache.h"

typedef struct GraphQuery
{
	GraphSpace	space;
	QvQuery		q;
	float		norm;			/* |x| of what q holds */
	float		node_bias;		/* LUT bias over the nodes' code_bits */
	float		entry_bias;		/* and over entry_bits */
	double		offset;			/* metric distance = search distance + offset */
} GraphQuery;

/*
 * Rotate value[dims] (scaled to unit length first for cosine) into out[pdim].
 * Returns false for a zero vector under cosine (out is zero then).
 */
extern bool GraphRotate(const GraphHandle *handle, const float *value, float *out);

/*
 * Prepare a search for rotated[pdim], as GraphRotate() made it.  Memory is
 * taken from CurrentMemoryContext once and reused when query->q.x is set.
 */
extern void GraphQueryInit(const GraphHandle *handle, GraphQuery *query,
						   const float *rotated);

/*
 * The n nearest entry points by estimate, ascending.  Returns
 * how many there are.
 */
extern int	GraphNearestEntryPoints(const GraphHandle *handle, const GraphQuery *query,
							Candidate *out, int n);

/* Distance to a decoded code whose inner product with the query is ip. */
static inline float
GraphQueryDistance(const GraphQuery *query, float ip, float norm2)
{
	return query->space == GRAPH_SPACE_L2 ?
		norm2 + query->q.norm2 - 2 * ip : -ip;
}

/* How far that may be from the true search distance: certain. */
static inline float
GraphQueryError(const GraphQuery *query, float norm2, float residual)
{
	float		err = residual * query->norm +
		(sqrtf(norm2) + residual) * query->q.err16;

	return query->space == GRAPH_SPACE_L2 ? 2 * err : err;
}

#endif							/* QV_GRAPH_QUERY_H */
