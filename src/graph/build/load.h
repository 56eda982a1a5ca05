/*
 * load.h
 *		The rows of the table, as nodes without edges: their values encoded, and equal
 *		ones brought together.
 */
#ifndef QV_GRAPH_BUILD_LOAD_H
#define QV_GRAPH_BUILD_LOAD_H

#include "graph/build/build_form.h"

/*
 * Read this participant's part of the table (NULL: all of it) into bs->mem, as far
 * as there is memory, the rest into bs->spill.
 */
extern void GraphLoadRows(GraphBuildState *bs, TableScanDesc scan);

/*
 * Leader: give the nodes their numbers, by list, equal rows one node; get the arrays
 * that all share, with the order of insertion.
 */
extern void GraphArrangeNodes(GraphBuildState *bs);

/* The others: see what the leader has done. */
extern void GraphSeeNodes(GraphBuildState *bs);

/* Insert the rows of bs->spill on the pages, which are all written. */
extern void GraphInsertSpilled(GraphBuildState *bs);

#endif							/* QV_GRAPH_BUILD_LOAD_H */
