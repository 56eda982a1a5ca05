/*
 * directory.h
 *		Entries of the directory of lists.
 */
#ifndef QV_IVF_PAGE_DIRECTORY_H
#define QV_IVF_PAGE_DIRECTORY_H

#include "ivf/codec/handle.h"

/* Make an entry without pages from a centroid[width]. */
extern void IvfMakeEntry(const IvfLayout *layout, const QvOpclassInfo *opclass,
						 const float *centroid, uint32 parent, IvfEntry entry);

/* The entry of a list, for reading or changing: pinned, locked as asked. */
extern Buffer IvfReadEntry(IvfHandle *handle, uint32 list, int lockmode, IvfEntry *entry);

/*
 * Let the entry of a list that stays what it is lead to other pages: head, tail,
 * generation, rows and refused of now.
 */
extern void IvfReplaceEntry(IvfHandle *handle, uint32 list, const IvfListRef *now);

/*
 * Replace it by the first of some, and append the others, no more than fit a page of the
 * directory; for who holds IVF_MOVE_LOCK.
 */
extern void IvfReplaceByParts(IvfHandle *handle, uint32 list, const IvfEntry *entries, uint32 parts);

#endif							/* QV_IVF_PAGE_DIRECTORY_H */
