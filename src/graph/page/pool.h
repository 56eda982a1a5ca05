/*
 * pool.h
 *		The pool of a search for a recall or an ef, and the ef for a recall.
 */
#ifndef QV_GRAPH_PAGE_POOL_H
#define QV_GRAPH_PAGE_POOL_H

#include "graph/page/format.h"

/* A size of the pool, and the recall of searches with it. */
typedef struct GraphRecallPoint
{
	double		pool;
	double		recall;
} GraphRecallPoint;

/*
 * Sets the line of a scan's pool: slope x ef + extra.  The line is calibrated
 * (calibrate.c), but never below a minimum (src/graph/page/README.md, "Pools").
 */
extern void GraphPoolLine(const GraphMetaData *meta, double *slope, double *extra);

/* Returns the pool of a search with an ef. */
extern double GraphPoolFor(const GraphMetaData *meta, uint32 ef);

/* Returns the ef for the recall that is wanted.  It is calibrated, or a rule of thumb. */
extern int	GraphEfForRecall(const GraphMetaData *meta, const QvSettings *settings);

/* The recalls that the metapage has a pool for, and of how many nearest rows they are. */
extern const double graph_recalls[GRAPH_RECALLS];
#define GRAPH_MEASURED_ROWS 10

/*
 * A query is hard if many of its nearest rows, of which there are one more than were measured, are
 * found with the whole pool and not with half of it.  Returns how many, for a share of rows that
 * may be missed; INFINITY: that was not measured.
 */
#define GRAPH_SETTLED_ROWS (GRAPH_MEASURED_ROWS + 1)
extern double GraphHardNewRows(const GraphMetaData *meta, double misses);

/* The share of rows that a search may miss by the settings. */
extern double GraphMissesAllowed(const GraphMetaData *meta, const QvSettings *settings);

/* The numbers of nearest rows that the metapage has an ef for. */
extern const int graph_depths[GRAPH_DEPTHS];
#define GRAPH_DEEPEST 100		/* the last of them */

/*
 * Returns the pool for a share of misses, from points[n] of growing pools.  Between two points,
 * or beyond the first and the last, it follows a line of the logarithms of pool and misses.
 */
extern double GraphPoolForMisses(const GraphRecallPoint *points, int n, double misses);

#endif							/* QV_GRAPH_PAGE_POOL_H */
