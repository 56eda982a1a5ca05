/*
 * graph_am.c
 *		The index access method over the quantized graph; see graph_am.h.
 */
#include "postgres.h"

#include <math.h>

#include "access/amapi.h"
#include "am/graph_am.h"
#include "am/knn_am.h"
#include "am/knn_scan.h"
#include "am/opclass.h"
#include "compat.h"
#include "optimizer/optimizer.h"
#include "space/members.h"

/* ---- build, insert, vacuum ---- */

static IndexBuildResult *
graphbuild(Relation heap, Relation index, IndexInfo *info)
{
	QvOpclassInfo opclass;
	GraphOptions options;

	QvGetOpclass(index, &opclass);
	GraphAmGetOptions(index->rd_options, &options);
	return GraphBuild(heap, index, info, &opclass, &options);
}

void
GraphParallelBuildMain(dsm_segment *seg, shm_toc *toc)
{
	GraphParallelWork(toc, QvGetOpclass);
}

static void
graphbuildempty(Relation index)
{
	QvOpclassInfo opclass;
	GraphOptions options;

	QvGetOpclass(index, &opclass);
	GraphAmGetOptions(index->rd_options, &options);
	GraphBuildEmpty(index, &opclass, &options);
}

static bool
graphinsert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
			Relation heap, IndexUniqueCheck unique, bool unchanged,
			IndexInfo *info)
{
	QvOpclassInfo opclass;
	void	   *value;

	if (isnull[0])
		return false;
	QvGetOpclass(index, &opclass);
	value = PG_DETOAST_DATUM(values[0]);
	GraphInsert(index, &opclass, value, tid);
	if (value != DatumGetPointer(values[0]))
		pfree(value);
	return false;
}

static IndexBulkDeleteResult *
graphbulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
				IndexBulkDeleteCallback callback, void *callback_state)
{
	QvOpclassInfo opclass;

	QvGetOpclass(info->index, &opclass);
	return GraphBulkDelete(info, stats, callback, callback_state, &opclass);
}

static IndexBulkDeleteResult *
graphvacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	QvOpclassInfo opclass;

	if (info->analyze_only)
		return stats;
	QvGetOpclass(info->index, &opclass);
	return GraphVacuumCleanup(info, stats, &opclass);
}

/* ---- cost ---- */

void
GraphAmCostEstimate(PlannerInfo *root, IndexPath *path, double loop_count,
					GraphSettingsOf settings_of, Cost *startup, Cost *total,
					Selectivity *selectivity, double *correlation, double *pages)
{
	KnnCost		cost = {0};
	GraphCost	graph;
	Relation	index;

	if (KnnCanScan(path))
	{
		index = index_open(path->indexinfo->indexoid, NoLock);
		GraphEstimateCost(index, settings_of(index)->ef_search, &graph);
		index_close(index, NoLock);
		cost.pages = graph.pages;
		cost.tuples = graph.tuples;
		cost.evaluations = graph.evaluations;
	}
	KnnCostEstimate(root, path, loop_count, &cost, startup, total, selectivity,
					correlation, pages);
}

/* ---- scan ---- */

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
rows_of_ef(const GraphScanSettings *settings, bool filtered)
{
	if (settings->by_recall)
		return MEASURED_ROWS;
	return filtered ? Max(MEASURED_ROWS, settings->ef_search / CHOSEN_SHARE) : 0;
}

void
GraphAmStartScan(QvScan *scan, const void *query, const GraphScanSettings *settings,
				 const KnnGoal *goal, KnnScanRules *rules)
{
	GraphScanParams params;

	rules->iterative = settings->shared.iterative_scan != ITERATIVE_SCAN_OFF;
	rules->strict = settings->shared.iterative_scan == ITERATIVE_SCAN_STRICT;
	rules->relaxed = settings->shared.iterative_scan == ITERATIVE_SCAN_RELAXED;
	rules->max_tuples = settings->max_scan_tuples;
	rules->limited = settings->max_scan_tuples != DEFAULT_MAX_SCAN_TUPLES;
	rules->first_rows = settings->ef_search;
	memset(&params, 0, sizeof(params));
	params.ef = settings->ef_search;
	/* nobody says how many rows are wanted: as many as by default elsewhere */
	if (!goal && settings->by_recall)
		rules->first_rows = params.ef = Max(params.ef, UNKNOWN_ROWS);
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
	params.max_memory = QvScanMemory(&settings->shared);
	GraphScanStart(scan, query, &params);
}

double
GraphAmNodes(Relation index, const GraphScanSettings *settings, double rank)
{
	GraphScanParams params = {
		.ef = settings->ef_search,
		.ef_rows = rows_of_ef(settings, true),
		.follow = true
	};

	return GraphNodesFor(index, GraphEfForRank(&params, rank));
}

void
GraphAmSweep(Relation index, const GraphScanSettings *settings, KnnSweep *sweep)
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
	sweep->waiting = QvScanMemory(&settings->shared) / QV_MEMBER_BYTES;
	/* those left when there were just too many */
	sweep->kept = GraphSweepKept(QvScanMemory(&settings->shared)) / 2;
}

void
GraphAmNoteExact(Relation index, double cost)
{
	QvOpclassInfo opclass;

	QvGetOpclass(index, &opclass);
	GraphNoteExact(index, &opclass, cost);
}

/* ---- */

IndexAmRoutine *
GraphAmRoutine(amoptions_function options, ambeginscan_function beginscan,
			   amcostestimate_function costestimate)
{
	IndexAmRoutine *am = KnnAmRoutine(3);

	QvSetBuildsInParallel(am);
	am->ambuild = graphbuild;
	am->ambuildempty = graphbuildempty;
	am->aminsert = graphinsert;
	am->ambulkdelete = graphbulkdelete;
	am->amvacuumcleanup = graphvacuumcleanup;
	am->amcostestimate = costestimate;
	am->amoptions = options;
	am->ambuildphasename = GraphBuildPhaseName;
	am->ambeginscan = beginscan;
	return am;
}

bool
IsGraphIndex(Relation index)
{
	return (index->rd_rel->relkind == RELKIND_INDEX) &&
		index->rd_indam->ambuild == graphbuild;
}
