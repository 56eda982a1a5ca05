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
#include "space/members.h"

typedef struct GraphSweepParams
{
	GraphCodedStore *store;
	const QvTidSet *only;		/* the rows */
	uint32		most;			/* nodes kept: the nearest */
	bool		known_only;		/* read no nodes but those known to have them */
	double		certainty;		/* share of a result's error that counts */
	QvScanCounters *counters;
} GraphSweepParams;

/*
 * Add the nodes that have such rows, or more than are in their slots, to the results of
 * search, with these rows only; and rows of which no node is known as if they were nearest.  Returns whether these are all; if not, *beyond is the bound
 * from which on some were left out, else INFINITY.  With known_only it may find none, when it
 * is not known any more where they are: false.  Answers Ctrl-C.
 */
extern bool GraphSweep(GraphHandle *handle, GraphSearch *search, const GraphSweepParams *params,
					   float *beyond);

/*
 * The same by codes that the backend keeps of all nodes: whose nodes may be nearest is measured when
 * it is asked for.  False when there are none, or they do not do.
 */
extern bool GraphSweepByCodes(GraphHandle *handle, const GraphSweepParams *params, Size max_memory,
							  QvMemberSearch *search);

#endif							/* QV_GRAPH_SWEEP_H */
