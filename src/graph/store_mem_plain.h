/*
 * store_mem_plain.h
 *		A plain graph under construction: nodes compared by their values.
 */
#ifndef QV_GRAPH_STORE_MEM_PLAIN_H
#define QV_GRAPH_STORE_MEM_PLAIN_H

#include "graph/store_mem.h"

/* Start a graph for the handle's values. */
extern void GraphMemInitPlain(GraphMem *mem, const GraphHandle *handle, Size max_memory);

static inline const void *
GraphMemValue(const GraphMem *mem, const GraphMemNode *node)
{
	const char *payload = (const char *) node + mem->payload_offset;

	return mem->separate_values ? *(const void *const *) payload : payload;
}

/*
 * Add a node for the value, which is copied, without edges.  Returns its
 * number.
 */
extern uint32 GraphMemAddValue(GraphMem *mem, const void *value, ItemPointer tid);

#endif							/* QV_GRAPH_STORE_MEM_PLAIN_H */
