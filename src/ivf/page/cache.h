/*
 * cache.h
 *		What a backend caches of an index of posting lists: the mean, the rotation,
 *		the directory with all centroids, and buffer hints.
 */
#ifndef QV_IVF_PAGE_CACHE_H
#define QV_IVF_PAGE_CACHE_H

#include "ivf/codec/handle.h"

/*
 * Opens an index.  Reads the metapage, and the rest if it is not cached or has changed.
 * The handle lives in CurrentMemoryContext and is released with it.  Raises
 * ERRCODE_INDEX_CORRUPTED, or an error with the hint to REINDEX if the index was built by
 * pgvector or has an unknown format version.
 */
extern IvfHandle *IvfOpen(Relation index, const QvOpclassInfo *opclass);

/* Brings the handle's directory up to date.  Returns false if nothing has changed. */
extern bool IvfRefresh(IvfHandle *handle);

#endif							/* QV_IVF_PAGE_CACHE_H */
