/*
 * graph_engine.c
 *		The quantized graph as an engine of access methods; see engine.h.
 */
#include "postgres.h"

#include "am/graph_engine.h"
#include "am/opclass.h"
#include "optimizer/optimizer.h"
#include "space/members.h"

/* Where the workers of a build begin. */
extern PGDLLEXPORT void GraphParallelBuildMain(dsm_segment *seg, shm_toc *toc);

void
GraphParallelBuildMain(dsm_segment *seg, shm_toc *toc)
{
	GraphParallelWork(toc, QvGetOpclass);
}

int
KnnEfSearch(Relation index, const KnnSettings *settings)
{
	return settings->ef_search > 0 ? settings->ef_search : GraphEfFor(index, settings->recall);
}

static void
graph_estimate_cost(Relation index, const KnnSettings *settings, double tuples, QvSearchCost *cost)
{
	GraphEstimateCost(index, KnnEfSearch(index, settings), cost);
}

/* Candidates when the number of rows is not known, at least. */
#define UNKNOWN_ROWS 40

/*
 * A recall's ef was measured for so many rows.  Of more the last ones are harder to
 * find: word vectors take 76 candidates for .95 of the 10 nearest, 240 for that of 100.
 */
#define MEASURED_ROWS 10

/* An ef that the user has chosen is for a quarter as many rows under a condition: 40 for 10. */
#define CHOSEN_SHARE 4

/* For how many rows is ef enough?  0: for any number. */
static int
rows_of_ef(const KnnSettings *settings, bool filtered)
{
	if (settings->ef_search == 0)
		return MEASURED_ROWS;
	return filtered ? Max(MEASURED_ROWS, settings->ef_search / CHOSEN_SHARE) : 0;
}

static void
graph_start(QvScan *scan, Relation index, const KnnSettings *settings, const void *query,
			const KnnGoal *goal, KnnScanRules *rules)
{
	GraphScanParams params = {0};

	KnnSetRules(settings, rules);
	rules->max_tuples = settings->max_scan_tuples;
	rules->limited = settings->max_scan_tuples != DEFAULT_MAX_SCAN_TUPLES;
	params.ef = KnnEfSearch(index, settings);
	/* nobody says how many rows are wanted: as many as by default elsewhere */
	if (!goal && settings->ef_search == 0)
		params.ef = Max(params.ef, UNKNOWN_ROWS);
	rules->first_rows = params.ef;
	params.iterative = rules->iterative;
	if (goal)
	{
		/*
		 * enough for all rows at once, and no more unless some of them will
		 * not do
		 */
		rules->iterative = params.iterative = goal->filtered;
		rules->restart = !goal->filtered;

		/*
		 * the rows wanted are the nearest, in whatever order others would
		 * come
		 */
		rules->strict = true;
		params.ef_rows = rows_of_ef(settings, goal->filtered);
		params.rank = goal->filtered ? goal->rows : goal->rank;
		params.expected_rank = goal->rank;
		params.follow = goal->filtered && !goal->sweep;
	}
	params.only = goal ? goal->only : NULL;
	params.sweep = goal && goal->sweep;
	params.known_only = goal && goal->known_only;
	params.strict = rules->strict;
	params.max_memory = KnnScanMemory(settings);
	GraphScanStart(scan, query, &params);
}

static double
graph_nodes(Relation index, const KnnSettings *settings, double rank)
{
	GraphScanParams params = {.follow = true};

	params.ef = KnnEfSearch(index, settings);
	params.ef_rows = rows_of_ef(settings, true);
	return GraphNodesFor(index, GraphEfForRank(&params, rank));
}

static void
graph_sweep(Relation index, const KnnSettings *settings, double table_rows, KnnSweep *sweep)
{
	GraphSweepCost cost;

	GraphGetSweepCost(index, &cost);
	sweep->pages = cost.pages;
	sweep->known = cost.known;
	sweep->knows_codes = cost.knows_codes;
	sweep->spent = cost.spent;
	if (sweep->pages <= (BlockNumber) Max(effective_cache_size, NBuffers) / 2)
	{
		sweep->learns = QvTidMapMemory() / sizeof(uint32);
		if (cost.codes < QvTidMapMemory())
			sweep->learns_codes = (QvTidMapMemory() - cost.codes) / sizeof(uint32);
	}
	sweep->waiting = KnnScanMemory(settings) / QV_MEMBER_BYTES;
	/* those left when there were just too many */
	sweep->kept = GraphSweepKept(KnnScanMemory(settings)) / 2;
}

static void
graph_note_exact(Relation index, double cost)
{
	QvOpclassInfo opclass;

	QvGetOpclass(index, &opclass);
	GraphNoteExact(index, &opclass, cost);
}

const KnnEngine knn_graph_engine = {
	.build = GraphBuild,
	.build_empty = GraphBuildEmpty,
	.phase_name = GraphBuildPhaseName,
	.insert = GraphInsert,
	.bulk_delete = GraphBulkDelete,
	.vacuum_cleanup = GraphVacuumCleanup,
	.estimate_cost = graph_estimate_cost,
	.begin = GraphScanBegin,
	.start = graph_start,
	.nodes = graph_nodes,
	.sweep = graph_sweep,
	.note_exact = graph_note_exact
};
