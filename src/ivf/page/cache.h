/*
 * cache.h
 *		What a backend caches of an index of posting lists: the mean, the rotation,
 *		the directory with all centroids, and buffer hints.
 */
#ifndef QV_IVF_PAGE_CACHE_H
#define QV_IVF_PAGE_CACHE_H

#include "ivf/codec/handle.h"
#include "space/bit_codes.h"

/*
 * Opens an index.  Reads the metapage, and the rest if it is not cached or has changed.
 * The handle lives in CurrentMemoryContext and is released with it.  Raises
 * ERRCODE_INDEX_CORRUPTED, or an error with the hint to REINDEX if the index was built by
 * pgvector or has an unknown format version.
 */
extern IvfHandle *IvfOpen(Relation index, const QvOpclassInfo *opclass);

/* Brings the handle's directory up to date.  Returns false if nothing has changed. */
extern bool IvfRefresh(IvfHandle *handle);

/*
 * What is known of the rows of an index (known.h): NULL, nothing.  Other takes its place, with its part and
 * its codes, or nothing.  Searches that have begun with it must not use it after that.
 */
struct IvfKnownRows;
extern struct IvfKnownRows *IvfKeptKnown(const IvfHandle *handle);
extern void IvfKeepKnown(IvfHandle *handle, QvRelCachePart *part, struct IvfKnownRows *known, QvBitCodes *codes);
extern void IvfForgetKnown(IvfHandle *handle);

/* What was spent for want of it, in rows looked at. */
extern void IvfNoteSpent(IvfHandle *handle, double rows);
extern double IvfSpent(const IvfHandle *handle);

/* The same of an index that is not open. */
extern const struct IvfKnownRows *IvfFindKnown(Relation index, const IvfMetaData *meta, double *spent);

#endif							/* QV_IVF_PAGE_CACHE_H */
