/*
 * insert.h
 *		Inserting into a graph on its pages.
 */
#ifndef QV_GRAPH_UPDATE_INSERT_H
#define QV_GRAPH_UPDATE_INSERT_H

#include "graph/page/handle.h"

/*
 * Insert a value, detoasted; a handle serves one insert.  Memory is taken from
 * CurrentMemoryContext.
 */
extern void GraphInsertValue(GraphHandle *handle, const void *value, ItemPointer tid);

#endif							/* QV_GRAPH_UPDATE_INSERT_H */
