/*
 * store_mem_coded.h
 *		A coded graph under construction: nodes compared by their codes.
 */
#ifndef QV_GRAPH_STORE_MEM_CODED_H
#define QV_GRAPH_STORE_MEM_CODED_H

#include "graph/node.h"
#include "graph/store_mem.h"

/* Start a graph in the handle's space. */
extern void GraphMemInitCoded(GraphMem *mem, const GraphHandle *handle, Size max_memory);

/*
 * Add a node for the code (its bytes are copied) without edges.  Returns its
 * number.
 */
extern uint32 GraphMemAdd(GraphMem *mem, const GraphCode *code, ItemPointer tid);

extern void GraphMemGetCode(const GraphMem *mem, const GraphMemNode *node,
							GraphCode *code);

#endif							/* QV_GRAPH_STORE_MEM_CODED_H */
