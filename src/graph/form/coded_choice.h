/*
 * coded_choice.h
 *		Which edge a full node of a coded graph leaves out for a newcomer.
 *
 * Returns a place of the node, or -1: the newcomer is left out.  No page is locked before or
 * after.
 */
#ifndef QV_GRAPH_FORM_CODED_CHOICE_H
#define QV_GRAPH_FORM_CODED_CHOICE_H

#include "graph/page/handle.h"
#include "graph/page/node.h"

/*
 * Chooses by the whole own codes of the node's neighbors, whose edges are in "places".  A
 * page is read for each, as in pgvector's HNSW.
 */
extern int	GraphChooseByCodes(GraphHandle *handle, uint32 to, const GraphCode *newcomer,
							   const uint32 *places, bool force);

#endif							/* QV_GRAPH_FORM_CODED_CHOICE_H */
