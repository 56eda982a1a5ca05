/*
 * cache.h
 *		Opening a graph index.  Its mean, rotation and entry points are cached, and where
 *		its pages were last found in shared buffers.
 */
#ifndef QV_GRAPH_PAGE_CACHE_H
#define QV_GRAPH_PAGE_CACHE_H

#include "graph/page/handle.h"

/*
 * Opens an index.  Reads the metapage always, and the rest if it is not cached.  The handle
 * is allocated in CurrentMemoryContext, and released with it.  Raises
 * ERRCODE_INDEX_CORRUPTED, or the request to REINDEX when the index was built by pgvector.
 */
extern GraphHandle *GraphOpen(Relation index, const QvOpclassInfo *opclass);

#endif							/* QV_GRAPH_PAGE_CACHE_H */
