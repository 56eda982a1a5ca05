/*
 * ivf_engine.c
 *		Posting lists as an engine of access methods; see engine.h.
 */
#include "postgres.h"

#include "am/engine.h"
#include "am/opclass.h"
#include "ivf/ivf.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "space/members.h"

/* Where the workers of a build begin. */
extern PGDLLEXPORT void IvfParallelBuildMain(dsm_segment *seg, shm_toc *toc);

void
IvfParallelBuildMain(dsm_segment *seg, shm_toc *toc)
{
	IvfParallelWork(seg, toc, QvGetOpclass);
}

static void
ivf_estimate_cost(Relation index, const KnnSettings *settings, double tuples, QvSearchCost *cost)
{
	IvfCost		ivf;

	IvfEstimateCost(index, tuples, settings->probes, settings->recall, &ivf);
	*cost = ivf.search;
}

/*
 * The size up to which an index is read from memory.  By the settings, not by what scans
 * met: their answers would depend on it.
 */
static BlockNumber
cached_blocks(const KnnSettings *settings)
{
	if (settings->sketches == SKETCHES_ON)
		return 0;
	if (settings->sketches == SKETCHES_OFF)
		return InvalidBlockNumber;
	return Max(effective_cache_size, NBuffers) / 2;
}

static void
ivf_start(QvScan *scan, Relation index, const KnnSettings *settings, const void *query,
		  const KnnGoal *goal, KnnScanRules *rules)
{
	IvfScanParams params;

	KnnSetRules(settings, rules);
	/* lists limit an iterative scan, not rows */
	rules->max_tuples = PG_INT64_MAX;
	rules->restart = false;
	rules->limited = settings->max_probes > 0 && settings->max_probes < IVFFLAT_MAX_LISTS;
	if (goal && goal->filtered)
		rules->iterative = true;
	params.rows = goal ? goal->proposals : 0;
	params.first = goal && goal->filtered ? goal->rows : 0;
	params.only = goal ? goal->only : NULL;
	params.sweep = goal && goal->sweep;
	params.cached_blocks = cached_blocks(settings);
	params.probes = settings->probes;
	params.recall = settings->recall;
	/* how deep depends on which rows pass, whatever was enough for all */
	params.deep = goal && goal->filtered;
	params.widen = params.deep ||
		(!settings->fixed && settings->iterative_scan != ITERATIVE_SCAN_OFF);
	params.iterative = rules->iterative;
	params.max_probes = rules->iterative ? settings->max_probes : 0;
	params.max_memory = KnnScanMemory(settings);
	IvfScanStart(scan, query, &params);
	rules->round_rows = IvfScanRoundRows(scan);
}

static double
ivf_rows(Relation index, const KnnSettings *settings, double rank)
{
	IvfScanParams params = {.deep = true, .widen = true};

	params.probes = settings->probes;
	params.recall = settings->recall;
	return IvfRowsForRank(index, &params, rank);
}

static void
ivf_sweep(Relation index, const KnnSettings *settings, double table_rows, KnnSweep *sweep)
{
	IvfSweepCost cost;
	Size		memory = QvTidMapMemory();

	IvfGetSweepCost(index, table_rows, &cost);
	/* what is read from disk is better left to sketches */
	if (cost.pages > cached_blocks(settings))
		return;
	sweep->pages = cost.pages;
	sweep->known = cost.known;
	sweep->knows_codes = cost.known > 0;
	sweep->spent = cost.spent * KNN_LOOK_COST;
	sweep->waiting = sweep->kept = Min(KnnScanMemory(settings) / QV_MEMBER_BYTES, PG_INT32_MAX);
	if (cost.codes < memory)
		sweep->learns = sweep->learns_codes = (memory - cost.codes) / sizeof(uint32);
}

static void
ivf_note_exact(Relation index, double cost)
{
	QvOpclassInfo opclass;

	QvGetOpclass(index, &opclass);
	IvfNoteExact(index, &opclass, cost / KNN_LOOK_COST);
}

const KnnEngine knn_ivf_engine = {
	.build = IvfBuild,
	.build_empty = IvfBuildEmpty,
	.phase_name = IvfBuildPhaseName,
	.insert = IvfInsert,
	.bulk_delete = IvfBulkDelete,
	.vacuum_cleanup = IvfVacuumCleanup,
	.estimate_cost = ivf_estimate_cost,
	.begin = IvfScanBegin,
	.start = ivf_start,
	.rows = ivf_rows,
	.sweep = ivf_sweep,
	.note_exact = ivf_note_exact
};
