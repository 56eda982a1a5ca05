/*
 * select.h
 *		Choosing neighbors: the relative-neighborhood rule of HNSW
 *		(arXiv 1603.09320, algorithm 4), filled up with what it rejected.
 */
#ifndef QV_GRAPH_SELECT_H
#define QV_GRAPH_SELECT_H

#include "graph/format.h"
#include "containers/pool.h"

/* Distance of candidates a and b (their ids). */
typedef float (*GraphPairDistance) (void *arg, uint32_t a, uint32_t b);

/*
 * Keep of candidates[n] (ascending) at most max: each that is nearer to the
 * base than to every one kept before it, then the nearest others.  Works in
 * place: the kept ones come first, in the order they were taken.  scratch
 * holds n entries.  Returns how many were kept.
 */
extern int	GraphSelectNeighbors(Candidate *candidates, int n, int max,
								 GraphPairDistance pair, void *arg,
								 Candidate *scratch);

/* The neighbors of a full node, and a newcomer, which is number n. */
typedef struct GraphRivals
{
	int			n;				/* at most GRAPH_MAX_DEGREE */
	float		from_self[GRAPH_MAX_DEGREE + 1];	/* distances from the node */
	bool		anchored[GRAPH_MAX_DEGREE]; /* keeps its place */
} GraphRivals;

/*
 * A full node chooses again; pair are the distances between its rivals.  Returns
 * which neighbor gives its place to the newcomer; -1: none (when forced: only if
 * all keep theirs).
 */
extern int	GraphChoosePlace(const GraphRivals *rivals,
							 GraphPairDistance pair, void *arg, bool force);

#endif							/* QV_GRAPH_SELECT_H */
