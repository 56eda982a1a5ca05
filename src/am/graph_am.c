/*
 * graph_am.c
 *		The index access method over the quantised graph; see graph_am.h.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "access/amapi.h"
#include "access/relscan.h"
#include "am/graph_am.h"
#include "am/opclass.h"
#include "am/rerank.h"
#include "compat.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "utils/float.h"
#include "utils/memutils.h"
#include "utils/selfuncs.h"
#include "utils/snapmgr.h"
#include "utils/spccache.h"

/*
 * How sure a candidate's bound is.  The certain bound is the product of two
 * norms; after a random rotation the error is their inner product, which
 * exceeds BOUND_SIGMAS / sqrt(dimensions) of that with a probability below
 * 1e-8.  Rows then come in an order that is off by that much, no more.
 */
#define BOUND_SIGMAS 6

typedef struct GraphAmScan
{
	const ScanSettings *settings;	/* live: they may change between rows */
	ScanSettings params;		/* as they were when the scan started */
	QvOpclassInfo opclass;
	MemoryContext context;
	MemoryContext query_context;
	GraphScan  *graph;
	Reranker   *reranker;
	bool		started;
	bool		exhausted;		/* no more candidates */
	bool		have_candidate; /* candidate is the next, not yet reranked */
	QvRowCandidate candidate;
	double		candidate_bound;	/* no row of it is nearer */
	double		node_nearest;	/* nearest row of the candidate's node so far */
	double		last_distance;	/* of the row returned last */
	int64		tuples;			/* row pointers seen */
} GraphAmScan;

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

IndexScanDesc
GraphAmBeginScan(Relation index, int nkeys, int norderbys,
				 const ScanSettings *settings)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	GraphAmScan *so = palloc0(sizeof(GraphAmScan));

	so->settings = settings;
	so->context = CurrentMemoryContext;
	QvGetOpclass(index, &so->opclass);
	so->query_context = AllocSetContextCreate(CurrentMemoryContext, "quiver query",
											  ALLOCSET_SMALL_SIZES);
	scan->opaque = so;
	return scan;
}

static void
graphrescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys,
			int norderbys)
{
	GraphAmScan *so = scan->opaque;

	so->started = false;
	if (keys && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
	if (orderbys && scan->numberOfOrderBys > 0)
		memmove(scan->orderByData, orderbys, scan->numberOfOrderBys * sizeof(ScanKeyData));
}

static void
start(IndexScanDesc scan)
{
	GraphAmScan *so = scan->opaque;
	MemoryContext old;
	GraphScanParams params;
	void	   *query = NULL;

	if (scan->numberOfOrderBys == 0)
		elog(ERROR, "cannot scan a graph index without ORDER BY");
	if (!IsMVCCSnapshot(scan->xs_snapshot))
		elog(ERROR, "non-MVCC snapshots are not supported by graph indexes");

	pgstat_count_index_scan(scan->indexRelation);
	QvCountIndexSearch(scan);
	old = MemoryContextSwitchTo(so->context);
	if (so->graph == NULL)
	{
		so->graph = GraphScanBegin(scan->indexRelation, &so->opclass);
		so->reranker = RerankBegin(scan, &so->opclass);
	}
	MemoryContextReset(so->query_context);
	MemoryContextSwitchTo(so->query_context);
	/* a copy: the executor may reuse the value's memory */
	if (!(scan->orderByData->sk_flags & SK_ISNULL))
		query = PG_DETOAST_DATUM_COPY(scan->orderByData->sk_argument);
	MemoryContextSwitchTo(so->context);
	so->params = *so->settings;
	params.ef = so->params.ef_search;
	params.iterative = so->params.iterative_scan != ITERATIVE_SCAN_OFF;
	params.max_memory = (Size) (work_mem * 1024.0 * so->params.scan_mem_multiplier);
	GraphScanStart(so->graph, query, &params);
	RerankStart(so->reranker, query);
	so->started = true;
	so->exhausted = false;
	so->have_candidate = false;
	so->last_distance = -DBL_MAX;
	so->tuples = 0;
	MemoryContextSwitchTo(old);
}

/*
 * Have the next candidate at hand, searching on if that is allowed and nothing
 * waits that could be returned first (it may be all that is wanted).
 */
static void
next_candidate(GraphAmScan *so)
{
	double		certainty = Min(1, BOUND_SIGMAS / sqrt(GraphScanDims(so->graph)));

	while (!so->have_candidate && !so->exhausted)
	{
		if (GraphScanNext(so->graph, &so->candidate))
		{
			so->have_candidate = true;
			if (so->candidate.same_node)
			{
				/* rows of a node are equal but for rounding */
				if (so->node_nearest < INFINITY)
					so->candidate_bound = so->node_nearest;
			}
			else
			{
				so->candidate_bound =
					GraphScanDistance(so->graph, so->candidate.distance -
									  so->candidate.error * certainty);
				so->node_nearest = INFINITY;
			}
			/* damaged factors: then nothing is known */
			if (isnan(so->candidate_bound))
				so->candidate_bound = -DBL_MAX;
		}
		else if (!RerankEmpty(so->reranker))
			return;
		else if (so->params.iterative_scan == ITERATIVE_SCAN_OFF ||
				 so->tuples >= so->params.max_scan_tuples ||
				 !GraphScanMore(so->graph))
			so->exhausted = true;
	}
}

/* Fetch the rows of the candidate at hand. */
static void
take_candidate(GraphAmScan *so)
{
	for (int i = 0; i < so->candidate.ntids; i++)
	{
		double		distance;

		CHECK_FOR_INTERRUPTS();
		distance = RerankAdd(so->reranker, &so->candidate.tids[i]);
		so->node_nearest = Min(so->node_nearest, distance);
	}
	so->tuples += so->candidate.ntids;
	so->have_candidate = false;
}

static bool
graphgettuple(IndexScanDesc scan, ScanDirection direction)
{
	GraphAmScan *so = scan->opaque;

	Assert(ScanDirectionIsForward(direction));
	if (!so->started)
		start(scan);
	for (;;)
	{
		double		distance;

		CHECK_FOR_INTERRUPTS();
		next_candidate(so);
		if (so->have_candidate &&
			(RerankEmpty(so->reranker) ||
			 so->candidate_bound < RerankNearest(so->reranker)))
		{
			take_candidate(so);
			continue;
		}
		if (!RerankPop(so->reranker, &scan->xs_heaptid, &distance))
			return false;
		/* a later round may find nearer rows than were returned: too late */
		if (so->params.iterative_scan == ITERATIVE_SCAN_STRICT &&
			distance < so->last_distance)
			continue;
		so->last_distance = distance;
		scan->xs_recheck = false;
		scan->xs_recheckorderby = false;
		return true;
	}
}

static void
graphendscan(IndexScanDesc scan)
{
	GraphAmScan *so = scan->opaque;

	if (so->reranker)
		RerankEnd(so->reranker);
	MemoryContextDelete(so->query_context);
	pfree(so);
	scan->opaque = NULL;
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
	am->amrescan = graphrescan;
	am->amgettuple = graphgettuple;
	am->amgetbitmap = NULL;
	am->amendscan = graphendscan;
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
