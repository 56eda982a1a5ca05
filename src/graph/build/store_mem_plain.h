/*
 * store_mem_plain.h
 *		A plain graph under construction: nodes are compared by their values.
 */
#ifndef QV_GRAPH_BUILD_STORE_MEM_PLAIN_H
#define QV_GRAPH_BUILD_STORE_MEM_PLAIN_H

#include "graph/build/store_mem.h"

/*
 * Returns the bytes of a node for values of that size, or for the place of values apart
 * from their nodes.
 */
extern Size GraphMemPlainPayload(const QvOpclassInfo *opclass, int dims);

/* Starts a graph for the handle's values. */
extern void GraphMemInitPlain(GraphMem *mem, const GraphHandle *handle, GraphMemBudget *budget,
							  bool shared, double rows);

/* Place of a value that is not in its node. */
typedef struct GraphMemValueRef
{
	uint32		chunk;
	uint32		offset;
} GraphMemValueRef;

static inline const void *
GraphMemValue(const GraphMem *mem, const GraphMemNode *node)
{
	const char *payload = GraphMemPayload(mem, node);
	const GraphMemValueRef *ref = (const GraphMemValueRef *) payload;

	return mem->separate_values ? mem->values.at[ref->chunk] + ref->offset : payload;
}

/* Adds a node without edges for a value, which is copied. */
extern GraphMemNode *GraphMemAddValue(GraphMem *mem, const void *value, ItemPointer tid);

#endif							/* QV_GRAPH_BUILD_STORE_MEM_PLAIN_H */
