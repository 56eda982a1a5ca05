/*
 * write.h
 *		Writing the pages of a new graph index.
 */
#ifndef QV_GRAPH_BUILD_WRITE_H
#define QV_GRAPH_BUILD_WRITE_H

#include "graph/build/build_form.h"

/*
 * Write metapage, mean and entry points (NULL: none) at the start of an empty
 * fork, without WAL, filling in the block numbers of handle->meta.
 */
extern void GraphWriteFixedPages(GraphHandle *handle, ForkNumber fork,
								 const GraphEntryPoints *entry_points);

/*
 * The graph in memory becomes pages: the leader writes those before the nodes and
 * makes room for these, then everyone writes nodes, then the leader what follows.
 */
extern void GraphWriteHead(GraphBuildState *bs);
extern void GraphWriteNodes(GraphBuildState *bs);
extern void GraphWriteTail(GraphBuildState *bs);

#endif							/* QV_GRAPH_BUILD_WRITE_H */
