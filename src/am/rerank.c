/*
 * rerank.c
 *		Exact distances of candidates, read from the table; see rerank.h.
 */
#include "postgres.h"

#include <math.h>

#include "access/tableam.h"
#include "am/rerank.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "containers/minheap.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

struct Reranker
{
	IndexScanDesc scan;
	const QvOpclassInfo *opclass;
	const void *query;			/* NULL: distances do not matter */
	IndexFetchTableData *fetch;
	TupleTableSlot *slot;
	AttrNumber	attribute;		/* column, or 0 for an expression */
	IndexInfo  *info;			/* for an expression */
	EState	   *estate;
	MemoryContext row_context;	/* a detoasted value, an expression's result */
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
	r->opclass = opclass;
	r->context = CurrentMemoryContext;
	r->fetch = table_index_fetch_begin(scan->heapRelation);
	r->slot = table_slot_create(scan->heapRelation, NULL);
	r->attribute = scan->indexRelation->rd_index->indkey.values[0];
	if (r->attribute == InvalidAttrNumber)
	{
		r->info = BuildIndexInfo(scan->indexRelation);
		r->estate = CreateExecutorState();
		GetPerTupleExprContext(r->estate)->ecxt_scantuple = r->slot;
	}
	r->row_context = AllocSetContextCreate(CurrentMemoryContext, "quiver rerank row",
										   ALLOCSET_DEFAULT_SIZES);
	return r;
}

void
RerankStart(Reranker *r, const void *query)
{
	r->query = query;
	r->heap.count = 0;
	r->ntids = 0;
}

/* The distance of the row in r->slot. */
static double
row_distance(Reranker *r)
{
	const VectorTypeOps *type = r->opclass->type;
	MemoryContext old = MemoryContextSwitchTo(r->row_context);
	Datum		datum;
	bool		isnull;
	double		distance = INFINITY;

	if (r->attribute != InvalidAttrNumber)
		datum = slot_getattr(r->slot, r->attribute, &isnull);
	else
	{
		Datum		values[INDEX_MAX_KEYS];
		bool		isnulls[INDEX_MAX_KEYS];

		FormIndexDatum(r->info, r->slot, r->estate, values, isnulls);
		datum = values[0];
		isnull = isnulls[0];
	}
	if (!isnull)
	{
		void	   *value = PG_DETOAST_DATUM(datum);

		if (type->dims(value) == type->dims(r->query))
			distance = type->distance(r->opclass->metric, r->query, value);
		if (isnan(distance))
			distance = INFINITY;
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(r->row_context);
	if (r->estate)
		ResetPerTupleExprContext(r->estate);
	return distance;
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
	ItemPointerData at = *tid;
	bool		call_again = false,
				all_dead = false;
	double		distance;

	/*
	 * On a damaged page; tables take it for granted that there is none such:
	 * InvalidBlockNumber would even add a page to them.
	 */
	if (!ItemPointerIsValid(tid) ||
		!BlockNumberIsValid(ItemPointerGetBlockNumberNoCheck(tid)))
		return INFINITY;
	/* moves "at" to the visible version of the row's chain */
	if (!table_index_fetch_tuple(r->fetch, &at, r->scan->xs_snapshot, r->slot,
								 &call_again, &all_dead))
		return INFINITY;
	distance = r->query ? row_distance(r) : 0;
	ExecClearTuple(r->slot);
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
	return true;
}

void
RerankEnd(Reranker *r)
{
	ExecDropSingleTupleTableSlot(r->slot);
	table_index_fetch_end(r->fetch);
	if (r->estate)
		FreeExecutorState(r->estate);
}
