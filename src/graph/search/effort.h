/*
 * effort.h
 *		How large the candidate pool of a search is for the rows that it proposes.
 */
#ifndef QV_GRAPH_SEARCH_EFFORT_H
#define QV_GRAPH_SEARCH_EFFORT_H

#include "graph/page/format.h"
#include "query/scan.h"

typedef struct GraphEffort
{
	double		ef;				/* as set, or as the recall wanted needs */
	double		rows;			/* rows that this ef is enough to propose */
	double		measured;		/* rows that it was measured, or chosen, for */
	double		power;			/* with which it grows with more rows */
	double		growth[GRAPH_DEPTHS];	/* by a recall: factor for
										 * graph_depths; else 0 */
	double		hard_new_rows;	/* GraphHardNewRows() of the recall; INFINITY:
								 * the ef is as set, or enough for any query */
	double		raised;			/* factor of all, for late results */
} GraphEffort;

extern void GraphEffortInit(GraphEffort *effort, const GraphMetaData *meta,
							const QvScanGoal *goal);

/* The ef of a search that proposes "rank" rows. */
extern uint32 GraphEffortFor(const GraphEffort *effort, double rank);

/* The effort was too little: results came late. */
extern void GraphEffortRaise(GraphEffort *effort);

/* That rank, or the one that the largest pool is enough for. */
extern double GraphEffortMost(double rank);

/* When it has proposed "rank" rows: for how many it goes on. */
extern double GraphEffortNext(double rank);

#endif							/* QV_GRAPH_SEARCH_EFFORT_H */
