/*
 * link.h
 *		Edges back in a coded graph: offering a new node to a neighbor it chose.
 */
#ifndef QV_GRAPH_LINK_H
#define QV_GRAPH_LINK_H

#include "graph/node.h"
#include "graph/query.h"

/*
 * Offer node id, with the code and prepared query of its vector, to node "to"
 * as a neighbor.  A full one need not take it, unless forced.  Returns
 * whether it did, or had it already.
 */
extern bool GraphLinkBack(GraphHandle *handle, const GraphQuery *query,
						  const GraphCode *code, uint32 id, uint32 to,
						  bool force, bool building);

#endif							/* QV_GRAPH_LINK_H */
