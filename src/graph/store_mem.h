/*
 * store_mem.h
 *		A coded graph under construction, in memory.
 */
#ifndef QV_GRAPH_STORE_MEM_H
#define QV_GRAPH_STORE_MEM_H

#include "graph/cache.h"
#include "graph/node.h"
#include "graph/search.h"

/*
 * Neighbour lists have room to spare, so that a full one is pruned once per
 * that many arrivals instead of at every one (half the build time: DESIGN
 * measurements in src/graph/README.md, "Build").
 */
#define GRAPH_MEM_SLACK 10

typedef struct GraphMemNode
{
	float		norm2;
	float		scale;
	float		residual;
	float		aux;
	int32		sum;
	uint32		list;			/* nearest centroid */
	uint32		duplicates;		/* index into GraphMem.duplicates, or NONE */
	uint16		degree;
	ItemPointerData tid;
	Candidate	edges[FLEXIBLE_ARRAY_MEMBER];	/* then the code's bytes */
} GraphMemNode;

typedef struct GraphMemDuplicate
{
	ItemPointerData tid;
	uint32		next;
} GraphMemDuplicate;

typedef struct GraphMem
{
	GraphStore	base;
	const GraphLayout *layout;
	GraphSpace	space;
	float		mean_norm2;
	int			max_edges;		/* slots + slack */
	Size		code_offset;
	Size		node_size;
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
} GraphMem;

extern void GraphMemInit(GraphMem *mem, const GraphLayout *layout,
						 GraphSpace space, float mean_norm2);

/* Bytes that one more node may take. */
extern Size GraphMemNodeCost(const GraphMem *mem);

static inline GraphMemNode *
GraphMemGet(const GraphMem *mem, uint32 id)
{
	return (GraphMemNode *) (mem->chunks[id >> mem->chunk_shift] +
							 (Size) (id & (mem->chunk_nodes - 1)) * mem->node_size);
}

#define GraphMemCode(mem, node) ((uint8 *) (node) + (mem)->code_offset)

/*
 * Add a node for the code (its bytes are copied) without edges.  Returns its
 * number.
 */
extern uint32 GraphMemAdd(GraphMem *mem, const GraphCode *code, ItemPointer tid);

/* Take back the node added last, which nothing points at. */
extern void GraphMemRemoveLast(GraphMem *mem);

/* Give node id one more row. */
extern void GraphMemAddDuplicate(GraphMem *mem, uint32 id, ItemPointer tid);

extern float GraphMemDistance(const GraphMem *mem, const GraphMemNode *a,
							  const GraphMemNode *b);

/* GraphPairDistance over node numbers; arg is the GraphMem. */
extern float GraphMemPair(void *arg, uint32_t a, uint32_t b);

extern void GraphMemGetCode(const GraphMem *mem, const GraphMemNode *node,
							GraphCode *code);

/* Connect node id with edges[n] both ways, pruning lists that overflow. */
extern void GraphMemConnect(GraphMem *mem, uint32 id, const Candidate *edges,
							int n, Candidate *scratch);

/* Reduce a node's list to at most the slots of a page's node. */
extern void GraphMemShrink(GraphMem *mem, GraphMemNode *node, Candidate *scratch);

#endif							/* QV_GRAPH_STORE_MEM_H */
