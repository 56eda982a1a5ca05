/*
 * probes.c
 *		How many lists to read for a recall; see probes.h.
 */
#include "postgres.h"

#include <math.h>

#include "ivf/probes.h"

/*
 * Of the share of neighbors that a target may miss, what lists may; of many neighbors, where more
 * lists cost little beside the rows.
 */
#define SLACK 0.3
#define DEEP_SLACK 0.1

/* So many times the lists they were measured with, shares say nothing any more. */
#define DEEP_GROWTH 4

/* The least exponent of rows that shares follow beyond what was measured. */
#define LEAST_SLOPE 1

static const double targets[IVF_TARGETS] = {0.90, 0.95, 0.98, 0.99, 0.995};

const uint32 IvfDepths[IVF_DEPTHS] = {100, 1000};

/* The share of the lists that all but some of so many ranks, in order, are below. */
static float
share_of(double missed, const uint32 *ranks, uint32 n, uint32 lists)
{
	uint32		at = ceil(n * (1 - missed)) - 1;

	return (ranks[Min(at, n - 1)] + 1) / (float) lists;
}

void
IvfSetProbes(IvfMetaData *meta, const uint32 *ranks, uint32 n, uint32 lists)
{
	meta->measured_lists = lists;
	for (int i = 0; i < IVF_TARGETS; i++)
		meta->probes[i] = share_of((1 - targets[i]) * SLACK, ranks, n, lists);
}

void
IvfSetDeepProbes(IvfMetaData *meta, int depth, const uint32 *ranks, uint32 n, uint32 lists)
{
	for (int i = 0; i < IVF_TARGETS; i++)
		meta->deep_probes[depth][i] = share_of((1 - targets[i]) * DEEP_SLACK, ranks, n, lists);
}

/* All of them measured, or none. */
static bool
are_shares(const float *probes)
{
	float		before = 0;

	for (int i = 0; i < IVF_TARGETS; i++)
	{
		if (!(probes[i] >= before && probes[i] <= 1) || (probes[0] == 0 && probes[i] > 0))
			return false;
		before = probes[i];
	}
	return true;
}

bool
IvfProbesAreShares(const IvfMetaData *meta)
{
	for (int i = 0; i < IVF_DEPTHS; i++)
		if (!are_shares(meta->deep_probes[i]) ||
			(meta->deep_probes[i][0] > 0) != (meta->deep_probes[0][0] > 0))
			return false;
	return are_shares(meta->probes);
}

/* Between and beyond the targets, on a logarithmic scale. */
static double
share_for(const float *probes, double recall)
{
	double		below = 0.5,
				share = probes[0] * 0.3;

	for (int i = 0; i < IVF_TARGETS; i++)
	{
		if (recall <= targets[i])
		{
			double		t = Max(0, (recall - below) / (targets[i] - below));

			return share * pow(probes[i] / share, t);
		}
		below = targets[i];
		share = probes[i];
	}
	/* all lists for all rows */
	return share * pow(1 / share, (recall - below) / (1 - below));
}

double
IvfProbesFor(const IvfMetaData *meta, double recall)
{
	/* nobody has measured: a small index, or one that grew from nothing */
	if (meta->probes[0] <= 0)
		return Min(1, 3 / sqrt(meta->lists));
	return share_for(meta->probes, recall);
}

double
IvfRecallFor(const IvfMetaData *meta, double share)
{
	double		low = 0.5,
				high = 1;

	while (high - low > 1e-4)
	{
		double		middle = (low + high) / 2;

		if (IvfProbesFor(meta, middle) <= share)
			low = middle;
		else
			high = middle;
	}
	return low;
}

bool
IvfGetDepthCurve(const IvfMetaData *meta, double recall, IvfDepthCurve *curve)
{
	double		share;

	if (meta->probes[0] <= 0 || meta->deep_probes[0][0] <= 0 ||
		meta->lists > (double) DEEP_GROWTH * meta->deep_lists)
		return false;
	share = share_for(meta->probes, recall);
	curve->rows[0] = IVF_FEW_ROWS;
	curve->shares[0] = share;
	for (int i = 0; i < IVF_DEPTHS; i++)
	{
		/* as more rows are wanted, more lists */
		share = Max(share, share_for(meta->deep_probes[i], recall));
		curve->rows[i + 1] = IvfDepths[i];
		curve->shares[i + 1] = share;
	}
	return true;
}

/* The exponent of rows that shares follow from a point of the curve on. */
static double
slope(const IvfDepthCurve *curve, int from)
{
	return log(curve->shares[from + 1] / curve->shares[from]) /
		log(curve->rows[from + 1] / curve->rows[from]);
}

/* Beyond what was measured, where there may be other clusters. */
static double
last_slope(const IvfDepthCurve *curve)
{
	return Max(LEAST_SLOPE, slope(curve, IVF_DEPTHS - 1));
}

double
IvfDepthShare(const IvfDepthCurve *curve, double rows)
{
	int			from = 0;

	if (rows <= curve->rows[0])
		return curve->shares[0];
	while (from < IVF_DEPTHS && rows > curve->rows[from + 1])
		from++;
	return Min(1, curve->shares[from] *
			   pow(rows / curve->rows[from],
				   from < IVF_DEPTHS ? slope(curve, from) : last_slope(curve)));
}

double
IvfDepthRows(const IvfDepthCurve *curve, double share)
{
	double		low = log(curve->rows[0]),
				high = log(PG_UINT32_MAX);

	while (high - low > 1e-3)
	{
		double		middle = (low + high) / 2;

		if (IvfDepthShare(curve, exp(middle)) <= share)
			low = middle;
		else
			high = middle;
	}
	return Max(curve->rows[0], exp(low));
}
