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

/* The vector of a row, as an engine has it. */
typedef struct QvRowVector
{
	const float *x;				/* pdim, rotated and centered */
	float		residual;		/* how far it is from the row, at most */
	float		norm2;			/* power distance: QvSpaceNorm2() of the row */
} QvRowVector;

/* Fill in the code of an entry, not its place.  Raises nothing. */
extern void QvRowEncode(const QvSpace *space, const QvRowVector *row, QvRowEntry entry);

/* A query for entries. */
typedef struct QvRowQuery
{
	const QvSpaceQuery *base;
	float		scale;			/* the query is about scale times the bytes
								 * q.hi, */
	float		half_sum;		/* of which this is half of the sum */
	float		weight;			/* of an inner product in a distance */
	float		rounding;		/* how far that takes it, times the factor */
	float		spread;			/* how far an entry's spread takes it */
	float		base_distance;	/* what a distance has of the query alone */
} QvRowQuery;

/* sigmas: the standard deviations by which bounds are below the distances that codes tell. */
extern void QvRowQueryInit(QvRowQuery *query, const QvSpace *space, const QvSpaceQuery *base, double sigmas);

/* Entries whose bounds are computed together, at most. */
#define QV_ROW_BATCH 64

/*
 * The search distances that rows are hardly below; -INFINITY where nothing is known.
 */
extern void QvRowLeast(const QvRowQuery *query, const QvRowEntryData *const *entries, uint32 n, float *least);

#endif							/* QV_ROWS_CODE_H */
