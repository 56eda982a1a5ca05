/*
 * query.h
 *		A query vector, prepared for estimates from codes.
 */
#ifndef QV_SPACE_QUERY_H
#define QV_SPACE_QUERY_H

#include <float.h>
#include <math.h>

#include "space/space.h"

typedef struct QvSpaceQuery
{
	QvSpaceKind kind;
	QvQuery		q;				/* rotated; centered, unless the space is that
								 * of inner products */
	float		norm;			/* its length */
	float		length;			/* L2 space: largest length before the query
								 * was centered */
	float		summed;			/* length whose square distances are computed
								 * from */

	const float *row;			/* the vector as a row: rotated and centered,
								 * but not stretched; pdim */
	float		row_norm2;		/* its QvSpaceNorm2() */
	bool		shortened;		/* no bound of an inner product holds */

	/*
	 * metric distance = QvSpaceMetricScale() * scale * (search distance +
	 * offset)
	 */
	double		scale;
	double		offset;
} QvSpaceQuery;

/*
 * Prepares rotated[pdim], which QvSpaceRotateValue() made, with a look-up table over nbits
 * coordinates (0: none).  Inner products do not depend on a query's length, but power distances
 * do: there it is stretched to the length of rows.  Allocates in CurrentMemoryContext.
 */
extern void QvSpaceQueryInit(QvSpaceQuery *query, const QvSpace *space,
							 const float *rotated, uint32 nbits);

/*
 * Returns the search distance of a row, by QvSpaceNorm2() and its inner product with the
 * query.
 */
static inline float
QvSpaceQueryDistance(const QvSpaceQuery *query, float ip, float norm2)
{
	return query->kind != QV_SPACE_IP ? norm2 + query->q.norm2 - 2 * ip : -ip;
}

/*
 * Returns by how much float32 may have rounded a search distance of L2 space.  Rotating
 * rounds a share of the length that vectors have before they are centered.  Subtracting
 * rounds a share of the squares that distances are computed from.  Returns 0 for inner
 * products, of which nothing is known.
 */
static inline double
QvSpaceQueryRounding(const QvSpaceQuery *query, double distance)
{
	double		reach = sqrt(Max(0, distance));
	double		moved = 8 * FLT_EPSILON * (2 * query->length + reach);
	double		other = query->summed + reach;
	double		squares = (double) query->summed * query->summed + other * other;

	return query->kind != QV_SPACE_L2 ? 0 : (2 * reach + moved) * moved + 4 * FLT_EPSILON * squares;
}

/*
 * Returns by how much a search distance may be off, if the code's part of the error is
 * "error": what float32 has rounded is added.
 *
 * Returns infinity if the error is not known.  That is the case:
 *
 * - of inner products, because the length of the other vector is not known;
 * - of vectors that may have been shortened;
 * - if the error of the code is not positive.
 */
static inline float
QvSpaceQueryError(const QvSpaceQuery *query, float distance, double error)
{
	if (query->kind != QV_SPACE_L2 || !(error > 0) ||
		query->length + sqrt(Max(0, distance)) > QV_MAX_LENGTH / 4)
		return INFINITY;
	return error + QvSpaceQueryRounding(query, distance);
}

#endif							/* QV_SPACE_QUERY_H */
