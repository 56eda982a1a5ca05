/*
 * store_mem.h
 *		A graph under construction, in memory.  What distances are between,
 *		store_mem_coded.c and store_mem_plain.c know.
 */
#ifndef QV_GRAPH_STORE_MEM_H
#define QV_GRAPH_STORE_MEM_H

#include "graph/handle.h"
#include "graph/search.h"
#include "graph/select.h"

/*
 * Neighbor lists have room to spare, so that a full one is pruned once per
 * that many arrivals instead of at every one (half the build time).
 */
#define GRAPH_MEM_SLACK 10

typedef struct GraphMemNode
{
	float		norm2;			/* these five: see GraphCode; coded only */
	float		scale;
	float		residual;
	float		aux;
	int32		sum;
	uint32		list;			/* nearest centroid */
	uint32		duplicates;		/* index into GraphMem.duplicates, or NONE */
	uint16		degree;
	ItemPointerData tid;
	Candidate	edges[FLEXIBLE_ARRAY_MEMBER];	/* then the payload */
} GraphMemNode;

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
	bool		(*same) (const GraphMem *mem, uint32 a, uint32 b);
	const GraphLayout *layout;
	QvSpaceKind space;			/* this and the next: coded */
	float		mean_norm2;
	const QvOpclassInfo *opclass;	/* plain */
	int			max_edges;		/* degree + slack */
	Size		payload_offset; /* in a node: the code, or the value */
	Size		node_size;
	Size		chunk_bytes;	/* about what is allocated at a time */
	uint32		chunk_nodes;	/* nodes in a chunk: a power of two */
	int			chunk_shift;
	char	  **chunks;
	uint32		nchunks;
	uint32		count;
	GraphMemDuplicate *duplicates;
	uint32		nduplicates;
	uint32		max_duplicates;
	const GraphMemNode *query;	/* what a search measures from */
	Size		memory;			/* bytes allocated */

	/* values of different sizes: the payload is a pointer to here */
	bool		separate_values;
	char	   *values;			/* the chunk in use */
	Size		values_used;
	Size		last_value;		/* bytes of the value added last */
};

/*
 * Start an empty graph for a form to complete: payload is how many bytes follow
 * a node's edges, max_memory what the graph may grow to.
 */
extern void GraphMemInit(GraphMem *mem, const GraphLayout *layout, Size payload,
						 Size max_memory);

/* Bytes that one more node, with a value of that size, will have allocated. */
extern Size GraphMemNodeCost(const GraphMem *mem, Size value_size);

static inline GraphMemNode *
GraphMemGet(const GraphMem *mem, uint32 id)
{
	return (GraphMemNode *) (mem->chunks[id >> mem->chunk_shift] +
							 (Size) (id & (mem->chunk_nodes - 1)) * mem->node_size);
}

/* Add a node without edges; the caller fills in its payload. */
extern GraphMemNode *GraphMemNew(GraphMem *mem, ItemPointer tid);

/* Take back the node added last, which nothing points at. */
extern void GraphMemRemoveLast(GraphMem *mem);

/* Give node id one more row. */
extern void GraphMemAddDuplicate(GraphMem *mem, uint32 id, ItemPointer tid);

/* Connect node id with edges[n] both ways, pruning lists that overflow. */
extern void GraphMemConnect(GraphMem *mem, uint32 id, const Candidate *edges,
							int n, Candidate *scratch);

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
		if (!IdSetHas(&search->seen, node->edges[i].id))
		{
			ids[n++] = node->edges[i].id;
			prefetch(mem, GraphMemGet(mem, node->edges[i].id));
		}
	for (int i = 0; i < n; i++)
		GraphSearchOffer(search,
						 distance(mem, mem->query, GraphMemGet(mem, ids[i])),
						 ids[i]);
}

/* Reduce a node's list to at most the degree of a node. */
extern void GraphMemShrink(GraphMem *mem, GraphMemNode *node, Candidate *scratch);

#endif							/* QV_GRAPH_STORE_MEM_H */
