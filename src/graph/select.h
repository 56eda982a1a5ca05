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

/*
 * A full node with n neighbors (at most GRAPH_MAX_DEGREE) chooses again among
 * them and a newcomer, which is number n.  from_self[n + 1] are the distances
 * from the node, pair those between the others.  Returns which neighbor gives
 * its place to the newcomer; -1: none (unless forced: then there is one).
 */
extern int	GraphChoosePlace(const float *from_self, int n,
							 GraphPairDistance pair, void *arg, bool force);

#endif							/* QV_GRAPH_SELECT_H */
