/*
 * link.h
 *		Edges back in a coded graph: offering a new node to a neighbor it chose.
 */
#ifndef QV_GRAPH_LINK_H
#define QV_GRAPH_LINK_H

#include "graph/handle.h"
#include "graph/node.h"
#include "graph/query.h"

/* A node that offers itself: its vector's code and prepared query. */
typedef struct GraphNewcomer
{
	uint32		id;
	const GraphQuery *query;
	const GraphCode *code;
} GraphNewcomer;

/*
 * Offer a newcomer to node "to" as a neighbor.  A full one need not take it,
 * unless forced.  Returns whether it did, or had it already.
 */
extern bool GraphLinkBack(GraphHandle *handle, const GraphNewcomer *newcomer,
						  uint32 to, bool force);

#endif							/* QV_GRAPH_LINK_H */
