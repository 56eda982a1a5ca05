/*
 * centroid_codes.h
 *		One-bit codes of the centroids of a directory with many lists.  The codes of
 *		very many lists lie in groups.
 *
 * A search scores them to find the centroids whose own codes it measures: see
 * search/nearest.c.
 */
#ifndef QV_IVF_PAGE_CENTROID_CODES_H
#define QV_IVF_PAGE_CENTROID_CODES_H

#include "ivf/codec/handle.h"

/* Batches that n codes need. */
#define IVF_BATCHES(n) (((n) + QV_BATCH - 1) / QV_BATCH)

/* Returns the coordinates that a query's look-up table needs for these codes; 0: no codes. */
extern uint32 IvfCentroidBits(const IvfHandle *handle);

/* Makes the code of a centroid that was read, or marks its group to be made again. */
extern void IvfUpdateCentroidCode(const IvfHandle *handle, IvfLists *lists, uint32 list);

/* Makes the codes that are missing, after all centroids were read.  Plain: does nothing. */
extern void IvfFinishCentroidCodes(const IvfHandle *handle, IvfLists *lists);

#endif							/* QV_IVF_PAGE_CENTROID_CODES_H */
