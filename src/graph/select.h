/*
 * select.h
 *		Choosing neighbours: the relative-neighbourhood rule of HNSW
 *		(arXiv 1603.09320, algorithm 4), filled up with what it rejected.
 */
#ifndef QV_GRAPH_SELECT_H
#define QV_GRAPH_SELECT_H

#include "lib/pool.h"

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

#endif							/* QV_GRAPH_SELECT_H */
