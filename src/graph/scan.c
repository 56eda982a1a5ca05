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
#include "miscadmin.h"
#include "utils/memutils.h"

/* Entry table entries that a search starts from. */
#define SCAN_ENTRIES 8

struct GraphScan
{
	GraphHandle *handle;
	MemoryContext context;		/* of the handle and everything else */
	MemoryContext query_context;	/* reset when the scan starts over */
	GraphScanParams params;
	GraphPoint *point;
	GraphStore *store;
	GraphSearch search;
	uint32		ef;				/* what the search really uses */
	uint32		queued;			/* results that are in the heap */
	MinHeap		heap;			/* results to return, by distance */
	float		frontier;		/* farther results wait for the next batch */
	GraphCandidate current;		/* what the overflow chain belongs to */
	uint32		overflow;		/* next slot of it, or GRAPH_NONE */
	uint32		owner;
	ItemPointerData *tids;		/* layout.tids_per_slot */
};

GraphScan *
GraphScanBegin(Relation index, const QvOpclassInfo *opclass)
{
	GraphScan  *scan = palloc0(sizeof(GraphScan));

	scan->context = CurrentMemoryContext;
	scan->query_context = AllocSetContextCreate(CurrentMemoryContext, "quiver graph scan",
												ALLOCSET_DEFAULT_SIZES);
	scan->handle = GraphOpen(index, opclass);
	scan->tids = palloc(scan->handle->layout.tids_per_slot * sizeof(ItemPointerData));
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

/*
 * Put the results that are not in the heap yet into it.  When the search can
 * go on, its results count only as far as it has looked around: the nearer
 * half of the pool, later a quarter (strict order loses what it finds too
 * late: 12 % of a whole table with halves, 10 % with quarters).  Beyond are
 * nodes that it came by on its way, and near misses that the next batch
 * brings together with their neighbours.
 */
static void
queue_results(GraphScan *scan)
{
	MinHeap    *heap = &scan->heap;
	const Pool *pool = &scan->search.pool;
	uint32		n = scan->search.nresults - scan->queued;

	if (!scan->params.iterative)
		scan->frontier = INFINITY;
	else if (pool->count > 0)
	{
		uint32		looked = pool->count / (scan->frontier == -INFINITY ? 2 : 4);

		scan->frontier = Max(scan->frontier, pool->items[looked].distance);
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

void
GraphScanStart(GraphScan *scan, const void *value, const GraphScanParams *params)
{
	GraphHandle *handle = scan->handle;
	const GraphFormOps *ops = handle->ops;
	MemoryContext old;

	MemoryContextReset(scan->query_context);
	old = MemoryContextSwitchTo(scan->query_context);
	scan->params = *params;
	scan->point = ops->prepare(handle, value);
	scan->store = ops->open(handle, scan->point, NULL);
	scan->ef = ops->pool_size(params->ef);
	GraphSearchInit(&scan->search, ops->exact, params->iterative);
	GraphSearchReset(&scan->search, scan->ef);
	memset(&scan->heap, 0, sizeof(scan->heap));
	scan->queued = 0;
	scan->frontier = -INFINITY;
	scan->overflow = GRAPH_NONE;
	ops->enter(scan->store, &scan->search, SCAN_ENTRIES);
	GraphSearchRun(&scan->search, scan->store);
	queue_results(scan);
	MemoryContextSwitchTo(old);
}

/* The next slot of the current node's chain of row pointers. */
static void
read_overflow(GraphScan *scan, GraphCandidate *candidate)
{
	const GraphLayout *layout = &scan->handle->layout;
	Buffer		buf;
	GraphTids	tids;

	buf = QvReadPage(scan->handle->index, scan->handle->hints,
					 GraphNodeBlock(layout, scan->overflow), QV_PAGE_NODES,
					 BUFFER_LOCK_SHARE);
	tids = (GraphTids) GraphPageNode(layout, BufferGetPage(buf),
									 GraphNodeSlot(layout, scan->overflow));
	*candidate = scan->current;
	candidate->ntids = 0;
	candidate->tids = scan->tids;
	/* a chain that vacuum took apart meanwhile held only dead rows */
	if (tids->state == GRAPH_SLOT_TIDS && tids->owner == scan->owner)
	{
		candidate->ntids = Min(tids->ntids, layout->tids_per_slot);
		memcpy(scan->tids, tids->tids, candidate->ntids * sizeof(ItemPointerData));
		scan->overflow = tids->next;
	}
	else
		scan->overflow = GRAPH_NONE;
	UnlockReleaseBuffer(buf);
}

bool
GraphScanNext(GraphScan *scan, GraphCandidate *candidate)
{
	GraphResult *result;

	if (scan->overflow != GRAPH_NONE)
	{
		CHECK_FOR_INTERRUPTS();
		read_overflow(scan, candidate);
		return true;
	}
	if (scan->heap.count == 0 || scan->heap.items[0].key > scan->frontier)
		return false;
	result = &scan->search.results[MinHeapPop(&scan->heap).value];
	candidate->distance = result->distance;
	candidate->error = result->error;
	candidate->ntids = result->ntids;
	candidate->tids = result->tids;
	scan->current = *candidate;
	scan->overflow = result->overflow;
	scan->owner = result->id;
	return true;
}

bool
GraphScanMore(GraphScan *scan)
{
	MemoryContext old = MemoryContextSwitchTo(scan->query_context);
	bool		more;

	do
	{
		more = GraphSearchMemory(&scan->search) <= scan->params.max_memory &&
			GraphSearchResume(&scan->search, scan->store, scan->ef);
		if (more)
			queue_results(scan);
		else
			scan->frontier = INFINITY;	/* what waits is all there will be */
	} while (more && (scan->heap.count == 0 ||
					  scan->heap.items[0].key > scan->frontier));
	MemoryContextSwitchTo(old);
	return scan->heap.count > 0;
}
