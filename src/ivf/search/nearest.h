/*
 * nearest.h
 *		The lists nearest to a value.
 */
#ifndef QV_IVF_SEARCH_NEAREST_H
#define QV_IVF_SEARCH_NEAREST_H

#include "ivf/codec/handle.h"

/*
 * Coordinates in the look-up table of a query for which lists are chosen and read: see
 * IvfCodec.prepare.
 */
extern uint32 IvfLutBits(const IvfHandle *handle);

/* Lists by their distance; there is room for all in "items". */
typedef struct IvfNearLists
{
	IvfNear    *items;
	uint32		sorted;			/* nearest lists that come first, in order */
	uint32		measured;		/* lists in it, which the nearest are among if
								 * no more are wanted, or these are all */
} IvfNearLists;

/*
 * Have the n nearest lists in order, more than there are so, at most all.  Lists without a row
 * come last.  The first "read" keep their places, since the caller has read them.
 */
extern void IvfSortNearest(const IvfHandle *handle, const IvfQuery *query, uint32 read, uint32 n,
						   IvfNearLists *near);

/*
 * Lists that a long one becomes: three, since each row is then written again less often
 * than if lists were halved, 0.8 times instead of 1.4 for each row that comes.
 */
#define IVF_MAX_PARTS 3

/*
 * Encode a value as a row of the list that it belongs to; returns the list.  It is decoded into
 * centroid[width].  The query is made of the value.
 */
extern uint32 IvfEncodeInNearest(const IvfHandle *handle, const void *value, float *centroid,
								 const IvfRowRoom *room, IvfQuery *query, IvfRow *row);

/* Which of n lists a row belongs to, that its list is to be split into. */
extern uint32 IvfNearestPart(const IvfHandle *handle, const IvfQuery *query,
							 const IvfCentroids *parts, uint32 n);

#endif							/* QV_IVF_SEARCH_NEAREST_H */
