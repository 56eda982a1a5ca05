/*
 * select.c
 *		Choosing neighbours; see select.h.
 */
#include "postgres.h"

#include "graph/select.h"

int
GraphSelectNeighbors(Candidate *candidates, int n, int max,
					 GraphPairDistance pair, void *arg, Candidate *scratch)
{
	int			kept = 0,
				rejected = 0;

	for (int i = 0; i < n && kept < max; i++)
	{
		Candidate	c = candidates[i];
		bool		keep = true;

		for (int j = 0; j < kept; j++)
			if (pair(arg, c.id, candidates[j].id) < c.distance)
			{
				keep = false;
				break;
			}
		/* kept <= i: never overwrites what is still to be read */
		if (keep)
			candidates[kept++] = c;
		else
			scratch[rejected++] = c;
	}
	for (int i = 0; i < rejected && kept < max; i++)
		candidates[kept++] = scratch[i];
	return kept;
}
