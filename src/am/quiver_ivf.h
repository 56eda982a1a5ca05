/*
 * quiver_ivf.h
 *		What the planner's part of the top-k scan needs of quiver_ivf.
 */
#ifndef QV_AM_QUIVER_IVF_H
#define QV_AM_QUIVER_IVF_H

#include "am/knn_scan.h"
#include "nodes/pathnodes.h"

extern const KnnScanSource quiver_ivf_scans;

extern void quiverivfcostestimate(PlannerInfo *root, IndexPath *path, double loop_count,
								  Cost *startup, Cost *total, Selectivity *selectivity,
								  double *correlation, double *pages);

#endif							/* QV_AM_QUIVER_IVF_H */
