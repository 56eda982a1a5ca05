/*
 * write.h
 *		Writing the pages of a new graph index.
 */
#ifndef QV_GRAPH_BUILD_WRITE_H
#define QV_GRAPH_BUILD_WRITE_H

#include "graph/build/build_form.h"

/*
 * Writes metapage, mean and entry points (NULL: none) at the start of an empty fork,
 * without WAL.  Sets the block numbers in handle->meta.
 */
extern void GraphWriteFixedPages(GraphHandle *handle, ForkNumber fork,
								 const GraphEntryPoints *entry_points);

/*
 * Write the graph in memory to pages.  First the leader writes what is before the nodes,
 * and makes room for these.  Then everyone writes nodes, and last the leader what follows.
 */
extern void GraphWriteHead(GraphBuildState *bs);
extern void GraphWriteNodes(GraphBuildState *bs);
extern void GraphWriteTail(GraphBuildState *bs);

#endif							/* QV_GRAPH_BUILD_WRITE_H */
