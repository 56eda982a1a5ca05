/*
 * meta.h
 *		The metapage of an index of posting lists.
 */
#ifndef QV_IVF_PAGE_META_H
#define QV_IVF_PAGE_META_H

#include "ivf/codec/handle.h"
#include "ivf/ivf.h"

/* Fill in the metapage of a new index, with one list, and derive its layout. */
extern void IvfMetaInit(IvfMetaData *meta, IvfLayout *layout, int dims,
						const QvIndexOptions *options, const QvOpclassInfo *opclass);

/* Read and check the metapage alone, and derive the layout. */
extern void IvfReadMeta(Relation index, IvfMetaData *meta, IvfLayout *layout);

/* Copy the metapage if it is one of ours and makes sense; false, not an error, if not. */
extern bool IvfPeekMeta(Relation index, IvfMetaData *meta);

/* Pin, lock exclusively and check it, to change it. */
extern Buffer IvfLockMeta(IvfHandle *handle);

/* Change flags of the metapage.  WAL record: the metapage, if that changes it. */
extern void IvfSetFlags(IvfHandle *handle, uint8 set, uint8 clear);

/* The metapage in a page that was checked. */
#define IvfPageMeta(page) ((IvfMetaData *) QvPageGetData(page))

#endif							/* QV_IVF_PAGE_META_H */
