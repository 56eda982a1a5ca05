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

#include "graph/graph.h"
#include "graph/form.h"
#include "graph/rows.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Entry table entries that a search starts from. */
#define SCAN_ENTRIES 8

/* How often a chain of row pointers may change while it is read. */
#define MAX_CHAIN_RESTARTS 100

/* Results beyond ef that exact distances may bring forward. */
#define RERANK_SLACK 4

struct GraphScan
{
	Relation	index;
	const QvOpclassInfo *opclass;
	MemoryContext query_context;	/* reset when the scan starts over */

	/* all below lives in query_context */
	GraphHandle *handle;		/* new each time: entries may have moved */
	GraphScanParams params;
	GraphPoint *point;
	GraphStore *store;
	GraphSearch search;
	uint32		ef;				/* what the search really uses */
	uint32		queued;			/* results that are in the heap */
	MinHeap		heap;			/* results to return, by distance */
	uint32		quota;			/* results to return before the next batch, */
	float		frontier;		/* and how far they may be */
	QvRowCandidate current;		/* what the overflow chain belongs to */
	uint32		overflow;		/* next slot of it, or GRAPH_NONE */
	uint32		owner;
	ItemPointerData *tids;		/* layout.tids_per_slot */
	uint32	   *chain;			/* slots of the chain returned so far */
	uint32		chain_length;
	uint32		chain_size;
	int			chain_restarts;
	bool		entered_all;	/* every entry has been offered */
};

GraphScan *
GraphScanBegin(Relation index, const QvOpclassInfo *opclass)
{
	GraphScan  *scan = palloc0(sizeof(GraphScan));

	scan->index = index;
	scan->opclass = opclass;
	scan->query_context = AllocSetContextCreate(CurrentMemoryContext, "quiver graph scan",
												ALLOCSET_DEFAULT_SIZES);
	return scan;
}

int
GraphScanDims(const GraphScan *scan)
{
	return scan->handle->meta.dims;
}

double
GraphScanDistance(const GraphScan *scan, double distance)
{
	return scan->point->scale * (distance + scan->point->offset);
}

/* Is there a result to return before the next batch? */
static bool
has_ready(const GraphScan *scan)
{
	return scan->heap.count > 0 && scan->quota > 0 &&
		scan->heap.items[0].key <= scan->frontier;
}

/*
 * Put the results that are not in the heap yet into it.  When the search can
 * go on, the first batch returns the ef nearest, as pgvector's; a later one
 * only as far as it has looked around, the nearest quarter of its pool.
 * Beyond are nodes that the search came by on its way, and near misses that
 * the next batch brings together with their neighbours: strict order loses
 * what is found too late (10 % of a whole table with quarters, 12 % with
 * halves).
 */
static void
queue_results(GraphScan *scan)
{
	MinHeap    *heap = &scan->heap;
	const Pool *pool = &scan->search.pool;
	uint32		n = scan->search.nresults - scan->queued;

	scan->quota = UINT32_MAX;
	scan->frontier = INFINITY;
	if (scan->params.iterative)
	{
		if (scan->queued == 0)
			scan->quota = scan->params.ef + RERANK_SLACK;
		else if (pool->count > 0)
			scan->frontier = pool->items[pool->count / 4].distance;
	}

	if (heap->count + n > heap->capacity)
	{
		uint32		size = Max(heap->capacity * 2, heap->count + n);

		if (heap->items == NULL)
			heap->items = MemoryContextAllocHuge(scan->query_context,
												 size * sizeof(MinHeapItem));
		else
			heap->items = repalloc_huge(heap->items, size * sizeof(MinHeapItem));
		heap->capacity = size;
	}
	for (; scan->queued < scan->search.nresults; scan->queued++)
		MinHeapPush(heap, scan->search.results[scan->queued].distance, scan->queued);
}

/*
 * Offer all entries that were not yet; false when nothing comes of it.  A
 * graph may consist of parts that no edge connects, each with an entry.
 */
static bool
enter_all(GraphScan *scan)
{
	if (scan->entered_all)
		return false;
	scan->entered_all = true;
	scan->handle->ops->enter(scan->store, &scan->search,
							 Max(1, scan->handle->meta.route_count));
	return PoolHasNext(&scan->search.pool);
}

void
GraphScanStart(GraphScan *scan, const void *value, const GraphScanParams *params)
{
	GraphHandle *handle;
	const GraphFormOps *ops;
	MemoryContext old;

	MemoryContextReset(scan->query_context);
	old = MemoryContextSwitchTo(scan->query_context);
	scan->handle = handle = GraphOpen(scan->index, scan->opclass);
	ops = handle->ops;
	if (value && scan->opclass->type->dims(value) != handle->meta.dims)
		scan->opclass->type->different_dims(handle->meta.dims,
											scan->opclass->type->dims(value));
	scan->params = *params;
	scan->tids = palloc(handle->layout.tids_per_slot * sizeof(ItemPointerData));
	scan->chain = NULL;
	scan->chain_size = 0;
	scan->entered_all = false;
	scan->point = ops->prepare(handle, value);
	scan->store = ops->open(handle, scan->point, NULL);
	scan->ef = ops->pool_size(handle, params->ef);
	GraphSearchInit(&scan->search, ops->exact, params->iterative);
	GraphSearchReset(&scan->search, scan->ef);
	memset(&scan->heap, 0, sizeof(scan->heap));
	scan->queued = 0;
	scan->overflow = GRAPH_NONE;
	ops->enter(scan->store, &scan->search, SCAN_ENTRIES);
	GraphSearchRun(&scan->search, scan->store);
	/* the nearest entries may lead to nodes that are all being deleted */
	if (scan->search.nresults == 0 && enter_all(scan))
		GraphSearchRun(&scan->search, scan->store);
	queue_results(scan);
	MemoryContextSwitchTo(old);
}

static bool
returned_slot(const GraphScan *scan, uint32 slot)
{
	for (uint32 i = 0; i < scan->chain_length; i++)
		if (scan->chain[i] == slot)
			return true;
	return false;
}

/* Remember a slot; a chain longer than there are slots goes in circles. */
static void
remember_slot(GraphScan *scan, uint32 slot)
{
	if (scan->chain_length == scan->chain_size)
	{
		uint32		size = Max(16, scan->chain_size * 2);

		scan->chain = scan->chain ?
			repalloc_huge(scan->chain, size * sizeof(uint32)) :
			MemoryContextAlloc(scan->query_context, size * sizeof(uint32));
		scan->chain_size = size;
		/* only now and then: this asks the file system */
		if (scan->chain_length > (uint64) RelationGetNumberOfBlocks(scan->index) *
			scan->handle->layout.per_page)
			QvReportCorruption(scan->index, GraphNodeBlock(&scan->handle->layout, scan->owner),
							   "The chain of row pointers of node %u is broken.", scan->owner);
	}
	scan->chain[scan->chain_length++] = slot;
}

/* Where the current node's chain starts now; GRAPH_NONE when it is gone. */
static uint32
chain_head(GraphScan *scan)
{
	GraphNode	node;
	Buffer		buf = GraphLockNode(scan->handle, scan->owner, BUFFER_LOCK_SHARE, &node);
	uint32		head = node ? node->overflow : GRAPH_NONE;

	UnlockReleaseBuffer(buf);
	return head;
}

/*
 * The next slot of the current node's chain of row pointers.  When vacuum has
 * unlinked the slot meanwhile, start over at the node and leave out what was
 * returned: rows that this scan sees stay in their slots.
 */
static void
read_overflow(GraphScan *scan, QvRowCandidate *candidate)
{
	const GraphLayout *layout = &scan->handle->layout;
	uint32		slot = scan->overflow;
	Buffer		buf;
	GraphTids	tids;
	bool		ours;

	*candidate = scan->current;
	candidate->same_node = true;
	candidate->ntids = 0;
	candidate->tids = scan->tids;
	buf = QvReadPage(scan->handle->index, scan->handle->hints,
					 GraphNodeBlock(layout, slot), QV_PAGE_NODES, BUFFER_LOCK_SHARE);
	tids = (GraphTids) GraphPageNode(layout, BufferGetPage(buf),
									 GraphNodeSlot(layout, slot));
	ours = tids->state == GRAPH_SLOT_TIDS && tids->owner == scan->owner;
	if (ours)
	{
		if (scan->chain_restarts == 0 || !returned_slot(scan, slot))
		{
			candidate->ntids = Min(tids->ntids, layout->tids_per_slot);
			memcpy(scan->tids, tids->tids, candidate->ntids * sizeof(ItemPointerData));
		}
		scan->overflow = tids->next;
	}
	UnlockReleaseBuffer(buf);
	if (ours)
		remember_slot(scan, slot);
	else
	{
		/* a chain that is always broken is not being changed, but damaged */
		if (++scan->chain_restarts > MAX_CHAIN_RESTARTS)
			QvReportCorruption(scan->index, GraphNodeBlock(layout, scan->owner),
							   "The chain of row pointers of node %u is broken.", scan->owner);
		scan->overflow = chain_head(scan);
	}
}

bool
GraphScanNext(GraphScan *scan, QvRowCandidate *candidate)
{
	GraphResult *result;

	if (scan->overflow != GRAPH_NONE)
	{
		CHECK_FOR_INTERRUPTS();
		read_overflow(scan, candidate);
		return true;
	}
	if (!has_ready(scan))
		return false;
	scan->quota--;
	result = &scan->search.results[MinHeapPop(&scan->heap).value];
	candidate->distance = result->distance;
	candidate->error = result->error;
	candidate->ntids = result->ntids;
	candidate->tids = result->tids;
	candidate->same_node = false;
	scan->current = *candidate;
	scan->overflow = result->overflow;
	scan->owner = result->id;
	scan->chain_length = 0;
	scan->chain_restarts = 0;
	return true;
}

bool
GraphScanMore(GraphScan *scan)
{
	MemoryContext old = MemoryContextSwitchTo(scan->query_context);
	bool		more;

	do
	{
		more = GraphSearchMemory(&scan->search) <= scan->params.max_memory;
		if (more && !GraphSearchResume(&scan->search, scan->store, scan->ef))
		{
			more = enter_all(scan);
			if (more)
				GraphSearchRun(&scan->search, scan->store);
		}
		if (more)
			queue_results(scan);
		else
		{
			/* what waits is all there will be */
			scan->quota = UINT32_MAX;
			scan->frontier = INFINITY;
		}
	} while (more && !has_ready(scan));
	MemoryContextSwitchTo(old);
	return scan->heap.count > 0;
}
