/*
 * calibrate.h
 *		Measuring how many lists a search must read for a recall.
 *
 * See src/ivf/update/README.md, "Calibration".
 */
#ifndef QV_IVF_UPDATE_CALIBRATE_H
#define QV_IVF_UPDATE_CALIBRATE_H

#include "ivf/codec/handle.h"

/*
 * Measures probes with rows of the index as queries, and writes them into the metapage.
 * Lists cannot move: in a build, or under IVF_MOVE_LOCK.
 *
 * max_rows bounds the rows that are read; 0: no bound.  With a bound, probes are less exact, or
 * stay as they are.  Those for many rows always stay.  IVF_MEASURE is set then.
 */
extern void IvfMeasureProbes(IvfHandle *handle, uint64 max_rows);

/* Returns whether the lists have become many more, so that probes should be measured again. */
extern bool IvfWantsMeasuring(const IvfMetaData *meta);

/*
 * Returns whether VACUUM should measure probes.  It should also if an insert left that to it,
 * or if a version that measured few rows only built the index.
 */
extern bool IvfLacksMeasuring(const IvfMetaData *meta);

#endif							/* QV_IVF_UPDATE_CALIBRATE_H */
