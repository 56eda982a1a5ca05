/*
 * connect.h
 *		Connecting the nodes of a graph in memory, batch after batch.
 */
#ifndef QV_GRAPH_BUILD_CONNECT_H
#define QV_GRAPH_BUILD_CONNECT_H

#include "graph/build/build_form.h"

/* Nodes in the batch that follows the first so many of n. */
extern uint32 GraphNextBatch(uint32 done, uint32 n);

/* None has more. */
extern uint32 GraphLargestBatch(uint32 n);

/* Connect all nodes; their lists are no longer than on the pages. */
extern void GraphConnectNodes(GraphBuildState *bs);

/*
 * Leader: see to it that every node can be reached from the entry points, by an
 * edge or as one of bs->unreached.
 */
extern void GraphReachNodes(GraphBuildState *bs);

#endif							/* QV_GRAPH_BUILD_CONNECT_H */
