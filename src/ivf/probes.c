/*
 * probes.c
 *		How many lists to read for a recall; see probes.h.
 */
#include "postgres.h"

#include <math.h>

#include "ivf/probes.h"

/* Of the share of neighbors that a target may miss, what lists may. */
#define SLACK 0.6

static const double targets[IVF_TARGETS] = {0.90, 0.95, 0.98, 0.99, 0.995};

void
IvfSetProbes(IvfMetaData *meta, const uint32 *ranks, uint32 n, uint32 lists)
{
	meta->measured_lists = lists;
	for (int i = 0; i < IVF_TARGETS; i++)
	{
		uint32		at = ceil(n * (1 - (1 - targets[i]) * SLACK)) - 1;

		meta->probes[i] = (ranks[Min(at, n - 1)] + 1) / (float) lists;
	}
}

double
IvfProbesFor(const IvfMetaData *meta, double recall)
{
	double		below = 0.5,
				share = meta->probes[0] * 0.3;

	/* nobody has measured: a small index, or one that grew from nothing */
	if (meta->probes[0] <= 0)
		return Min(1, 3 / sqrt(meta->lists));
	for (int i = 0; i < IVF_TARGETS; i++)
	{
		if (recall <= targets[i])
		{
			double		t = Max(0, (recall - below) / (targets[i] - below));

			return share * pow(meta->probes[i] / share, t);
		}
		below = targets[i];
		share = meta->probes[i];
	}
	/* all lists for all rows */
	return share * pow(1 / share, (recall - below) / (1 - below));
}
