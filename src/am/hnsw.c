/*
 * hnsw.c
 *		pgvector's hnsw: its names, options, settings and defaults, on the graph engine.
 */
#include "postgres.h"

#include "am/graph_am.h"
#include "am/hnsw.h"
#include "fmgr.h"

static void
hnsw_start_scan(QvScan *scan, Relation index, const void *query, const KnnGoal *goal,
				KnnScanRules *rules)
{
	GraphAmStartScan(scan, query, HnswSettings(index), goal, rules);
}

static double
hnsw_nodes(Relation index, double rank)
{
	return GraphAmNodes(index, HnswSettings(index), rank);
}

static void
hnsw_sweep(Relation index, double table_rows, KnnSweep *sweep)
{
	GraphAmSweep(index, HnswSettings(index), sweep);
}

const KnnScanSource hnsw_scans = {
	.begin = GraphScanBegin,
	.start = hnsw_start_scan,
	.nodes = hnsw_nodes,
	.sweep = hnsw_sweep,
	.note_exact = GraphAmNoteExact
};

static IndexScanDesc
hnswbeginscan(Relation index, int nkeys, int norderbys)
{
	return KnnBeginScan(index, nkeys, norderbys, &hnsw_scans);
}

void
hnswcostestimate(PlannerInfo *root, IndexPath *path, double loop_count,
				 Cost *startup, Cost *total, Selectivity *selectivity,
				 double *correlation, double *pages)
{
	GraphAmCostEstimate(root, path, loop_count, HnswSettings, startup, total,
						selectivity, correlation, pages);
}

PG_FUNCTION_INFO_V1(hnswhandler);
Datum
hnswhandler(PG_FUNCTION_ARGS)
{
	HnswDefineSettings();
	PG_RETURN_POINTER(GraphAmRoutine(HnswAmOptions, hnswbeginscan, hnswcostestimate));
}

/*
 * Type-info support functions of pgvector's operator classes.  The catalog
 * names them; which type an operator class is for is told by its distance
 * function (opclass.c), so they have nothing to say.
 */
PG_FUNCTION_INFO_V1(hnsw_halfvec_support);
Datum
hnsw_halfvec_support(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(NULL);
}

PG_FUNCTION_INFO_V1(hnsw_bit_support);
Datum
hnsw_bit_support(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(NULL);
}

PG_FUNCTION_INFO_V1(hnsw_sparsevec_support);
Datum
hnsw_sparsevec_support(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(NULL);
}
