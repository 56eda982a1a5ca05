/*
 * cache.h
 *		Opening a graph index.  Its mean, rotation and entry points, and where
 *		its pages were last found in shared buffers, are kept between queries.
 */
#ifndef QV_GRAPH_CACHE_H
#define QV_GRAPH_CACHE_H

#include "graph/handle.h"

/*
 * Open an index: reads the metapage (always) and the rest when it is not
 * cached.  The handle lives in CurrentMemoryContext and is released with it.
 * Raises ERRCODE_INDEX_CORRUPTED, or the request to REINDEX when the index was
 * built by pgvector.
 */
extern GraphHandle *GraphOpen(Relation index, const QvOpclassInfo *opclass);

#endif							/* QV_GRAPH_CACHE_H */
