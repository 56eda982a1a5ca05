/*
 * link.h
 *		Edges back: offering a node to a neighbor that it chose.
 */
#ifndef QV_GRAPH_UPDATE_LINK_H
#define QV_GRAPH_UPDATE_LINK_H

#include "graph/form/form.h"

/*
 * Offer the neighborhood's point, which is node id, to node "to" as a neighbor.  A neighbor
 * with a free place takes it.  A full one chooses again among its neighbors and the newcomer,
 * as in a build, by what all of them are: read from their pages while its own is not locked.
 */
extern GraphAnswer GraphLinkBack(GraphNeighborhood *nb, uint32 id, uint32 to, GraphOffer offer);

#endif							/* QV_GRAPH_UPDATE_LINK_H */
