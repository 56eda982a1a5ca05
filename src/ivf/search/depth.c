/*
 * depth.c
 *		How many lists a search reads for many rows; see depth.h.
 */
#include "postgres.h"

#include <math.h>

#include "ivf/page/probes.h"
#include "ivf/search/depth.h"

/*
 * The lists read are as many as the rows proposed take, as was measured.  They have at least 8
 * rows for each of the first 64 proposed, and 2 for each.  Where that was not measured, they have
 * 8 rows for each of the first 64, and for more of them 32 rows for each, or 1250 times the root.
 * Scanning codes costs a hundredth of what fetching a row does.
 */
#define ROWS_PER_ROW 8
#define ROWS_PER_ROW_OF_MEASURED 2
#define ROWS_PER_ROOT 1250
#define ROWS_PER_ROW_OF_MANY 32
#define MANY_ROWS 64

/* The least recall of a search that goes deeper than the probes that the user gave. */
#define DEEP_RECALL 0.95

/*
 * The factor by which a search is deeper than the rows proposed need: rows that it finds when it
 * goes deeper come too late where they are nearer.
 */
#define MARGIN 1.5

/* The least exponent of rows that shares follow beyond what was measured. */
#define LEAST_SLOPE 1

/*
 * The recall that says how deep a search goes for more rows: that wanted, or that of the lists
 * which the user wants to be read.
 */
static double
recall_of(const IvfMetaData *meta, const QvSettings *settings, double lists)
{
	if (settings->probes == 0)
		return 1 - QvCurveMisses(&meta->curve, settings);
	return Max(DEEP_RECALL, IvfRecallFor(meta, Min(1, settings->probes / lists)));
}

void
IvfDepthInit(IvfDepth *depth, const IvfMetaData *meta, double lists, const QvSettings *settings)
{
	depth->lists = lists;
	depth->fixed = settings->fixed;
	depth->probes = settings->probes > 0 ? settings->probes :
		ceil(lists * IvfProbesFor(meta, recall_of(meta, settings, lists)));
	depth->probes = Max(1, Min(lists, depth->probes));
	depth->measured = !depth->fixed &&
		IvfGetDepthShares(meta, recall_of(meta, settings, lists), depth->shares);
	depth->rows[0] = IVF_FEW_ROWS;
	for (int i = 0; i < IVF_DEPTHS; i++)
		depth->rows[i + 1] = IvfDepths[i];
}

/* The exponent of rows that shares follow from a point of the curve on. */
static double
slope(const IvfDepth *depth, int from)
{
	return log(depth->shares[from + 1] / depth->shares[from]) /
		log(depth->rows[from + 1] / depth->rows[from]);
}

/* Beyond what was measured, where there may be other clusters. */
static double
last_slope(const IvfDepth *depth)
{
	return Max(LEAST_SLOPE, slope(depth, IVF_DEPTHS - 1));
}

/* The share of the lists that a number of rows needs: on a logarithmic scale of both. */
static double
share_of_rows(const IvfDepth *depth, double rows)
{
	int			from = 0;

	if (rows <= depth->rows[0])
		return depth->shares[0];
	while (from < IVF_DEPTHS && rows > depth->rows[from + 1])
		from++;
	return Min(1, depth->shares[from] *
			   pow(rows / depth->rows[from],
				   from < IVF_DEPTHS ? slope(depth, from) : last_slope(depth)));
}

/* Rows that lists should have to propose "window" rows. */
static double
rows_wanted(const IvfDepth *depth, double window)
{
	if (window <= MANY_ROWS)
		return window * ROWS_PER_ROW;
	if (depth->measured)
		return Max(MANY_ROWS * ROWS_PER_ROW, window * ROWS_PER_ROW_OF_MEASURED);
	return Max(window * ROWS_PER_ROW_OF_MANY, ROWS_PER_ROOT * sqrt(window));
}

double
IvfDepthLists(const IvfDepth *depth, double rank, double rows_per_list)
{
	double		lists = depth->probes;

	if (depth->fixed)
		return lists;
	lists = Max(lists, ceil(rows_wanted(depth, rank) / Max(1, rows_per_list)));
	if (depth->measured && rank > IVF_FEW_ROWS)
		lists = Max(lists, ceil(share_of_rows(depth, rank * MARGIN) * depth->lists));
	return Min(lists, depth->lists);
}
