/*
 * probes.c
 *		Which share of the lists to read for a recall; see probes.h.
 */
#include "postgres.h"

#include <math.h>

#include "ivf/page/probes.h"

/* Policy: the part of the misses of a recall that lists may cause [M46]. */
#define SLACK 0.3

/* Policy: shares hold up to this number of times the lists that they were measured with. */
#define DEEP_GROWTH 4

const uint32 IvfDepthRows[IVF_DEPTHS] = {25, 63, 125, 250, 625, 1250};

static const double targets[IVF_TARGETS] = {0.90, 0.95, 0.98, 0.99, 0.995};

/* The recalls of low_probes and top_probes. */
#define LOW_TARGET 0.5
#define TOP_TARGET 0.999

/* Policy: the share for LOW_TARGET, by that for the first target, if it was not measured. */
#define USUAL_LOW 0.3

/* Returns the share of the lists that has all of n ranks but for the share missed. */
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
	meta->top_probes[0] = share_of((1 - TOP_TARGET) * SLACK, ranks, n, lists);
	meta->low_probes[0] = share_of((1 - LOW_TARGET) * SLACK, ranks, n, lists);
}

void
IvfSetDeepProbes(IvfMetaData *meta, int depth, const uint32 *ranks, uint32 n, uint32 lists)
{
	for (int i = 0; i < IVF_TARGETS; i++)
		meta->deep_probes[depth][i] = share_of((1 - targets[i]) * SLACK, ranks, n, lists);
	meta->top_probes[1 + depth] = share_of((1 - TOP_TARGET) * SLACK, ranks, n, lists);
	meta->low_probes[1 + depth] = share_of((1 - LOW_TARGET) * SLACK, ranks, n, lists);
}

/*
 * Returns whether these are shares that do not fall, all of them measured or none.  An older
 * version did not measure the low and the top.
 */
static bool
are_shares(const float *probes, float low, float top)
{
	float		before = 0;

	if (!(low >= 0 && low <= 1))
		return false;
	for (int i = 0; i < IVF_TARGETS; i++)
	{
		if (!(probes[i] >= before && probes[i] <= 1) || (probes[0] == 0 && probes[i] > 0))
			return false;
		before = probes[i];
	}
	return top == 0 || (top >= before && top <= 1 && before > 0);
}

bool
IvfProbesAreShares(const IvfMetaData *meta)
{
	for (int i = 0; i < IVF_DEPTHS; i++)
		if (!are_shares(meta->deep_probes[i], meta->low_probes[1 + i], meta->top_probes[1 + i]) ||
			(meta->deep_probes[i][0] > 0) != (meta->deep_probes[0][0] > 0))
			return false;
	return are_shares(meta->probes, meta->low_probes[0], meta->top_probes[0]);
}

/* Interpolates between and beyond the targets, on a logarithmic scale of shares. */
static double
share_for(const float *probes, float low, float top, double recall)
{
	double		below = LOW_TARGET,
				share = low > 0 && low <= probes[0] ? low : probes[0] * USUAL_LOW;

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
	if (top > 0 && recall <= TOP_TARGET)
		return share * pow(top / share, (recall - below) / (TOP_TARGET - below));
	if (top > 0)
	{
		below = TOP_TARGET;
		share = top;
	}
	/* all lists for all rows */
	return share * pow(1 / share, (recall - below) / (1 - below));
}

double
IvfProbesFor(const IvfMetaData *meta, double recall)
{
	if (recall >= 1)
		return 1;
	/* not measured: a small index, or one that grew from nothing */
	if (meta->probes[0] <= 0)
		return Min(1, 3 / sqrt(meta->lists));
	return share_for(meta->probes, meta->low_probes[0], meta->top_probes[0], recall);
}

double
IvfRecallFor(const IvfMetaData *meta, double share)
{
	double		low = LOW_TARGET,
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
IvfGetDepthShares(const IvfMetaData *meta, double recall, double *shares)
{
	if (meta->probes[0] <= 0 || meta->deep_probes[0][0] <= 0 ||
		meta->lists > (double) DEEP_GROWTH * meta->deep_lists)
		return false;
	shares[0] = IvfProbesFor(meta, recall);
	/* more rows never need fewer lists */
	for (int i = 0; i < IVF_DEPTHS; i++)
		shares[i + 1] = Max(shares[i], share_for(meta->deep_probes[i], meta->low_probes[1 + i],
												 meta->top_probes[1 + i], recall));
	return true;
}
