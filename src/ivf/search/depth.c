/*
 * depth.c
 *		How many lists a search reads for many rows; see depth.h.
 */
#include "postgres.h"

#include <math.h>

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
}

/* The first depth that was measured for at least "rows" rows; IVF_DEPTHS: none was. */
static int
depth_for(double rows)
{
	int			depth = 0;

	while (depth < IVF_DEPTHS && rows > IvfDepthRows[depth])
		depth++;
	return depth;
}

double
IvfDepthUp(double rows)
{
	int			depth = depth_for(rows);
	double		most = IvfDepthRows[IVF_DEPTHS - 1];

	if (rows <= IVF_MEASURED_ROWS)
		return IVF_FEW_ROWS;
	if (depth < IVF_DEPTHS)
		return IvfDepthRows[depth];
	while (most < rows)
		most *= 2;
	return most;
}

/*
 * The share of the lists that a number of rows needs: as was measured for as many, or for the next
 * depth.  Rows beyond a cluster need far more lists, so nothing is interpolated.  Beyond the last
 * depth the share grows as the rows do.
 */
static double
share_of_rows(const IvfDepth *depth, double rows)
{
	int			at = depth_for(rows);

	return at < IVF_DEPTHS ? depth->shares[at + 1] :
		depth->shares[IVF_DEPTHS] * rows / IvfDepthRows[IVF_DEPTHS - 1];
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
		lists = Max(lists, ceil(share_of_rows(depth, rank) * depth->lists));
	return Min(lists, depth->lists);
}
