/*
 * sweep_state.h
 *		A sweep: what its files share.
 */
#ifndef QV_GRAPH_SWEEP_STATE_H
#define QV_GRAPH_SWEEP_STATE_H

#include "graph/cache.h"
#include "graph/sweep.h"

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

/*
 * Measure the nodes that a map says the members have.  False when it is worn, or does not do for
 * this set: then what was found is good for nothing.
 */
extern bool GraphSweepKnown(GraphSweepState *s, const GraphTidMap *map, QvKnownUse *use);

#endif							/* QV_GRAPH_SWEEP_STATE_H */
