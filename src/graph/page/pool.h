/*
 * pool.h
 *		From a recall to the pool that it takes, and back to an ef.
 */
#ifndef QV_GRAPH_PAGE_POOL_H
#define QV_GRAPH_PAGE_POOL_H

#include "graph/page/format.h"

/* What a search of so many candidates found. */
typedef struct GraphRecallPoint
{
	double		pool;
	double		recall;
} GraphRecallPoint;

/*
 * A scan's pool is slope x ef + extra: what the index has measured (calibrate.c), but
 * not less than what several sets of data take (src/graph/README.md, "ef").
 */
extern void GraphPoolLine(const GraphMetaData *meta, double *slope, double *extra);

/* Recalls that pools are measured for. */
extern const double graph_recalls[GRAPH_RECALLS];

/*
 * The pool that finds such a share, by points[n] of growing pools: between two of
 * them, or beyond the last, where a line of the logarithms of pool and misses says.
 */
extern double GraphPoolForRecall(const GraphRecallPoint *points, int n, double recall);

#endif							/* QV_GRAPH_PAGE_POOL_H */
