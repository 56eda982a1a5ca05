/*
 * ivf_am.c
 *		The index access method over posting lists; see ivf_am.h.
 */
#include "postgres.h"

#include "access/amapi.h"
#include "am/ivf_am.h"
#include "am/knn_am.h"
#include "am/knn_scan.h"
#include "am/opclass.h"
#include "compat.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "space/members.h"
#include "table/values.h"

/* ---- build, insert, vacuum ---- */

IndexBuildResult *
IvfAmBuild(Relation heap, Relation index, IndexInfo *info, const IvfAm *am)
{
	QvOpclassInfo opclass;
	IvfOptions	options;

	QvGetOpclass(index, &opclass);
	am->get_options(index->rd_options, &options);
	return IvfBuild(heap, index, info, &opclass, &options);
}

void
IvfParallelBuildMain(dsm_segment *seg, shm_toc *toc)
{
	IvfParallelWork(seg, toc, QvGetOpclass);
}

void
IvfAmBuildEmpty(Relation index, const IvfAm *am)
{
	QvOpclassInfo opclass;
	IvfOptions	options;

	QvGetOpclass(index, &opclass);
	am->get_options(index->rd_options, &options);
	IvfBuildEmpty(index, &opclass, &options);
}

static bool
ivfinsert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
		  Relation heap, IndexUniqueCheck unique, bool unchanged,
		  IndexInfo *info)
{
	QvOpclassInfo opclass;
	TableValues table;
	void	   *value;

	if (isnull[0])
		return false;
	QvGetOpclass(index, &opclass);
	value = PG_DETOAST_DATUM(values[0]);
	TableValuesInit(&table, heap, index, &opclass);
	IvfInsert(index, &opclass, value, tid, &(IvfTable) {TableIsReadable, TableValue, &table});
	TableValuesEnd(&table);
	if (value != DatumGetPointer(values[0]))
		pfree(value);
	return false;
}

static IndexBulkDeleteResult *
ivfbulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
			  IndexBulkDeleteCallback callback, void *callback_state)
{
	QvOpclassInfo opclass;

	QvGetOpclass(info->index, &opclass);
	return IvfBulkDelete(info, stats, callback, callback_state, &opclass);
}

static IndexBulkDeleteResult *
ivfvacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	QvOpclassInfo opclass;

	QvGetOpclass(info->index, &opclass);
	return IvfVacuumCleanup(info, stats, &opclass);
}

/* ---- cost ---- */

void
IvfAmCostEstimate(PlannerInfo *root, IndexPath *path, double loop_count,
				  const IvfAm *am, Cost *startup, Cost *total,
				  Selectivity *selectivity, double *correlation, double *pages)
{
	KnnCost		cost = {0};
	IvfCost		ivf;
	Relation	index;
	const IvfScanSettings *settings;

	if (KnnCanScan(path))
	{
		index = index_open(path->indexinfo->indexoid, NoLock);
		settings = am->settings(index);
		IvfEstimateCost(index, path->indexinfo->tuples, settings->probes, settings->recall, &ivf);
		index_close(index, NoLock);
		cost.pages = ivf.pages;
		cost.tuples = ivf.tuples;
		cost.evaluations = ivf.evaluations;
	}
	KnnCostEstimate(root, path, loop_count, &cost, startup, total, selectivity,
					correlation, pages);
}

/* ---- scan ---- */

/*
 * The size up to which an index is read from memory.  By the settings, not by what scans
 * met: their answers would depend on it.
 */
static BlockNumber
cached_blocks(const IvfScanSettings *settings)
{
	if (settings->sketches == SKETCHES_ON)
		return 0;
	if (settings->sketches == SKETCHES_OFF)
		return InvalidBlockNumber;
	return Max(effective_cache_size, NBuffers) / 2;
}

void
IvfAmStartScan(QvScan *scan, const void *query, const IvfScanSettings *settings,
			   const KnnGoal *goal, KnnScanRules *rules)
{
	IvfScanParams params;

	rules->iterative = settings->shared.iterative_scan != ITERATIVE_SCAN_OFF;
	rules->strict = settings->shared.iterative_scan == ITERATIVE_SCAN_STRICT;
	rules->relaxed = settings->shared.iterative_scan == ITERATIVE_SCAN_RELAXED;
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
	params.widen = settings->widen || params.deep;
	params.iterative = rules->iterative;
	params.max_probes = rules->iterative ? settings->max_probes : 0;
	params.max_memory = QvScanMemory(&settings->shared);
	IvfScanStart(scan, query, &params);
	rules->round_rows = IvfScanRoundRows(scan);
}

double
IvfAmRows(Relation index, const IvfScanSettings *settings, double rank)
{
	IvfScanParams params = {
		.probes = settings->probes,
		.recall = settings->recall,
		.deep = true,
		.widen = true
	};

	return IvfRowsForRank(index, &params, rank);
}

void
IvfAmSweep(Relation index, const IvfScanSettings *settings, double table_rows,
		   KnnSweep *sweep)
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
	sweep->waiting = sweep->kept = Min(QvScanMemory(&settings->shared) / QV_MEMBER_BYTES, PG_INT32_MAX);
	if (cost.codes < memory)
		sweep->learns = sweep->learns_codes = (memory - cost.codes) / sizeof(uint32);
}

void
IvfAmNoteExact(Relation index, double cost)
{
	QvOpclassInfo opclass;

	QvGetOpclass(index, &opclass);
	IvfNoteExact(index, &opclass, cost / KNN_LOOK_COST);
}

/* ---- */

IndexAmRoutine *
IvfAmRoutine(const IvfAm *ivf, int support)
{
	IndexAmRoutine *am = KnnAmRoutine(support);

	QvSetBuildsInParallel(am);
	am->ambuild = ivf->build;
	am->ambuildempty = ivf->buildempty;
	am->aminsert = ivfinsert;
	am->ambulkdelete = ivfbulkdelete;
	am->amvacuumcleanup = ivfvacuumcleanup;
	am->amcostestimate = ivf->costestimate;
	am->amoptions = ivf->options;
	am->ambuildphasename = IvfBuildPhaseName;
	am->ambeginscan = ivf->beginscan;
	return am;
}

bool
IsIvfIndex(Relation index)
{
	return (index->rd_rel->relkind == RELKIND_INDEX) &&
		index->rd_indam->aminsert == ivfinsert;
}
