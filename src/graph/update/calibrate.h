/*
 * calibrate.h
 *		How large a scan's pool must be, by what an index shows of itself.
 */
#ifndef QV_GRAPH_UPDATE_CALIBRATE_H
#define QV_GRAPH_UPDATE_CALIBRATE_H

#include "graph/page/handle.h"

/*
 * Those who measure together: each calls GraphCalibrate(), with the same index.  What they
 * measure does not depend on how many they are.
 */
typedef struct GraphCrew
{
	int			participants;	/* at most */
	void	   *memory;			/* for all: GraphCalibrateMemory() bytes,
								 * zeroed */
	void	   *arg;			/* of the next two */
	uint32		(*claim) (void *arg, uint32 pieces);	/* of a step's work;
														 * returns the first's
														 * number */
	void		(*meet) (void *arg);	/* the step is over: wait for the
										 * others */
} GraphCrew;

extern Size GraphCalibrateMemory(int participants);

/*
 * Measure on rows of a coded graph how large a pool of estimates finds as many of
 * the nearest as a pool of ef exact distances; "writes": and write it to the metapage.
 * interrupt is called between searches.  Does nothing when there are few rows.
 */
extern void GraphCalibrate(GraphHandle *handle, void (*interrupt) (void), const GraphCrew *crew,
						   bool writes);

/* The same by one alone, who writes it. */
extern void GraphCalibrateAlone(GraphHandle *handle, void (*interrupt) (void));

#endif							/* QV_GRAPH_UPDATE_CALIBRATE_H */
