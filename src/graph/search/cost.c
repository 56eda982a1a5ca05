/*
 * cost.c
 *		What a search of a graph costs.
 */
#include "postgres.h"

#include <math.h>

#include "graph/graph.h"
#include "graph/page/cache.h"
#include "graph/page/entry_points.h"
#include "graph/page/meta.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

/* A search of a plain graph computes exact distances: an estimate costs a tenth. */
#define ESTIMATES_PER_DISTANCE 10

void
GraphEstimateCost(Relation index, int ef, QvSearchCost *cost)
{
	GraphMetaData meta;
	double		nodes,
				entries,
				expanded;

	GraphReadMeta(index, &meta);
	/* rows inserted since the last build or vacuum: by the entry points' law */
	entries = (double) meta.entry_count / GRAPH_ENTRY_FACTOR;
	nodes = Max(1, Max(meta.live_nodes, entries * entries));

	/*
	 * A search expands its ef candidates, one page each, and some on the way
	 * there: with the entry points about a quarter more (measured at
	 * 0.95-0.99 recall, src/graph/README.md), and never more than there are.
	 */
	cost->tuples = Min(nodes, ef);
	expanded = Min(nodes, 1.25 * ef + 2);
	if (meta.form == QV_FORM_CODED)
	{
		cost->pages = expanded + 1;
		cost->evaluations = cost->pages * Max(1, meta.degree) + meta.entry_count;
	}
	else
	{
		/* a third of its neighbors are new, each on a page, or two */
		double		measured = Min(nodes, expanded * meta.degree / 3.0);

		cost->pages = expanded + measured * (meta.value_size > 0 ? 1 : 2) + 1;
		cost->evaluations = (measured + meta.entry_count) * ESTIMATES_PER_DISTANCE;
	}
}

void
GraphGetSweepCost(Relation index, GraphSweepCost *cost)
{
	GraphMetaData meta;
	GraphLayout layout;
	const GraphTidMap *map;

	memset(cost, 0, sizeof(*cost));
	GraphReadMeta(index, &meta);
	if (meta.form != QV_FORM_CODED || !GraphLayoutFromMeta(&layout, &meta))
		return;
	map = GraphFindTidMap(index, &meta, &cost->spent);
	cost->pages = RelationGetNumberOfBlocks(index);
	cost->codes = QvBitCodesSize(layout.pdim, GraphNodeNumber(&layout, cost->pages, 0));
	if (map == NULL)
		return;
	cost->known = 1 - map->rows.absent;
	cost->knows_codes = map->rows.codes.codes != NULL && map->rows.vacuums == meta.vacuums;
}

void
GraphNoteExact(Relation index, const QvOpclassInfo *opclass, double cost)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver graph",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);

	GraphNoteSpent(GraphOpen(index, opclass), cost);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
