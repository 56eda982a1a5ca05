/*
 * query.h
 *		A vector made ready to be searched for by its codes.
 */
#ifndef QV_SPACE_QUERY_H
#define QV_SPACE_QUERY_H

#include <math.h>

#include "space/space.h"

typedef struct QvSpaceQuery
{
	QvSpaceKind kind;
	QvQuery		q;				/* rotated; centered in L2 space */
	float		norm;			/* its length */

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

#endif							/* QV_SPACE_QUERY_H */
