/*
 * centroid_codes.h
 *		One-bit codes of the centroids of a directory with many lists.  Of very many lists
 *		they lie in groups.
 *
 * A search reads them to find the centroids whose own codes it measures: see
 * search/centroid_sweep.h.
 */
#ifndef QV_IVF_PAGE_CENTROID_CODES_H
#define QV_IVF_PAGE_CENTROID_CODES_H

#include "ivf/codec/handle.h"

/* Batches that n codes take. */
#define IVF_BATCHES(n) (((n) + QV_BATCH - 1) / QV_BATCH)

/* Coordinates that a query's look-up table needs for these codes; 0: there are none. */
extern uint32 IvfCentroidBits(const IvfHandle *handle);

/* A list's centroid was read, or read again: make its code, or have its group made again. */
extern void IvfUpdateCentroidCode(const IvfHandle *handle, IvfLists *lists, uint32 list);

/* All centroids have been read: make what is still to be made.  Nothing in a plain index. */
extern void IvfFinishCentroidCodes(const IvfHandle *handle, IvfLists *lists);

#endif							/* QV_IVF_PAGE_CENTROID_CODES_H */
