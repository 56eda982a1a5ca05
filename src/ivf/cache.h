/*
 * cache.h
 *		What a backend keeps of an index of posting lists between queries: the
 *		mean, the rotation, the directory with all centroids, and where its
 *		pages were last found in shared buffers.
 */
#ifndef QV_IVF_CACHE_H
#define QV_IVF_CACHE_H

#include "ivf/handle.h"

/*
 * Open an index: reads the metapage (always) and the rest when it is not
 * cached or has changed.  The handle lives in CurrentMemoryContext and is
 * released with it.  Raises ERRCODE_INDEX_CORRUPTED, or the request to REINDEX
 * when the index was built by pgvector.
 */
extern IvfHandle *IvfOpen(Relation index, const QvOpclassInfo *opclass);

/* Have the directory as it is now.  False when it is what it was. */
extern bool IvfRefresh(IvfHandle *handle);

#endif							/* QV_IVF_CACHE_H */
