/*
 * curve.h
 *		What a recall of the user's queries takes, in terms of a recall of rows.
 *
 * An index measures on its own rows what effort a recall takes.  quiver_calibrate() measures on
 * queries which of these efforts gives which recall, and keeps that in the metapage.
 */
#ifndef QV_QUERY_CURVE_H
#define QV_QUERY_CURVE_H

#include "query/options.h"

#define QV_CURVE_POINTS 8

/*
 * The least share of missed rows that a curve has.  Where rows are near each other and queries are
 * not, what queries take says far less than one missed row of rows.
 */
#define QV_CURVE_LEAST_MISSES 1e-15

/* In a metapage.  All zeros: nothing was measured. */
typedef struct QvCurve
{
	float		misses[QV_CURVE_POINTS];	/* share of missed rows that is
											 * wanted of rows, for each of
											 * qv_curve_recalls of queries */
	uint32		queries;		/* queries that it was measured on */
} QvCurve;

extern const double qv_curve_recalls[QV_CURVE_POINTS];

/* What was measured with an effort. */
typedef struct QvCurvePoint
{
	double		misses;			/* of rows, that the effort is for */
	double		recall;			/* of queries */
} QvCurvePoint;

/*
 * Fills in a curve from points[n], in the order of their effort, the least first.  A recall
 * that no point has gets the least effort that found most.
 */
extern void QvCurveSet(QvCurve *curve, const QvCurvePoint *points, int n, int queries);

/* Are these shares that do not grow, or all zeros? */
extern bool QvCurveIsSound(const QvCurve *curve);

/*
 * Returns the share of missed rows that a search is to be made for, as measured on rows: from
 * the curve, if there is one.  0: none is to be missed.
 */
extern double QvCurveMisses(const QvCurve *curve, const QvSettings *settings);

/*
 * The quantile of the normal distribution: how many standard deviations above the mean that share
 * ends.  Of 0 and 1 it is 6 standard deviations, below and above.
 */
extern double QvCurveQuantile(double share);

/*
 * How many standard deviations of its error the bound of a code is to count, so that it is too high
 * for at most that share of rows: the quantile of the normal distribution.  A larger share than the
 * default recall misses counts as that one.  0: 6 standard deviations.
 */
extern double QvCurveSigmas(double misses);

#endif							/* QV_QUERY_CURVE_H */
