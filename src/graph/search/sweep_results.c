/*
 * sweep_results.c
 *		The nearest nodes that a sweep has found; see sweep_results.h.
 */
#include "postgres.h"

#include <math.h>

#include "containers/compare.h"
#include "graph/search/sweep_results.h"

/* There are too many results: keep the nearer half. */
static void
keep_nearest(GraphSweepState *s)
{
	GraphSearch *search = s->search;
	uint32		half = search->nresults / 2;
	float	   *bounds = palloc(search->nresults * sizeof(float));
	uint32		equal = half;
	uint32		kept = 0;

	for (uint32 i = 0; i < search->nresults; i++)
		bounds[i] = GraphSweepBound(s, &search->results[i]);
	qsort(bounds, search->nresults, sizeof(float), CompareFloats);
	s->beyond = bounds[half];
	s->dropped = true;
	/* of those with the same bound as many as complete the half */
	for (uint32 i = 0; i < half && bounds[i] < s->beyond; i++)
		equal--;
	pfree(bounds);
	for (uint32 i = 0; i < search->nresults; i++)
	{
		float		bound = GraphSweepBound(s, &search->results[i]);

		if (bound < s->beyond || (bound == s->beyond && equal > 0))
		{
			equal -= bound == s->beyond;
			search->results[kept++] = search->results[i];
		}
	}
	search->nresults = kept;
}

void
GraphSweepMakeRoom(GraphSweepState *s)
{
	if (s->search->nresults >= s->params->most)
		keep_nearest(s);
}
