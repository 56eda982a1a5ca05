/*
 * estimate.c
 *		What an index of posting lists will be, before it is built.
 */
#include "postgres.h"

#include <math.h>

#include "ivf/build/centroids.h"
#include "ivf/build/cluster.h"
#include "ivf/codec/layout.h"
#include "ivf/ivf.h"
#include "ivf/page/meta.h"
#include "rows/rows.h"

/* Model: list sizes have a gamma distribution of this shape. */
#define SHAPE 3

/*
 * Returns the pages that rows need in lists, with per_page rows on a page.  A list needs as
 * many pages as it begins.  On average that is the sum, over all j, of the probability that a
 * list is longer than j pages.
 */
static double
list_pages(double rows, double lists, double per_page)
{
	double		length = rows / lists;
	double		sum = 0;

	if (rows == 0)
		return 0;
	/* the last pages of long lists are half full on average */
	if (length > 20 * per_page)
		return ceil(rows / per_page + 0.5 * lists);
	for (int j = 0;; j++)
	{
		double		y = SHAPE * j * per_page / length;
		double		longer = exp(-y) * (1 + y + y * y / 2);

		if (longer < 1e-6)
			break;
		sum += longer;
	}
	return ceil(lists * sum);
}

void
IvfEstimateBuild(const QvOpclassInfo *opclass, int dims, const QvIndexOptions *options,
				 double rows, IvfEstimate *estimate)
{
	IvfMetaData meta;
	IvfLayout	layout;
	double		lists;

	IvfMetaInit(&meta, &layout, dims, options, opclass);
	lists = Max(1, Min(rows, options->lists > 0 ? options->lists : IvfChooseLists(&layout, rows)));
	estimate->coded = meta.form == QV_FORM_CODED;
	estimate->lists = lists;
	estimate->blocks = 1 + ceil((double) layout.pdim / QV_FLOATS_PER_PAGE) +
		ceil(lists / layout.entries_per_page) + list_pages(rows, lists, layout.slots);
	for (int which = 0; which < IVF_ITEM_KINDS; which++)
		if (layout.items[which].per_page > 0)
			estimate->blocks += list_pages(rows, lists, layout.items[which].per_page);
	if (estimate->coded)
		estimate->blocks += QvRowsEstimatePages(rows, estimate->table_rows,
												QvRowEntrySize(layout.pdim) + estimate->included);
	estimate->sampled = IvfSampleTarget(lists, rows);
	estimate->memory = IvfClusterMemory(estimate->sampled, layout.width, Min(lists, estimate->sampled));
}
