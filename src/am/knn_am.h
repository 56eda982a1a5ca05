/*
 * knn_am.h
 *		What the access methods of all engines have in common.
 */
#ifndef QV_AM_KNN_AM_H
#define QV_AM_KNN_AM_H

#include "access/amapi.h"
#include "nodes/pathnodes.h"

/*
 * An access method that orders by distance and does nothing else, with so many
 * support functions.  The engine fills in building, inserting, vacuum, options,
 * cost and where a scan begins.
 */
extern IndexAmRoutine *KnnAmRoutine(int support);

/* What a search costs before the first row comes, by the engine. */
typedef struct KnnCost
{
	double		pages;			/* touched */
	double		tuples;			/* rows a search yields; more take more
								 * searches */
	double		evaluations;	/* distances computed or estimated */
} KnnCost;

/* Whether a path can be had at all: ordered by one distance, and an index that exists. */
extern bool KnnCanScan(const IndexPath *path);

/* amcostestimate; cost is not looked at when the path cannot be had. */
extern void KnnCostEstimate(PlannerInfo *root, IndexPath *path, double loop_count,
							const KnnCost *cost, Cost *startup, Cost *total,
							Selectivity *selectivity, double *correlation,
							double *pages);

#endif							/* QV_AM_KNN_AM_H */
