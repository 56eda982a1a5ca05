/*
 * store_plain.c
 *		Expanding nodes of a plain graph on their pages.
 *
 * Each neighbor that was not seen is measured in its own page.  A plain graph reads about a
 * page for each distance, as pgvector does.
 */
#include "postgres.h"

#include "graph/page/entry_values.h"
#include "graph/page/rows.h"
#include "graph/walk/store_plain.h"

/* Neighbors whose values are prefetched ahead, and bytes of each. */
#define PREFETCH_AHEAD 3
#define PREFETCH_BYTES 512

static void
prefetch_value(const GraphPlainStore *store, uint32 id)
{
	const GraphLayout *layout = &store->handle->layout;

	GraphPrefetchNode(store->handle, id, 0, sizeof(uint64));	/* its state */
	GraphPrefetchNode(store->handle, id, layout->own, Min(PREFETCH_BYTES, layout->own_bytes));
}

static void
offer_neighbors(GraphPlainStore *store, GraphSearch *search, const uint32 *ids, int n)
{
	search->scored += n;
	if (GraphSearchIsCold(search) && store->query)
		for (int i = 0; i < n; i++)
			(void) QvPrefetchBlock(store->handle->index, store->handle->hints,
								   GraphNodeBlock(&store->handle->layout, ids[i]));
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
plain_store_expand(GraphStore *base, GraphSearch *search, uint32 id, float offered)
{
	GraphPlainStore *store = (GraphPlainStore *) base;
	const GraphLayout *layout = &store->handle->layout;
	uint32		ids[GRAPH_MAX_DEGREE];
	int			n = 0;
	GraphResult *result;
	Buffer		buf;
	GraphNode	node = GraphSearchOpen(search, store->handle, id, &result, &buf);

	if (node == NULL)
		return;
	result->distance = offered;
	result->error = 0;
	for (uint32 i = 0; i < layout->degree; i++)
	{
		uint32		neighbor = GraphEdgeTo(GraphNodeIds(layout, node)[i]);

		if (neighbor != GRAPH_NONE && !IdSetHas(&search->seen, neighbor))
			ids[n++] = neighbor;
	}
	UnlockReleaseBuffer(buf);

	if (!result->live)
		search->nresults--;
	else if (store->visit)
		store->visit(store->visit_arg, id, offered);
	offer_neighbors(store, search, ids, n);
}

static void
plain_store_prefetch(GraphStore *base, uint32 id)
{
	GraphPlainStore *store = (GraphPlainStore *) base;

	GraphPrefetchNode(store->handle, id, 0, store->handle->layout.own);
}

static void
plain_store_enter(GraphStore *base, GraphSearch *search, int n)
{
	GraphPlainStore *store = (GraphPlainStore *) base;
	Candidate  *entries = palloc(n * sizeof(Candidate));
	int			found = GraphNearestEntryValues(store->handle, store->query, entries, n);

	for (int i = 0; i < found; i++)
		GraphSearchOffer(search, entries[i].distance, entries[i].id);
	pfree(entries);
}

void
GraphPlainStoreInit(GraphPlainStore *store, GraphHandle *handle, const void *query)
{
	memset(store, 0, sizeof(*store));
	store->base.exact = true;
	store->base.expand = plain_store_expand;
	store->base.prefetch = plain_store_prefetch;
	store->base.enter = plain_store_enter;
	store->handle = handle;
	store->query = query;
}
