/*
 * cost.c
 *		What a search of posting lists costs.
 */
#include "postgres.h"

#include <math.h>

#include "ivf/ivf.h"
#include "ivf/page/meta.h"
#include "ivf/search/depth.h"
#include "query/cost.h"
#include "rows/rows.h"

/* What one search reads. */
static void
estimate(Relation index, const QvSettings *settings, double tuples, double rank, QvWork *work,
		 IvfProbed *probed)
{
	IvfMetaData meta;
	IvfLayout	layout;
	IvfDepth	depth;
	double		rows;

	IvfReadMeta(index, &meta, &layout);

	/*
	 * the metapage does not know of rows inserted since the last build or
	 * vacuum
	 */
	rows = Max(1, tuples > 0 ? tuples : meta.tuples);
	IvfDepthInit(&depth, &meta, meta.lists, settings);
	probed->lists = meta.lists;
	probed->probes = IvfDepthLists(&depth, rank, rows / meta.lists);
	rows = Max(1, rows * probed->probes / meta.lists);
	work->codes = rows;
	work->neighbors = 0;
	work->pages = 1 + rows / layout.slots + 0.5 * probed->probes;
	work->measures = rows;
	if (layout.items[IVF_RECORDS].per_page > 0)
	{
		work->measures = QvMeasuredRows(rows, rank, QvCurveSigmas(1 - settings->recall));
		work->pages += work->measures;
	}
	/* and the centroids */
	work->measures += meta.lists;
}

void
IvfEstimateWork(Relation index, const QvSettings *settings, double tuples, double rank, QvWork *work)
{
	IvfProbed	probed;

	estimate(index, settings, tuples, IvfDepthUp(rank), work, &probed);
}

void
IvfGetProbed(Relation index, const QvSettings *settings, IvfProbed *probed)
{
	QvWork		work;

	estimate(index, settings, 0, 1, &work, probed);
}

double
IvfRowPages(Relation index)
{
	IvfMetaData meta;
	IvfLayout	layout;
	double		tuples;

	IvfReadMeta(index, &meta, &layout);
	/* the metapage counts rows of a build, and since VACUUM has removed some */
	tuples = Max(meta.tuples, index->rd_rel->reltuples);
	return !QvRowsAreWhole(&meta.rows) ? 0 : QvRowsEstimatePages(tuples, tuples, meta.rows.entry_size);
}
