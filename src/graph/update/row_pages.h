/*
 * row_pages.h
 *		Showing all rows of an index, from its nodes: row pages are made from them.
 */
#ifndef QV_GRAPH_UPDATE_ROW_PAGES_H
#define QV_GRAPH_UPDATE_ROW_PAGES_H

#include "graph/page/handle.h"

/* Shows all rows of an index: a QvVisitRows of a GraphHandle. */
extern void GraphVisitRows(void *engine, const QvRowVisitor *visitor);

#endif							/* QV_GRAPH_UPDATE_ROW_PAGES_H */
