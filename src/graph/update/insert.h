/*
 * insert.h
 *		Inserting into a graph on its pages.
 */
#ifndef QV_GRAPH_UPDATE_INSERT_H
#define QV_GRAPH_UPDATE_INSERT_H

#include "graph/page/handle.h"

/*
 * Inserts a detoasted value.  A handle serves one insert.  Memory is allocated in
 * CurrentMemoryContext.
 */
extern void GraphInsertValue(GraphHandle *handle, const void *value, ItemPointer tid);

#endif							/* QV_GRAPH_UPDATE_INSERT_H */
