/*
 * centroid_sweep.h
 *		Finding near centroids by their one-bit codes (page/centroid_codes.h).
 */
#ifndef QV_IVF_SEARCH_CENTROID_SWEEP_H
#define QV_IVF_SEARCH_CENTROID_SWEEP_H

#include "ivf/codec/handle.h"

/* Are the n nearest lists to be found by one-bit codes? */
extern bool IvfSweepsCentroids(const IvfHandle *handle, const IvfQuery *query, uint32 n);

/*
 * Put the lists that may be among the n nearest into out, which has room for all lists.
 * Returns how many there are.
 */
extern uint32 IvfSweepCentroids(const IvfHandle *handle, const IvfQuery *query, uint32 n,
								IvfNear *out);

#endif							/* QV_IVF_SEARCH_CENTROID_SWEEP_H */
