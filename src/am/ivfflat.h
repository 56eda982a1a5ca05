/*
 * ivfflat.h
 *		What the planner's part of the top-k scan needs of ivfflat.
 */
#ifndef QV_AM_IVFFLAT_H
#define QV_AM_IVFFLAT_H

#include "am/knn_scan.h"
#include "nodes/pathnodes.h"

extern const KnnScanSource ivfflat_scans;

extern void ivfflatcostestimate(PlannerInfo *root, IndexPath *path, double loop_count,
								Cost *startup, Cost *total, Selectivity *selectivity,
								double *correlation, double *pages);

#endif							/* QV_AM_IVFFLAT_H */
