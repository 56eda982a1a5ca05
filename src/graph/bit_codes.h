/*
 * bit_codes.h
 *		One-bit codes of all nodes, in the memory of a backend: how near a node may be, without
 *		its page (src/graph/README.md, "Sweep").
 */
#ifndef QV_GRAPH_BIT_CODES_H
#define QV_GRAPH_BIT_CODES_H

#include <math.h>

#include "graph/query.h"

/* Of the vector that a node's own code stands for. */
typedef struct GraphBitCode
{
	float		norm2;			/* |x|^2, of the node */
	float		factor;			/* QvEncodeBits() */
	float		spread;			/* of a query of length one: how far <x, q> may
								 * be above its estimate */
	uint8		bits[FLEXIBLE_ARRAY_MEMBER];	/* pdim */
} GraphBitCode;

typedef struct GraphBitCodes
{
	char	   *codes;			/* by node number; NULL: there are none */
	Size		stride;
	uint32		count;			/* of numbers that there is room for */
	float		longest;		/* |x| + residual of the nodes, at most */
} GraphBitCodes;

/* What those of so many nodes take. */
extern Size GraphBitCodesSize(const GraphLayout *layout, uint32 nodes);

/* Room for so many, in a context; none when there is no memory. */
extern void GraphBitCodesInit(GraphBitCodes *codes, const GraphLayout *layout, uint32 nodes,
							  MemoryContext context);

/*
 * Note a node on its page, which is locked: nothing fails.  A number beyond the room is left
 * out.  scratch has place for pdim floats and pdim bytes.
 */
extern void GraphBitCodesPut(GraphBitCodes *codes, const GraphHandle *handle, uint32 id,
							 GraphNode node, float *scratch);

static inline const GraphBitCode *
GraphBitCodeOf(const GraphBitCodes *codes, uint32 id)
{
	return (const GraphBitCode *) (codes->codes + (Size) id * codes->stride);
}

/* A query for them. */
typedef struct GraphBitQuery
{
	const QvSpaceQuery *base;
	float		scale;			/* q is about scale times the bytes q.hi, */
	float		half_sum;		/* of which this is half of the sum */
	float		weight;			/* of an inner product in a distance */
	float		rounding;		/* how far that takes it, times the factor */
	float		slack;			/* and what the query's 16-bit form does */
} GraphBitQuery;

extern void GraphBitQueryInit(GraphBitQuery *query, const GraphBitCodes *codes,
							  const GraphHandle *handle, const QvSpaceQuery *base);

/*
 * A search distance that the node's rows are not below, but with the probability that
 * QvCandidateCertainty() speaks of; -INFINITY when nothing can be said.
 */
static inline float
GraphBitBound(const GraphBitQuery *query, const GraphBitCode *code)
{
	const QvQuery *q = &query->base->q;
	float		ip = code->factor * query->scale *
		((float) qv_kernels.ip_bits_s8(code->bits, q->hi, q->pdim) - query->half_sum);
	float		bound = QvSpaceQueryDistance(query->base, ip, code->norm2) - query->slack -
		query->weight * (code->spread * query->base->norm + code->factor * query->rounding);

	return isfinite(bound) ? bound : -INFINITY;
}

#endif							/* QV_GRAPH_BIT_CODES_H */
