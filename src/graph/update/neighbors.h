/*
 * neighbors.h
 *		Finding and choosing the neighbors of a node, and offering the node to them in
 *		return.  The node is new, or is repaired.
 */
#ifndef QV_GRAPH_UPDATE_NEIGHBORS_H
#define QV_GRAPH_UPDATE_NEIGHBORS_H

#include "graph/form/form.h"

/*
 * Searches for a point.  It enters at entry points and, unless that is GRAPH_NONE, at the
 * node "around", which is not among the nodes found.
 */
extern GraphNeighborhood *GraphFindNeighborhood(GraphHandle *handle, GraphPoint *point,
												uint32 around);

/*
 * Chooses the point's neighbors.  Returns how many.  They are then the first candidates,
 * and their edges are prepared.
 */
extern int	GraphChooseNeighbors(GraphNeighborhood *nb);

/*
 * Makes one of the n chosen neighbors the anchor of the point, which is node id.  Only
 * neighbors for which may_anchor(arg, number) is true are asked, if it is not NULL.
 * Returns false if there is no such neighbor.
 */
extern bool GraphAnchor(GraphNeighborhood *nb, int n, uint32 id,
						bool (*may_anchor) (void *arg, uint32 number), void *arg);

/* Offers the point to the n chosen neighbors, except the ones that GraphAnchor() has asked. */
extern void GraphLinkAllBack(GraphNeighborhood *nb, int n, uint32 id);

#endif							/* QV_GRAPH_UPDATE_NEIGHBORS_H */
