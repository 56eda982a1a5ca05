/*
 * candidate.h
 *		What an engine's scan proposes: rows with an approximate distance.
 */
#ifndef QV_SPACE_CANDIDATE_H
#define QV_SPACE_CANDIDATE_H

#include "postgres.h"

#include <math.h>

#include "storage/itemptr.h"

/* One row, or rows, that a scan proposes. */
typedef struct QvRowCandidate
{
	float		distance;		/* in search units, which the engine converts */
	float		error;			/* how far that may be off */
	bool		same_node;		/* more rows of the node of the last candidate */
	int			ntids;
	ItemPointerData *tids;		/* valid until the scan's next step */
} QvRowCandidate;

/*
 * How much of a candidate's error counts.  The certain bound is the product of
 * two norms; after a random rotation the error is their inner product, which
 * exceeds 6 / sqrt(dimensions) of that with a probability below 1e-8.  Rows then
 * come in an order that is off by that much, no more.
 */
static inline double
QvCandidateCertainty(int dims)
{
	return Min(1, 6 / sqrt(dims));
}

#endif							/* QV_SPACE_CANDIDATE_H */
