/*
 * build_write.h
 *		Writing the pages of a new graph index.
 */
#ifndef QV_GRAPH_BUILD_WRITE_H
#define QV_GRAPH_BUILD_WRITE_H

#include "graph/build_form.h"

/*
 * Write metapage, mean and entry points (NULL: none) at the start of an empty
 * fork, without WAL, filling in the block numbers of handle->meta.
 */
extern void GraphWriteFixedPages(GraphHandle *handle, ForkNumber fork,
								 const GraphEntryPoints *entry_points);

/* Write the graph in memory out, all pages of the index. */
extern void GraphBuildWrite(GraphBuildState *bs);

#endif							/* QV_GRAPH_BUILD_WRITE_H */
