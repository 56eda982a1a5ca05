/*
 * ivfflat.c
 *		pgvector's ivfflat: its names, options, settings and defaults, on posting
 *		lists.
 */
#include "postgres.h"

#include "am/ivf_am.h"
#include "am/ivfflat.h"
#include "fmgr.h"

static IndexBuildResult *ivfflatbuild(Relation heap, Relation index, IndexInfo *info);
static void ivfflatbuildempty(Relation index);
static IndexScanDesc ivfflatbeginscan(Relation index, int nkeys, int norderbys);

static const IvfAm ivfflat_am = {
	.get_options = IvfflatGetOptions,
	.settings = IvfflatSettings,
	.build = ivfflatbuild,
	.buildempty = ivfflatbuildempty,
	.options = IvfflatAmOptions,
	.beginscan = ivfflatbeginscan,
	.costestimate = ivfflatcostestimate
};

static IndexBuildResult *
ivfflatbuild(Relation heap, Relation index, IndexInfo *info)
{
	return IvfAmBuild(heap, index, info, &ivfflat_am);
}

static void
ivfflatbuildempty(Relation index)
{
	IvfAmBuildEmpty(index, &ivfflat_am);
}

static void
ivfflat_start_scan(QvScan *scan, Relation index, const void *query, const KnnGoal *goal,
				   KnnScanRules *rules)
{
	IvfAmStartScan(scan, query, IvfflatSettings(index), goal, rules);
}

static double
ivfflat_rows(Relation index, double rank)
{
	return IvfAmRows(index, IvfflatSettings(index), rank);
}

static void
ivfflat_sweep(Relation index, double table_rows, KnnSweep *sweep)
{
	IvfAmSweep(index, IvfflatSettings(index), table_rows, sweep);
}

const KnnScanSource ivfflat_scans = {
	.begin = IvfScanBegin,
	.start = ivfflat_start_scan,
	.rows = ivfflat_rows,
	.sweep = ivfflat_sweep,
	.note_exact = IvfAmNoteExact
};

static IndexScanDesc
ivfflatbeginscan(Relation index, int nkeys, int norderbys)
{
	return KnnBeginScan(index, nkeys, norderbys, &ivfflat_scans);
}

void
ivfflatcostestimate(PlannerInfo *root, IndexPath *path, double loop_count,
					Cost *startup, Cost *total, Selectivity *selectivity,
					double *correlation, double *pages)
{
	IvfAmCostEstimate(root, path, loop_count, &ivfflat_am, startup, total,
					  selectivity, correlation, pages);
}

PG_FUNCTION_INFO_V1(ivfflathandler);
Datum
ivfflathandler(PG_FUNCTION_ARGS)
{
	IvfflatDefineSettings();
	PG_RETURN_POINTER(IvfAmRoutine(&ivfflat_am, 5));
}

/* Type-info support functions of pgvector's operator classes: see hnsw.c. */
PG_FUNCTION_INFO_V1(ivfflat_halfvec_support);
Datum
ivfflat_halfvec_support(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(NULL);
}

PG_FUNCTION_INFO_V1(ivfflat_bit_support);
Datum
ivfflat_bit_support(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(NULL);
}
