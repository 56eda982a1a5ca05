/*
 * calibrate.h
 *		Measuring how many lists a search must read for a recall.
 */
#ifndef QV_IVF_CALIBRATE_H
#define QV_IVF_CALIBRATE_H

#include "ivf/handle.h"

/*
 * Measure it with rows of the index as queries, and write it into the metapage.
 * Lists cannot move: in a build, or under IVF_MOVE_LOCK.
 */
extern void IvfMeasureProbes(IvfHandle *handle);

#endif							/* QV_IVF_CALIBRATE_H */
