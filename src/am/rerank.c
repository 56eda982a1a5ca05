/*
 * rerank.c
 *		Exact distances of candidates, read from the table; see rerank.h.
 */
#include "postgres.h"

#include <math.h>

#include "am/rerank.h"
#include "containers/minheap.h"
#include "table/row_reader.h"
#include "utils/memutils.h"

struct Reranker
{
	IndexScanDesc scan;
	const void *query;			/* NULL: distances do not matter */
	RowReader  *rows;
	MemoryContext context;
	MinHeap		heap;			/* value: index into tids */
	ItemPointerData *tids;
	uint32		ntids;
	uint32		max_tids;
};

Reranker *
RerankBegin(IndexScanDesc scan, const QvOpclassInfo *opclass)
{
	Reranker   *r = palloc0(sizeof(Reranker));

	r->scan = scan;
	r->context = CurrentMemoryContext;
	r->rows = RowReaderBegin(scan->heapRelation, scan->indexRelation, opclass);
	return r;
}

void
RerankStart(Reranker *r, const void *query, struct QvBufferHints *table_hints)
{
	RowReaderUseHints(r->rows, table_hints);
	r->query = query;
	r->heap.count = 0;
	r->ntids = 0;
}

static void
grow(Reranker *r)
{
	uint32		size = Max(64, r->max_tids * 2);

	if (r->tids == NULL)
	{
		r->tids = MemoryContextAlloc(r->context, size * sizeof(ItemPointerData));
		r->heap.items = MemoryContextAlloc(r->context, size * sizeof(MinHeapItem));
	}
	else
	{
		r->tids = repalloc_huge(r->tids, size * sizeof(ItemPointerData));
		r->heap.items = repalloc_huge(r->heap.items, size * sizeof(MinHeapItem));
	}
	r->max_tids = r->heap.capacity = size;
}

double
RerankAdd(Reranker *r, ItemPointer tid)
{
	double		distance;

	if (!RowFetch(r->rows, tid, r->scan->xs_snapshot))
		return INFINITY;
	if (r->query == NULL)
		distance = 0;
	else if (!RowDistance(r->rows, r->query, &distance))
		distance = INFINITY;
	ExecClearTuple(r->rows->slot);
	if (r->heap.count == 0)
		r->ntids = 0;
	if (r->ntids == r->max_tids)
		grow(r);
	r->tids[r->ntids] = *tid;
	MinHeapPush(&r->heap, distance, r->ntids++);
	return distance;
}

bool
RerankEmpty(const Reranker *r)
{
	return r->heap.count == 0;
}

double
RerankNearest(const Reranker *r)
{
	return r->heap.count > 0 ? r->heap.items[0].key : INFINITY;
}

uint32
RerankCount(const Reranker *r)
{
	return r->heap.count;
}

double
RerankDistance(const Reranker *r, uint32 i)
{
	return r->heap.items[i].key;
}

bool
RerankPop(Reranker *r, ItemPointer tid, double *distance)
{
	MinHeapItem top;

	if (r->heap.count == 0)
		return false;
	top = MinHeapPop(&r->heap);
	*tid = r->tids[top.value];
	*distance = top.key;
	RowReleaseValues(r->rows);
	return true;
}

void
RerankGetTotals(const Reranker *r, QvScanTotals *totals)
{
	totals->fetched = r->rows->fetched;
	totals->measured = r->rows->measured;
}

void
RerankEnd(Reranker *r)
{
	RowReaderEnd(r->rows);
}
