/*
 * store_mem.h
 *		A graph under construction, in memory.  store_mem_coded.c and store_mem_plain.c
 *		have its distances.
 */
#ifndef QV_GRAPH_BUILD_STORE_MEM_H
#define QV_GRAPH_BUILD_STORE_MEM_H

#include "graph/build/mem_chunks.h"
#include "graph/page/handle.h"
#include "graph/walk/search.h"
#include "graph/walk/select.h"

/*
 * Spare places in an edge list.  A full list is pruned once for that many arrivals, not at
 * every one, which halves the build time [M29].
 */
#define GRAPH_MEM_SLACK 10

/* Lists that a node's search may enter at.  They are kept until it has edges. */
#define GRAPH_LOADED_LISTS 8

/* What a node without edges has in their place. */
typedef struct GraphMemLoaded
{
	uint64		hash;			/* hash of what makes rows share a node */
	float		to_centroid;	/* coded: distance to the centroid of its list */
	float		ip;				/* coded, inner product: that with the
								 * centroid; otherwise 0 */
	uint32		nlists;
	uint32		lists[GRAPH_LOADED_LISTS];	/* the nearest lists, by estimate */
} GraphMemLoaded;

/*
 * A node in memory.  Its payload lies before it, so that all that a distance needs is
 * together: two cache lines up to 112 coordinates.
 */
typedef struct GraphMemNode
{
	float		norm2;			/* these four: see GraphCode; coded only */
	float		scale;
	float		aux;
	int32		sum;
	float		residual;		/* coded only */
	uint32		list;			/* list of the nearest centroid */
	uint32		duplicates;		/* index into GraphMem.duplicates, or
								 * GRAPH_NONE */
	uint8		degree;
	uint8		chosen;			/* first edges, which the rule has chosen
								 * together */
	ItemPointerData tid;
	uint32		overflow;		/* first slot of heap TIDs of a node with many */
	Candidate	edges[FLEXIBLE_ARRAY_MEMBER];
} GraphMemNode;

/* Bytes of a node that a distance needs, beside its payload. */
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
	GraphPairDistance pair;		/* distance of two nodes; arg is the GraphMem */
	/* GraphSelect() by that distance */
	int			(*select) (Candidate *candidates, int n, int max, GraphMem *mem,
						   Candidate *scratch, int *chosen);
	bool		(*same) (const GraphMem *mem, const GraphMemNode *a, const GraphMemNode *b);
	const GraphLayout *layout;
	QvSpaceKind space;			/* coded: this and the next */
	float		mean_norm2;
	const QvOpclassInfo *opclass;	/* plain */
	int			max_edges;		/* degree + slack */
	Size		payload_room;	/* bytes before a node: its code or value */
	Size		payload_size;
	Size		edges_end;		/* bytes after it, up to the end of its edges */
	Size		node_size;
	Size		chunk_bytes;	/* bytes of a chunk, about */
	uint32		chunk_nodes;	/* nodes in a chunk: a power of two */
	int			chunk_shift;
	GraphChunks nodes;
	GraphChunks values;			/* values of different sizes, apart from the
								 * nodes */
	bool		separate_values;
	uint32		count;			/* nodes; set when all have their place */
	GraphMemDuplicate *duplicates;

	/* this participant's searches, one after another: see GraphMemSearch() */
	const GraphMemNode *query;	/* node that they measure from */
	uint8	   *seen;			/* by node: number of the search that has seen
								 * it last */
	QvRoom		seen_room;
	uint8		number;			/* number of this search; never 0 */
};

/*
 * Starts an empty graph, for a form to complete.  payload is how many bytes a node is
 * compared by.  rows is the expected number of rows.
 */
extern void GraphMemInit(GraphMem *mem, const GraphLayout *layout, Size payload,
						 GraphMemBudget *budget, bool shared, double rows);

/*
 * Returns the bytes of "rows" nodes, with values of value_size bytes apart from them (0:
 * within), and of what their build needs beside them.
 */
extern double GraphMemEstimate(const GraphLayout *layout, Size payload, Size value_size,
							   double rows);

/* Returns the part of a build's memory for nodes and values, in bytes. */
extern Size GraphMemNodesShare(const GraphLayout *layout, Size payload, Size max_memory);

/* Address of the node in the memory of one. */
#define GraphMemNodeAt(mem, memory) ((GraphMemNode *) ((char *) (memory) + (mem)->payload_room))

static inline GraphMemNode *
GraphMemGet(const GraphMem *mem, uint32 id)
{
	return GraphMemNodeAt(mem, mem->nodes.at[id >> mem->chunk_shift] +
						  (Size) (id & (mem->chunk_nodes - 1)) * mem->node_size);
}

#define GraphMemPayload(mem, node) ((char *) (node) - (mem)->payload_room)

/* Returns a new node without edges.  The caller sets its payload and GraphMemLoaded. */
extern GraphMemNode *GraphMemNew(GraphMem *mem, ItemPointer tid);

/*
 * Makes size bytes beside the nodes, once all nodes are there.  They are in a file if there
 * was no memory for all nodes.
 */
extern void *GraphMemRoom(const GraphMem *mem, QvRoom *room, Size size);

/* Moves a node that has no edges yet. */
extern void GraphMemMove(const GraphMem *mem, GraphMemNode *to, const GraphMemNode *from);

/* Adds an edge to a node, and prunes its list if it is full. */
extern void GraphMemAddEdge(GraphMem *mem, GraphMemNode *node, Candidate edge,
							Candidate *scratch);

/*
 * Searches for the ef nodes that are nearest to node id, beginning at the entries.
 * mem->seen tells which nodes the search has seen, not the search's set.
 */
extern void GraphMemSearch(GraphMem *mem, GraphSearch *search, uint32 id, uint32 ef,
						   const uint32 *entries, int nentries);

/* Marks a node as seen.  Returns false if the search has seen it before. */
static inline bool
GraphMemSee(GraphMem *mem, uint32 id)
{
	bool		new = mem->seen[id] != mem->number;

	mem->seen[id] = mem->number;
	return new;
}

/*
 * Offers the neighbors of node id that were not seen: the body of a store's expand().
 * distance and prefetch are constants, to be inlined.
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
	/* also the next node, if nothing nearer is found now */
	if (PoolHasNext(&search->pool))
		mem->base.prefetch(&mem->base, PoolPeek(&search->pool, 0)->id);
	for (int i = 0; i < n; i++)
		(void) PoolInsert(&search->pool, distance(mem, mem->query, GraphMemGet(mem, ids[i])),
						  ids[i], NULL);
}

/* Gives a node the neighbors that the rule chooses from candidates[n] (ascending). */
extern void GraphMemChoose(GraphMem *mem, GraphMemNode *node, Candidate *candidates, int n,
						   Candidate *scratch);

/* Prunes a node's list to at most the degree of a node. */
extern void GraphMemShrink(GraphMem *mem, GraphMemNode *node, Candidate *scratch);

#endif							/* QV_GRAPH_BUILD_STORE_MEM_H */
