/*
 * directory.h
 *		Entries of the directory of lists.
 */
#ifndef QV_IVF_PAGE_DIRECTORY_H
#define QV_IVF_PAGE_DIRECTORY_H

#include "ivf/codec/handle.h"

/* Makes an entry without pages from a centroid[width]. */
extern void IvfMakeEntry(const IvfLayout *layout, const QvOpclassInfo *opclass,
						 const float *centroid, uint32 parent, IvfEntry entry);

/* Finds the entry of a list.  Returns its page pinned, and locked in lockmode. */
extern Buffer IvfReadEntry(IvfHandle *handle, uint32 list, int lockmode, IvfEntry *entry);

/*
 * Changes the entry of a list whose centroid stays: head, tail, generation, rows and refused
 * become those of now.
 */
extern void IvfReplaceEntry(IvfHandle *handle, uint32 list, const IvfListRef *now);

/*
 * Replaces the entry of a list by the first of parts entries, and appends the others.  These
 * are no more than fit a page of the directory.  The caller holds IVF_MOVE_LOCK.
 */
extern void IvfReplaceByParts(IvfHandle *handle, uint32 list, const IvfEntry *entries, uint32 parts);

#endif							/* QV_IVF_PAGE_DIRECTORY_H */
