/*
 * curve.c
 *		What a recall of the user's queries takes; see curve.h.
 */
#include "postgres.h"

#include <math.h>

#include "query/curve.h"

const double qv_curve_recalls[QV_CURVE_POINTS] = {0.70, 0.80, 0.90, 0.95, 0.98, 0.99, 0.995, 0.999};

/* Least share of misses of queries: a sample tells no smaller ones apart. */
#define LEAST_MISSES 1e-6

/* The point at "at" between two others, on logarithmic scales of both. */
static double
interpolate(double from, double to, double from_value, double to_value, double at)
{
	double		t = from == to ? 1 : log(at / from) / log(to / from);

	return from_value * pow(to_value / from_value, t);
}

/* Returns the misses of rows for misses of queries. */
static double
rows_for(const QvCurvePoint *points, int n, double misses)
{
	double		before = 1,		/* the least misses of queries up to a point */
				before_rows = 1;

	for (int i = 0; i < n; i++)
	{
		double		here = Max(LEAST_MISSES, Min(before, 1 - points[i].recall));

		if (here <= misses)
			return Max(QV_CURVE_LEAST_MISSES,
					   i == 0 ? points[0].misses :
					   interpolate(before, here, before_rows, points[i].misses, misses));
		/* more effort that finds no more is none that a recall takes */
		if (here < before)
		{
			before = here;
			before_rows = points[i].misses;
		}
	}
	return Max(QV_CURVE_LEAST_MISSES, before_rows);
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

	if (settings->misses > 0)
		return settings->misses;
	if (curve->queries == 0 || misses == 0 || !QvCurveIsSound(curve))
		return misses;
	/* beyond the first and the last point as between these and the next */
	while (i < QV_CURVE_POINTS - 1 && 1 - qv_curve_recalls[i] > misses)
		i++;
	misses = interpolate(1 - qv_curve_recalls[i - 1], 1 - qv_curve_recalls[i],
						 curve->misses[i - 1], curve->misses[i], misses);
	return Min(1, Max(QV_CURVE_LEAST_MISSES, misses));
}

/* How many standard deviations below its mean a normal value is with that probability, up to 6. */
static double
normal_quantile(double probability)
{
	double		low = 0,
				high = 6;

	while (high - low > 0.01)
	{
		double		middle = (low + high) / 2;

		if (erfc(middle / M_SQRT2) / 2 > probability)
			low = middle;
		else
			high = middle;
	}
	return high;
}

double
QvCurveCaution(double misses)
{
	const double usual = 1 - QV_DEFAULT_RECALL;

	return misses >= usual ? 1 : Max(1, normal_quantile(misses) / normal_quantile(usual));
}
