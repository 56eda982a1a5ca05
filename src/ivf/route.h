/*
 * route.h
 *		A vector made ready for an index of posting lists, and the lists that
 *		are nearest to it.
 */
#ifndef QV_IVF_ROUTE_H
#define QV_IVF_ROUTE_H

#include "ivf/cache.h"
#include "space/query.h"

typedef struct IvfQuery
{
	QvSpaceQuery base;			/* coded */
	const void *value;			/* plain: the value itself */
} IvfQuery;

/* A list and how far it is. */
typedef struct IvfNear
{
	float		distance;		/* of its centroid, in the metric of the space */
	uint32		list;
} IvfNear;

/*
 * Prepare a rotated vector.  lut: for scanning lists, not only for choosing
 * one.  Memory from CurrentMemoryContext.
 */
extern void IvfQueryInit(const IvfHandle *handle, IvfQuery *query,
						 const float *rotated, bool lut);

/* The squared distance, or negative inner product, of a list's centroid. */
extern float IvfCentroidDistance(const IvfHandle *handle, const IvfQuery *query,
								 uint32 list);

/*
 * The n nearest lists in order, at most all.  Returns how many; out has room
 * for as many as there are lists.
 */
extern uint32 IvfNearest(const IvfHandle *handle, const IvfQuery *query,
						 uint32 n, IvfNear *out);

/* The list that a row belongs to. */
extern uint32 IvfNearestList(const IvfHandle *handle, const IvfQuery *query);

/*
 * Have what IvfNearest() wants: Update for a list whose centroid was read
 * (again), Finish when all have been.
 */
extern void IvfRouteUpdate(const IvfHandle *handle, IvfLists *lists, uint32 list);
extern void IvfRouteFinish(const IvfHandle *handle, IvfLists *lists);

#endif							/* QV_IVF_ROUTE_H */
