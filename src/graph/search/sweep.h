/*
 * sweep.h
 *		Measuring every node that has rows of a set: for sets whose rows no edge leads
 *		to soon (src/graph/README.md, "Sweep").
 */
#ifndef QV_GRAPH_SEARCH_SWEEP_H
#define QV_GRAPH_SEARCH_SWEEP_H

#include "graph/search/sweep_results.h"

/*
 * Add the nodes that have such rows, or more than are in their slots, to the results of
 * search, with these rows only; and rows of which no node is known as if they were nearest.  Returns whether these are all; if not, *beyond is the bound
 * from which on some were left out, else INFINITY.  With known_only it may find none, when it
 * is not known any more where they are: false.  Answers Ctrl-C.
 */
extern bool GraphSweep(GraphHandle *handle, GraphSearch *search, const GraphSweepParams *params,
					   float *beyond);

#endif							/* QV_GRAPH_SEARCH_SWEEP_H */
