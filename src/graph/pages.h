/*
 * pages.h
 *		Creating the fixed pages of a graph index and changing its entry table.
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
 * Write metapage, mean (NULL: zero) and entry table (NULL: none) at the start
 * of an empty fork, without WAL.  Fills in the block numbers of meta.
 */
extern void GraphCreatePages(Relation index, ForkNumber fork,
							 GraphMetaData *meta, const float *mean,
							 const GraphRoutes *routes);

/* Rewrite the metapage in place, without WAL. */
extern void GraphRewriteMeta(Relation index, const GraphMetaData *meta);

/*
 * Append node id to the entry table, with the code of the centered vector x
 * (NULL in a plain graph).
 */
extern void GraphAddRoute(Relation index, uint32 id, const float *x, bool building);

/* Empty the entry table.  The caller keeps inserts out. */
extern void GraphClearRoutes(Relation index);

/*
 * Let the entries of dead nodes lead elsewhere: replace(arg, id) returns the
 * node to use instead of id (id itself to leave it), and is called without
 * locks held.
 */
extern void GraphReplaceRoutes(Relation index, uint32 (*replace) (void *arg, uint32 id),
							   void *arg);

/* Fill entry number slot of an entry table block.  x may be NULL, likewise. */
extern void GraphRouteSet(GraphRouteBlock *block, int slot, uint32 id,
						  const float *x, uint32 pdim, int route_bits);

#endif							/* QV_GRAPH_PAGES_H */
