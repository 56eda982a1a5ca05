/*
 * handler.c
 *		The handlers of the access methods, and the callbacks that they all share.
 *
 * A callback finds its method by the index (methods.h) and leaves the work to the method's
 * engine (QvEngine, query/scan.h).
 */
#include "postgres.h"

#include "access/amapi.h"
#include "am/handler.h"
#include "am/knn_scan.h"
#include "am/methods.h"
#include "am/nulls.h"
#include "am/opclass.h"
#include "compat.h"
#include "fmgr.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "pages/meta.h"
#include "query/cost.h"
#include "space/space.h"
#include "table/values.h"
#include "utils/float.h"
#include "utils/selfuncs.h"

/* ---- build, insert, vacuum ---- */

static IndexBuildResult *
knnbuild(Relation heap, Relation index, IndexInfo *info)
{
	const KnnMethod *method = KnnMethodOf(index);
	QvOpclassInfo opclass;
	QvIndexOptions options;
	IndexBuildResult *result;
	int			left_out = 0;

	QvIncludedCheckTypes(index);
	QvGetOpclass(index, &opclass);
	KnnGetOptions(method->options, index->rd_options, &options);
	result = method->engine->build(heap, index, info, &opclass, &options, &left_out);
	if (left_out != 0)
		QvMetaLeaveOut(index, left_out);
	return result;
}

static void
knnbuildempty(Relation index)
{
	const KnnMethod *method = KnnMethodOf(index);
	QvOpclassInfo opclass;
	QvIndexOptions options;

	QvIncludedCheckTypes(index);
	QvGetOpclass(index, &opclass);
	KnnGetOptions(method->options, index->rd_options, &options);
	method->engine->build_empty(index, &opclass, &options);
}

static bool
knninsert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
		  IndexUniqueCheck unique, bool unchanged, IndexInfo *info)
{
	QvIncludedRow included = {values + 1, isnull + 1};
	QvOpclassInfo opclass;
	MemoryContext context,
				old;
	void	   *value;

	if (isnull[0])
	{
		QvMetaLeaveOut(index, QV_LEFT_OUT_NULLS);
		return false;
	}
	context = AllocSetContextCreate(CurrentMemoryContext, "quiver insert", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	QvGetOpclass(index, &opclass);
	value = PG_DETOAST_DATUM(values[0]);
	if (QvIsIndexed(&opclass, value))
		KnnMethodOf(index)->engine->insert(index, &opclass, value, &included, tid, heap);
	else
		QvMetaLeaveOut(index, QV_LEFT_OUT_NANS);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return false;
}

static IndexBulkDeleteResult *
knnbulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
			  IndexBulkDeleteCallback callback, void *callback_state)
{
	QvOpclassInfo opclass;
	MemoryContext context,
				old;

	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	context = AllocSetContextCreate(CurrentMemoryContext, "quiver vacuum", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	QvGetOpclass(info->index, &opclass);
	KnnMethodOf(info->index)->engine->bulk_delete(info, stats, callback, callback_state, &opclass);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return stats;
}

static IndexBulkDeleteResult *
knnvacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	QvOpclassInfo opclass;

	if (info->analyze_only)
		return stats;
	QvGetOpclass(info->index, &opclass);
	stats = KnnMethodOf(info->index)->engine->vacuum_cleanup(info, stats, &opclass);
	KnnLookForNulls(info);
	return stats;
}

static bool
knnvalidate(Oid opclass)
{
	return true;
}

/* ---- cost ---- */

/* Are there rows that policies or a security_barrier view hide from this user? */
static bool
hides_rows(const PlannerInfo *root)
{
	ListCell   *lc;

	for (; root; root = root->parent_root)
	{
		if (root->qual_security_level > 0)
			return true;
		foreach(lc, root->parse->rtable)
			if (lfirst_node(RangeTblEntry, lc)->security_barrier)
			return true;
	}
	return false;
}

/*
 * Can a path be had at all?  It is ordered by one distance, of an index that exists.  A scan
 * computes the index's expression before the executor tests conditions, so this user's code must
 * not be in it where rows are hidden.
 */
static bool
can_scan(const PlannerInfo *root, const IndexPath *path)
{
	IndexOptInfo *index = path->indexinfo;

	/*
	 * a join that fills rows with NULLs must have them all, and so must
	 * aggregates and windows of all rows
	 */
	return list_length(path->indexorderbys) == 1 && !index->hypothetical &&
		!KnnHasNullTest(index->indrestrictinfo, IS_NULL, index) && !QvIsNullable(root, index->rel) &&
		!KnnNeedsAllRows(root, index->rel, false) &&
		(index->indexprs == NIL || !hides_rows(root) || !IndexRunsUsersCode(index->indexoid, false));
}

/*
 * The cost of a path that cannot be had.  The server subtracts costs, and infinity less infinity is
 * NaN, by which a path may win.
 */
#define NEVER_COST 1e100

/* Rows that a search finds before the first one comes. */
#define FIRST_ROWS 10

/* A row's place in the order takes its record and its distance. */
#define ORDER_COST 4

/* What searches for the first rows, and for all, cost by the index's engine. */
static void
engine_costs(const IndexPath *path, double rows, Cost *first, Cost *all)
{
	Relation	index = index_open(path->indexinfo->indexoid, NoLock);
	const QvEngine *engine = KnnMethodOf(index)->engine;
	QvSettings	settings;
	QvUnits		units;
	QvWork		work;

	KnnSettingsOf(index, &settings);
	QvGetUnits(path->indexinfo, KnnDimensions(index), 0, &units);
	engine->estimate_work(index, &settings, path->indexinfo->tuples, FIRST_ROWS, &work);
	*first = QvWorkCost(&units, &work);
	engine->estimate_work(index, &settings, path->indexinfo->tuples, Max(FIRST_ROWS, rows), &work);
	*all = QvWorkCost(&units, &work);
	index_close(index, NoLock);
}

void
KnnCostEstimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup,
				Cost *total, Selectivity *selectivity, double *correlation, double *pages)
{
	GenericCosts costs = {0};

	*correlation = 0;
	if (!can_scan(root, path))
	{
		*startup = *total = NEVER_COST;
		*selectivity = 0;
		*pages = 0;
		QvDisablePath(&path->path);
		return;
	}
	genericcostestimate(root, path, loop_count, &costs);
	engine_costs(path, costs.numIndexTuples, startup, total);
	*total += costs.numIndexTuples * (cpu_index_tuple_cost + ORDER_COST * cpu_tuple_cost);
	*selectivity = costs.indexSelectivity;
	*pages = costs.numIndexPages;
}

/* ---- handlers ---- */

/* Fills a routine of zeros: what is not named is 0, false or NULL. */
static void
fill_routine(IndexAmRoutine *am, const KnnMethod *method)
{
	am->type = T_IndexAmRoutine;
	am->amsupport = method->support;
	am->amcanorderbyop = true;
	am->amoptionalkey = true;
	/* a dump of a method with pgvector's name is restored into pgvector */
	am->amcaninclude = method->settings == &knn_quiver_settings;
	am->amusemaintenanceworkmem = false;	/* of VACUUM, not of builds */
	am->amparallelvacuumoptions = VACUUM_OPTION_PARALLEL_BULKDEL;
	am->amkeytype = InvalidOid;
	QvSetBuildsInParallel(am);

	am->ambuild = knnbuild;
	am->ambuildempty = knnbuildempty;
	am->aminsert = knninsert;
	am->ambulkdelete = knnbulkdelete;
	am->amvacuumcleanup = knnvacuumcleanup;
	am->amcostestimate = KnnCostEstimate;
	am->amoptions = method->parse_options;
	am->ambuildphasename = method->engine->phase_name;
	am->amvalidate = knnvalidate;
	am->ambeginscan = KnnBeginScan;
	am->amrescan = KnnRescan;
	am->amgettuple = KnnGetTuple;
	am->amendscan = KnnEndScan;
}

/*
 * The SQL handler of a method.  Settings named after one of pgvector's methods may have been left
 * to define until now: see "Beside pgvector" in README.md.
 */
#define DEFINE_HANDLER(id, name_, engine_, settings_, options_, support_) \
	PG_FUNCTION_INFO_V1(id##handler); \
	Datum \
	id##handler(PG_FUNCTION_ARGS) \
	{ \
		static IndexAmRoutine routine; \
	\
		KnnDefineSettings(knn_##id##_method.settings); \
		fill_routine(&routine, &knn_##id##_method); \
		PG_RETURN_POINTER(QvRoutineToReturn(&routine)); \
	}
KNN_METHODS(DEFINE_HANDLER)
#undef DEFINE_HANDLER

/*
 * Type-info support functions of pgvector's operator classes.  The catalog names them.  The
 * distance function tells which type an operator class is for (opclass.c), so they return
 * nothing.
 */
#define DEFINE_SUPPORT(name) \
	PG_FUNCTION_INFO_V1(name); \
	Datum \
	name(PG_FUNCTION_ARGS) \
	{ \
		PG_RETURN_POINTER(NULL); \
	}
DEFINE_SUPPORT(hnsw_halfvec_support)
DEFINE_SUPPORT(hnsw_bit_support)
DEFINE_SUPPORT(hnsw_sparsevec_support)
DEFINE_SUPPORT(ivfflat_halfvec_support)
DEFINE_SUPPORT(ivfflat_bit_support)
#undef DEFINE_SUPPORT
