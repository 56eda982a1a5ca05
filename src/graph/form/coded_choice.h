/*
 * coded_choice.h
 *		Which edge a full node of a coded graph leaves out for a newcomer.
 *
 * Both functions return a place of the node, or -1: the newcomer is left out.  No page is
 * locked before or after.
 */
#ifndef QV_GRAPH_FORM_CODED_CHOICE_H
#define QV_GRAPH_FORM_CODED_CHOICE_H

#include "graph/page/handle.h"
#include "graph/page/node.h"
#include "graph/page/query.h"

/*
 * Chooses by the whole own codes of the node's neighbors, whose edges are in "places".  A
 * page is read for each, as in pgvector's HNSW.
 */
extern int	GraphChooseByCodes(GraphHandle *handle, uint32 to, const GraphCode *newcomer,
							   const uint32 *places, bool force);

/*
 * Chooses by the codes in the node's own slot.  No other page is read.  Distances are
 *
 *	- from the node to its neighbors: its own vector against their codes;
 *	- from the newcomer, the query, to them: its vector against their codes;
 *	- between two neighbors: the angle between their offsets from the node, by the share
 *	  of differing code bits (random hyperplanes: Charikar 2002).
 */
extern int	GraphChooseByEdges(GraphHandle *handle, uint32 to, const GraphQuery *query, bool force);

#endif							/* QV_GRAPH_FORM_CODED_CHOICE_H */
