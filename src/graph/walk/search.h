/*
 * search.h
 *		Best-first search over a graph store, in the manner of HNSW's base
 *		layer: expand the nearest waiting candidate until the ef nearest known
 *		are all expanded.
 */
#ifndef QV_GRAPH_WALK_SEARCH_H
#define QV_GRAPH_WALK_SEARCH_H

#include <math.h>

#include "containers/backlog.h"
#include "containers/idset.h"
#include "containers/pool.h"
#include "graph/page/format.h"

/* A node that was expanded: what the store knows of it for good. */
typedef struct GraphResult
{
	float		distance;		/* by its own code, or exact */
	float		error;			/* the true distance differs at most by this */
	uint32		id;
	uint32		overflow;		/* slot with more heap TIDs, or GRAPH_NONE */
	uint8		ntids;
	bool		live;			/* false: a way-point, not a result */
	ItemPointerData tids[GRAPH_INLINE_TIDS];
} GraphResult;

typedef struct GraphSearch GraphSearch;

/*
 * The nodes as the search sees them: pages (store_coded.c, store_plain.c) or a
 * build's memory (store_mem.c).
 */
typedef struct GraphStore GraphStore;
struct GraphStore
{
	/* offers are exact distances, so each node is offered once */
	bool		exact;

	/*
	 * Score node id (offered: the distance it was last offered under, which
	 * is final in exact stores), record it by GraphSearchResult() if it is to
	 * be kept, and offer its neighbors by GraphSearchOffer().  (In a build's
	 * memory the pool is all there is: GraphMemSearch().)
	 */
	void		(*expand) (GraphStore *store, GraphSearch *search, uint32 id,
						   float offered);

	/*
	 * Fill in the distance of a node and its error, while its page is locked.
	 * NULL where that would take another page, and in a build's memory.
	 */
	void		(*measure) (GraphStore *store, GraphNode node, GraphResult *result);

	/* Say that node id will probably be expanded next.  May be NULL. */
	void		(*prefetch) (GraphStore *store, uint32 id);

	/* Offer the n nearest entry points.  NULL in a build's memory. */
	void		(*enter) (GraphStore *store, GraphSearch *search, int n);
};

struct GraphSearch
{
	MemoryContext context;		/* of everything below */
	Pool		pool;

	/*
	 * Nodes offered.  The value says where a node is: its distance while it
	 * waits in the pool, -infinity once it is expanded, infinity when it did
	 * not fit.  Exact stores offer each node once.  Estimates differ from one
	 * neighbor to another, so there a node may be offered again, and its best
	 * estimate counts.
	 */
	IdSet		seen;
	bool		offer_once;

	/* Expanded nodes, in the order of expansion. */
	GraphResult *results;
	uint32		nresults;
	uint32		max_results;

	/*
	 * Candidates that did not fit into the pool, for GraphSearchResume()
	 * (most queries never resume).  A node may be among them several times,
	 * and still be when it is in the pool again.
	 */
	bool		keep_discarded;
	Backlog		discarded;

	/* since GraphSearchReset(): */
	uint64		hops;			/* nodes expanded */
	uint64		scored;			/* neighbors, from their nodes */
};

/*
 * offer_once: the store's "exact".  keep_discarded: GraphSearchResume() will be
 * used.
 */
extern void GraphSearchInit(GraphSearch *s, bool offer_once,
							bool keep_discarded);

/* Forget everything and size the pool; memory is kept. */
extern void GraphSearchReset(GraphSearch *s, uint32 ef);

/* Search from the candidates offered so far.  Answers Ctrl-C. */
extern void GraphSearchRun(GraphSearch *s, GraphStore *store);

/*
 * Go on with the ef nearest candidates that were discarded; results are
 * appended.  Returns false when there are none.
 */
extern bool GraphSearchResume(GraphSearch *s, GraphStore *store, uint32 ef);

/*
 * Go on as if the pool had had that size, larger than it is, from the beginning (but for
 * what was expanded and did not fit: it takes no place).  False when no candidate waits.
 */
extern bool GraphSearchWiden(GraphSearch *s, GraphStore *store, uint32 ef);

/* The distance of the nearest candidate that was discarded; INFINITY: none. */
extern float GraphSearchFrontier(GraphSearch *s);

extern Size GraphSearchMemory(const GraphSearch *s);

extern void GraphSearchGrowSeen(GraphSearch *s);
extern void GraphSearchGrowDiscarded(GraphSearch *s);
extern void GraphSearchGrowResults(GraphSearch *s);

static inline GraphResult *
GraphSearchResult(GraphSearch *s)
{
	if (unlikely(s->nresults == s->max_results))
		GraphSearchGrowResults(s);
	return &s->results[s->nresults++];
}

/* What a result says of its node's rows. */
static inline void
GraphResultSetNode(GraphResult *result, uint32 id, GraphNode node)
{
	result->id = id;
	result->overflow = node->overflow;
	result->ntids = Min(node->ntids, GRAPH_INLINE_TIDS);
	result->live = node->state == GRAPH_SLOT_LIVE;
	memcpy(result->tids, node->tids, sizeof(result->tids));
}

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
	Candidate	dropped;
	IdSetEntry *entry;
	bool		added;

	if (unlikely(IdSetFull(&s->seen)))
		GraphSearchGrowSeen(s);
	entry = IdSetPut(&s->seen, id, INFINITY, &added);
	if (!added)
	{
		if (s->offer_once || !(distance < entry->value))
			return;
		if (entry->value < INFINITY)
			PoolRemove(&s->pool, entry->value, id);
	}
	dropped.id = GRAPH_NONE;
	if (PoolInsert(&s->pool, distance, id, &dropped))
		entry->value = distance;
	else
	{
		entry->value = INFINITY;
		if (s->keep_discarded)
			GraphSearchDiscard(s, distance, id);
	}
	if (dropped.id != GRAPH_NONE && !(dropped.id & POOL_EXPANDED))
	{
		IdSetFind(&s->seen, dropped.id)->value = INFINITY;
		if (s->keep_discarded)
			GraphSearchDiscard(s, dropped.distance, dropped.id);
	}
}

#endif							/* QV_GRAPH_WALK_SEARCH_H */
