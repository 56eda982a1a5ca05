/*
 * smallest.h
 *		Choosing the nearest of many lists.
 */
#ifndef QV_IVF_SEARCH_SMALLEST_H
#define QV_IVF_SEARCH_SMALLEST_H

#include "ivf/codec/codec.h"

/* By distance; of the same distance, the list of the lower number. */
static inline bool
IvfNearer(const IvfNear *a, const IvfNear *b)
{
	return a->distance < b->distance || (a->distance == b->distance && a->list < b->list);
}

/* Bring the n nearest of count to the front, and a few more: returns how many. */
extern uint32 IvfSelect(IvfNear *items, uint32 count, uint32 n);

/* Bring the n nearest of count to the front, in order. */
extern void IvfSelectNearest(IvfNear *items, uint32 count, uint32 n);

/*
 * Bring the nearest few of count to the front, in any order, and return how many:
 * at least 20, about 1.5 times that when distances are in random order.  count is at
 * least IVF_SELECT_FEW.
 */
#define IVF_SELECT_FEW 32

extern uint32 IvfSelectFew(IvfNear *items, uint32 count);

#endif							/* QV_IVF_SEARCH_SMALLEST_H */
