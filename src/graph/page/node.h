/*
 * node.h
 *		Filling node slots: own code, neighbors, factors.
 */
#ifndef QV_GRAPH_PAGE_NODE_H
#define QV_GRAPH_PAGE_NODE_H

#include "graph/page/format.h"
#include "kernels/kernels.h"

/* A vector's own code outside a page: one byte per coordinate. */
typedef struct GraphCode
{
	float		norm2;			/* |x|^2 */
	float		scale;
	float		residual;
	float		aux;			/* <x, mean> */
	int32		sum;			/* sum of the bytes */
	const uint8 *bytes;			/* pdim */
} GraphCode;

/* An edge of a coded graph, before its factors are scaled to float16. */
typedef struct GraphEdge
{
	uint32		id;
	float		a;
	float		b;
} GraphEdge;

/* Memory for a FastScan batch, which is never larger than a page. */
typedef struct GraphBatchScratch
{
	pg_attribute_aligned(64) uint8 bytes[QV_PAGE_SPACE];
} GraphBatchScratch;

/* Encodes a centered, rotated vector.  bytes[pdim] is the caller's memory. */
extern void GraphEncode(const GraphLayout *layout, const float *x,
						const float *mean, GraphCode *code, uint8 *bytes);

/* Returns the squared L2 distance, or the negative inner product, of two coded vectors. */
extern float GraphCodeDistance(const GraphLayout *layout, QvSpaceKind space,
							   float mean_norm2, const GraphCode *a,
							   const GraphCode *b);

/*
 * Computes the edge from node p to neighbor o.  p_decoded[pdim] is the decoded vector of p.
 * bits gets code_bits / 8 bytes.
 */
extern void GraphEncodeEdge(const GraphLayout *layout, const QvSpace *space,
							const GraphCode *p, const float *p_decoded,
							const GraphCode *o, uint32 id,
							GraphEdge *edge, uint8 *bits);

/* Makes a slot of any form a live node without rows and neighbors. */
extern void GraphNodeInit(const GraphLayout *layout, GraphNode node);

/* Sets the own code of a new node. */
extern void GraphNodeSetCode(const GraphLayout *layout, GraphNode node,
							 const GraphCode *code);

/* Returns a node's own code, a byte for each coordinate.  scratch has room for pdim. */
static inline const uint8 *
GraphNodeOwnBytes(const GraphLayout *layout, GraphNode node, uint8 *scratch)
{
	if (layout->own_bits == 8)
		return GraphNodeOwn(layout, node);
	qv_kernels.unpack_bits(GraphNodeOwn(layout, node), layout->own_bits, scratch, layout->pdim);
	return scratch;
}

/* Reads a node's own code.  scratch[pdim] is used when codes are packed. */
extern void GraphNodeCode(const GraphLayout *layout, GraphNode node,
						  GraphCode *code, uint8 *scratch);

/*
 * Puts edges into places 0 to n - 1, and empties the other places.  The codes in bits are
 * code_bits / 8 bytes apart.
 */
extern void GraphNodeSetEdges(const GraphLayout *layout, GraphNode node,
							  const GraphEdge *edges, const uint8 *bits, int n);

/* Puts an edge into one place.  Rescales the factors of the others if needed. */
extern void GraphNodeSetEdge(const GraphLayout *layout, GraphNode node,
							 int place, const GraphEdge *edge, const uint8 *bits);

/*
 * Returns the FastScan batch of the 32 places from "first" on, on the page or made in
 * scratch.  "first" is from GraphBatchStart().
 */
static inline const uint8 *
GraphNodeBatch(const GraphLayout *layout, GraphNode node, int first,
			   GraphBatchScratch *scratch)
{
	const uint8 *codes = GraphNodeCodes(layout, node, first);
	Size		stride = layout->code_bits / 8;

	if (layout->batches)
		return codes;
	qv_kernels.fastscan_pack(codes, stride, stride, scratch->bytes);
	return scratch->bytes;
}

/* Empties one place of a node of any form. */
extern void GraphNodeClearEdge(const GraphLayout *layout, GraphNode node, int place);

/*
 * Finds the edge from a node of any form to node id.  Returns its place, or -1.  Then
 * *empty is the first empty place, or -1 if the node is full.
 */
extern int	GraphNodeFindEdge(const GraphLayout *layout, GraphNode node,
							  uint32 id, int *empty);

/* Tells whether one more of a node's edges may become an anchor. */
extern bool GraphNodeTakesAnchor(const GraphLayout *layout, GraphNode node);

static inline bool
GraphNodeHasEdge(const GraphLayout *layout, GraphNode node, int place)
{
	return GraphNodeIds(layout, node)[place] != GRAPH_NONE;
}

static inline void
GraphNodeSetAnchor(const GraphLayout *layout, GraphNode node, int place)
{
	GraphNodeIds(layout, node)[place] |= GRAPH_ANCHOR;
}

#endif							/* QV_GRAPH_PAGE_NODE_H */
