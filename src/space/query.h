/*
 * query.h
 *		A vector made ready to be searched for by its codes.
 */
#ifndef QV_SPACE_QUERY_H
#define QV_SPACE_QUERY_H

#include <float.h>
#include <math.h>

#include "space/space.h"

typedef struct QvSpaceQuery
{
	QvSpaceKind kind;
	QvQuery		q;				/* rotated; centered in L2 space */
	float		norm;			/* its length */
	float		length;			/* in L2 space, before it was centered, at
								 * most; */
	float		summed;			/* and that of which distances, in codes or of
								 * values, are differences of squares */

	/* metric distance = QvSpaceMetricScale() * (search distance + offset) */
	double		offset;
} QvSpaceQuery;

/*
 * Prepare rotated[pdim], as QvSpaceRotate() made it, with a look-up table over nbits
 * coordinates (0: none).  Memory from CurrentMemoryContext.
 */
extern void QvSpaceQueryInit(QvSpaceQuery *query, const QvSpace *space,
							 const float *rotated, uint32 nbits);

/* Search distance of a vector of that squared length whose inner product with the query is ip. */
static inline float
QvSpaceQueryDistance(const QvSpaceQuery *query, float ip, float norm2)
{
	return query->kind == QV_SPACE_L2 ? norm2 + query->q.norm2 - 2 * ip : -ip;
}

/*
 * How far a search distance may be off, of which its code's part is error: what float32 has rounded,
 * too.  That is a share of how long vectors are before they are centered (rotating them), and of the
 * squares that distances are differences of.  Not finite: not known, as of inner products, where
 * nothing tells how long the other vector is; of vectors that may have been shortened; or without an error of a code.
 */
static inline float
QvSpaceQueryError(const QvSpaceQuery *query, float distance, double error)
{
	double		reach = sqrt(Max(0, distance));
	double		moved = 8 * FLT_EPSILON * (2 * query->length + reach);
	double		other = query->summed + reach;
	double		squares = (double) query->summed * query->summed + other * other;

	if (query->kind != QV_SPACE_L2 || !(error > 0) || query->length + reach > QV_MAX_LENGTH / 4)
		return INFINITY;
	return error + (2 * reach + moved) * moved + 4 * FLT_EPSILON * squares;
}

#endif							/* QV_SPACE_QUERY_H */
