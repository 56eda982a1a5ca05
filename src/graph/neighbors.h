/*
 * neighbors.h
 *		Finding and choosing the neighbors of a node, new or to be repaired, and
 *		offering it to them in return.
 */
#ifndef QV_GRAPH_NEIGHBORS_H
#define QV_GRAPH_NEIGHBORS_H

#include "graph/form.h"

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
 * Offer the point, which is node id, as a neighbor to the n chosen ones.  False
 * when none of them leads to it now.
 */
extern bool GraphLinkAllBack(GraphNeighborhood *nb, int n, uint32 id);

#endif							/* QV_GRAPH_NEIGHBORS_H */
