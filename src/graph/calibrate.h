/*
 * calibrate.h
 *		How large a scan's pool must be, by what an index shows of itself.
 */
#ifndef QV_GRAPH_CALIBRATE_H
#define QV_GRAPH_CALIBRATE_H

#include "graph/handle.h"

/*
 * Measure on rows of a coded graph how large a pool of estimates finds as many of
 * the nearest as a pool of ef exact distances, and write it to the metapage.
 * interrupt is called between searches.  Does nothing when there are few rows.
 */
extern void GraphCalibrate(GraphHandle *handle, void (*interrupt) (void));

#endif							/* QV_GRAPH_CALIBRATE_H */
