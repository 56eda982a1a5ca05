/*
 * hnsw.h
 *		What the planner's part of the top-k scan needs of hnsw.
 */
#ifndef QV_AM_HNSW_H
#define QV_AM_HNSW_H

#include "am/knn_scan.h"
#include "nodes/pathnodes.h"

extern const KnnScanSource hnsw_scans;

extern void hnswcostestimate(PlannerInfo *root, IndexPath *path, double loop_count,
							 Cost *startup, Cost *total, Selectivity *selectivity,
							 double *correlation, double *pages);

#endif							/* QV_AM_HNSW_H */
