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

int
GraphChoosePlace(const float *from_self, int n, GraphPairDistance pair,
				 void *arg, bool force)
{
	Candidate	order[GRAPH_MAX_SLOTS + 1];
	Candidate	scratch[GRAPH_MAX_SLOTS + 1];
	bool		kept[GRAPH_MAX_SLOTS + 1] = {0};
	int			nkept;

	for (int i = 0; i <= n; i++)
	{
		Candidate	c = {from_self[i], i};
		int			j = i;

		for (; j > 0 && order[j - 1].distance > c.distance; j--)
			order[j] = order[j - 1];
		order[j] = c;
	}
	nkept = GraphSelectNeighbors(order, n + 1, n, pair, arg, scratch);
	for (int i = 0; i < nkept; i++)
		kept[order[i].id] = true;
	if (!kept[n])
		return force ? (int) order[nkept - 1].id : -1;
	/* exactly one of the others is left out */
	for (int i = 0; i < n; i++)
		if (!kept[i])
			return i;
	pg_unreachable();
}
