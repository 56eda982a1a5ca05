/*
 * candidate.h
 *		What an engine's scan proposes: rows with an approximate distance.
 */
#ifndef QV_STORAGE_CANDIDATE_H
#define QV_STORAGE_CANDIDATE_H

#include "postgres.h"

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

#endif							/* QV_STORAGE_CANDIDATE_H */
