/*
 * cost.c
 *		What a search of a graph costs.
 */
#include "postgres.h"

#include <math.h>

#include "graph/graph.h"
#include "graph/page/entry_points.h"
#include "graph/page/meta.h"
#include "graph/page/pool.h"
#include "graph/search/effort.h"
#include "rows/rows.h"

void
GraphEstimateWork(Relation index, const QvSettings *settings, double tuples, double rank, QvWork *work)
{
	QvScanGoal	goal = {.settings = settings, .expected = rank, .endless = true};
	GraphMetaData meta;
	GraphEffort effort;
	double		nodes,
				entries;

	GraphReadMeta(index, &meta);
	/* rows inserted since the last build or vacuum: by the entry points' law */
	entries = (double) meta.entry_count / GRAPH_ENTRY_FACTOR;
	nodes = Max(1, Max(meta.live_nodes, entries * entries));
	GraphEffortInit(&effort, &meta, &goal);
	work->pages = Min(nodes, GraphPoolFor(&meta, GraphEffortFor(&effort, rank))) + 1;
	work->measures = work->pages;
	work->codes = 0;
	work->neighbors = meta.entry_count;
	if (meta.form == QV_FORM_CODED)
		work->neighbors += work->pages * Max(1, meta.degree);
	else
	{
		/* a third of its neighbors are new, each on a page, or two */
		work->measures = Min(nodes, work->pages * meta.degree / 3.0) + meta.entry_count;
		work->pages += work->measures * (meta.value_size > 0 ? 1 : 2);
	}
}

double
GraphRowPages(Relation index)
{
	GraphMetaData meta;

	GraphReadMeta(index, &meta);
	/* a damaged metapage may say anything */
	return !QvRowsAreWhole(&meta.rows) || !QvRowsMetaIsSound(&meta.rows, index, meta.pdim) ? 0 :
		QvRowsEstimatePages(meta.tuples, meta.tuples, meta.rows.entry_size);
}
