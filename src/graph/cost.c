/*
 * cost.c
 *		What a search of a graph costs.
 */
#include "postgres.h"

#include <math.h>

#include "graph/cache.h"
#include "graph/graph.h"

void
GraphEstimateCost(Relation index, int ef, GraphCost *cost)
{
	GraphMetaData meta;
	double		nodes;

	GraphReadMeta(index, &meta);
	nodes = Max(1, meta.live_nodes);

	/*
	 * A search expands its ef candidates, one page each, and some on the way
	 * there: with the entry table about a quarter more (measured at 0.95-0.99
	 * recall, src/graph/README.md), and never more than there are.
	 */
	cost->tuples = Min(nodes, ef);
	cost->pages = Min(nodes, 1.25 * ef + 2) + 1;
	cost->evaluations = cost->pages * Max(1, meta.slots) + meta.route_count;
}
