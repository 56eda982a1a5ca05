/*
 * quiver_ivf.c
 *		Quiver's own access method on posting lists: settings quiver.*.
 */
#include "postgres.h"

#include "am/ivf_am.h"
#include "am/quiver_ivf.h"
#include "fmgr.h"

static IndexBuildResult *quiverivfbuild(Relation heap, Relation index, IndexInfo *info);
static void quiverivfbuildempty(Relation index);
static IndexScanDesc quiverivfbeginscan(Relation index, int nkeys, int norderbys);

static const IvfAm quiver_ivf_am = {
	.get_options = QuiverIvfGetOptions,
	.settings = QuiverIvfSettings,
	.build = quiverivfbuild,
	.buildempty = quiverivfbuildempty,
	.options = QuiverIvfAmOptions,
	.beginscan = quiverivfbeginscan,
	.costestimate = quiverivfcostestimate
};

static IndexBuildResult *
quiverivfbuild(Relation heap, Relation index, IndexInfo *info)
{
	return IvfAmBuild(heap, index, info, &quiver_ivf_am);
}

static void
quiverivfbuildempty(Relation index)
{
	IvfAmBuildEmpty(index, &quiver_ivf_am);
}

static void
quiver_ivf_start_scan(QvScan *scan, Relation index, const void *query, const KnnGoal *goal,
					  KnnScanRules *rules)
{
	IvfAmStartScan(scan, query, QuiverIvfSettings(index), goal, rules);
}

static double
quiver_ivf_rows(Relation index, double rank)
{
	return IvfAmRows(index, QuiverIvfSettings(index), rank);
}

static void
quiver_ivf_sweep(Relation index, double table_rows, KnnSweep *sweep)
{
	IvfAmSweep(index, QuiverIvfSettings(index), table_rows, sweep);
}

const KnnScanSource quiver_ivf_scans = {
	.begin = IvfScanBegin,
	.start = quiver_ivf_start_scan,
	.rows = quiver_ivf_rows,
	.sweep = quiver_ivf_sweep,
	.note_exact = IvfAmNoteExact
};

static IndexScanDesc
quiverivfbeginscan(Relation index, int nkeys, int norderbys)
{
	return KnnBeginScan(index, nkeys, norderbys, &quiver_ivf_scans);
}

void
quiverivfcostestimate(PlannerInfo *root, IndexPath *path, double loop_count,
					  Cost *startup, Cost *total, Selectivity *selectivity,
					  double *correlation, double *pages)
{
	IvfAmCostEstimate(root, path, loop_count, &quiver_ivf_am, startup, total,
					  selectivity, correlation, pages);
}

PG_FUNCTION_INFO_V1(quiverivfhandler);
Datum
quiverivfhandler(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(IvfAmRoutine(&quiver_ivf_am, 3));
}
