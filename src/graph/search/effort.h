/*
 * effort.h
 *		How large the candidate pool of a search is for the rows that it proposes.
 */
#ifndef QV_GRAPH_SEARCH_EFFORT_H
#define QV_GRAPH_SEARCH_EFFORT_H

#include "graph/page/format.h"
#include "query/scan.h"

/* The factor by which rows grow when a search goes on, and ef where results came late. */
#define GRAPH_EFFORT_GROWTH 1.25

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

/* That rank, or the one that the largest pool is enough for. */
extern double GraphEffortMost(double rank);

/* When it has proposed "rank" rows: for how many it goes on. */
extern double GraphEffortNext(double rank);

#endif							/* QV_GRAPH_SEARCH_EFFORT_H */
