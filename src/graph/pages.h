/*
 * pages.h
 *		Creating the fixed pages of a graph index and changing its entry points.
 */
#ifndef QV_GRAPH_PAGES_H
#define QV_GRAPH_PAGES_H

#include "graph/cache.h"
#include "graph/query.h"
#include "types/type_ops.h"

/* Fill in a metapage for a new index: sizes, seed, no pages yet. */
extern void GraphMetaInit(GraphMetaData *meta, int dims, int m,
						  int ef_construction, const QvOpclassInfo *opclass);

/*
 * Write metapage, mean (NULL: zero) and entry points (NULL: none) at the start
 * of an empty fork, without WAL.  Fills in the block numbers of meta.
 */
extern void GraphCreatePages(Relation index, ForkNumber fork,
							 GraphMetaData *meta, const float *mean,
							 const GraphEntryPoints *entry_points);

/*
 * Append node id to the entry points, with the code of the centered vector x
 * (NULL in a plain graph).
 */
extern void GraphAddEntryPoint(Relation index, uint32 id, const float *x, bool building);

/* Empty the entry points.  The caller keeps inserts out. */
extern void GraphClearEntryPoints(Relation index);

/*
 * Let the entries of dead nodes lead elsewhere: replace(arg, id) returns the
 * node to use instead of id (id itself to leave it), and is called without
 * locks held.
 */
extern void GraphReplaceEntryPoints(Relation index, uint32 (*replace) (void *arg, uint32 id),
							   void *arg);

/* Fill entry number slot of an batch of entry points.  x may be NULL, likewise. */
extern void GraphSetEntryPoint(GraphEntryBatch *block, int slot, uint32 id,
						  const float *x, uint32 pdim, int entry_bits);

#endif							/* QV_GRAPH_PAGES_H */
