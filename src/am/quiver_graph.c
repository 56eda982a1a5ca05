/*
 * quiver_graph.c
 *		Quiver's own access method on the graph engine: settings quiver.*.
 */
#include "postgres.h"

#include "am/graph_am.h"
#include "am/quiver_graph.h"
#include "fmgr.h"

static void
quiver_graph_start_scan(QvScan *scan, Relation index, const void *query, const KnnGoal *goal,
						KnnScanRules *rules)
{
	GraphAmStartScan(scan, query, QuiverGraphSettings(index), goal, rules);
}

static double
quiver_graph_nodes(Relation index, double rank)
{
	return GraphAmNodes(index, QuiverGraphSettings(index), rank);
}

static void
quiver_graph_sweep(Relation index, double table_rows, KnnSweep *sweep)
{
	GraphAmSweep(index, QuiverGraphSettings(index), sweep);
}

const KnnScanSource quiver_graph_scans = {
	.begin = GraphScanBegin,
	.start = quiver_graph_start_scan,
	.nodes = quiver_graph_nodes,
	.sweep = quiver_graph_sweep,
	.note_exact = GraphAmNoteExact
};

static IndexScanDesc
quivergraphbeginscan(Relation index, int nkeys, int norderbys)
{
	return KnnBeginScan(index, nkeys, norderbys, &quiver_graph_scans);
}

void
quivergraphcostestimate(PlannerInfo *root, IndexPath *path, double loop_count,
						Cost *startup, Cost *total, Selectivity *selectivity,
						double *correlation, double *pages)
{
	GraphAmCostEstimate(root, path, loop_count, QuiverGraphSettings, startup, total,
						selectivity, correlation, pages);
}

PG_FUNCTION_INFO_V1(quivergraphhandler);
Datum
quivergraphhandler(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(GraphAmRoutine(QuiverGraphAmOptions, quivergraphbeginscan,
									 quivergraphcostestimate));
}
