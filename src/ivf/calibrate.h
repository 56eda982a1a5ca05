/*
 * calibrate.h
 *		How many lists a search must read for a recall.
 */
#ifndef QV_IVF_CALIBRATE_H
#define QV_IVF_CALIBRATE_H

#include "ivf/cache.h"

/*
 * Measure it with rows of the index as queries, and write it into the
 * metapage.  building: without WAL.
 */
extern void IvfMeasureProbes(IvfHandle *handle, bool building);

/* The share of the lists for a recall, between and beyond what was measured. */
extern double IvfProbesFor(const IvfMetaData *meta, double recall);

/*
 * scan.c: the lists that the k nearest rows of a query are in, each as its rank
 * among the lists nearest to the query.  x is rotated (plain: the value); self
 * is a row that does not count.  Reads at most so many lists.  Returns how many
 * rows there were.
 */
extern uint32 IvfSearchRanks(IvfHandle *handle, const float *x, ItemPointer self,
							 uint32 k, uint32 lists, uint32 *ranks);

#endif							/* QV_IVF_CALIBRATE_H */
