/*
 * plain.h
 *		Graphs of whole values, compared by their type's exact distance: types
 *		and metrics that are not quantized.
 */
#ifndef QV_GRAPH_PLAIN_H
#define QV_GRAPH_PLAIN_H

#include <float.h>
#include <math.h>

#include "graph/search.h"
#include "graph/values.h"

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

/* A plain graph on its pages, as a search sees it. */
typedef struct GraphPlainStore
{
	GraphStore	base;
	GraphHandle *handle;
	const void *query;			/* NULL: all distances are 0 */
	GraphScratch scratch;

	/* when set, called for every live node expanded, without locks held */
	void		(*visit) (void *arg, uint32 id, float distance);
	void	   *visit_arg;
} GraphPlainStore;

extern void GraphPlainStoreInit(GraphPlainStore *store, GraphHandle *handle,
								const void *query);

/* Offer the n nearest entry points. */
extern void GraphPlainStoreEnter(GraphStore *store, GraphSearch *search, int n);

/* Read the values of the entry points, or of an even share of them. */
extern void GraphPlainReadEntries(GraphHandle *handle, GraphEntryPoints *entry_points);

#endif							/* QV_GRAPH_PLAIN_H */
