/*
 * link.h
 *		Edges back: offering a node to a neighbor that it chose.
 */
#ifndef QV_GRAPH_UPDATE_LINK_H
#define QV_GRAPH_UPDATE_LINK_H

#include "graph/form/form.h"

/*
 * Offers the neighborhood's point, which is node id, to node "to" as a neighbor.  A node
 * with a free place takes the edge.  A full one chooses again among its neighbors and the
 * newcomer.  They are read from their pages while the node's own page is not locked.
 */
extern GraphAnswer GraphLinkBack(GraphNeighborhood *nb, uint32 id, uint32 to, GraphOffer offer);

#endif							/* QV_GRAPH_UPDATE_LINK_H */
