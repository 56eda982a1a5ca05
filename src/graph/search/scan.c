/*
 * scan.c
 *		Index scans of a graph.
 *
 * A scan proposes rows in the order of their nodes' distances (in a coded
 * graph those of codes, with a bound on the error); exact order is the access
 * method's business (it can read the table).
 */
#include "postgres.h"

#include <math.h>

#include "containers/idset.h"
#include "containers/minheap.h"
#include "graph/form/forms.h"
#include "graph/graph.h"
#include "graph/page/cache.h"
#include "graph/page/rows.h"
#include "graph/search/sweep.h"
#include "graph/search/sweep_codes.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Entry points that a search starts from. */
#define SCAN_ENTRIES 8

/* How often a chain of heap TIDs may change while it is read. */
#define MAX_CHAIN_RESTARTS 100

/*
 * Bytes for each node that a sweep keeps: its result twice, with room to grow, and its
 * place in the heap.
 */
#define SWEEP_BYTES (3 * sizeof(GraphResult) + sizeof(MinHeapItem))

/* Nodes that a sweep keeps, at least and at most. */
#define SWEEP_MIN_KEPT 64
#define SWEEP_MAX_KEPT (1 << 20)

/* Room for slots of a chain to begin with. */
#define FIRST_SLOTS 64

/* Results beyond ef that exact distances may bring forward. */
#define RERANK_SLACK 4

/* Results whose rows of the table the CPU is asked for. */
#define RESULTS_AHEAD 4

/* A batch that follows the rank grows by so much, at least and at most. */
#define LEAST_GROWTH 1.3
#define MOST_GROWTH 1.5

/*
 * It is as deep as for so many times the rank, which is known from a few rows; and has so
 * many candidates for each rank, since the last of them are found last.
 */
#define RANK_MARGIN 1.25
#define RANK_CANDIDATES 1.5

/* The heap TIDs of one node that are not in its own slot. */
typedef struct TidChain
{
	uint32		owner;			/* the node */
	uint32		next;			/* slot to read next, or GRAPH_NONE */
	IdSet		slots;			/* those returned so far */
	uint32		again;			/* of these met again, one after the other */
	int			restarts;
	ItemPointerData *tids;		/* of the slot read last: layout.tids_per_slot */
} TidChain;

typedef struct GraphScan
{
	QvScan		base;
	Relation	index;
	const QvOpclassInfo *opclass;
	MemoryContext query_context;	/* reset when the scan starts over */

	/* all below lives in query_context */
	GraphHandle *handle;		/* new each time: entry points may have moved */
	GraphScanParams params;
	GraphPoint *point;
	GraphStore *store;
	GraphSearch search;
	uint32		ef;				/* of the first batch, and those that follow
								 * the rank: all together */
	uint32		pool;			/* what a search really uses for it */
	bool		resumed;		/* the batches that follow the rank are over */
	GraphResult *waiting;		/* results not returned yet */
	uint32		max_waiting;
	uint32		free;			/* place in it, the first of a list by id */
	uint32		returned;		/* place of the result returned last */
	MinHeap		heap;			/* places by the bound of their distance */
	double		certainty;		/* share of a result's error that counts */
	uint32		quota;			/* results to return before the next batch, */
	float		frontier;		/* and how far they may be */
	QvCandidate current;		/* what the chain belongs to */
	TidChain	chain;
	bool		entered_all;	/* every entry point has been offered */
	bool		swept_all;		/* by a sweep: nothing was left out */
	QvMemberSearch *members;	/* a sweep by codes, or NULL */
} GraphScan;

/* Is there a result to return before the next batch? */
static bool
has_ready(const GraphScan *scan)
{
	/* damaged factors give distances that are none: those come at any time */
	return scan->heap.count > 0 &&
		((scan->quota > 0 && !(scan->heap.items[0].key > scan->frontier)) ||
		 (scan->base.follows && scan->heap.items[0].key <= scan->base.settled));
}

/* Make room for so many more results that wait. */
static void
grow_waiting(GraphScan *scan, uint32 size)
{
	if (scan->waiting == NULL)
	{
		scan->waiting = MemoryContextAllocHuge(scan->query_context,
											   size * sizeof(GraphResult));
		scan->heap.items = MemoryContextAllocHuge(scan->query_context,
												  size * sizeof(MinHeapItem));
	}
	else
	{
		scan->waiting = repalloc_huge(scan->waiting, size * sizeof(GraphResult));
		scan->heap.items = repalloc_huge(scan->heap.items, size * sizeof(MinHeapItem));
	}
	for (uint32 i = scan->max_waiting; i < size; i++)
	{
		scan->waiting[i].id = scan->free;
		scan->free = i;
	}
	scan->max_waiting = scan->heap.capacity = size;
}

/*
 * How far results may be to be returned before the search goes on again.
 *
 * In strict order, what is found later and nearer is lost, so they must not be
 * farther than the nearest candidate that is left.  Taking the usual error of
 * the estimates off finds hardly more, for two to ten times the nodes (measured:
 * docs/measurements.md).  In relaxed order it is the nearest quarter of the pool, so
 * that near misses come together with their neighbors.
 */
static float
later_frontier(GraphScan *scan)
{
	GraphSearch *search = &scan->search;
	const Pool *pool = &search->pool;

	if (scan->params.strict)
		return GraphSearchFrontier(search);
	return pool->count > 0 ? pool->items[pool->count / 4].distance : INFINITY;
}

/* Neither the result's rows nor those of results that wait behind it are nearer. */
static double
bound_of(const GraphScan *scan, const GraphResult *result)
{
	return result->distance - result->error * scan->certainty;
}

/*
 * The first batch returns its ef nearest; one that follows the rank as many in all, and all
 * that is nearer than the candidates left.
 */
static void
set_quota(GraphScan *scan)
{
	uint64		most = scan->ef + (scan->store->exact ? 0 : RERANK_SLACK);

	scan->quota = most > scan->base.taken ? most - scan->base.taken : 0;
	if (scan->base.follows)
		scan->base.settled = GraphSearchFrontier(&scan->search);
}

/*
 * Take over what the search has found, and say how much of it can be returned
 * before the search goes on.  The first batch of a search that can go on
 * returns the ef nearest, as pgvector's.  Never more than the pool holds: what
 * was expanded beyond it is far away, and a strict order would go on from there.
 */
static void
queue_results(GraphScan *scan)
{
	GraphSearch *search = &scan->search;
	MinHeap    *heap = &scan->heap;

	scan->quota = UINT32_MAX;
	scan->frontier = INFINITY;
	if (scan->params.iterative)
	{
		if (scan->resumed)
			scan->frontier = later_frontier(scan);
		else
			set_quota(scan);
	}

	/* one place is that of the result returned last */
	if (heap->count + search->nresults >= scan->max_waiting)
		grow_waiting(scan, Max(scan->max_waiting * 2, heap->count + search->nresults + 1));
	for (uint32 i = 0; i < search->nresults; i++)
	{
		const GraphResult *result = &search->results[i];
		double		bound = bound_of(scan, result);
		uint32		place = scan->free;

		scan->free = scan->waiting[place].id;
		scan->waiting[place] = *result;
		/* damaged factors: the row itself will tell */
		MinHeapPush(heap, isnan(bound) ? -INFINITY : bound, place);
	}
	search->nresults = 0;
	scan->base.counters.nodes += search->hops;
	scan->base.counters.neighbors += search->scored;
	search->hops = search->scored = 0;
}

/*
 * Offer all entry points that were not yet; false when nothing comes of it.  A
 * graph may consist of parts that no edge connects, each with an entry point.
 */
static bool
enter_all(GraphScan *scan)
{
	if (scan->entered_all)
		return false;
	scan->entered_all = true;
	scan->store->enter(scan->store, &scan->search, Max(1, scan->handle->meta.entry_count));
	return PoolHasNext(&scan->search.pool);
}

uint32
GraphEfForRank(const GraphScanParams *params, double rank)
{
	double		margin = params->follow ? RANK_MARGIN : 1;
	double		ef = params->ef;

	if (params->ef_rows > 0 && rank * margin > params->ef_rows)
		ef *= sqrt(rank * margin / params->ef_rows);
	ef = Min(Max(ef, params->follow ? rank * RANK_CANDIDATES : rank), GRAPH_MAX_EF);
	return params->follow ? ceil(ef) : ef;
}

/* How deep the search has been: the rank that its ef is for, GraphEfForRank() backwards. */
static void
set_depth(GraphScan *scan)
{
	const GraphScanParams *params = &scan->params;
	double		margin = params->follow ? RANK_MARGIN : 1;
	double		rank = params->follow ? scan->ef / RANK_CANDIDATES : scan->ef;

	scan->base.reach = params->ef_rows * pow((double) scan->ef / params->ef, 2) / margin;
	scan->base.depth = params->ef_rows > 0 ? Min(rank, scan->base.reach) : rank;
}

/* Search for the first batch of results. */
static void
search_first(GraphScan *scan)
{
	scan->ef = GraphEfForRank(&scan->params, scan->params.rank);
	scan->pool = GraphFormOf(scan->handle)->pool_size(scan->handle, scan->ef);
	GraphSearchInit(&scan->search, scan->store->exact, scan->params.iterative);
	GraphSearchReset(&scan->search, scan->pool);
	scan->store->enter(scan->store, &scan->search, SCAN_ENTRIES);
	GraphSearchRun(&scan->search, scan->store);
	/* the nearest entry points may lead to nodes that are all being deleted */
	if (scan->search.nresults == 0 && enter_all(scan))
		GraphSearchRun(&scan->search, scan->store);
	queue_results(scan);
}

uint32
GraphSweepKept(Size max_memory)
{
	Size		fit = max_memory / SWEEP_BYTES;

	return Max(SWEEP_MIN_KEPT, Min(fit, SWEEP_MAX_KEPT));
}

/* Measure every node that has rows of the set: there will be no other batch. */
static void
sweep(GraphScan *scan)
{
	GraphSweepParams params = {
		.store = (GraphCodedStore *) scan->store,
		.only = scan->params.only,
		.most = GraphSweepKept(scan->params.max_memory),
		.known_only = scan->params.known_only,
		.certainty = scan->certainty,
		.counters = &scan->base.counters
	};
	QvMemberSearch *members = palloc(sizeof(QvMemberSearch));
	float		beyond;

	scan->swept_all = true;
	if (GraphSweepByCodes(scan->handle, &params, scan->params.max_memory, members))
	{
		scan->members = members;
		return;
	}
	GraphSearchInit(&scan->search, scan->store->exact, false);
	scan->swept_all = GraphSweep(scan->handle, &scan->search, &params, &beyond);
	queue_results(scan);
	scan->quota = UINT32_MAX;
	scan->frontier = beyond;
}

void
GraphScanStart(QvScan *base, const void *value, const GraphScanParams *params)
{
	GraphScan  *scan = (GraphScan *) base;
	const VectorTypeOps *type = scan->opclass->type;
	GraphHandle *handle;
	MemoryContext old;

	MemoryContextReset(scan->query_context);
	old = MemoryContextSwitchTo(scan->query_context);
	scan->handle = handle = GraphOpen(scan->index, scan->opclass);
	if (value && type->dims(value) != handle->meta.dims)
		type->different_dims(handle->meta.dims, type->dims(value));
	scan->params = *params;
	scan->point = GraphFormOf(handle)->prepare(handle, value);
	scan->store = GraphFormOf(handle)->open(handle, scan->point);
	scan->base.table_hints = handle->table_hints;
	scan->base.scale = scan->point->scale;
	scan->base.offset = scan->point->offset;
	scan->certainty = QvCandidateCertainty(handle->meta.dims, handle->layout.own_bits);
	memset(&scan->heap, 0, sizeof(scan->heap));
	scan->waiting = NULL;
	scan->max_waiting = 0;
	scan->free = scan->returned = GRAPH_NONE;
	scan->resumed = scan->entered_all = false;
	scan->members = NULL;
	scan->base.taken = 0;
	scan->base.settled = -INFINITY;
	scan->base.follows = params->follow;
	memset(&scan->chain, 0, sizeof(scan->chain));
	scan->chain.next = GRAPH_NONE;
	scan->chain.tids = palloc(handle->layout.tids_per_slot * sizeof(ItemPointerData));
	if (params->sweep)
	{
		sweep(scan);
		scan->base.depth = scan->swept_all ? INFINITY : 0;
	}
	else
	{
		search_first(scan);
		set_depth(scan);
	}
	MemoryContextSwitchTo(old);
}

/* ---- rows of nodes ---- */

/* Leave the heap TIDs that the search is for; returns how many. */
static int
keep_members(GraphScan *scan, ItemPointerData *tids, int n)
{
	QvScanCounters *counters = &scan->base.counters;
	int			kept;

	if (scan->params.only == NULL)
		return n;
	kept = QvTidSetKeep(scan->params.only, tids, n);
	counters->tested += n;
	counters->members += kept;
	return kept;
}

/* ---- heap TIDs that are not in a node's own slot ---- */

pg_noreturn static void
report_broken_chain(const GraphScan *scan)
{
	QvReportCorruption(scan->index, GraphNodeBlock(&scan->handle->layout, scan->chain.owner),
					   "The chain of heap TIDs of node %u is broken.", scan->chain.owner);
}

/* Remember a slot; false when it was returned before. */
static bool
remember_slot(GraphScan *scan, uint32 slot)
{
	IdSet	   *slots = &scan->chain.slots;
	bool		added;

	if (slots->entries == NULL)
		IdSetInit(slots, MemoryContextAlloc(scan->query_context, IdSetBytes(FIRST_SLOTS)),
				  FIRST_SLOTS);
	else if (IdSetFull(slots))
	{
		uint32		capacity = (slots->mask + 1) * 2;
		IdSetEntry *old = slots->entries;

		IdSetMove(slots, MemoryContextAllocHuge(scan->query_context, IdSetBytes(capacity)),
				  capacity);
		pfree(old);
	}
	IdSetPut(slots, slot, 0, &added);
	return added;
}

/* Where the chain starts now; GRAPH_NONE when its node is gone. */
static uint32
chain_head(GraphScan *scan)
{
	GraphNode	node;
	Buffer		buf = GraphLockNode(scan->handle, scan->chain.owner, BUFFER_LOCK_SHARE, &node);
	uint32		head = node ? node->overflow : GRAPH_NONE;

	UnlockReleaseBuffer(buf);
	return head;
}

/*
 * Copy the heap TIDs of the chain's next slot and go on to the one after it.
 * Returns how many; -1 when the slot is no longer the chain's.  It may be the
 * chain's again and lead to what was returned: vacuum freed it, and an insert
 * made it the first.
 */
static int
read_slot(GraphScan *scan)
{
	const GraphLayout *layout = &scan->handle->layout;
	TidChain   *chain = &scan->chain;
	uint32		slot = chain->next;
	Buffer		buf = QvReadPage(scan->index, scan->handle->hints,
								 GraphNodeBlock(layout, slot), QV_PAGE_NODES, BUFFER_LOCK_SHARE);
	GraphTids	tids = (GraphTids) GraphPageNode(layout, BufferGetPage(buf),
												 GraphNodeSlot(layout, slot));
	int			n = -1;

	if (tids->state == GRAPH_SLOT_TIDS && tids->owner == chain->owner)
	{
		n = Min(tids->ntids, layout->tids_per_slot);
		memcpy(chain->tids, tids->tids, n * sizeof(ItemPointerData));
		chain->next = tids->next;
	}
	UnlockReleaseBuffer(buf);
	if (n < 0)
		return n;
	if (remember_slot(scan, slot))
	{
		chain->again = 0;
		return n;
	}
	/* a chain that leads nowhere else goes in circles */
	if (++chain->again > chain->slots.count)
		report_broken_chain(scan);
	return 0;
}

/* How near a row that the search may still find is expected to be, at the end of a batch. */
static double
later_bound(const GraphScan *scan)
{
	return scan->heap.count > 0 ? Min(scan->frontier, scan->heap.items[0].key) :
		scan->frontier;
}

/*
 * More rows of the current node; false when that was all.  When vacuum has
 * unlinked the chain's next slot meanwhile, start over at the node and leave out
 * what was returned: rows that this scan sees stay in their slots.
 */
static bool
next_of_chain(GraphScan *scan, QvCandidate *candidate)
{
	TidChain   *chain = &scan->chain;
	int			n = 0;

	while (n <= 0 && chain->next != GRAPH_NONE)
	{
		CHECK_FOR_INTERRUPTS();
		n = read_slot(scan);
		if (n > 0)
			n = keep_members(scan, chain->tids, n);
		if (n < 0)
		{
			/* a chain that is always broken is not being changed, but damaged */
			if (++chain->restarts > MAX_CHAIN_RESTARTS)
				report_broken_chain(scan);
			chain->again = 0;
			chain->next = chain_head(scan);
		}
	}
	*candidate = scan->current;
	candidate->same_node = true;
	candidate->others_bound = later_bound(scan);
	candidate->ntids = n;
	candidate->tids = chain->tids;
	return n > 0;
}

/* ---- what the access method calls ---- */

/* Ask the CPU for the rows of the table that the next results lead to: the heap's first entries are near them. */
static void
prefetch_rows(const GraphScan *scan)
{
	const QvBufferHints *hints = scan->base.table_hints;
	const MinHeap *heap = &scan->heap;

	for (uint32 i = 0; i < Min(heap->count, RESULTS_AHEAD); i++)
	{
		GraphResult *result = &scan->waiting[heap->items[i].value];

		if (result->ntids == 0)
			continue;
		if (i == 0)
			QvPrefetchTuple(hints, &result->tids[0]);
		else
			QvPrefetchLine(hints, &result->tids[0]);
	}
}

/* The nearest result that waits becomes the current one, its rows the candidate. */
static void
take_result(GraphScan *scan, QvCandidate *candidate)
{
	GraphResult *result;

	if (scan->quota > 0)
		scan->quota--;
	scan->base.taken++;
	if (scan->returned != GRAPH_NONE)
	{
		scan->waiting[scan->returned].id = scan->free;
		scan->free = scan->returned;
	}
	scan->returned = MinHeapPop(&scan->heap).value;
	prefetch_rows(scan);
	result = &scan->waiting[scan->returned];
	candidate->distance = result->distance;
	candidate->bound = bound_of(scan, result);
	candidate->error = scan->point->query == NULL ? INFINITY :
		QvSpaceQueryError(scan->point->query, result->distance, result->error * scan->certainty);
	/* a sweep has left others out already */
	candidate->ntids = scan->params.sweep ? result->ntids :
		keep_members(scan, result->tids, result->ntids);
	candidate->tids = result->tids;
	candidate->same_node = false;
	scan->current = *candidate;
	scan->chain.owner = result->id;
	scan->chain.next = result->overflow;
	scan->chain.again = 0;
	scan->chain.restarts = 0;
	if (scan->chain.slots.entries)
		IdSetClear(&scan->chain.slots);
}

static QvScanStep
graph_scan_next(QvScan *base, QvCandidate *candidate)
{
	GraphScan  *scan = (GraphScan *) base;

	if (scan->members)
	{
		if (QvMemberSearchNext(scan->members, candidate))
			return QV_SCAN_CANDIDATE;
		candidate->distance = candidate->bound = INFINITY;
		return QV_SCAN_END;
	}
	for (;;)
	{
		if (scan->chain.next != GRAPH_NONE && next_of_chain(scan, candidate))
			return QV_SCAN_CANDIDATE;
		if (!has_ready(scan))
		{
			/* what waits says nothing of what the next batch will find */
			candidate->distance = candidate->bound = base->follows ? NAN : later_bound(scan);
			return QV_SCAN_END;
		}
		CHECK_FOR_INTERRUPTS();
		take_result(scan, candidate);
		if (candidate->ntids > 0)
			return QV_SCAN_CANDIDATE;
	}
}

static Size
scan_memory(const GraphScan *scan)
{
	return GraphSearchMemory(&scan->search) +
		scan->max_waiting * (sizeof(GraphResult) + sizeof(MinHeapItem));
}

/* Is there memory for a batch of that ef?  For what was expected, always. */
static bool
may_grow(const GraphScan *scan, double ef)
{
	return ef <= GraphEfForRank(&scan->params, scan->params.expected_rank) ||
		scan_memory(scan) * (ef / scan->ef) <= scan->params.max_memory;
}

/*
 * Go on for a batch as deep as the last row's rank among all tells; false when there can be
 * none: the limit of candidates or of memory is near, or no candidate is left.
 */
static bool
follow_rank(GraphScan *scan)
{
	double		needed = GraphEfForRank(&scan->params, scan->base.rank);
	double		ef = Max(needed, scan->ef * LEAST_GROWTH);
	uint32		pool;

	/* some more in any case, even than one */
	ef = Max(floor(Min(ef, scan->ef * MOST_GROWTH)), scan->ef + 1.0);
	if (!may_grow(scan, ef))
		ef = Min(ef, Max(needed, scan->ef + 1.0));
	ef = Min(ef, GRAPH_MAX_EF);
	if (ef <= scan->ef || !may_grow(scan, ef))
		return false;
	scan->ef = ef;
	pool = GraphFormOf(scan->handle)->pool_size(scan->handle, scan->ef);
	if (pool > scan->pool && !GraphSearchWiden(&scan->search, scan->store, pool))
	{
		if (!enter_all(scan))
			return false;
		GraphSearchRun(&scan->search, scan->store);
	}
	scan->pool = pool;
	return true;
}

/* Go on with the nearest candidates that are left; false when there are none. */
static bool
search_next(GraphScan *scan)
{
	scan->resumed = true;
	if (scan_memory(scan) > scan->params.max_memory)
		return false;
	if (GraphSearchResume(&scan->search, scan->store, scan->pool))
		return true;
	if (!enter_all(scan))
		return false;
	GraphSearchRun(&scan->search, scan->store);
	return true;
}

static bool
graph_scan_resume(QvScan *base)
{
	GraphScan  *scan = (GraphScan *) base;
	MemoryContext old;
	bool		more;

	/* it has looked at every node */
	if (scan->params.sweep)
		return false;
	old = MemoryContextSwitchTo(scan->query_context);
	do
	{
		CHECK_FOR_INTERRUPTS();
		base->follows = base->follows && follow_rank(scan);
		more = base->follows || search_next(scan);
		if (more)
			queue_results(scan);
		else
		{
			/* what waits is all there will be */
			scan->quota = UINT32_MAX;
			scan->frontier = INFINITY;
		}
	} while (more && !has_ready(scan));
	set_depth(scan);
	MemoryContextSwitchTo(old);
	return scan->heap.count > 0;
}

static void
graph_scan_end(QvScan *base)
{
	GraphScan  *scan = (GraphScan *) base;

	MemoryContextDelete(scan->query_context);
	pfree(scan);
}

static const QvScanOps graph_scan_ops = {
	.what = "a graph index",
	.next = graph_scan_next,
	.resume = graph_scan_resume,
	.end = graph_scan_end
};

QvScan *
GraphScanBegin(Relation index, const QvOpclassInfo *opclass)
{
	GraphScan  *scan = palloc0(sizeof(GraphScan));

	scan->base.ops = &graph_scan_ops;
	scan->index = index;
	scan->opclass = opclass;
	scan->query_context = AllocSetContextCreate(CurrentMemoryContext, "quiver graph scan",
												ALLOCSET_DEFAULT_SIZES);
	return &scan->base;
}
