/*
 * calibrate.h
 *		Measuring how many lists a search must read for a recall.
 */
#ifndef QV_IVF_UPDATE_CALIBRATE_H
#define QV_IVF_UPDATE_CALIBRATE_H

#include "ivf/codec/handle.h"

/*
 * Measure it with rows of the index as queries, and write it into the metapage.
 * Lists cannot move: in a build, or under IVF_MOVE_LOCK.  At most about max_rows rows
 * are looked at (0: as many as it takes): then it is less exact, or left as it is, for many rows
 * always, and IVF_MEASURE says so.
 */
extern void IvfMeasureProbes(IvfHandle *handle, uint64 max_rows);

/* Are there so many more lists that they should be measured again? */
extern bool IvfWantsMeasuring(const IvfMetaData *meta);

/* Should they be by VACUUM: then too when inserts left that to it, or an older version built it? */
extern bool IvfLacksMeasuring(const IvfMetaData *meta);

#endif							/* QV_IVF_UPDATE_CALIBRATE_H */
