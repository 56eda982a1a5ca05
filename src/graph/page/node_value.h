/*
 * node_value.h
 *		The value of a plain graph's node: in its slot, or on pages of values.
 */
#ifndef QV_GRAPH_PAGE_NODE_VALUE_H
#define QV_GRAPH_PAGE_NODE_VALUE_H

#include <float.h>
#include <math.h>

#include "graph/page/values.h"

/*
 * Distance as float32, rounded down, so that it is a bound of the exact one.
 * NaN and what is too large for float32 become the largest number: infinity
 * would not enter a Pool.
 */
static inline float
GraphExactDistance(const QvOpclassInfo *opclass, const void *a, const void *b)
{
	double		d = opclass->type->distance(opclass->metric, a, b);
	float		rounded;

	if (unlikely(!(d < FLT_MAX)))
		return FLT_MAX;
	if (unlikely(d < -FLT_MAX))
		return -FLT_MAX;
	rounded = d;
	return rounded > d ? nextafterf(rounded, -INFINITY) : rounded;
}

/*
 * Look at the value of node id: where it lies, its page pinned and
 * share-locked in *buf, or a copy in scratch and *buf invalid.  NULL (and no
 * lock) when there is no such node any more.  Raises an error for what is no
 * value of the column.
 */
extern const void *GraphBorrowValue(GraphHandle *handle, uint32 id,
									GraphScratch *scratch, Buffer *buf);

static inline void
GraphReturnValue(Buffer buf)
{
	if (BufferIsValid(buf))
		UnlockReleaseBuffer(buf);
}

/* The same as a copy. */
extern void *GraphCopyValue(GraphHandle *handle, uint32 id, GraphScratch *scratch);

/* Give back what node id's value takes outside its slot. */
extern void GraphFreeValue(GraphHandle *handle, uint32 id);

#endif							/* QV_GRAPH_PAGE_NODE_VALUE_H */
