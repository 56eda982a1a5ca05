/*
 * scan.c
 *		Searches of a graph.
 *
 * A search proposes rows in the order of their nodes' distances: in a coded graph those of codes,
 * with a bound on the error.  Its candidate pool is as large as the rows proposed so far call for.
 * When they are used up the pool grows, and the search goes on where it was.
 */
#include "postgres.h"

#include <math.h>

#include "graph/form/forms.h"
#include "graph/graph.h"
#include "graph/page/cache.h"
#include "graph/page/pool.h"
#include "graph/page/rows.h"
#include "graph/search/chain.h"
#include "graph/search/effort.h"
#include "miscadmin.h"
#include "query/nearest.h"
#include "utils/memutils.h"

/* Entry points that a search starts from. */
#define SCAN_ENTRIES 8

/* One step raises the effort for late results this many times at most, to about twice as much. */
#define MOST_RAISES 3

typedef struct GraphScan
{
	QvScan		base;
	Relation	index;
	const QvOpclassInfo *opclass;

	/* all below lives in base.context, and is zero when a search begins */
	GraphHandle *handle;		/* new each time: entry points may have moved */
	QvScanGoal	goal;
	GraphEffort effort;
	GraphPoint *point;
	GraphStore *store;
	GraphSearch search;
	bool		begun;
	float		settled;		/* all results nearer than this are found */
	uint64		taken;			/* results proposed, */
	double		last;			/* and the greatest bound of one */
	uint64		asked;			/* results from that place on were not asked
								 * for ahead */
	bool		exhausted;		/* no candidate is left */
	bool		entered_all;	/* every entry point has been offered */
	GraphResult *waiting;		/* results not proposed yet */
	MinHeap		heap;			/* places by the bound of their distance */
	QvCandidate current;		/* what the chain belongs to */
	GraphChain	chain;
} GraphScan;

/* ---- results ---- */

/* Take over what the search has found.  Returns how many come late. */
static uint32
queue_results(GraphScan *scan)
{
	GraphSearch *search = &scan->search;
	MinHeap    *heap = &scan->heap;
	uint32		late = 0;

	scan->waiting = QvNearestRoom(heap, search->nresults, scan->base.context, scan->waiting,
								  sizeof(GraphResult));
	for (uint32 i = 0; i < search->nresults; i++)
	{
		const GraphResult *result = &search->results[i];

		/*
		 * neither its rows nor those of results that wait behind it are
		 * nearer
		 */
		double		bound = result->distance - result->error * scan->base.certainty;

		late += bound < scan->last;
		scan->waiting[QvNearestAdd(heap, bound)] = *result;
	}
	search->nresults = 0;
	scan->base.counters.nodes += search->hops;
	scan->base.counters.pages += search->hops;
	scan->base.counters.neighbors += search->scored;
	search->hops = search->scored = 0;
	return late;
}

/* ---- going deeper ---- */

/*
 * Search from all entry points that were not offered yet; false when nothing comes of it.  A graph
 * may consist of parts that no edge connects, each with an entry point.
 */
static bool
enter_all(GraphScan *scan)
{
	if (scan->entered_all)
		return false;
	scan->entered_all = true;
	scan->store->enter(scan->store, &scan->search, Max(1, scan->handle->meta.entry_count));
	if (!PoolHasNext(&scan->search.pool))
		return false;
	GraphSearchRun(&scan->search, scan->store);
	return true;
}

/* The pool for a search that is to propose "rank" results. */
static uint32
pool_for(const GraphScan *scan, double rank)
{
	return GraphFormOf(scan->handle)->pool_size(scan->handle, GraphEffortFor(&scan->effort, rank));
}

/* Bytes that the search takes. */
static Size
scan_memory(const GraphScan *scan)
{
	return GraphSearchMemory(&scan->search) +
		scan->heap.capacity * (sizeof(GraphResult) + sizeof(MinHeapItem));
}

/* Is there memory for a larger pool?  It grows with the pool. */
static bool
has_memory(GraphScan *scan, uint32 pool)
{
	uint32		now = scan->search.pool.capacity;
	double		most = scan->goal.settings->memory / (pool / (double) now);

	if (pool <= now)
		return true;
	/* only where that may be enough */
	if (scan_memory(scan) > most &&
		scan_memory(scan) - scan->search.discarded.capacity * sizeof(BacklogItem) <= most)
		GraphSearchCompact(&scan->search);
	return scan_memory(scan) <= most;
}

/*
 * How many results may come late when the search goes deeper: the share of the further ones that
 * the recall allows.  An effort that the user has set is not raised.
 */
static double
most_late(const GraphScan *scan, double rank)
{
	const QvSettings *settings = scan->goal.settings;

	return settings->ef_search > 0 ? INFINITY : Max(1, (1 - settings->recall) * (rank - scan->taken));
}

/* Go as deep as a number of results takes; false when that cannot be. */
static bool
deepen(GraphScan *scan, double rank)
{
	uint32		pool = pool_for(scan, rank);

	if (!scan->goal.endless || scan->exhausted || rank <= scan->base.allowed)
		return false;
	/* half of the memory is for further results */
	if (scan->effort.raised > 1 && !has_memory(scan, 2 * pool))
	{
		scan->effort.raised = 1;
		pool = pool_for(scan, rank);
	}
	if (!has_memory(scan, pool))
		return false;
	for (int raises = 0;; raises++)
	{
		uint32		late;

		scan->exhausted = pool > scan->search.pool.capacity &&
			!GraphSearchWiden(&scan->search, scan->store, pool) && !enter_all(scan);
		late = queue_results(scan);
		if (scan->exhausted || late <= most_late(scan, rank) || raises == MOST_RAISES)
			break;
		scan->effort.raised *= GRAPH_EFFORT_GROWTH;
		pool = pool_for(scan, rank);
		if (pool <= scan->search.pool.capacity || !has_memory(scan, 2 * pool))
			break;
	}
	scan->base.allowed = scan->exhausted ? INFINITY : rank;
	scan->base.returns = 0;
	scan->settled = GraphSearchFrontier(&scan->search);
	return true;
}

/* How many of the nearest results that wait came after the first "before" of all? */
static uint32
count_new(const GraphScan *scan, uint32 before)
{
	uint32		places[MinHeapRoom(GRAPH_SETTLED_ROWS)];
	uint32		n = MinHeapLeast(&scan->heap, GRAPH_SETTLED_ROWS, places);
	uint32		count = 0;

	/* none was taken, so their places are in the order in which they came */
	for (uint32 i = 0; i < n; i++)
		count += scan->heap.items[places[i]].value >= before;
	return count;
}

/*
 * Go on from a part of the pool to all of it, and to twice as much if the query turns out to be
 * harder than the rows by which the pool was measured.  Then it may be deep enough for more rows.
 */
static void
settle(GraphScan *scan, uint32 pool)
{
	uint32		before = scan->heap.count;
	double		rank;

	if (!GraphSearchWiden(&scan->search, scan->store, pool))
		return;
	queue_results(scan);
	/* half of the memory is for further results */
	if (count_new(scan, before) < scan->effort.hard_new_rows || !has_memory(scan, 4 * pool) ||
		!GraphSearchWiden(&scan->search, scan->store, 2 * pool))
		return;
	queue_results(scan);
	while ((rank = GraphEffortNext(scan->base.allowed)) > scan->base.allowed &&
		   pool_for(scan, rank) <= scan->search.pool.capacity)
		(void) deepen(scan, rank);
}

static void
begin_search(GraphScan *scan)
{
	double		rank;
	uint32		pool,
				first;
	bool		settles;

	scan->begun = true;
	scan->base.allowed = floor(scan->effort.rows);
	scan->base.returns = scan->effort.measured < scan->effort.rows ? scan->effort.measured : 0;
	GraphSearchInit(&scan->search, scan->store->exact, scan->goal.endless);
	pool = pool_for(scan, scan->base.allowed);
	first = Max(pool / 2, GRAPH_SETTLED_ROWS + 1);
	settles = first < pool && isfinite(scan->effort.hard_new_rows);
	GraphSearchReset(&scan->search, settles ? first : pool);
	scan->store->enter(scan->store, &scan->search, SCAN_ENTRIES);
	GraphSearchRun(&scan->search, scan->store);
	/* the nearest entry points may lead to nodes that are all being deleted */
	if (scan->search.nresults == 0)
		(void) enter_all(scan);
	queue_results(scan);
	if (settles)
		settle(scan, pool);

	/*
	 * Rows that a later step finds may come too late.  So begin as deep as
	 * rows are expected, or as memory allows.
	 */
	rank = GraphEffortMost(scan->goal.expected);
	while (rank > scan->base.allowed && !deepen(scan, rank))
		rank = floor(rank / 2);
}

/* ---- candidates ---- */

/*
 * The nearest result that waits becomes the current one, its rows the candidate; false when all its
 * rows are in its chain.
 */
static bool
take_result(GraphScan *scan, QvCandidate *candidate)
{
	/* its place is free, and is used when the search goes deeper */
	MinHeapItem top = MinHeapPop(&scan->heap);
	GraphResult *result = &scan->waiting[top.value];

	scan->taken++;
	QvNearestPrefetch(&scan->heap, scan->base.table_hints, scan->waiting, sizeof(GraphResult),
					  offsetof(GraphResult, tids));
	scan->last = Max(scan->last, top.key);
	QvSetCandidate(&scan->base, candidate, top.key, result->distance, result->error, result->tids,
				   result->ntids);
	scan->current = *candidate;
	GraphChainStart(&scan->chain, result->id, result->overflow);
	return candidate->ntids > 0;
}

/*
 * More rows of the current node; false when that was all.  The first rows of a node without any of
 * its own are the node's candidate.
 */
static bool
next_of_chain(GraphScan *scan, QvCandidate *candidate)
{
	int			n = GraphChainNext(&scan->chain);

	*candidate = scan->current;
	candidate->ntids = n;
	candidate->tids = scan->chain.tids;
	if (scan->current.ntids == 0)
	{
		scan->current.ntids = n;
		return n > 0;
	}
	candidate->same_node = true;
	/* of other nodes: the ones that wait, or are still to be found */
	if (scan->heap.count > 0)
		candidate->bound = scan->heap.items[0].key;
	else
		candidate->bound = scan->goal.endless && !scan->exhausted ? scan->settled : INFINITY;
	return n > 0;
}

static bool
graph_scan_next(QvScan *base, QvCandidate *candidate)
{
	GraphScan  *scan = (GraphScan *) base;
	MemoryContext old = MemoryContextSwitchTo(scan->base.context);
	bool		found = false;
	bool		goes_on = true;

	if (!scan->begun)
		begin_search(scan);
	while (!found && goes_on)
	{
		CHECK_FOR_INTERRUPTS();
		if (scan->chain.next != GRAPH_NONE && next_of_chain(scan, candidate))
			found = true;
		else if (scan->heap.count > 0 && scan->taken < scan->base.allowed)
			found = take_result(scan, candidate);
		else
			goes_on = deepen(scan, GraphEffortNext(scan->base.allowed));
	}
	base->complete = !found && scan->exhausted;
	MemoryContextSwitchTo(old);
	return found;
}

/* Rows of the table for the next results, in runs, so that the reads overlap. */
static int
graph_scan_prefetch(QvScan *base, ItemPointerData tids[QV_ROWS_AHEAD])
{
	GraphScan  *scan = (GraphScan *) base;
	uint32		n;

	if (!scan->begun || !GraphSearchIsCold(&scan->search) || scan->asked > scan->taken)
		return 0;
	n = QvNearestTids(&scan->heap, scan->waiting, sizeof(GraphResult), offsetof(GraphResult, tids), tids);
	scan->asked = scan->taken + n / 2;
	return n;
}

/* ---- rows by their place ---- */

static bool
graph_scan_measure(QvScan *base, const ItemPointerData *tid, QvRowPlace place, QvMeasured *measured)
{
	GraphScan  *scan = (GraphScan *) base;
	const GraphLayout *layout = &scan->handle->layout;
	GraphResult result;
	GraphNode	node;
	bool		live;
	Buffer		buf;

	/* VACUUM has put another in its place: then no snapshot sees the row */
	buf = QvReadPage(scan->index, scan->handle->hints, GraphNodeBlock(layout, place.block), QV_PAGE_NODES,
					 BUFFER_LOCK_SHARE);
	node = GraphPageNode(layout, BufferGetPage(buf), GraphNodeSlot(layout, place.block));
	live = node->state == GRAPH_SLOT_LIVE;
	if (live)
		scan->store->measure(scan->store, node, &result);
	UnlockReleaseBuffer(buf);
	base->counters.nodes++;
	base->counters.pages++;
	if (live)
		*measured = (QvMeasured) {result.distance, result.error};
	return live;
}

static void
graph_scan_prefetch_places(QvScan *base, const QvRowPlace *places, uint32 n)
{
	GraphHandle *handle = ((GraphScan *) base)->handle;
	const GraphLayout *layout = &handle->layout;

	for (uint32 i = 0; i < n; i++)
		QvPrefetchPin(handle->hints, GraphNodeBlock(layout, places[i].block));
	for (uint32 i = 0; i < n; i++)
	{
		(void) QvPrefetchBlock(handle->index, handle->hints, GraphNodeBlock(layout, places[i].block));
		GraphPrefetchNode(handle, places[i].block, 0, sizeof(GraphNodeData));
		GraphPrefetchNode(handle, places[i].block, layout->own, layout->own_bytes);
	}
}

/* ---- */

static void
graph_scan_start(QvScan *base, const QvScanGoal *goal)
{
	GraphScan  *scan = (GraphScan *) base;
	GraphHandle *handle;
	const void *value;
	MemoryContext old;

	MemoryContextReset(scan->base.context);
	memset(&scan->handle, 0, sizeof(GraphScan) - offsetof(GraphScan, handle));
	old = MemoryContextSwitchTo(scan->base.context);
	scan->handle = handle = GraphOpen(scan->index, scan->opclass);
	value = QvSearchedValue(scan->opclass, handle->meta.dims, goal->value);
	scan->goal = *goal;
	GraphEffortInit(&scan->effort, &handle->meta, goal);
	scan->point = GraphFormOf(handle)->prepare(handle, value);
	scan->store = GraphFormOf(handle)->open(handle, scan->point);
	base->table_hints = &handle->cached.entry->table_hints;
	base->rows = QvRowsAreWhole(&handle->rows.meta) && value ? &handle->rows : NULL;
	QvScanSetQuery(base, &handle->space, scan->point->query);
	/* the curve is one of walks */
	base->misses = Min(1 - goal->settings->recall, QvCurveMisses(&handle->meta.curve, goal->settings));
	base->certainty = QvCandidateCertainty(handle->meta.dims, handle->layout.own_bits);
	scan->last = scan->settled = -INFINITY;
	GraphChainInit(&scan->chain, handle);
	MemoryContextSwitchTo(old);
}

static const QvScanOps graph_scan_ops = {
	.start = graph_scan_start,
	.next = graph_scan_next,
	.prefetch = graph_scan_prefetch,
	.measure = graph_scan_measure,
	.prefetch_places = graph_scan_prefetch_places,
	.end = QvScanEnd
};

QvScan *
GraphScanBegin(Relation index, const QvOpclassInfo *opclass)
{
	GraphScan  *scan = palloc0(sizeof(GraphScan));

	scan->base.ops = &graph_scan_ops;
	scan->index = index;
	scan->opclass = opclass;
	scan->base.context = AllocSetContextCreate(CurrentMemoryContext, "quiver graph scan",
											   ALLOCSET_DEFAULT_SIZES);
	return &scan->base;
}
