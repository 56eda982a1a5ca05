/*
 * link.h
 *		Edges back in a coded graph: offering a new node to a neighbor it chose.
 */
#ifndef QV_GRAPH_LINK_H
#define QV_GRAPH_LINK_H

#include "graph/node.h"
#include "graph/query.h"
#include "graph/rows.h"

/* A node that offers itself: its vector's code and prepared query. */
typedef struct GraphNewcomer
{
	uint32		id;
	const GraphQuery *query;
	const GraphCode *code;
} GraphNewcomer;

/* Offer a newcomer to node "to" as a neighbor. */
extern GraphAnswer GraphLinkBack(GraphHandle *handle, const GraphNewcomer *newcomer,
								 uint32 to, GraphOffer offer);

#endif							/* QV_GRAPH_LINK_H */
