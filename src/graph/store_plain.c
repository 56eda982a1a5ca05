/*
 * store_plain.c
 *		Expanding nodes of a plain graph on their pages.
 *
 * Each neighbor that was not seen yet is measured in its own page: a plain
 * graph costs about a page for each distance, as pgvector's does.
 */
#include "postgres.h"

#include "graph/plain.h"
#include "graph/rows.h"
#include "utils/memutils.h"

/* Neighbors whose values are asked for ahead, and bytes of each. */
#define PREFETCH_AHEAD 3
#define PREFETCH_BYTES 512

/* Most memory for the values of one index's entry points, in each backend. */
#define MAX_ENTRY_MEMORY (4 * 1024 * 1024)

const void *
GraphBorrowValue(GraphHandle *handle, uint32 id, GraphScratch *scratch, Buffer *buf)
{
	const GraphLayout *layout = &handle->layout;
	GraphValueRef ref;
	GraphNode	node;
	const void *value;
	Size		size = layout->value_size;

	*buf = GraphLockNode(handle, id, BUFFER_LOCK_SHARE, &node);
	if (node == NULL)
	{
		UnlockReleaseBuffer(*buf);
		*buf = InvalidBuffer;
		return NULL;
	}
	value = GraphNodeOwn(layout, node);
	if (size == 0)
	{
		memcpy(&ref, value, sizeof(ref));
		UnlockReleaseBuffer(*buf);
		size = ref.size;
		value = size <= MaxAllocSize ? GraphBorrowStored(handle, &ref, scratch, buf) : NULL;
		if (value == NULL)
			return NULL;
	}
	if (unlikely(!handle->space.opclass.type->well_formed(value, size, handle->meta.dims)))
		QvReportCorruption(handle->index, GraphNodeBlock(layout, id),
						   "The value of slot %u is none of the column's.",
						   GraphNodeSlot(layout, id));
	return value;
}

void *
GraphCopyValue(GraphHandle *handle, uint32 id, GraphScratch *scratch)
{
	Buffer		buf;
	const void *value = GraphBorrowValue(handle, id, scratch, &buf);
	void	   *copy = NULL;

	if (value != NULL)
	{
		Size		size = handle->space.opclass.type->value_size(value);

		copy = palloc(size);
		memcpy(copy, value, size);
	}
	GraphReturnValue(buf);
	return copy;
}

static void
prefetch_node(GraphPlainStore *store, uint32 id, Size bytes)
{
	const GraphLayout *layout = &store->handle->layout;

	QvPrefetchPage(store->handle->hints, GraphNodeBlock(layout, id),
				   QV_PAGE_START + (Size) GraphNodeSlot(layout, id) * layout->node_size,
				   Min(bytes, layout->node_size));
}

static void
prefetch_value(GraphPlainStore *store, uint32 id)
{
	const GraphLayout *layout = &store->handle->layout;

	prefetch_node(store, id, sizeof(uint64));	/* its state */
	QvPrefetchPage(store->handle->hints, GraphNodeBlock(layout, id),
				   QV_PAGE_START + (Size) GraphNodeSlot(layout, id) * layout->node_size +
				   layout->own, Min(PREFETCH_BYTES, layout->own_bytes));
}

static void
offer_neighbors(GraphPlainStore *store, GraphSearch *search, const uint32 *ids, int n)
{
	for (int i = 0; i < Min(n, PREFETCH_AHEAD); i++)
		prefetch_value(store, ids[i]);
	for (int i = 0; i < n; i++)
	{
		Buffer		buf;
		const void *value;
		float		distance;

		if (i + PREFETCH_AHEAD < n)
			prefetch_value(store, ids[i + PREFETCH_AHEAD]);
		if (store->query == NULL)
		{
			GraphSearchOffer(search, 0, ids[i]);
			continue;
		}
		value = GraphBorrowValue(store->handle, ids[i], &store->scratch, &buf);
		if (value == NULL)
			continue;
		distance = GraphExactDistance(&store->handle->space.opclass, store->query, value);
		GraphReturnValue(buf);
		GraphSearchOffer(search, distance, ids[i]);
	}
}

static void
expand(GraphStore *base, GraphSearch *search, uint32 id, float offered)
{
	GraphPlainStore *store = (GraphPlainStore *) base;
	const GraphLayout *layout = &store->handle->layout;
	uint32		ids[GRAPH_MAX_DEGREE];
	int			n = 0;
	GraphResult *result;
	Buffer		buf;
	GraphNode	node;
	bool		live;

	/* room first: nothing may fail while the page is locked */
	result = GraphSearchResult(search);
	buf = GraphLockNode(store->handle, id, BUFFER_LOCK_SHARE, &node);
	if (node == NULL)
	{
		/* freed since the edge was read */
		UnlockReleaseBuffer(buf);
		search->nresults--;
		return;
	}
	live = node->state == GRAPH_SLOT_LIVE;
	result->distance = offered;
	result->error = 0;
	GraphResultSetNode(result, id, node);
	for (uint32 i = 0; i < layout->degree; i++)
	{
		uint32		neighbor = GraphNodeIds(layout, node)[i];

		if (neighbor <= POOL_MAX_ID && !IdSetHas(&search->seen, neighbor))
			ids[n++] = neighbor;
	}
	UnlockReleaseBuffer(buf);

	if (!live)
		search->nresults--;
	else if (store->visit)
		store->visit(store->visit_arg, id, offered);
	offer_neighbors(store, search, ids, n);
}

static void
prefetch(GraphStore *base, uint32 id)
{
	GraphPlainStore *store = (GraphPlainStore *) base;

	prefetch_node(store, id, store->handle->layout.own);
}

void
GraphPlainStoreInit(GraphPlainStore *store, GraphHandle *handle, const void *query)
{
	memset(store, 0, sizeof(*store));
	store->base.expand = expand;
	store->base.prefetch = prefetch;
	store->handle = handle;
	store->query = query;
}

/* ---- entry points ---- */

void
GraphPlainStoreEnter(GraphStore *base, GraphSearch *search, int n)
{
	GraphPlainStore *store = (GraphPlainStore *) base;
	const GraphEntryPoints *entry_points = store->handle->entry_points;
	Candidate  *items = palloc((n + 1) * sizeof(Candidate));
	Pool		pool;

	PoolReset(&pool, items, n);
	for (uint32 i = 0; i < entry_points->nvalues; i++)
		PoolInsert(&pool, store->query == NULL ? 0 :
				   GraphExactDistance(&store->handle->space.opclass, store->query,
									  entry_points->values[i].value),
				   entry_points->values[i].id, NULL);
	for (uint32 i = 0; i < pool.count; i++)
		GraphSearchOffer(search, items[i].distance, items[i].id);
	pfree(items);
}

/* Give up every other value that was read. */
static Size
thin_out(const VectorTypeOps *type, GraphEntryPoints *entry_points)
{
	Size		memory = 0;
	uint32		kept = 0;

	for (uint32 i = 0; i < entry_points->nvalues; i++)
	{
		if (i % 2 != 0)
		{
			pfree(entry_points->values[i].value);
			continue;
		}
		memory += type->value_size(entry_points->values[i].value);
		entry_points->values[kept++] = entry_points->values[i];
	}
	entry_points->nvalues = kept;
	return memory;
}

/*
 * Entries are in no order that matters, so any even share of a table that is
 * too large will do: whenever the memory is full, every second value goes, and
 * of the entries to come only every second as many are read.
 */
void
GraphPlainReadEntries(GraphHandle *handle, GraphEntryPoints *entry_points)
{
	const VectorTypeOps *type = handle->space.opclass.type;
	GraphScratch scratch = {NULL, 0};
	uint32		stride = 1,
				number = 0;
	Size		memory = 0;

	entry_points->values = MemoryContextAllocHuge(CurrentMemoryContext,
											Max(1, (Size) entry_points->nbatches * QV_BATCH) *
											sizeof(GraphEntryValue));
	for (uint32 i = 0; i < entry_points->nbatches; i++)
		for (uint32 j = 0; j < GraphEntryBatchAt(entry_points, i)->count; j++)
		{
			GraphEntryValue *entry = &entry_points->values[entry_points->nvalues];

			if (number++ % stride != 0)
				continue;
			entry->id = GraphEntryBatchAt(entry_points, i)->ids[j];
			entry->value = GraphCopyValue(handle, entry->id, &scratch);
			if (entry->value == NULL)
				continue;
			entry_points->nvalues++;
			memory += type->value_size(entry->value);
			if (memory > MAX_ENTRY_MEMORY && entry_points->nvalues > 1)
			{
				memory = thin_out(type, entry_points);
				stride *= 2;
			}
		}
	if (scratch.data)
		pfree(scratch.data);
}
