/*
 * walk.h
 *		Reading a list that cannot move, page by page and row by row.
 *
 * Pages are copied, so that the walk holds no lock between its steps.  A page of another
 * list, generation or number raises ERRCODE_INDEX_CORRUPTED.
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
	IvfPageImages images;		/* of the current page */
	uint32		slot;			/* next slot of the current page */
	uint8	   *scan;			/* room for a one-bit code */
} IvfWalk;

/* Allocates what walks need, in CurrentMemoryContext. */
extern void IvfWalkInit(IvfWalk *walk, IvfHandle *handle);
extern void IvfWalkEnd(IvfWalk *walk);

/* Starts a walk before the first page of a list. */
extern void IvfWalkStart(IvfWalk *walk, uint32 list, BlockNumber head);

/*
 * Goes back before the current page, which is then read again from its first row on.  Rows
 * may have been added to it, and pages after it.
 */
extern void IvfWalkAgain(IvfWalk *walk);

/* Reads the next page; returns false if there is none. */
extern bool IvfWalkNextPage(IvfWalk *walk);

/* Returns the heap TID of a used slot of the current page; invalid if the slot is dead. */
extern ItemPointer IvfWalkTid(IvfWalk *walk, uint32 slot);

/*
 * Reads a used slot of the current page; returns false if it is dead.  What the row refers
 * to lives until the walk's next step.
 */
extern bool IvfWalkRead(IvfWalk *walk, uint32 slot, IvfRow *row);

/* Reads the next live row of the list; returns false if there is none. */
extern bool IvfWalkNext(IvfWalk *walk, IvfRow *row);

#endif							/* QV_IVF_PAGE_WALK_H */
