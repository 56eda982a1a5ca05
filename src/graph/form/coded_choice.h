/*
 * coded_choice.h
 *		Which edge a full node of a coded graph leaves out for a newcomer, as in a build.
 *
 * Both give a place of the node's, or -1: the newcomer is left out.  No page is locked
 * before or after.
 */
#ifndef QV_GRAPH_FORM_CODED_CHOICE_H
#define QV_GRAPH_FORM_CODED_CHOICE_H

#include "graph/page/handle.h"
#include "graph/page/node.h"
#include "graph/page/query.h"

/*
 * By the whole codes of its neighbors, of which "places" are the edges: a page is read for
 * each, as in HNSW as pgvector has it.
 */
extern int	GraphChooseByCodes(GraphHandle *handle, uint32 to, const GraphCode *newcomer,
							   const uint32 *places, bool force);

/*
 * By the codes in its own slot; no other page is read.
 *	- from the node to its neighbors: its own vector against their codes;
 *	- from the newcomer, the query: its vector against their codes;
 *	- between two neighbors: the angle between their offsets from the node,
 *	  by the share of differing code bits (random hyperplanes: Charikar 2002).
 */
extern int	GraphChooseByEdges(GraphHandle *handle, uint32 to, const GraphQuery *query, bool force);

#endif							/* QV_GRAPH_FORM_CODED_CHOICE_H */
