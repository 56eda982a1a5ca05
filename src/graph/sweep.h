/*
 * sweep.h
 *		Measuring every node that has rows of a set: for sets whose rows no edge leads
 *		to soon (src/graph/README.md, "Sweep").
 */
#ifndef QV_GRAPH_SWEEP_H
#define QV_GRAPH_SWEEP_H

#include "graph/handle.h"
#include "graph/search.h"
#include "graph/store_coded.h"
#include "space/scan.h"
#include "space/tidset.h"

typedef struct GraphSweepParams
{
	GraphCodedStore *store;
	const QvTidSet *only;		/* the rows */
	uint32		most;			/* nodes kept: the nearest */
	Size		max_memory;
	bool		known_only;		/* read no nodes but those known to have them */
	double		certainty;		/* share of a result's error that counts */
	QvScanCounters *counters;
} GraphSweepParams;

typedef struct GraphSweep GraphSweep;

/*
 * Add the nodes that have such rows, or more than are in their slots, to the results of
 * search, with these rows only; and rows of which no node is known as if they were nearest.
 * With known_only it may find none, when it is not known any more where they are.  It lives in
 * CurrentMemoryContext.  Answers Ctrl-C.
 */
extern GraphSweep *GraphSweepStart(GraphHandle *handle, GraphSearch *search,
								   const GraphSweepParams *params);

/*
 * The bound from which on nodes have been left out, or have yet to be measured: results below are
 * all there are.  INFINITY: all have been.
 */
extern float GraphSweepFrontier(const GraphSweep *sweep);

/* Measure some more of those that have yet to be: false when there are none. */
extern bool GraphSweepMore(GraphSweep *sweep);

/* Has no row been left out, and will none be? */
extern bool GraphSweepIsWhole(const GraphSweep *sweep);

#endif							/* QV_GRAPH_SWEEP_H */
