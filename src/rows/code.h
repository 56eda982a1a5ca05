/*
 * code.h
 *		The one-bit code of a row's entry: how near to a query the row may be.
 *
 * A code y of a row x is off by an error in a direction that is random after the rotation.  So
 * is x from what the index stores of the row.  Bounds count so many standard deviations of both
 * (RaBitQ, arXiv 2405.12497, section 3.2).
 */
#ifndef QV_ROWS_CODE_H
#define QV_ROWS_CODE_H

#include "rows/format.h"
#include "space/query.h"

/*
 * Fill in the code of an entry, not its place.  x[pdim] is rotated and centered, and off from
 * the row by residual.  Raises nothing.
 */
extern void QvRowEncode(const QvSpace *space, const float *x, float residual, QvRowEntry entry);

/* A query for entries. */
typedef struct QvRowQuery
{
	const QvSpaceQuery *base;
	float		scale;			/* the query is about scale times the bytes
								 * q.hi, */
	float		half_sum;		/* of which this is half of the sum */
	float		weight;			/* of an inner product in a distance */
	float		rounding;		/* how far that takes it, times the factor */
} QvRowQuery;

extern void QvRowQueryInit(QvRowQuery *query, const QvSpace *space, const QvSpaceQuery *base);

/* Between which search distances a row lies; infinite where nothing is known. */
typedef struct QvRowBounds
{
	float		least;
	float		most;
} QvRowBounds;

/* sum: of the query's bytes whose bits are set. */
static inline QvRowBounds
QvRowBoundsOf(const QvRowQuery *query, const QvRowEntryData *entry, int32 sum)
{
	float		norm2 = QvHalfToFloat(entry->norm2);
	float		factor = QvHalfToFloat(entry->factor);
	float		ip = factor * query->scale * (sum - query->half_sum);
	float		off = query->weight * (factor * query->rounding +
									   QvHalfToFloat(entry->spread) * query->base->norm);
	float		distance = (query->base->kind == QV_SPACE_L2 ? norm2 + query->base->q.norm2 : 0) -
		query->weight * ip;
	QvRowBounds bounds = {distance - off, distance + off};

	/* norm2 was rounded down */
	if (query->base->kind == QV_SPACE_L2)
		bounds.most += norm2 * 0x1p-7f;
	if (!isfinite(bounds.least) || !isfinite(bounds.most))
		bounds = (QvRowBounds) {-INFINITY, INFINITY};
	return bounds;
}

#endif							/* QV_ROWS_CODE_H */
