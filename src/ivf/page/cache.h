/*
 * cache.h
 *		What a backend keeps of an index of posting lists between queries: the
 *		mean, the rotation, the directory with all centroids, and where its
 *		pages were last found in shared buffers.
 */
#ifndef QV_IVF_PAGE_CACHE_H
#define QV_IVF_PAGE_CACHE_H

#include "ivf/codec/handle.h"
#include "space/bit_codes.h"

/*
 * Open an index: reads the metapage (always) and the rest when it is not
 * cached or has changed.  The handle lives in CurrentMemoryContext and is
 * released with it.  Raises ERRCODE_INDEX_CORRUPTED, or the request to REINDEX
 * when the index was built by pgvector.
 */
extern IvfHandle *IvfOpen(Relation index, const QvOpclassInfo *opclass);

/* Have the directory as it is now.  False when it is what it was. */
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
