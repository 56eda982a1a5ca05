/*
 * row_pages.h
 *		Making the row pages of an index from its nodes.
 */
#ifndef QV_GRAPH_UPDATE_ROW_PAGES_H
#define QV_GRAPH_UPDATE_ROW_PAGES_H

#include "graph/page/handle.h"

/* Can an index have row pages?  Those of older versions have none. */
extern bool GraphCanHaveRows(const GraphMetaData *meta);

/* A QvVisitRows of a GraphHandle. */
extern void GraphVisitRows(void *engine, const QvRowVisitor *visitor);

/*
 * Give each row its entry, in a build or VACUUM.  Takes at most maintenance_work_mem, and goes
 * through all nodes twice or more.
 */
extern void GraphMergeRows(GraphHandle *handle, double table_rows);

#endif							/* QV_GRAPH_UPDATE_ROW_PAGES_H */
