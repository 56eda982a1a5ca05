/*
 * store_mem_coded.h
 *		A coded graph under construction: nodes are compared by their codes.
 */
#ifndef QV_GRAPH_BUILD_STORE_MEM_CODED_H
#define QV_GRAPH_BUILD_STORE_MEM_CODED_H

#include "graph/build/store_mem.h"
#include "graph/page/node.h"

/* Starts a graph in the handle's space. */
extern void GraphMemInitCoded(GraphMem *mem, const GraphHandle *handle, GraphMemBudget *budget,
							  bool shared, double rows);

/* Adds a node without edges for a code, whose bytes are copied. */
extern GraphMemNode *GraphMemAdd(GraphMem *mem, const GraphCode *code, ItemPointer tid);

extern void GraphMemGetCode(const GraphMem *mem, const GraphMemNode *node,
							GraphCode *code);

#endif							/* QV_GRAPH_BUILD_STORE_MEM_CODED_H */
