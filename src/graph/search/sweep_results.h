/*
 * sweep_results.h
 *		A sweep, and the nearest nodes that it has found.
 */
#ifndef QV_GRAPH_SEARCH_SWEEP_RESULTS_H
#define QV_GRAPH_SEARCH_SWEEP_RESULTS_H

#include "graph/page/cache.h"
#include "graph/walk/search.h"
#include "graph/walk/store_coded.h"
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

/* A row, and the node that has it. */
typedef struct GraphMappedRow
{
	uint32		node;
	ItemPointerData tid;
} GraphMappedRow;

typedef struct GraphSweepState
{
	const GraphSweepParams *params;
	GraphHandle *handle;
	GraphSearch *search;
	BlockNumber nblocks;		/* of the index */
	bool		dropped;		/* some results were left out: */
	float		beyond;			/* of this bound, or more */

	/* a map that is made */
	GraphTidMap *map;			/* NULL: none */
	GraphMappedRow *rows;		/* of a page, for it */
	float	   *scratch;		/* for codes; NULL: none */
} GraphSweepState;

/* How near the node may be.  Damaged factors give no number: its rows will tell. */
static inline float
GraphSweepBound(const GraphSweepState *s, const GraphResult *result)
{
	float		bound = result->distance - result->error * s->params->certainty;

	return isnan(bound) ? -INFINITY : bound;
}

/* Results are added: have room for more, without the farthest if there are too many. */
extern void GraphSweepMakeRoom(GraphSweepState *s);

#endif							/* QV_GRAPH_SEARCH_SWEEP_RESULTS_H */
