/*
 * store_mem.h
 *		A graph under construction, in memory.  What distances are between,
 *		store_mem_coded.c and store_mem_plain.c know.
 */
#ifndef QV_GRAPH_BUILD_STORE_MEM_H
#define QV_GRAPH_BUILD_STORE_MEM_H

#include "graph/build/mem_chunks.h"
#include "graph/page/handle.h"
#include "graph/walk/search.h"
#include "graph/walk/select.h"

/*
 * Neighbor lists have room to spare, so that a full one is pruned once per
 * that many arrivals instead of at every one (half the build time).
 */
#define GRAPH_MEM_SLACK 10

/* Lists that a node's search may enter at, kept until it has edges. */
#define GRAPH_LOADED_LISTS 8

/* What a node without edges keeps in their place. */
typedef struct GraphMemLoaded
{
	uint64		hash;			/* of what makes rows share a node */
	float		to_centroid;	/* of its list; coded */
	uint32		nlists;
	uint32		lists[GRAPH_LOADED_LISTS];	/* the nearest, by estimate */
} GraphMemLoaded;

/*
 * The payload lies before it, so that what a distance takes is together: two lines of
 * the cache up to 112 coordinates.
 */
typedef struct GraphMemNode
{
	float		norm2;			/* these four: see GraphCode; coded only */
	float		scale;
	float		aux;
	int32		sum;
	float		residual;		/* coded only */
	uint32		list;			/* nearest centroid */
	uint32		duplicates;		/* index into GraphMem.duplicates, or NONE */
	uint8		degree;
	uint8		chosen;			/* edges, the first, that the rule has chosen
								 * together */
	ItemPointerData tid;
	uint32		overflow;		/* slot of heap TIDs, of nodes with many */
	Candidate	edges[FLEXIBLE_ARRAY_MEMBER];
} GraphMemNode;

/* What a distance takes of it. */
#define GRAPH_MEM_FACTORS offsetof(GraphMemNode, residual)

#define GraphMemLoadedOf(node) ((GraphMemLoaded *) (node)->edges)

StaticAssertDecl(offsetof(GraphMemNode, edges) % sizeof(uint64) == 0,
				 "GraphMemLoaded must be aligned");
StaticAssertDecl(GRAPH_MAX_DEGREE + GRAPH_MEM_SLACK <= UINT8_MAX, "a degree must fit");

typedef struct GraphMemDuplicate
{
	ItemPointerData tid;
	uint32		next;
} GraphMemDuplicate;

typedef struct GraphMem GraphMem;
struct GraphMem
{
	GraphStore	base;
	GraphPairDistance pair;		/* of two nodes; arg is the GraphMem */
	/* GraphSelect() by that distance */
	int			(*select) (Candidate *candidates, int n, int max, GraphMem *mem,
						   Candidate *scratch, int *chosen);
	bool		(*same) (const GraphMem *mem, const GraphMemNode *a, const GraphMemNode *b);
	const GraphLayout *layout;
	QvSpaceKind space;			/* this and the next: coded */
	float		mean_norm2;
	const QvOpclassInfo *opclass;	/* plain */
	int			max_edges;		/* degree + slack */
	Size		payload_room;	/* before a node: the code, or the value */
	Size		payload_size;
	Size		edges_end;		/* after it, from where it begins */
	Size		node_size;
	Size		chunk_bytes;	/* about what is allocated at a time */
	uint32		chunk_nodes;	/* nodes in a chunk: a power of two */
	int			chunk_shift;
	GraphChunks nodes;
	GraphChunks values;			/* of different sizes: apart from the nodes */
	bool		separate_values;
	uint32		count;			/* nodes; set when all have their place */
	GraphMemDuplicate *duplicates;

	/* this participant's searches, one after another: see GraphMemSearch() */
	const GraphMemNode *query;	/* what they measure from */
	uint8	   *seen;			/* by which search a node was seen last, */
	uint8		number;			/* and this one's; never 0 */
};

/*
 * Start an empty graph for a form to complete: payload is how many bytes a
 * node compares by, rows how many there will be, roughly.
 */
extern void GraphMemInit(GraphMem *mem, const GraphLayout *layout, Size payload,
						 GraphMemBudget *budget, bool shared, double rows);

/*
 * Bytes that so many nodes take, with values of that size apart from them
 * (0: within), and what their build needs beside them.
 */
extern double GraphMemEstimate(const GraphLayout *layout, Size payload, Size value_size,
							   double rows);

/* Of the memory that a build may use, bytes for nodes and values. */
extern Size GraphMemNodesShare(const GraphLayout *layout, Size payload, Size max_memory);

/* The node in the memory of one. */
#define GraphMemNodeAt(mem, memory) ((GraphMemNode *) ((char *) (memory) + (mem)->payload_room))

static inline GraphMemNode *
GraphMemGet(const GraphMem *mem, uint32 id)
{
	return GraphMemNodeAt(mem, mem->nodes.at[id >> mem->chunk_shift] +
						  (Size) (id & (mem->chunk_nodes - 1)) * mem->node_size);
}

#define GraphMemPayload(mem, node) ((char *) (node) - (mem)->payload_room)

/*
 * A node without edges; the caller fills in its payload and "loaded".  NULL: there
 * is no memory for it.
 */
extern GraphMemNode *GraphMemNew(GraphMem *mem, ItemPointer tid);

/* Take back the node that this participant has got last. */
extern void GraphMemTakeBack(GraphMem *mem);

/* Move a node that has no edges yet. */
extern void GraphMemMove(const GraphMem *mem, GraphMemNode *to, const GraphMemNode *from);

/* Give a node another neighbor, pruning its list when it is full. */
extern void GraphMemAddEdge(GraphMem *mem, GraphMemNode *node, Candidate edge,
							Candidate *scratch);

/*
 * Search for the ef nodes that are nearest to node id, from entries on.  Which nodes it
 * has seen, an array of a byte a node knows, not the search's set.
 */
extern void GraphMemSearch(GraphMem *mem, GraphSearch *search, uint32 id, uint32 ef,
						   const uint32 *entries, int nentries);

/* See a node; false: the search has seen it before. */
static inline bool
GraphMemSee(GraphMem *mem, uint32 id)
{
	bool		new = mem->seen[id] != mem->number;

	mem->seen[id] = mem->number;
	return new;
}

/*
 * The body of a store's expand(): offer the neighbors of node id that were
 * not seen.  distance and prefetch are constants, to be inlined.
 */
static pg_attribute_always_inline void
GraphMemExpand(GraphMem *mem, GraphSearch *search, uint32 id,
			   float (*distance) (const GraphMem *mem, const GraphMemNode *a,
								  const GraphMemNode *b),
			   void (*prefetch) (const GraphMem *mem, const GraphMemNode *node))
{
	GraphMemNode *node = GraphMemGet(mem, id);
	uint32		ids[GRAPH_MAX_DEGREE + GRAPH_MEM_SLACK];
	int			n = 0;

	/* all prefetches first: their misses overlap */
	for (int i = 0; i < node->degree; i++)
		if (GraphMemSee(mem, node->edges[i].id))
		{
			ids[n++] = node->edges[i].id;
			prefetch(mem, GraphMemGet(mem, node->edges[i].id));
		}
	/* and what will be next, if nothing nearer is found now */
	if (PoolHasNext(&search->pool))
		mem->base.prefetch(&mem->base, search->pool.items[search->pool.cursor].id);
	for (int i = 0; i < n; i++)
		(void) PoolInsert(&search->pool, distance(mem, mem->query, GraphMemGet(mem, ids[i])),
						  ids[i], NULL);
}

/* Let a node have the neighbors that the rule selects of candidates[n] (ascending). */
extern void GraphMemChoose(GraphMem *mem, GraphMemNode *node, Candidate *candidates, int n,
						   Candidate *scratch);

/* Reduce a node's list to at most the degree of a node. */
extern void GraphMemShrink(GraphMem *mem, GraphMemNode *node, Candidate *scratch);

#endif							/* QV_GRAPH_BUILD_STORE_MEM_H */
