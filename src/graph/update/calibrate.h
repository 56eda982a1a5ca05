/*
 * calibrate.h
 *		How large a scan's pool must be, measured on an index's own rows.
 */
#ifndef QV_GRAPH_UPDATE_CALIBRATE_H
#define QV_GRAPH_UPDATE_CALIBRATE_H

#include "graph/page/handle.h"

/*
 * The participants of a calibration.  Each calls GraphCalibrate() with the same index.  The
 * result does not depend on their number.
 */
typedef struct GraphCrew
{
	int			participants;	/* number of them, at most */
	void	   *memory;			/* memory of all: GraphCalibrateMemory()
								 * bytes, zeroed */
	void	   *arg;			/* argument of claim and meet */
	uint32		(*claim) (void *arg, uint32 pieces);	/* claims pieces of a
														 * step's work; returns
														 * the number of the
														 * first */
	void		(*meet) (void *arg);	/* ends the step: waits for the others */
} GraphCrew;

extern Size GraphCalibrateMemory(int participants);

/* Tells whether VACUUM is to calibrate an index with that number of live nodes. */
extern bool GraphWantsCalibration(const GraphMetaData *meta, double nodes);

/*
 * Measures on rows of a coded graph how large a pool of estimates finds as many of the
 * nearest as a pool of ef exact distances.  writes: writes the result to the metapage.
 * interrupt is called between searches.  Does nothing if there are few rows.
 */
extern void GraphCalibrate(GraphHandle *handle, void (*interrupt) (void), const GraphCrew *crew,
						   bool writes);

/* Calibrates alone, and writes the result. */
extern void GraphCalibrateAlone(GraphHandle *handle, void (*interrupt) (void));

#endif							/* QV_GRAPH_UPDATE_CALIBRATE_H */
