/*
 * insert.h
 *		Inserting into a graph on its pages.
 */
#ifndef QV_GRAPH_INSERT_H
#define QV_GRAPH_INSERT_H

#include "graph/node.h"
#include "graph/store_page.h"

/*
 * Insert a rotated vector (GraphRotate()).  building: write no WAL.  Memory is
 * taken from CurrentMemoryContext.
 */
extern void GraphInsertRotated(Relation index, const float *rotated,
							   ItemPointer tid, bool building);

/*
 * Nodes that a search for a vector found and that may become its neighbours,
 * with copies of their codes.
 */
typedef struct GraphNeighborhood
{
	GraphHandle *handle;
	uint32		count;
	uint32		capacity;
	Candidate  *candidates;		/* ascending; ids index the arrays below */
	uint32	   *ids;			/* node numbers */
	GraphCode  *codes;
	uint8	   *bytes;			/* capacity x pdim */
	uint32		exclude;		/* a node never to be found, or GRAPH_NONE */
} GraphNeighborhood;

extern void GraphNeighborhoodInit(GraphNeighborhood *nb, GraphHandle *handle,
								  uint32 capacity);

/*
 * Search for the query with ef candidates, entering at the entry table, or at
 * node "enter" unless that is GRAPH_NONE.
 */
extern void GraphFindNeighborhood(GraphNeighborhood *nb, GraphQuery *query,
								  uint32 ef, uint32 enter);

/* Choose at most max neighbours: the first entries of candidates. */
extern int	GraphChooseNeighbors(GraphNeighborhood *nb, int max);

/* Encode the n chosen neighbours relative to the vector with that code. */
extern void GraphEncodeNeighbors(GraphNeighborhood *nb, const GraphCode *code,
								 int n, GraphEdge *edges, uint8 *bits);

/*
 * Offer node id, with the code and prepared query of its vector, as a
 * neighbour to the n chosen ones.
 */
extern void GraphLinkAllBack(GraphNeighborhood *nb, GraphQuery *query, int n,
							 uint32 id, const GraphCode *code, bool building);

/* The page lock that inserts share and vacuum takes to wait for them. */
#define GRAPH_UPDATE_LOCK GRAPH_META_BLOCK

#endif							/* QV_GRAPH_INSERT_H */
