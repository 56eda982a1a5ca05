/*
 * select.h
 *		Choosing neighbors: the relative-neighborhood rule of HNSW (arXiv 1603.09320,
 *		algorithm 4), filled up with candidates that it rejected.
 */
#ifndef QV_GRAPH_WALK_SELECT_H
#define QV_GRAPH_WALK_SELECT_H

#include "containers/pool.h"
#include "graph/page/format.h"

/* Returns the distance of candidates a and b, given by their ids. */
typedef float (*GraphPairDistance) (void *arg, uint32_t a, uint32_t b);

/*
 * Bit of a candidate's id: the rule has chosen it before, together with the others that
 * have the bit.
 */
#define GRAPH_AGREED (GRAPH_MAX_ID + 1)

/*
 * Chooses at most max of candidates[n], which are ascending.  It keeps each candidate that
 * is nearer to the base than to every one kept before, then the nearest others.  It works
 * in place: the kept ones come first, in the order in which they were kept.  scratch has n
 * entries.  Returns how many were kept.  *chosen is how many the rule has chosen.  Two
 * candidates that have agreed before are not compared.  A constant function "pair" is
 * inlined.
 */
static pg_attribute_always_inline int
GraphSelect(Candidate *candidates, int n, int max, GraphPairDistance pair, void *arg,
			Candidate *scratch, int *chosen)
{
	bool		agreed[GRAPH_MAX_DEGREE];
	int			kept = 0,
				rejected = 0;
	int			last = 0;		/* candidate that rejected the last one:
								 * others may be near to it, too */

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
		/* kept <= i: never overwrites a candidate that is still to be read */
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

/* The neighbors of a full node, and a newcomer, which has number n. */
typedef struct GraphRivals
{
	int			n;				/* at most GRAPH_MAX_DEGREE */
	float		from_self[GRAPH_MAX_DEGREE + 1];	/* distances from the node */
	bool		anchored[GRAPH_MAX_DEGREE]; /* its edge is an anchor, which
											 * keeps its place */
} GraphRivals;

/*
 * Chooses again for a full node.  "pair" returns the distance between two rivals.  Returns
 * the neighbor that gives its place to the newcomer, or -1: none.  If forced, -1 is
 * returned only if all neighbors are anchored.
 */
extern int	GraphChoosePlace(const GraphRivals *rivals,
							 GraphPairDistance pair, void *arg, bool force);

#endif							/* QV_GRAPH_WALK_SELECT_H */
