/*
 * walk.h
 *		Walking along a list that cannot move, page by page and row by row.
 *
 * Pages are copied, so that the walk holds no lock between its steps.  One that is
 * not what it should be raises ERRCODE_INDEX_CORRUPTED.
 */
#ifndef QV_IVF_PAGE_WALK_H
#define QV_IVF_PAGE_WALK_H

#include "ivf/codec/handle.h"

typedef struct IvfWalk
{
	IvfHandle  *handle;
	uint32		list;
	uint32		generation;
	BlockNumber next;			/* block to read next */
	uint32		number;			/* of that page in the list */
	IvfPageImages images;		/* of the page in hand */
	uint32		slot;			/* the next on the page */
	uint8	   *scan;			/* a one-bit code */
} IvfWalk;

/* Have room for walks, in CurrentMemoryContext. */
extern void IvfWalkInit(IvfWalk *walk, IvfHandle *handle);
extern void IvfWalkEnd(IvfWalk *walk);

/* Begin with the first page of a list. */
extern void IvfWalkStart(IvfWalk *walk, uint32 list, BlockNumber head);

/*
 * Read the page in hand again, from its first row on: rows may have been added to it, and
 * pages after it.
 */
extern void IvfWalkAgain(IvfWalk *walk);

/* Have the next page in hand; false when there is none. */
extern bool IvfWalkNextPage(IvfWalk *walk);

/* The heap TID of a slot in use of the page in hand; invalid when it is dead. */
extern ItemPointer IvfWalkTid(IvfWalk *walk, uint32 slot);

/*
 * Read a slot in use; false when it is dead.  What the row refers to lives until the
 * walk's next step.
 */
extern bool IvfWalkRead(IvfWalk *walk, uint32 slot, IvfRow *row);

/* The next live row of the list. */
extern bool IvfWalkNext(IvfWalk *walk, IvfRow *row);

#endif							/* QV_IVF_PAGE_WALK_H */
