/*
 * store_mem_plain.h
 *		A plain graph under construction: nodes compared by their values.
 */
#ifndef QV_GRAPH_BUILD_STORE_MEM_PLAIN_H
#define QV_GRAPH_BUILD_STORE_MEM_PLAIN_H

#include "graph/build/store_mem.h"

/* Bytes of a node for values of that size, and of values apart from their nodes. */
extern Size GraphMemPlainPayload(const QvOpclassInfo *opclass, int dims);

/* Start a graph for the handle's values. */
extern void GraphMemInitPlain(GraphMem *mem, const GraphHandle *handle, GraphMemBudget *budget,
							  bool shared, double rows);

/* Where a value is that is not in its node. */
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

/* Add a node for the value, which is copied, without edges.  NULL: no memory for it. */
extern GraphMemNode *GraphMemAddValue(GraphMem *mem, const void *value, ItemPointer tid);

#endif							/* QV_GRAPH_BUILD_STORE_MEM_PLAIN_H */
