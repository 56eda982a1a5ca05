/*
 * quiver_graph.h
 *		What the planner's part of the top-k scan needs of quiver_graph.
 */
#ifndef QV_AM_QUIVER_GRAPH_H
#define QV_AM_QUIVER_GRAPH_H

#include "am/knn_scan.h"
#include "nodes/pathnodes.h"

extern const KnnScanSource quiver_graph_scans;

extern void quivergraphcostestimate(PlannerInfo *root, IndexPath *path, double loop_count,
									Cost *startup, Cost *total, Selectivity *selectivity,
									double *correlation, double *pages);

#endif							/* QV_AM_QUIVER_GRAPH_H */
