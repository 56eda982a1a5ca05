/*
 * centroid_table.h
 *		Centroids that a user has made, in a table.
 */
#ifndef QV_IVF_BUILD_CENTROID_TABLE_H
#define QV_IVF_BUILD_CENTROID_TABLE_H

#include "ivf/build/params.h"

/*
 * Read the centroids of the option "centroids", *lists x pdim: as unit vectors
 * where rows go by their angle, and rotated.
 */
extern float *IvfReadCentroids(const IvfBuildParams *build, uint32 *lists);

#endif							/* QV_IVF_BUILD_CENTROID_TABLE_H */
