/*
 * neighbors.h
 *		Finding and choosing the neighbors of a node, new or to be repaired, and
 *		offering it to them in return.
 */
#ifndef QV_GRAPH_UPDATE_NEIGHBORS_H
#define QV_GRAPH_UPDATE_NEIGHBORS_H

#include "graph/form/form.h"

/*
 * Search for a point, entering at the entry points and, unless that is
 * GRAPH_NONE, at the node "around", which is not among the found.
 */
extern GraphNeighborhood *GraphFindNeighborhood(GraphHandle *handle, GraphPoint *point,
												uint32 around);

/*
 * Choose the point's neighbors: returns how many, which are then the first
 * candidates, with their edges made.
 */
extern int	GraphChooseNeighbors(GraphNeighborhood *nb);

/*
 * Let one of the n chosen neighbors be the anchor of the point, which is node id:
 * lead to it for good.  Only those for which may_anchor(arg, number) is true, if it
 * is not NULL.  False: none can.
 */
extern bool GraphAnchor(GraphNeighborhood *nb, int n, uint32 id,
						bool (*may_anchor) (void *arg, uint32 number), void *arg);

/*
 * Offer the point as a neighbor to the n chosen ones, but for those that
 * GraphAnchor() has asked.
 */
extern void GraphLinkAllBack(GraphNeighborhood *nb, int n, uint32 id);

#endif							/* QV_GRAPH_UPDATE_NEIGHBORS_H */
