/*
 * graph_am.c
 *		The index access method over the quantised graph; see graph_am.h.
 */
#include "postgres.h"

#include "access/amapi.h"
#include "am/graph_am.h"
#include "am/knn_scan.h"
#include "am/opclass.h"
#include "compat.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/float.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"

/* ---- build, insert, vacuum ---- */

static IndexBuildResult *
graphbuild(Relation heap, Relation index, IndexInfo *info)
{
	QvOpclassInfo opclass;
	GraphOptions options;

	QvGetOpclass(index, &opclass);
	GraphAmGetOptions(index, &options);
	return GraphBuild(heap, index, info, &opclass, &options);
}

static void
graphbuildempty(Relation index)
{
	QvOpclassInfo opclass;
	GraphOptions options;

	QvGetOpclass(index, &opclass);
	GraphAmGetOptions(index, &options);
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

static bool
graphvalidate(Oid opclass)
{
	return true;
}

/* ---- cost ---- */

void
GraphAmCostEstimate(PlannerInfo *root, IndexPath *path, double loop_count,
					const ScanSettings *settings, Cost *startup, Cost *total,
					Selectivity *selectivity, double *correlation, double *pages)
{
	GenericCosts costs = {0};
	GraphCost	graph;
	Relation	index;
	double		random_page_cost,
				seq_page_cost,
				page_cost;

	/* without ORDER BY the index cannot be used; without pages neither */
	if (path->indexorderbys == NIL || path->indexinfo->hypothetical)
	{
		*startup = *total = get_float8_infinity();
		*selectivity = 0;
		*correlation = 0;
		*pages = 0;
#if defined(QV_AM_HAS_CONSISTENT_FLAGS)
		path->path.disabled_nodes = 2;
#endif
		return;
	}
	index = index_open(path->indexinfo->indexoid, NoLock);
	GraphEstimateCost(index, settings->ef_search, &graph);
	index_close(index, NoLock);
	genericcostestimate(root, path, loop_count, &costs);
	get_tablespace_page_costs(path->indexinfo->reltablespace,
							  &random_page_cost, &seq_page_cost);

	/*
	 * Searches share the entry table and many nodes, so most pages are in
	 * memory: halfway to what a sequential read costs.
	 */
	page_cost = (random_page_cost > seq_page_cost) ?
		seq_page_cost : random_page_cost;
	*startup = graph.pages * page_cost * 0.5 +
		graph.evaluations * cpu_operator_cost * 0.1;

	/*
	 * The rows after the first come out of what the search found, and then
	 * from further searches: in proportion, up to the whole index.
	 */
	*total = *startup * Max(1, costs.numIndexTuples / Max(1, graph.tuples)) +
		costs.numIndexTuples * (cpu_index_tuple_cost + cpu_operator_cost);
	*selectivity = costs.indexSelectivity;
	*correlation = 0;
	*pages = costs.numIndexPages;
}

/* ---- scan ---- */

static void *
begin_scan(Relation index, const QvOpclassInfo *opclass)
{
	return GraphScanBegin(index, opclass);
}

static void
start_scan(void *scan, const void *query, const void *live, KnnScanRules *rules)
{
	const ScanSettings *settings = live;
	GraphScanParams params;

	rules->iterative = settings->iterative_scan != ITERATIVE_SCAN_OFF;
	rules->strict = settings->iterative_scan == ITERATIVE_SCAN_STRICT;
	rules->max_tuples = settings->max_scan_tuples;
	params.ef = settings->ef_search;
	params.iterative = rules->iterative;
	params.max_memory = (Size) (work_mem * 1024.0 * settings->scan_mem_multiplier);
	GraphScanStart(scan, query, &params);
}

static bool
next_candidate(void *scan, QvRowCandidate *candidate)
{
	return GraphScanNext(scan, candidate);
}

static bool
search_on(void *scan)
{
	return GraphScanMore(scan);
}

static double
candidate_distance(const void *scan, double distance)
{
	return GraphScanDistance(scan, distance);
}

static int
scan_dims(const void *scan)
{
	return GraphScanDims(scan);
}

static const KnnScanOps graph_scan_ops = {
	.what = "a graph index",
	.begin = begin_scan,
	.start = start_scan,
	.next = next_candidate,
	.more = search_on,
	.distance = candidate_distance,
	.dims = scan_dims
};

IndexScanDesc
GraphAmBeginScan(Relation index, int nkeys, int norderbys,
				 const ScanSettings *settings)
{
	return KnnBeginScan(index, nkeys, norderbys, &graph_scan_ops, settings);
}

/* ---- */

IndexAmRoutine *
GraphAmRoutine(ambeginscan_function beginscan,
			   amcostestimate_function costestimate)
{
	IndexAmRoutine *am = makeNode(IndexAmRoutine);

	am->amstrategies = 0;
	am->amsupport = 3;
	am->amoptsprocnum = 0;
	am->amcanorder = false;
	am->amcanorderbyop = true;
	am->amcanbackward = false;
	am->amcanunique = false;
	am->amcanmulticol = false;
	am->amoptionalkey = true;
	am->amsearcharray = false;
	am->amsearchnulls = false;
	am->amstorage = false;
	am->amclusterable = false;
	am->ampredlocks = false;
	am->amcanparallel = false;
	am->amcaninclude = false;
	am->amusemaintenanceworkmem = false;	/* of VACUUM, not of builds */
	am->amparallelvacuumoptions = VACUUM_OPTION_PARALLEL_BULKDEL;
	am->amkeytype = InvalidOid;

	am->ambuild = graphbuild;
	am->ambuildempty = graphbuildempty;
	am->aminsert = graphinsert;
	am->ambulkdelete = graphbulkdelete;
	am->amvacuumcleanup = GraphVacuumCleanup;
	am->amcanreturn = NULL;
	am->amcostestimate = costestimate;
	am->amoptions = GraphAmOptions;
	am->amproperty = NULL;
	am->ambuildphasename = GraphBuildPhaseName;
	am->amvalidate = graphvalidate;
	am->amadjustmembers = NULL;
	am->ambeginscan = beginscan;
	am->amrescan = KnnRescan;
	am->amgettuple = KnnGetTuple;
	am->amgetbitmap = NULL;
	am->amendscan = KnnEndScan;
	am->ammarkpos = NULL;
	am->amrestrpos = NULL;
	am->amestimateparallelscan = NULL;
	am->aminitparallelscan = NULL;
	am->amparallelrescan = NULL;
	return am;
}

bool
IsGraphIndex(Relation index)
{
	return (index->rd_rel->relkind == RELKIND_INDEX) &&
		index->rd_indam->ambuild == graphbuild;
}
