/*
 * nearest.h
 *		The k nearest rows found so far, by exact distance.
 */
#ifndef QV_TOPK_NEAREST_H
#define QV_TOPK_NEAREST_H

#include "postgres.h"

#include "access/htup.h"
#include "storage/itemptr.h"

typedef struct TopkRow
{
	double		distance;
	ItemPointerData tid;		/* as the index has it: the root of the row's
								 * chain */
	HeapTuple	tuple;			/* a copy, or NULL: to be fetched again */
} TopkRow;

/*
 * A heap with the farthest row on top; ascending after TopkNearestSort().  By distance,
 * and then by TID, so that the order is the same in every session.
 */
typedef struct TopkNearest
{
	MemoryContext context;		/* of the rows and their tuples */
	TopkRow    *rows;
	uint32		count;
	uint32		wanted;			/* k */
	uint32		allocated;
	struct QvTids_hash *kept;	/* their heap TIDs: a row may be offered twice */
} TopkNearest;

/* Empty it, for k rows from now on. */
extern void TopkNearestReset(TopkNearest *nearest, uint32 wanted);

/*
 * Offer a row.  Returns where its tuple goes, until the next is offered; NULL when it has
 * no place or is there already.
 */
extern HeapTuple *TopkNearestOffer(TopkNearest *nearest, double distance, ItemPointer tid);

extern void TopkNearestSort(TopkNearest *nearest);

/* A set of heap TIDs: empty it, or make one; add one, false when it was there; look. */
extern void TopkTidsReset(struct QvTids_hash **tids, MemoryContext context);
extern bool TopkTidsAdd(struct QvTids_hash *tids, ItemPointer tid);
extern bool TopkTidsHas(struct QvTids_hash *tids, ItemPointer tid);

/* May it grow without taking more than so many bytes? */
extern bool TopkTidsFit(const struct QvTids_hash *tids, Size max_bytes);

#endif							/* QV_TOPK_NEAREST_H */
