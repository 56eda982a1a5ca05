/*
 * nearest.h
 *		The k nearest rows found so far, by exact distance.
 *
 * Of a row it may be known between which distances it lies: then it is measured only where that
 * does not tell its place (src/topk/README.md, "Executor").
 */
#ifndef QV_TOPK_NEAREST_H
#define QV_TOPK_NEAREST_H

#include "postgres.h"

#include "access/htup.h"
#include "storage/itemptr.h"

typedef struct TopkRow
{
	double		distance;
	double		least;			/* less: it was not measured, and is in
								 * between */
	ItemPointerData tid;		/* as the index has it: the root of the row's
								 * chain */
	HeapTuple	tuple;			/* a copy, or NULL: to be fetched again */
} TopkRow;

/* Measure a row: the one that was fetched last, or one that is kept, in whose place it is then. */
typedef void (*TopkMeasure) (void *arg, TopkRow *row, bool fetched);

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
	TopkMeasure measure;		/* NULL: all rows offered are measured */
	void	   *arg;
} TopkNearest;

/* Empty it, for k rows from now on; measure may be NULL. */
extern void TopkNearestReset(TopkNearest *nearest, uint32 wanted, TopkMeasure measure, void *arg);

/* Is a row that is not nearer than that farther than k others? */
extern bool TopkNearestIsFull(const TopkNearest *nearest, double least);

/*
 * Offer a row of that distance, or one that is between two; it keeps the row's tuple.  False when it has no place,
 * or is there already.
 */
extern bool TopkNearestOffer(TopkNearest *nearest, TopkRow *row);

extern void TopkNearestSort(TopkNearest *nearest);

/* Measure those that were not, from one to before another. */
extern void TopkNearestMeasure(TopkNearest *nearest, uint32 from, uint32 to);

/* A set of heap TIDs: empty it, or make one; add one, false when it was there; look. */
extern void TopkTidsReset(struct QvTids_hash **tids, MemoryContext context);
extern bool TopkTidsAdd(struct QvTids_hash *tids, ItemPointer tid);
extern bool TopkTidsHas(struct QvTids_hash *tids, ItemPointer tid);

/* May it grow without taking more than so many bytes? */
extern bool TopkTidsFit(const struct QvTids_hash *tids, Size max_bytes);

#endif							/* QV_TOPK_NEAREST_H */
