/*
 * centroid_table.h
 *		Centroids that a user has made, in a table.
 */
#ifndef QV_IVF_BUILD_CENTROID_TABLE_H
#define QV_IVF_BUILD_CENTROID_TABLE_H

#include "ivf/build/params.h"

/*
 * Reads the centroids that the option "centroids" names: *lists x pdim, rotated.  They are unit
 * vectors where rows are near each other by their angle.
 */
extern float *IvfReadCentroids(const IvfBuildParams *build, uint32 *lists);

#endif							/* QV_IVF_BUILD_CENTROID_TABLE_H */
