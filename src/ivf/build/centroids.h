/*
 * centroids.h
 *		The lists of a new index: their number, and their centroids from a sample of
 *		the table or from a table of centroids.
 */
#ifndef QV_IVF_BUILD_CENTROIDS_H
#define QV_IVF_BUILD_CENTROIDS_H

#include "ivf/build/params.h"

typedef struct IvfNewLists
{
	float	   *mean;			/* pdim, rotated; NULL in a plain index */
	QvSpaceKind space;
	float		level;			/* as in QvSpace */
	char	   *entries;		/* of the directory, entry_size bytes each */
	uint32		lists;
	uint32		tops;			/* groups of lists */
	double		rows;			/* that the index will have, roughly */
} IvfNewLists;

/* Returns how many rows are sampled for the lists of a table, if there is memory for them. */
extern size_t IvfSampleTarget(uint32 lists, double rows);

/* Makes the lists for the rows of a table. */
extern void IvfMakeLists(const IvfBuildParams *build, IvfNewLists *lists);

#endif							/* QV_IVF_BUILD_CENTROIDS_H */
