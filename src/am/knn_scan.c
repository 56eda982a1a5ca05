/*
 * knn_scan.c
 *		Index scans in the order of exact distances; see knn_scan.h.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "access/relscan.h"
#include "access/tableam.h"
#include "am/knn_scan.h"
#include "am/opclass.h"
#include "am/rerank.h"
#include "compat.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "stats/stats.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

typedef struct KnnScan
{
	const KnnMethod *method;
	QvOpclassInfo opclass;
	MemoryContext context;
	MemoryContext query_context;
	QvScan	   *engine;			/* what the engine's begin() returned */
	Reranker   *reranker;
	KnnScanRules rules;
	bool		started;
	bool		exhausted;		/* no more candidates */
	bool		have_step;		/* a candidate or a bound is at hand, not
								 * dealt with */
	QvScanStep	step;
	QvCandidate candidate;
	double		candidate_bound;	/* no row of it, or to come, is nearer */
	double		node_nearest;	/* nearest row of the candidate's node so far */
	double		last_distance;	/* of the row returned last */
	int64		tuples;			/* heap TIDs seen */
	int64		returned;		/* rows returned */
	int64		target;			/* rows that are returned when so many are
								 * found */
	double	   *nearest;		/* ascending distances of those not returned,
								 * up to it */
	int			nnearest;
	bool		resumed;		/* the first batch is over */
	QvScanTotals totals;		/* for statistics */
} KnnScan;

IndexScanDesc
KnnBeginScan(Relation index, int nkeys, int norderbys, const KnnMethod *method)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	KnnScan    *so = palloc0(sizeof(KnnScan));

	so->method = method;
	so->context = CurrentMemoryContext;
	QvGetOpclass(index, &so->opclass);
	so->query_context = AllocSetContextCreate(CurrentMemoryContext, "quiver query",
											  ALLOCSET_SMALL_SIZES);
	scan->opaque = so;
	return scan;
}

void
KnnRescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys,
		  int norderbys)
{
	KnnScan    *so = scan->opaque;

	so->started = false;
	if (keys && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
	if (orderbys && scan->numberOfOrderBys > 0)
		memmove(scan->orderByData, orderbys, scan->numberOfOrderBys * sizeof(ScanKeyData));
}

/* Rows that are looked for together at most. */
#define MAX_ROUND 1000

/* The next rows found together, of what were before. */
#define ROUND_GROWTH 4

static void
start(IndexScanDesc scan)
{
	KnnScan    *so = scan->opaque;
	MemoryContext old;
	KnnSettings settings;
	void	   *query = NULL;

	old = MemoryContextSwitchTo(so->context);
	if (so->engine == NULL)
	{
		so->engine = so->method->engine->begin(scan->indexRelation, &so->opclass);
		so->reranker = RerankBegin(scan, &so->opclass);
	}
	if (scan->numberOfOrderBys == 0)
		elog(ERROR, "cannot scan %s without ORDER BY", so->engine->ops->what);
	if (!IsMVCCSnapshot(scan->xs_snapshot))
		elog(ERROR, "non-MVCC snapshots are not supported by %s", so->engine->ops->what);

	pgstat_count_index_scan(scan->indexRelation);
	so->totals.searches++;
	so->totals.rounds++;
	QvCountIndexSearch(scan);
	MemoryContextReset(so->query_context);
	MemoryContextSwitchTo(so->query_context);
	/* a copy: the executor may reuse the value's memory */
	if (!(scan->orderByData->sk_flags & SK_ISNULL))
		query = PG_DETOAST_DATUM_COPY(scan->orderByData->sk_argument);
	MemoryContextSwitchTo(so->context);
	memset(&so->rules, 0, sizeof(so->rules));
	KnnSettingsOf(scan->indexRelation, &settings);
	so->method->engine->start(so->engine, scan->indexRelation, &settings, query, NULL, &so->rules);
	so->target = Min(so->rules.round_rows, MAX_ROUND);
	so->nnearest = 0;
	if (so->rules.round_rows > 0 && so->nearest == NULL)
		so->nearest = palloc(MAX_ROUND * sizeof(double));
	RerankStart(so->reranker, query, so->engine->table_hints);
	so->started = true;
	so->exhausted = false;
	so->have_step = false;
	so->last_distance = -DBL_MAX;
	so->tuples = 0;
	so->returned = 0;
	so->resumed = false;
	MemoryContextSwitchTo(old);
}

/*
 * At the end of a batch: is there a row to return before the search goes on?
 * In strict order, nearer ones may still come: what is found later is lost, so
 * a row must be as near as the search has looked around.  Only some rows of the
 * first batch come at once.
 */
static bool
can_return(const KnnScan *so)
{
	if (RerankEmpty(so->reranker))
		return false;
	if (!so->rules.strict || (!so->resumed && so->returned < so->rules.first_rows))
		return true;
	return RerankNearest(so->reranker) <=
		QvScanDistance(so->engine, so->candidate.distance);
}

/*
 * Have the next candidate at hand, searching on if that is allowed and nothing
 * waits that could be returned first (it may be all that is wanted).
 */
static void
next_candidate(KnnScan *so)
{
	const QvScanOps *ops = so->engine->ops;

	while (!so->have_step && !so->exhausted)
	{
		CHECK_FOR_INTERRUPTS();
		so->step = ops->next(so->engine, &so->candidate);
		Assert(so->step != QV_SCAN_PAUSE);
		if (so->step != QV_SCAN_END)
		{
			so->have_step = true;
			if (so->step == QV_SCAN_CANDIDATE && so->candidate.same_node)
			{
				/*
				 * rows of a node are equal but for rounding; others wait
				 * behind them
				 */
				if (so->node_nearest < INFINITY)
					so->candidate_bound = Min(so->node_nearest,
											  QvScanDistance(so->engine, so->candidate.others_bound));
			}
			else
			{
				so->candidate_bound = QvScanDistance(so->engine, so->candidate.bound);
				so->node_nearest = INFINITY;
			}
			/* damaged factors: then nothing is known */
			if (isnan(so->candidate_bound))
				so->candidate_bound = -DBL_MAX;
		}
		else if (can_return(so))
			return;
		else if (!so->rules.iterative ||
				 so->tuples >= so->rules.max_tuples ||
				 !ops->resume(so->engine))
			so->exhausted = true;
		else
		{
			so->resumed = true;
			so->totals.rounds++;
		}
	}
}

/* Rows asked for at a time. */
#define MAX_AHEAD 16

/* Have the table's pages of rows to come read in the background. */
static void
ask_ahead(IndexScanDesc scan)
{
	KnnScan    *so = scan->opaque;
	ItemPointerData tids[MAX_AHEAD];
	int			n = so->engine->ops->prefetch(so->engine, tids, MAX_AHEAD);
	BlockNumber nblocks;

	/* of another table access method, block numbers may mean anything */
	if (n == 0 || scan->heapRelation->rd_tableam != GetHeapamTableAmRoutine())
		return;
	nblocks = RelationGetNumberOfBlocks(scan->heapRelation);
	for (int i = 0; i < n; i++)
	{
		BlockNumber block = ItemPointerGetBlockNumberNoCheck(&tids[i]);

		/* else they are of a damaged page */
		if (block < nblocks)
			(void) PrefetchBuffer(scan->heapRelation, MAIN_FORKNUM, block);
	}
}

/* Keep the distance of a row found if it is among those to be returned together. */
static void
note_nearest(KnnScan *so, double distance)
{
	int			at = so->nnearest;

	if (so->rules.round_rows == 0 || distance == INFINITY)
		return;
	if (at == so->target - so->returned)
	{
		if (distance >= so->nearest[at - 1])
			return;
		at--;
	}
	else
		so->nnearest++;
	while (at > 0 && so->nearest[at - 1] > distance)
	{
		so->nearest[at] = so->nearest[at - 1];
		at--;
	}
	so->nearest[at] = distance;
}

/* All that were found together have been returned: find the next, more of them. */
static void
next_round(KnnScan *so)
{
	so->target = so->returned + Min(MAX_ROUND, so->returned * (ROUND_GROWTH - 1));
	so->nnearest = 0;
	for (uint32 i = 0; i < RerankCount(so->reranker); i++)
		note_nearest(so, RerankDistance(so->reranker, i));
}

/* The nearest row waiting is no more. */
static void
forget_nearest(KnnScan *so, double distance)
{
	if (so->nnearest > 0 && so->nearest[0] <= distance)
		memmove(so->nearest, so->nearest + 1, --so->nnearest * sizeof(double));
}

/*
 * Are rows left out that turn out nearer than one returned?  They would be out of place, and
 * a scan that does not search on has no other order to offer: there only those come too late
 * that were not found together, or that came with a list that has moved.
 */
static bool
in_order(const KnnScan *so)
{
	return so->rules.strict || !so->rules.iterative;
}

/* May the candidate at hand be nearer than what is to be returned next? */
static bool
candidate_matters(const KnnScan *so)
{
	if (RerankEmpty(so->reranker))
		return true;
	if (so->rules.round_rows == 0)
		return so->candidate_bound < RerankNearest(so->reranker);
	return so->nnearest < so->target - so->returned ||
		so->candidate_bound < so->nearest[so->nnearest - 1];
}

/* Fetch the rows of the candidate at hand; a bound has none. */
static void
take_candidate(KnnScan *so)
{
	so->have_step = false;
	if (so->step == QV_SCAN_BOUND)
		return;
	for (int i = 0; i < so->candidate.ntids; i++)
	{
		double		distance;

		CHECK_FOR_INTERRUPTS();
		distance = RerankAdd(so->reranker, &so->candidate.tids[i]);
		note_nearest(so, distance);
		so->node_nearest = Min(so->node_nearest, distance);
	}
	so->tuples += so->candidate.ntids;
	so->totals.proposed += so->candidate.ntids;
}

bool
KnnGetTuple(IndexScanDesc scan, ScanDirection direction)
{
	KnnScan    *so = scan->opaque;

	Assert(ScanDirectionIsForward(direction));
	if (!so->started)
		start(scan);
	for (;;)
	{
		double		distance;

		CHECK_FOR_INTERRUPTS();
		next_candidate(so);
		if (so->have_step && so->engine->ops->prefetch)
			ask_ahead(scan);
		if (so->have_step && candidate_matters(so))
		{
			take_candidate(so);
			continue;
		}
		QvTestForOldSnapshot(scan->xs_snapshot, scan->indexRelation);
		if (!RerankPop(so->reranker, &scan->xs_heaptid, &distance))
			return false;
		forget_nearest(so, distance);
		/* a later round may find nearer rows than were returned: too late */
		if (in_order(so) && distance < so->last_distance)
			continue;
		so->last_distance = distance;
		so->returned++;
		if (so->rules.round_rows > 0 && so->returned == so->target)
			next_round(so);
		scan->xs_recheck = false;
		scan->xs_recheckorderby = false;
		return true;
	}
}

void
KnnEndScan(IndexScanDesc scan)
{
	KnnScan    *so = scan->opaque;

	if (so->engine)
	{
		RerankGetTotals(so->reranker, &so->totals);
		QvStatsAdd(RelationGetRelid(scan->indexRelation), &so->totals, &so->engine->counters);
		so->engine->ops->end(so->engine);
		RerankEnd(so->reranker);
	}
	MemoryContextDelete(so->query_context);
	if (so->nearest)
		pfree(so->nearest);
	pfree(so);
	scan->opaque = NULL;
}
