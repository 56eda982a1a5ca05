/*
 * search.c
 *		Best-first search; see search.h.
 */
#include "postgres.h"

#include "graph/search.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#define INITIAL_SEEN 1024
#define INITIAL_RESULTS 256

/* Discarded candidates are looked through for stale ones from so many on. */
#define MIN_COMPACT 65536

/* An expansion discards at most all neighbors and as many that they replace. */
#define EXPANSION_DISCARDS (2 * GRAPH_MAX_DEGREE)

void
GraphSearchInit(GraphSearch *s, bool offer_once, bool keep_discarded)
{
	memset(s, 0, sizeof(*s));
	s->context = CurrentMemoryContext;
	s->offer_once = offer_once;
	s->keep_discarded = keep_discarded;
	IdSetInit(&s->seen, palloc(IdSetBytes(INITIAL_SEEN)), INITIAL_SEEN);
}

void
GraphSearchReset(GraphSearch *s, uint32 ef)
{
	if (s->pool.items == NULL || ef > s->pool.capacity)
	{
		if (s->pool.items)
			pfree(s->pool.items);
		s->pool.items = MemoryContextAlloc(s->context, (ef + 1) * sizeof(Candidate));
	}
	PoolReset(&s->pool, s->pool.items, ef);
	IdSetClear(&s->seen);
	s->nresults = 0;
	s->discarded.count = 0;
	s->ndiscarded = 0;
	s->hops = s->scored = 0;
}

void
GraphSearchGrowSeen(GraphSearch *s)
{
	uint32		capacity = (s->seen.mask + 1) * 2;
	IdSetEntry *old = s->seen.entries;

	IdSetMove(&s->seen,
			  MemoryContextAllocHuge(s->context, IdSetBytes(capacity)), capacity);
	pfree(old);
}

void
GraphSearchGrowResults(GraphSearch *s)
{
	uint32		size = s->max_results ? s->max_results * 2 : INITIAL_RESULTS;

	if (s->results == NULL)
		s->results = MemoryContextAlloc(s->context, size * sizeof(GraphResult));
	else
		s->results = repalloc_huge(s->results, size * sizeof(GraphResult));
	s->max_results = size;
}

void
GraphSearchGrowDiscarded(GraphSearch *s)
{
	MinHeap    *heap = &s->discarded;
	uint32		size = heap->capacity ? heap->capacity * 2 : 4 * INITIAL_RESULTS;

	if (heap->items == NULL)
		heap->items = MemoryContextAlloc(s->context, size * sizeof(MinHeapItem));
	else
		heap->items = repalloc_huge(heap->items, size * sizeof(MinHeapItem));
	heap->capacity = size;
}

static int
compare_items(const void *a, const void *b)
{
	const MinHeapItem *x = a,
			   *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return (x->key > y->key) - (x->key < y->key);
}

/*
 * Before the discarded candidates take more memory, drop those that are in the
 * pool or expanded by now, and of the estimates of a node all but the best.
 */
static void
make_room(GraphSearch *s)
{
	MinHeap    *heap = &s->discarded;
	uint32		n = 0;

	if (heap->capacity < MIN_COMPACT)
	{
		GraphSearchGrowDiscarded(s);
		return;
	}
	qsort(heap->items, s->ndiscarded, sizeof(MinHeapItem), compare_items);
	for (uint32 i = 0; i < s->ndiscarded; i++)
	{
		const IdSetEntry *entry = IdSetFind(&s->seen, heap->items[i].value);

		if (entry->generation == s->seen.generation && entry->value < INFINITY)
			continue;
		if (n == 0 || heap->items[n - 1].value != heap->items[i].value)
			heap->items[n++] = heap->items[i];
	}
	s->ndiscarded = n;
	/* the heap, in place */
	heap->count = 0;
	for (uint32 i = 0; i < n; i++)
	{
		MinHeapItem item = heap->items[i];

		MinHeapPush(heap, item.key, item.value);
	}
	if (n > heap->capacity / 2)
		GraphSearchGrowDiscarded(s);
}

Size
GraphSearchMemory(const GraphSearch *s)
{
	return s->max_results * sizeof(GraphResult) +
		s->discarded.capacity * sizeof(MinHeapItem) +
		IdSetBytes(s->seen.mask + 1) + s->pool.capacity * sizeof(Candidate);
}

void
GraphSearchRun(GraphSearch *s, GraphStore *store)
{
	while (PoolHasNext(&s->pool))
	{
		Candidate	next = PoolPop(&s->pool);

		CHECK_FOR_INTERRUPTS();
		if (s->keep_discarded &&
			s->discarded.capacity - s->ndiscarded < EXPANSION_DISCARDS)
			make_room(s);
		IdSetFind(&s->seen, next.id)->value = -INFINITY;
		s->hops++;
		store->expand(store, s, next.id, next.distance);
		if (store->prefetch && PoolHasNext(&s->pool))
			store->prefetch(store, s->pool.items[s->pool.cursor].id);
	}
}

/* Those discarded since the last time join the heap. */
static void
merge_discarded(GraphSearch *s)
{
	while (s->discarded.count < s->ndiscarded)
	{
		MinHeapItem item = s->discarded.items[s->discarded.count];

		MinHeapPush(&s->discarded, item.key, item.value);
	}
}

float
GraphSearchFrontier(GraphSearch *s)
{
	merge_discarded(s);
	while (s->discarded.count > 0)
	{
		const IdSetEntry *entry = IdSetFind(&s->seen, s->discarded.items[0].value);

		if (entry->generation != s->seen.generation || entry->value == INFINITY)
			break;
		(void) MinHeapPop(&s->discarded);
	}
	s->ndiscarded = s->discarded.count;
	return s->discarded.count > 0 ? s->discarded.items[0].key : INFINITY;
}

bool
GraphSearchResume(GraphSearch *s, GraphStore *store, uint32 ef)
{
	Candidate  *items = s->pool.items;
	uint32		before = s->nresults;
	IdSetEntry *entry;
	bool		added;

	Assert(s->keep_discarded);
	if (ef > s->pool.capacity)
	{
		pfree(items);
		items = MemoryContextAlloc(s->context, (ef + 1) * sizeof(Candidate));
	}
	do
	{
		merge_discarded(s);
		PoolReset(&s->pool, items, ef);
		while (s->discarded.count > 0 && s->pool.count < ef)
		{
			MinHeapItem item = MinHeapPop(&s->discarded);

			/* it may be here under several estimates, the best comes first */
			if (unlikely(IdSetFull(&s->seen)))
				GraphSearchGrowSeen(s);
			entry = IdSetPut(&s->seen, item.value, INFINITY, &added);
			if (entry->value < INFINITY)
				continue;
			if (PoolInsert(&s->pool, item.key, item.value, NULL))
				entry->value = item.key;
		}
		s->ndiscarded = s->discarded.count;
		if (s->pool.count == 0)
			return false;
		GraphSearchRun(s, store);
	} while (s->nresults == before);
	return true;
}
