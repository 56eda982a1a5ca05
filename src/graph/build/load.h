/*
 * load.h
 *		The rows of the table, as nodes without edges: values are encoded, and equal ones
 *		brought together.
 */
#ifndef QV_GRAPH_BUILD_LOAD_H
#define QV_GRAPH_BUILD_LOAD_H

#include "graph/build/build_form.h"

/* Reads this participant's part of the table (scan is NULL: all of it) into bs->mem. */
extern void GraphLoadRows(GraphBuildState *bs, TableScanDesc scan);

/*
 * Leader: gives the nodes their numbers, by list.  Equal rows become one node.  Makes the
 * arrays that all share, with the order of insertion.
 */
extern void GraphArrangeNodes(GraphBuildState *bs);

/* Others: attach to what the leader has made. */
extern void GraphSeeNodes(GraphBuildState *bs);

#endif							/* QV_GRAPH_BUILD_LOAD_H */
