/*
 * graph_am.h
 *		The index access method over the quantized graph, which hnsw and
 *		quiver_graph share.
 */
#ifndef QV_AM_GRAPH_AM_H
#define QV_AM_GRAPH_AM_H

#include "access/amapi.h"
#include "access/parallel.h"
#include "am/knn_scan.h"
#include "am/graph_options.h"
#include "nodes/pathnodes.h"

/*
 * An access method on the graph engine.  Only options and settings differ, and the
 * callbacks that read them.
 */
extern IndexAmRoutine *GraphAmRoutine(amoptions_function options,
									  ambeginscan_function beginscan,
									  amcostestimate_function costestimate);

/* Where a worker of a build begins. */
extern PGDLLEXPORT void GraphParallelBuildMain(dsm_segment *seg, shm_toc *toc);

/* KnnScanSource.start, by these settings. */
extern void GraphAmStartScan(QvScan *scan, const void *query, const GraphScanSettings *settings,
							 const KnnGoal *goal, KnnScanRules *rules);

/* KnnScanSource.nodes, likewise. */
extern double GraphAmNodes(Relation index, const GraphScanSettings *settings, double rank);

/* KnnScanSource.sweep, likewise. */
extern void GraphAmSweep(Relation index, const GraphScanSettings *settings, KnnSweep *sweep);

/* KnnScanSource.note_exact. */
extern void GraphAmNoteExact(Relation index, double cost);

extern void GraphAmCostEstimate(PlannerInfo *root, IndexPath *path,
								double loop_count, GraphSettingsOf settings_of,
								Cost *startup, Cost *total,
								Selectivity *selectivity, double *correlation,
								double *pages);

/* Is this index one of ours on the graph engine? */
extern bool IsGraphIndex(Relation index);

#endif							/* QV_AM_GRAPH_AM_H */
