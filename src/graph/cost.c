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
	/* rows inserted since the last build or vacuum: by the entry table's law */
	nodes = Max(1, Max(meta.live_nodes, meta.route_count / 2.0 * meta.route_count / 2.0));

	/*
	 * A search expands its ef candidates, one page each, and some on the way
	 * there: with the entry table about a quarter more (measured at 0.95-0.99
	 * recall, src/graph/README.md), and never more than there are.
	 */
	cost->tuples = Min(nodes, ef);
	cost->pages = Min(nodes, 1.25 * ef + 2) + 1;
	cost->evaluations = cost->pages * Max(1, meta.slots) + meta.route_count;
}
