/*
 * insert.h
 *		Inserting into a graph on its pages.
 */
#ifndef QV_GRAPH_UPDATE_INSERT_H
#define QV_GRAPH_UPDATE_INSERT_H

#include "graph/page/handle.h"

/*
 * Inserts a detoasted value.  included: NULL if they are not known.  A handle serves one insert.
 * Memory is allocated in CurrentMemoryContext.
 */
extern void GraphInsertValue(GraphHandle *handle, const void *value, const QvIncludedRow *included,
							 ItemPointer tid);

#endif							/* QV_GRAPH_UPDATE_INSERT_H */
