/*
 * select.h
 *		Choosing neighbors: the relative-neighborhood rule of HNSW
 *		(arXiv 1603.09320, algorithm 4), filled up with what it rejected.
 */
#ifndef QV_GRAPH_WALK_SELECT_H
#define QV_GRAPH_WALK_SELECT_H

#include "containers/pool.h"
#include "graph/page/format.h"

/* Distance of candidates a and b (their ids). */
typedef float (*GraphPairDistance) (void *arg, uint32_t a, uint32_t b);

/* In a candidate's id: the rule has chosen it before, together with the others so marked. */
#define GRAPH_AGREED POOL_EXPANDED

/*
 * Keep of candidates[n] (ascending) at most max: each that is nearer to the
 * base than to every one kept before it, then the nearest others.  Works in
 * place: the kept ones come first, in the order they were taken.  scratch
 * holds n entries.  Returns how many were kept; *chosen: of them, those by the rule.
 * Two that have agreed before are not compared.  A pair that is a constant is inlined.
 */
static pg_attribute_always_inline int
GraphSelect(Candidate *candidates, int n, int max, GraphPairDistance pair, void *arg,
			Candidate *scratch, int *chosen)
{
	bool		agreed[GRAPH_MAX_DEGREE];
	int			kept = 0,
				rejected = 0;
	int			last = 0;		/* that rejected one: it may be near to others */

	for (int i = 0; i < n && kept < max; i++)
	{
		bool		agrees = (candidates[i].id & GRAPH_AGREED) != 0;
		Candidate	c = {candidates[i].distance, candidates[i].id & ~GRAPH_AGREED};
		bool		keep = true;

		if (last < kept && !(agrees && agreed[last]) &&
			pair(arg, c.id, candidates[last].id) < c.distance)
			keep = false;
		for (int j = 0; j < kept && keep; j++)
			if (j != last && !(agrees && agreed[j]) &&
				pair(arg, c.id, candidates[j].id) < c.distance)
			{
				keep = false;
				last = j;
			}
		/* kept <= i: never overwrites what is still to be read */
		if (keep)
		{
			agreed[kept] = agrees;
			candidates[kept++] = c;
		}
		else
			scratch[rejected++] = c;
	}
	*chosen = kept;
	for (int i = 0; i < rejected && kept < max; i++)
		candidates[kept++] = scratch[i];
	return kept;
}

/* The same, by a function. */
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

#endif							/* QV_GRAPH_WALK_SELECT_H */
