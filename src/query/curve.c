/*
 * curve.c
 *		What a recall of the user's queries takes; see curve.h.
 */
#include "postgres.h"

#include <math.h>

#include "query/curve.h"

const double qv_curve_recalls[QV_CURVE_POINTS] = {0.70, 0.80, 0.90, 0.95, 0.98, 0.99, 0.995, 0.999};

/* A float4 of this part of a share is never more than the share. */
#define ROUND_DOWN 0.999999

/* No error is expected to be as many standard deviations. */
#define MOST_SIGMAS 6

/*
 * Returns the misses of rows for misses of queries: those of the first point that has no more, else
 * of the first that has the fewest.  Nothing is interpolated: between two points there may be one
 * list or candidate, which finds as much as the point before.
 */
static double
rows_for(const QvCurvePoint *points, int n, double misses)
{
	int			best = 0;

	for (int i = 1; i < n && 1 - points[best].recall > misses; i++)
		if (points[i].recall > points[best].recall)
			best = i;
	return Max(QV_CURVE_LEAST_MISSES, points[best].misses * ROUND_DOWN);
}

void
QvCurveSet(QvCurve *curve, const QvCurvePoint *points, int n, int queries)
{
	curve->queries = queries;
	for (int i = 0; i < QV_CURVE_POINTS; i++)
		curve->misses[i] = rows_for(points, n, 1 - qv_curve_recalls[i]);
}

bool
QvCurveIsSound(const QvCurve *curve)
{
	for (int i = 0; i < QV_CURVE_POINTS; i++)
		if (curve->queries == 0 ? curve->misses[i] != 0 :
			!(curve->misses[i] > 0 && curve->misses[i] <= (i == 0 ? 1 : curve->misses[i - 1])))
			return false;
	return true;
}

double
QvCurveMisses(const QvCurve *curve, const QvSettings *settings)
{
	double		misses = Max(0, 1 - settings->recall);
	int			i = 1;
	double		from,
				to,
				from_value,
				to_value;

	if (settings->misses > 0)
		return settings->misses;
	if (curve->queries == 0 || misses == 0 || !QvCurveIsSound(curve))
		return misses;
	/* beyond the first and the last point as between these and the next */
	while (i < QV_CURVE_POINTS - 1 && 1 - qv_curve_recalls[i] > misses)
		i++;
	from = 1 - qv_curve_recalls[i - 1];
	to = 1 - qv_curve_recalls[i];
	from_value = curve->misses[i - 1];
	to_value = curve->misses[i];
	/* on logarithmic scales of both */
	misses = from_value * pow(to_value / from_value, log(misses / from) / log(to / from));
	return Min(1, Max(QV_CURVE_LEAST_MISSES, misses));
}

double
QvCurveQuantile(double share)
{
	double		low = -MOST_SIGMAS,
				high = MOST_SIGMAS;

	while (high - low > 0.01)
	{
		double		middle = (low + high) / 2;

		if (erfc(-middle / M_SQRT2) / 2 < share)
			low = middle;
		else
			high = middle;
	}
	return low;
}

double
QvCurveSigmas(double misses)
{
	return -QvCurveQuantile(Min(misses, 1 - QV_DEFAULT_RECALL));
}
