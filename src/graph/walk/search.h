/*
 * search.h
 *		Best-first search over a graph store, like HNSW's search of the base layer.  It
 *		expands the nearest waiting candidate until the ef nearest nodes are all expanded.
 */
#ifndef QV_GRAPH_WALK_SEARCH_H
#define QV_GRAPH_WALK_SEARCH_H

#include <math.h>

#include "containers/backlog.h"
#include "containers/idset.h"
#include "containers/pool.h"
#include "executor/instrument.h"
#include "graph/page/handle.h"

/* An expanded node, with what the store knows of it. */
typedef struct GraphResult
{
	float		distance;		/* by its own code, or exact */
	float		error;			/* largest difference from the true distance */
	uint32		id;
	uint32		overflow;		/* first slot of heap TIDs, or GRAPH_NONE */
	uint8		ntids;
	bool		live;			/* false: a way-point, not a result */
	ItemPointerData tids[GRAPH_INLINE_TIDS];	/* ntids, then what the page
												 * has there */
} GraphResult;

typedef struct GraphSearch GraphSearch;

/*
 * The nodes as a search sees them: on pages (store_coded.c, store_plain.c) or in the memory
 * of a build (store_mem.c).
 */
typedef struct GraphStore GraphStore;
struct GraphStore
{
	/* offers are exact distances, so each node is offered once */
	bool		exact;

	/*
	 * Scores node id, records it by GraphSearchOpen() if it is a result, and
	 * offers its neighbors by GraphSearchOffer().  "offered" is its last
	 * offer, which is final in exact stores.  In a build's memory there are
	 * no results: the pool is all (GraphMemSearch()).
	 */
	void		(*expand) (GraphStore *store, GraphSearch *search, uint32 id,
						   float offered);

	/*
	 * Sets the distance of a node and its error, while its page is locked.
	 * NULL where another page would be needed, and in a build's memory.
	 */
	void		(*measure) (GraphStore *store, GraphNode node, GraphResult *result);

	/* Prefetches node id, which is probably expanded next.  May be NULL. */
	void		(*prefetch) (GraphStore *store, uint32 id);

	/*
	 * Asks for the page of node id to be read in the background.  NULL in a
	 * build's memory, and where the page was read before the node waits.
	 */
	void		(*ask) (GraphStore *store, uint32 id);

	/* Offers the n nearest entry points.  NULL in a build's memory. */
	void		(*enter) (GraphStore *store, GraphSearch *search, int n);
};

/* Nodes remembered as asked for: a power of two. */
#define GRAPH_ASKED 256

struct GraphSearch
{
	MemoryContext context;		/* memory context of everything below */
	Pool		pool;

	/*
	 * Nodes that were offered.  The value of a node is its distance while it
	 * waits in the pool, -infinity once it is expanded, and infinity if it
	 * did not fit.  Exact stores offer each node once.  Estimates of a node
	 * differ from one neighbor to another.  There a node may be offered
	 * again, and its best estimate counts.
	 */
	IdSet		seen;
	bool		offer_once;

	/* Results: expanded live nodes, in the order of expansion. */
	GraphResult *results;
	uint32		nresults;
	uint32		max_results;

	/*
	 * Candidates that did not fit into the pool, for a search that goes on
	 * (most do not).  A node may be among them several times, and also while
	 * it is in the pool again.
	 */
	bool		keep_discarded;
	Backlog		discarded;

	/*
	 * Pages that the backend had read at GraphSearchReset().  If more were
	 * read since, pages of the nodes that come next are asked for: asked has
	 * the last ones, also of searches before, by their number.
	 */
	int64		reads;
	uint32		asked[GRAPH_ASKED];

	/* since GraphSearchReset(): */
	uint64		hops;			/* nodes expanded */
	uint64		scored;			/* neighbors, scored when their nodes were
								 * expanded */
};

/*
 * Starts a search.  offer_once is the store's "exact".  keep_discarded: the search may go
 * on, by GraphSearchResume() or GraphSearchWiden().
 */
extern void GraphSearchInit(GraphSearch *s, bool offer_once,
							bool keep_discarded);

/* Has the backend read pages since the search began?  The next ones may have to be read, too. */
static inline bool
GraphSearchIsCold(const GraphSearch *s)
{
	return pgBufferUsage.shared_blks_read != s->reads;
}

/* Forgets all nodes, and sets the size of the pool.  Memory is kept. */
extern void GraphSearchReset(GraphSearch *s, uint32 ef);

/* Searches from the candidates that were offered.  Answers Ctrl-C. */
extern void GraphSearchRun(GraphSearch *s, GraphStore *store);

/*
 * Goes on with the ef nearest candidates that were discarded.  Results are appended.
 * Returns false if no candidate is left.
 */
extern bool GraphSearchResume(GraphSearch *s, GraphStore *store, uint32 ef);

/*
 * Goes on as if the pool had had the larger size ef from the beginning.  Nodes that were
 * expanded and did not fit are still out of the pool.  Returns false if no candidate waits.
 */
extern bool GraphSearchWiden(GraphSearch *s, GraphStore *store, uint32 ef);

/* Returns the distance of the nearest candidate that was discarded, or INFINITY. */
extern float GraphSearchFrontier(GraphSearch *s);

/*
 * Drops stale candidates that were discarded, and the memory that they took: candidates that are
 * in the pool or expanded by now, and most estimates of a node but the best.
 */
extern void GraphSearchCompact(GraphSearch *s);

extern Size GraphSearchMemory(const GraphSearch *s);

/* Doubles a set, in a context. */
extern void GraphGrowSet(IdSet *set, MemoryContext context);

extern void GraphSearchGrowDiscarded(GraphSearch *s);

/*
 * Locks node id, and makes a result of it that has no distance yet.  Returns NULL, without a lock,
 * if it was freed since the edge to it was read.  The caller drops a result that is not live.
 */
extern GraphNode GraphSearchOpen(GraphSearch *s, GraphHandle *handle, uint32 id, GraphResult **result,
								 Buffer *buf);

static inline void
GraphSearchDiscard(GraphSearch *s, float distance, uint32 id)
{
	if (unlikely(s->discarded.count == s->discarded.capacity))
		GraphSearchGrowDiscarded(s);
	BacklogAdd(&s->discarded, distance, id);
}

static inline void
GraphSearchOffer(GraphSearch *s, float distance, uint32 id)
{
	Candidate	dropped = {0, GRAPH_NONE};
	IdSetEntry *entry;
	bool		added;

	if (unlikely(IdSetFull(&s->seen)))
		GraphGrowSet(&s->seen, s->context);
	entry = IdSetPut(&s->seen, id, INFINITY, &added);
	if (!added)
	{
		if (s->offer_once || !(distance < entry->value))
			return;
		if (entry->value < INFINITY)
			PoolRemove(&s->pool, entry->value, id);
	}
	if (PoolInsert(&s->pool, distance, id, &dropped))
		entry->value = distance;
	else
	{
		entry->value = INFINITY;
		if (s->keep_discarded)
			GraphSearchDiscard(s, distance, id);
	}
	if (dropped.id != GRAPH_NONE)
	{
		IdSetFind(&s->seen, dropped.id)->value = INFINITY;
		if (s->keep_discarded)
			GraphSearchDiscard(s, dropped.distance, dropped.id);
	}
}

#endif							/* QV_GRAPH_WALK_SEARCH_H */
