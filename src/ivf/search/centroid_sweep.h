/*
 * centroid_sweep.h
 *		Finding near centroids by their one-bit codes (page/centroid_codes.h).
 */
#ifndef QV_IVF_SEARCH_CENTROID_SWEEP_H
#define QV_IVF_SEARCH_CENTROID_SWEEP_H

#include "ivf/codec/handle.h"

/*
 * Put the lists that may be among the n nearest into out, which has room for all lists.
 * Returns how many there are.  0: they are not to be found by one-bit codes.
 */
extern uint32 IvfSweepCentroids(const IvfHandle *handle, const IvfQuery *query, uint32 n,
								IvfNear *out);

#endif							/* QV_IVF_SEARCH_CENTROID_SWEEP_H */
