/*
 * store_mem_coded.h
 *		A coded graph under construction: nodes compared by their codes.
 */
#ifndef QV_GRAPH_BUILD_STORE_MEM_CODED_H
#define QV_GRAPH_BUILD_STORE_MEM_CODED_H

#include "graph/build/store_mem.h"
#include "graph/page/node.h"

/* Start a graph in the handle's space. */
extern void GraphMemInitCoded(GraphMem *mem, const GraphHandle *handle, GraphMemBudget *budget,
							  bool shared, double rows);

/*
 * Add a node for the code (its bytes are copied) without edges.  NULL: there is no
 * memory for it.
 */
extern GraphMemNode *GraphMemAdd(GraphMem *mem, const GraphCode *code, ItemPointer tid);

extern void GraphMemGetCode(const GraphMem *mem, const GraphMemNode *node,
							GraphCode *code);

#endif							/* QV_GRAPH_BUILD_STORE_MEM_CODED_H */
