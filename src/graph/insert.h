/*
 * insert.h
 *		Inserting into a graph on its pages, and the parts of it that repairing
 *		a node needs.
 */
#ifndef QV_GRAPH_INSERT_H
#define QV_GRAPH_INSERT_H

#include "graph/form.h"

/*
 * Insert a value, detoasted.  building: write no WAL.  Memory is taken from
 * CurrentMemoryContext.
 */
extern void GraphInsertValue(Relation index, const QvOpclassInfo *opclass,
							 const void *value, ItemPointer tid, bool building);

/*
 * Search for a point, entering at the entry points and, unless that is
 * GRAPH_NONE, at the node "around", which is not among the found.
 */
extern GraphNeighborhood *GraphFindNeighborhood(GraphHandle *handle,
												const GraphPoint *point,
												uint32 around);

/*
 * Choose the point's neighbors: returns how many, which are then the first
 * candidates, with their edges made.
 */
extern int	GraphChooseNeighbors(GraphNeighborhood *nb, const GraphPoint *point);

/* Offer node id, which is point, as a neighbor to the n chosen ones. */
extern void GraphLinkAllBack(GraphNeighborhood *nb, const GraphPoint *point,
							 int n, uint32 id, bool building);

#endif							/* QV_GRAPH_INSERT_H */
