/*
 * row_pages.h
 *		Making the row pages of an index from its nodes.
 */
#ifndef QV_GRAPH_UPDATE_ROW_PAGES_H
#define QV_GRAPH_UPDATE_ROW_PAGES_H

#include "graph/page/handle.h"

/* Tells whether an index can have row pages.  Indexes of older versions have none. */
extern bool GraphCanHaveRows(const GraphMetaData *meta);

/* Shows all rows of an index: a QvVisitRows of a GraphHandle. */
extern void GraphVisitRows(void *engine, const QvRowVisitor *visitor);

/*
 * Makes the row entries that are missing, in a build or VACUUM.  Needs at most
 * maintenance_work_mem, and reads all nodes twice or more.
 */
extern void GraphMergeRows(GraphHandle *handle, double table_rows);

#endif							/* QV_GRAPH_UPDATE_ROW_PAGES_H */
