/*
 * meta.h
 *		The metapage of an index of posting lists.
 */
#ifndef QV_IVF_PAGE_META_H
#define QV_IVF_PAGE_META_H

#include "ivf/codec/handle.h"
#include "ivf/ivf.h"

/* Fills in the metapage of a new index, with one list, and derives its layout. */
extern void IvfMetaInit(IvfMetaData *meta, IvfLayout *layout, int dims,
						const QvIndexOptions *options, const QvOpclassInfo *opclass);

/* Reads and checks the metapage alone, and derives the layout. */
extern void IvfReadMeta(Relation index, IvfMetaData *meta, IvfLayout *layout);

/* Copies the metapage if it is ours and its numbers fit together.  Returns false otherwise. */
extern bool IvfPeekMeta(Relation index, IvfMetaData *meta);

/* Returns the metapage checked, pinned and exclusively locked. */
extern Buffer IvfLockMeta(IvfHandle *handle);

/* Changes flags of the metapage.  Writes one WAL record, the metapage, if a flag changes. */
extern void IvfSetFlags(IvfHandle *handle, uint8 set, uint8 clear);

/* The metapage on a page that was checked. */
#define IvfPageMeta(page) ((IvfMetaData *) QvPageGetData(page))

#endif							/* QV_IVF_PAGE_META_H */
