/*
 * pages.h
 *		Pages of lists, and free pages.
 */
#ifndef QV_IVF_PAGE_PAGES_H
#define QV_IVF_PAGE_PAGES_H

#include "ivf/codec/handle.h"

/*
 * Heavyweight page locks, by number.  They are taken in this order.  Moving rows needs
 * both.  See src/ivf/README.md, "Locks".
 */
#define IVF_MOVE_LOCK 0			/* exclusive: to move rows, to read all rows */
#define IVF_LIST_LOCK(list) ((BlockNumber) (list) + 1)	/* share: to add a row */

/*
 * Returns a page to be filled, pinned and exclusively locked: a free page, or a new one at
 * the end.  Two backends may get the same block from the free space map.  A free page must
 * therefore get another kind before it is unlocked.
 */
extern Buffer IvfAllocPage(IvfHandle *handle);

/* Frees the pages of a list from head on, which nothing leads to any more. */
extern void IvfFreeList(IvfHandle *handle, uint32 list, uint32 generation,
						BlockNumber head);

/* Frees a page that the caller has pinned and exclusively locked. */
extern void IvfFreePage(IvfHandle *handle, Buffer buf);

/*
 * Read a page of codes, or of records or sketches.  Return it pinned and locked.  Return
 * InvalidBuffer if it is not of that list and generation: the list has moved.  A page of
 * records or sketches must have the number in *wanted, too.
 */
extern Buffer IvfReadListPage(IvfHandle *handle, BlockNumber block, uint32 list,
							  uint32 generation, int lockmode);
extern Buffer IvfReadItemPage(IvfHandle *handle, IvfItemKind which, BlockNumber block,
							  const IvfItemPageData *wanted, int lockmode);

#endif							/* QV_IVF_PAGE_PAGES_H */
