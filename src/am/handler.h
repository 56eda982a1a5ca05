/*
 * handler.h
 *		The callbacks of the access methods.
 */
#ifndef QV_AM_HANDLER_H
#define QV_AM_HANDLER_H

#include "postgres.h"

#include "nodes/pathnodes.h"

/*
 * amcostestimate of all methods: the planner's note of an index has nothing else to tell
 * whether the index is Quiver's.
 */
extern void KnnCostEstimate(PlannerInfo *root, IndexPath *path, double loop_count,
							Cost *startup, Cost *total, Selectivity *selectivity,
							double *correlation, double *pages);

#endif							/* QV_AM_HANDLER_H */
