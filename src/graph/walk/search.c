/*
 * search.c
 *		Best-first search; see search.h.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "graph/page/rows.h"
#include "graph/walk/search.h"
#include "miscadmin.h"
#include "space/grow.h"

#define INITIAL_SEEN 1024
#define INITIAL_RESULTS 256
#define FIRST_DISCARDED 1024

/*
 * From this capacity on, stale candidates are dropped before the memory of discarded
 * candidates grows [M17].
 */
#define MIN_COMPACT 262144

/*
 * Sizes of a sorted run of discarded candidates.  FRONTIER_RUN: to find the nearest that is
 * not stale.  RUN_SHARE: for each free place of the pool, but at least LEAST_RUN, since the
 * nearest are often stale [M17].
 */
#define FRONTIER_RUN 64
#define RUN_SHARE 2
#define LEAST_RUN 128

/* Nodes whose pages are asked for together. */
#define BEAM 16

/* Most candidates that an expansion discards: all neighbors, and as many that they displace. */
#define EXPANSION_DISCARDS (2 * GRAPH_MAX_DEGREE)

StaticAssertDecl(PoolChunks(GRAPH_MAX_POOL) <= UINT16_MAX, "chunks of a pool have 16-bit numbers");

void
GraphSearchInit(GraphSearch *s, bool offer_once, bool keep_discarded)
{
	memset(s, 0, sizeof(*s));
	memset(s->asked, 0xff, sizeof(s->asked));
	s->context = CurrentMemoryContext;
	s->offer_once = offer_once;
	s->keep_discarded = keep_discarded;
	IdSetInit(&s->seen, palloc(IdSetBytes(INITIAL_SEEN)), INITIAL_SEEN);
}

/* Empties the pool and sets its capacity. */
static void
reset_pool(GraphSearch *s, uint32 ef)
{
	Candidate  *items = s->pool.entries;

	if (ef > s->pool.capacity)
	{
		if (items)
			pfree(items);
		items = MemoryContextAllocHuge(s->context, PoolEntries(ef) * sizeof(Candidate));
	}
	PoolReset(&s->pool, items, ef);
}

void
GraphSearchReset(GraphSearch *s, uint32 ef)
{
	reset_pool(s, ef);
	IdSetClear(&s->seen);
	s->nresults = 0;
	BacklogClear(&s->discarded);
	s->hops = s->scored = 0;
	s->reads = pgBufferUsage.shared_blks_read;
}

void
GraphGrowSet(IdSet *set, MemoryContext context)
{
	uint32		capacity = (set->mask + 1) * 2;
	IdSetEntry *old = set->entries;

	IdSetMove(set, MemoryContextAllocHuge(context, IdSetBytes(capacity)), capacity);
	pfree(old);
}

GraphNode
GraphSearchOpen(GraphSearch *s, GraphHandle *handle, uint32 id, GraphResult **result, Buffer *buf)
{
	GraphNode	node;
	GraphResult *r;

	/* memory first: nothing may fail while the page is locked */
	if (s->nresults == s->max_results)
		s->results = QvGrow(s->context, s->results, &s->max_results, INITIAL_RESULTS, sizeof(GraphResult));
	*buf = GraphLockNode(handle, id, BUFFER_LOCK_SHARE, &node);
	if (node == NULL)
	{
		UnlockReleaseBuffer(*buf);
		return NULL;
	}
	*result = r = &s->results[s->nresults++];
	r->id = id;
	r->overflow = node->overflow;
	r->ntids = Min(node->ntids, GRAPH_INLINE_TIDS);
	r->live = node->state == GRAPH_SLOT_LIVE;
	memcpy(r->tids, node->tids, sizeof(r->tids));
	return node;
}

void
GraphSearchGrowDiscarded(GraphSearch *s)
{
	Backlog    *log = &s->discarded;

	log->items = QvGrow(s->context, log->items, &log->capacity, FIRST_DISCARDED, sizeof(BacklogItem));
}

/*
 * A table finds the estimates of a node that are not its best: it has an item for each hash of a
 * node, and forgets the one before.
 */
void
GraphSearchCompact(GraphSearch *s)
{
	Backlog    *log = &s->discarded;
	uint32		mask = log->capacity - 1;	/* capacity is a power of two */
	uint32		size = log->capacity;
	uint32	   *latest;
	uint32		n = 0;

	if (log->count == 0)
		return;
	latest = MemoryContextAllocZero(s->context, log->capacity * sizeof(uint32));
	for (uint32 i = log->first; i < log->count; i++)
	{
		BacklogItem item = log->items[i];
		uint32		id = BacklogId(item);
		uint32	   *at = &latest[murmurhash32(id) & mask];
		const IdSetEntry *entry = IdSetFind(&s->seen, id);

		CHECK_FOR_INTERRUPTS();
		if (entry->generation == s->seen.generation && entry->value < INFINITY)
			continue;
		if (*at < n && BacklogId(log->items[*at]) == id)
		{
			log->items[*at] = Min(log->items[*at], item);
			continue;
		}
		*at = n;
		log->items[n++] = item;
	}
	pfree(latest);
	BacklogClear(log);
	log->count = n;
	while (size > FIRST_DISCARDED && size / 4 >= n)
		size /= 2;
	if (size < log->capacity)
		log->items = repalloc(log->items, size * sizeof(BacklogItem));
	log->capacity = size;
}

/* Makes room for what an expansion discards. */
static void
make_room(GraphSearch *s)
{
	Backlog    *log = &s->discarded;

	if (log->capacity >= MIN_COMPACT)
		GraphSearchCompact(s);
	if (log->capacity < MIN_COMPACT || log->count > log->capacity / 2)
		GraphSearchGrowDiscarded(s);
}

Size
GraphSearchMemory(const GraphSearch *s)
{
	return s->max_results * sizeof(GraphResult) +
		s->discarded.capacity * sizeof(BacklogItem) +
		IdSetBytes(s->seen.mask + 1) + PoolEntries(s->pool.capacity) * sizeof(Candidate);
}

/* Prefetches the next node in the pool, unless it was "asked" for before.  Returns its number. */
static uint32
prefetch_next(GraphSearch *s, GraphStore *store, uint32 asked)
{
	const Candidate *next = PoolPeek(&s->pool, 0);
	uint32		id = next ? next->id : asked;

	if (id != asked && store->prefetch)
		store->prefetch(store, id);
	return id;
}

/* Asks for the pages of nodes that come next, so that they are read together. */
static void
ask_ahead(GraphSearch *s, GraphStore *store)
{
	const Candidate *next;

	for (uint32 i = 0; i < BEAM && (next = PoolPeek(&s->pool, i)) != NULL; i++)
	{
		uint32		id = next->id;
		uint32	   *asked = &s->asked[id % GRAPH_ASKED];

		if (*asked != id)
			store->ask(store, id);
		*asked = id;
	}
}

void
GraphSearchRun(GraphSearch *s, GraphStore *store)
{
	uint32		asked = GRAPH_NONE;

	while (PoolHasNext(&s->pool))
	{
		Candidate	next = PoolPop(&s->pool);

		CHECK_FOR_INTERRUPTS();
		if (s->keep_discarded &&
			s->discarded.capacity - s->discarded.count < EXPANSION_DISCARDS)
			make_room(s);
		/* no effect in a build's memory: the set is empty there */
		IdSetFind(&s->seen, next.id)->value = -INFINITY;
		s->hops++;

		if (store->ask && GraphSearchIsCold(s))
			ask_ahead(s, store);

		/*
		 * While this node is read, the next one is prefetched.  A nearer
		 * neighbor may take its turn.
		 */
		asked = prefetch_next(s, store, asked);
		store->expand(store, s, next.id, next.distance);
		asked = prefetch_next(s, store, asked);
	}
}

float
GraphSearchFrontier(GraphSearch *s)
{
	Backlog    *log = &s->discarded;

	for (uint32 run = FRONTIER_RUN; BacklogSort(log, run); run *= 2)
	{
		CHECK_FOR_INTERRUPTS();
		while (BacklogHasRun(log))
		{
			const IdSetEntry *entry = IdSetFind(&s->seen, BacklogId(log->items[log->first]));

			if (entry->generation != s->seen.generation || entry->value == INFINITY)
				return BacklogDistance(log->items[log->first]);
			(void) BacklogTake(log);
		}
	}
	return INFINITY;
}

/*
 * Fills the pool with the nearest candidates that were discarded, and searches from them; false
 * when there is none.
 */
static bool
search_discarded(GraphSearch *s, GraphStore *store)
{
	Pool	   *pool = &s->pool;
	Backlog    *log = &s->discarded;

	Assert(s->keep_discarded);
	while (PoolCount(pool) < pool->capacity &&
		   BacklogSort(log, Max(LEAST_RUN, RUN_SHARE * (pool->capacity - PoolCount(pool)))))
	{
		BacklogItem item = BacklogTake(log);
		float		distance = BacklogDistance(item);
		IdSetEntry *entry;
		bool		added;

		CHECK_FOR_INTERRUPTS();
		/* it may be here under several estimates; the best comes first */
		if (unlikely(IdSetFull(&s->seen)))
			GraphGrowSet(&s->seen, s->context);
		entry = IdSetPut(&s->seen, BacklogId(item), INFINITY, &added);
		if (entry->value == INFINITY && PoolInsert(pool, distance, BacklogId(item), NULL))
			entry->value = distance;
	}
	if (!PoolHasNext(pool))
		return false;
	GraphSearchRun(s, store);
	return true;
}

bool
GraphSearchWiden(GraphSearch *s, GraphStore *store, uint32 ef)
{
	Candidate  *items = s->pool.entries;

	Assert(ef > s->pool.capacity);
	PoolGrow(&s->pool, MemoryContextAllocHuge(s->context, PoolEntries(ef) * sizeof(Candidate)), ef);
	pfree(items);
	return search_discarded(s, store);
}

bool
GraphSearchResume(GraphSearch *s, GraphStore *store, uint32 ef)
{
	reset_pool(s, ef);
	return search_discarded(s, store);
}
