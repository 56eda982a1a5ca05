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
	double		ef;				/* as set, or as the recall wanted takes; */
	double		rows;			/* enough to propose so many, */
	double		measured;		/* and for these it was measured, or chosen */
	double		expected;		/* as in QvScanGoal */
} GraphEffort;

extern void GraphEffortInit(GraphEffort *effort, const GraphMetaData *meta,
							const QvScanGoal *goal);

/* Rows that a search proposes before it goes deeper for the first time. */
extern double GraphEffortRows(const GraphEffort *effort);

/* The ef of a search that proposes so many rows. */
extern uint32 GraphEffortFor(const GraphEffort *effort, double rank);

/* When it has proposed so many: for how many it goes on. */
extern double GraphEffortNext(const GraphEffort *effort, double rank);

#endif							/* QV_GRAPH_SEARCH_EFFORT_H */
