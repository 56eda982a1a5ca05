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
 * Returns the distance as float32, rounded down, so that it is a lower bound.  NaN and
 * distances beyond float32 become the largest number, since infinity would not enter a
 * Pool.
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
 * Returns the value of node id.  Either the value lies on a page, which is pinned and
 * share-locked in *buf, or it is a copy in scratch and *buf is invalid.  NULL (and no
 * lock): the node is gone.  Raises an error if the bytes are no value of the column.
 */
extern const void *GraphBorrowValue(GraphHandle *handle, uint32 id,
									GraphScratch *scratch, Buffer *buf);

static inline void
GraphReturnValue(Buffer buf)
{
	if (BufferIsValid(buf))
		UnlockReleaseBuffer(buf);
}

/* Returns a copy of the value of node id, or NULL if the node is gone. */
extern void *GraphCopyValue(GraphHandle *handle, uint32 id, GraphScratch *scratch);

/* Frees the space that node id's value needs outside its slot. */
extern void GraphFreeValue(GraphHandle *handle, uint32 id);

#endif							/* QV_GRAPH_PAGE_NODE_VALUE_H */
