/*
 * connect.h
 *		Connecting the nodes of a graph in memory, batch after batch.
 */
#ifndef QV_GRAPH_BUILD_CONNECT_H
#define QV_GRAPH_BUILD_CONNECT_H

#include "graph/build/build_form.h"

/* Returns the number of nodes in the batch that follows the first "done" of n nodes. */
extern uint32 GraphNextBatch(uint32 done, uint32 n);

/* Returns the largest number of nodes in a batch. */
extern uint32 GraphLargestBatch(uint32 n);

/* Connects all nodes.  Their edge lists are no longer than on the pages. */
extern void GraphConnectNodes(GraphBuildState *bs);

/*
 * Leader: makes every node reachable from the entry points, by an edge or as one of
 * bs->unreached.
 */
extern void GraphReachNodes(GraphBuildState *bs);

#endif							/* QV_GRAPH_BUILD_CONNECT_H */
