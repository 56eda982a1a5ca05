/*
 * depth.c
 *		How many lists a search reads for many rows; see depth.h.
 */
#include "postgres.h"

#include <math.h>

#include "ivf/page/probes.h"
#include "ivf/search/depth.h"

/*
 * With "widen", the lists read are as many as the nearest rows so many as the window's take, as
 * was measured, and have at least 8 rows for each of its first 64, and 2 for each.  Where nobody
 * has measured, or the user says how many lists are read, they have 8 rows for each of its rows,
 * and from 64 rows on, as under a filter, 1250 sqrt(K) or 32 for each, so that what is nearer than
 * a row of the window is hardly in another list (src/ivf/README.md, "Depth").  Scanning codes
 * costs a hundredth of what fetching a row does.
 */
#define ROWS_PER_ROW 8
#define ROWS_PER_ROW_OF_MEASURED 2
#define ROWS_PER_ROOT 1250
#define ROWS_PER_ROW_OF_MANY 32
#define MANY_ROWS 64

/* The least recall of a search that goes deeper than the probes that the user gave. */
#define DEEP_RECALL 0.95

/* The least exponent of rows that shares follow beyond what was measured. */
#define LEAST_SLOPE 1

/*
 * The recall that says how deep a search goes for many rows: that wanted, or that of the lists
 * which the user wants to be read; 0: the number of lists does not follow what was measured.
 */
static double
recall_of(const IvfMetaData *meta, const IvfScanParams *params)
{
	if (!params->widen)
		return 0;
	if (params->probes == 0)
		return params->recall;
	return params->deep ?
		Max(DEEP_RECALL, IvfRecallFor(meta, Min(1, params->probes / (double) meta->lists))) : 0;
}

void
IvfDepthInit(IvfDepth *depth, const IvfMetaData *meta, const IvfScanParams *params)
{
	double		recall = recall_of(meta, params);

	depth->measured = recall > 0 && IvfGetDepthShares(meta, recall, depth->shares);
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

/* The share of the lists that so many rows take: on a logarithmic scale of both. */
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

/* Of how many rows a share of the lists is deep enough; at least IVF_FEW_ROWS. */
static double
rows_of_share(const IvfDepth *depth, double share)
{
	double		low = log(depth->rows[0]),
				high = log(PG_UINT32_MAX);

	while (high - low > 1e-3)
	{
		double		middle = (low + high) / 2;

		if (share_of_rows(depth, exp(middle)) <= share)
			low = middle;
		else
			high = middle;
	}
	return Max(depth->rows[0], exp(low));
}

/* Rows that lists should have for a window of so many. */
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
IvfDepthTimes(const IvfDepth *depth, double window, uint64 rows, uint32 probes, uint32 lists)
{
	double		times = rows_wanted(depth, window) / Max(1, rows);

	if (depth->measured)
		times = Max(times, share_of_rows(depth, window) * lists / probes);
	return times;
}

double
IvfDepthRows(const IvfDepth *depth, double window, double rows)
{
	double		wanted = rows_wanted(depth, window);

	if (depth->measured)
		wanted = Max(wanted, share_of_rows(depth, window) * rows);
	return Min(wanted, rows);
}

double
IvfDepthWindow(const IvfDepth *depth, uint64 nrows, uint32 probes, uint32 lists)
{
	double		rows = nrows;

	if (depth->measured)
		return Min(rows / (rows <= MANY_ROWS * ROWS_PER_ROW ? ROWS_PER_ROW : ROWS_PER_ROW_OF_MEASURED),
				   rows_of_share(depth, probes / (double) lists));
	if (rows <= MANY_ROWS * ROWS_PER_ROW)
		return rows / ROWS_PER_ROW;
	if (rows < ROWS_PER_ROOT * sqrt(MANY_ROWS))
		return MANY_ROWS;
	return Min(rows / ROWS_PER_ROW_OF_MANY, pow(rows / ROWS_PER_ROOT, 2));
}
