/*
 * cost.c
 *		What a search of posting lists costs.
 */
#include "postgres.h"

#include <math.h>

#include "ivf/ivf.h"
#include "ivf/page/cache.h"
#include "ivf/page/meta.h"
#include "ivf/page/probes.h"
#include "ivf/search/depth.h"
#include "ivf/search/known.h"
#include "utils/memutils.h"

/* Of the rows in the lists read, those whose records are read as well. */
#define RECORDS_READ 0.01
#define LEAST_RECORDS 40

/* A one-bit estimate costs so much less than a distance. */
#define ESTIMATES_PER_DISTANCE 20

void
IvfEstimateCost(Relation index, double tuples, int probes, double recall,
				IvfCost *cost)
{
	IvfMetaData meta;
	IvfLayout	layout;
	double		share,
				rows;

	IvfReadMeta(index, &meta, &layout);
	share = probes > 0 ? Min(1, (double) probes / meta.lists) :
		IvfProbesFor(&meta, recall);

	/*
	 * the metapage does not know of rows inserted since the last build or
	 * vacuum
	 */
	rows = Max(1, tuples > 0 ? tuples : meta.tuples);
	cost->lists = meta.lists;
	cost->probes = Max(1, ceil(share * meta.lists));
	cost->search.tuples = Max(1, rows * cost->probes / meta.lists);
	cost->search.pages = 1 + cost->search.tuples / layout.slots + 0.5 * cost->probes;
	if (layout.items[IVF_RECORDS].per_page > 0)
	{
		double		records = Min(cost->search.tuples, Max(LEAST_RECORDS, RECORDS_READ * cost->search.tuples));

		cost->search.pages += records;
		cost->search.evaluations = records + (meta.lists + cost->search.tuples) / ESTIMATES_PER_DISTANCE;
	}
	else
		cost->search.evaluations = meta.lists + cost->search.tuples;
}

/* What reading a list takes beside its rows, in rows. */
#define ROWS_PER_LIST 32

double
IvfRowsForRank(Relation index, const IvfScanParams *params, double rank)
{
	IvfMetaData meta;
	IvfLayout	layout;
	IvfDepth	depth;
	double		share,
				rows;

	IvfReadMeta(index, &meta, &layout);
	IvfDepthInit(&depth, &meta, params);
	share = params->probes > 0 ? Min(1, params->probes / (double) meta.lists) :
		IvfProbesFor(&meta, params->recall);
	rows = Max(share * meta.tuples, IvfDepthRows(&depth, rank, meta.tuples));
	return rows + ROWS_PER_LIST * meta.lists * rows / Max(1, meta.tuples);
}

void
IvfGetSweepCost(Relation index, double table_rows, IvfSweepCost *cost)
{
	IvfMetaData meta;
	IvfLayout	layout;
	const struct IvfKnownRows *known;

	memset(cost, 0, sizeof(*cost));
	IvfReadMeta(index, &meta, &layout);
	if (!IvfCanKnow(&layout))
		return;
	known = IvfFindKnown(index, &meta, &cost->spent);
	cost->pages = RelationGetNumberOfBlocks(index);
	cost->codes = IvfKnownSize(&layout, 0, Max(table_rows, meta.tuples));
	if (known)
		cost->known = IvfShareKnown(known, &meta);
}

void
IvfNoteExact(Relation index, const QvOpclassInfo *opclass, double rows)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver lists",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);

	IvfNoteSpent(IvfOpen(index, opclass), rows);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
