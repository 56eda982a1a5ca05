/*
 * pages.h
 *		Pages of lists, and free pages.
 */
#ifndef QV_IVF_PAGE_PAGES_H
#define QV_IVF_PAGE_PAGES_H

#include "ivf/codec/handle.h"

/*
 * Heavyweight page locks, by number.  Taken in this order; whoever moves rows
 * takes both.  See src/ivf/README.md, "Locks".
 */
#define IVF_MOVE_LOCK 0			/* exclusive: to move rows, to walk all of
								 * them */
#define IVF_LIST_LOCK(list) ((BlockNumber) (list) + 1)	/* share: to add a row */

/*
 * A page to be filled: one that was freed, or a new one at the end.  Pinned
 * and exclusively locked.  Two backends may get the same block from the free
 * space map: a page that was freed must have another kind before it is unlocked.
 */
extern Buffer IvfAllocPage(IvfHandle *handle);

/* Give back pages that nothing leads to any more: those of a list from head on. */
extern void IvfFreeList(IvfHandle *handle, uint32 list, uint32 generation,
						BlockNumber head);

/* Free one page, which the caller has pinned and locked exclusively. */
extern void IvfFreePage(IvfHandle *handle, Buffer buf);

/*
 * Read a page of a list and look whether it is one of that generation.
 * Returns it pinned and locked, or InvalidBuffer when the list has moved.  A
 * page of records or sketches must be of that number, too.
 */
extern Buffer IvfReadListPage(IvfHandle *handle, BlockNumber block, uint32 list,
							  uint32 generation, int lockmode);
extern Buffer IvfReadItemPage(IvfHandle *handle, IvfItemKind which, BlockNumber block,
							  const IvfItemPageData *wanted, int lockmode);

#endif							/* QV_IVF_PAGE_PAGES_H */
