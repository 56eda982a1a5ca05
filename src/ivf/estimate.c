/*
 * estimate.c
 *		What an index of posting lists will be, before it is built.
 */
#include "postgres.h"

#include <math.h>

#include "ivf/centroids.h"
#include "ivf/cluster.h"
#include "ivf/ivf.h"
#include "ivf/layout.h"
#include "ivf/meta.h"

/*
 * Pages of rows in lists, so many on a page.  A list's last page is half full on average;
 * lists that are shorter than a page are of one page each.
 */
static double
list_pages(double rows, double lists, double per_page)
{
	double		length = rows / lists;

	if (rows == 0)
		return 0;
	/* lengths vary by about as much as they are long on average */
	return lists / (1 - exp(-per_page / length));
}

void
IvfEstimateBuild(const QvOpclassInfo *opclass, int dims, const IvfOptions *options,
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
	estimate->sampled = IvfSampleTarget(lists, rows);
	estimate->memory = IvfClusterMemory(estimate->sampled, layout.width, Min(lists, estimate->sampled));
}
