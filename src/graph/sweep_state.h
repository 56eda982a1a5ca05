/*
 * sweep_state.h
 *		A sweep that goes on: what its files share.
 */
#ifndef QV_GRAPH_SWEEP_STATE_H
#define QV_GRAPH_SWEEP_STATE_H

#include "containers/backlog.h"
#include "graph/bit_codes.h"
#include "graph/cache.h"
#include "graph/sweep.h"

/* A row, and the node that has it. */
typedef struct GraphMappedRow
{
	uint32		node;
	ItemPointerData tid;
} GraphMappedRow;

struct GraphSweep
{
	GraphSweepParams params;
	GraphHandle *handle;
	GraphSearch *search;
	BlockNumber nblocks;		/* of the index */
	uint32		measured;		/* nodes, in all */
	bool		dropped;		/* some results were left out: */
	float		beyond;			/* of this bound, or more */

	/* a map that is made */
	GraphTidMap *map;			/* NULL: none */
	GraphMappedRow *rows;		/* of a page, for it */
	float	   *scratch;		/* for codes; NULL: none */

	/* rows whose codes say how near they may be, and whose nodes are to be read */
	GraphMappedRow *members;
	Backlog		waiting;		/* places of them */
};

/* How near the node may be.  Damaged factors give no number: its rows will tell. */
static inline float
GraphSweepBound(const GraphSweep *s, const GraphResult *result)
{
	float		bound = result->distance - result->error * s->params.certainty;

	return isnan(bound) ? -INFINITY : bound;
}

/* Results are added: is there memory for as many again? */
extern void GraphSweepMakeRoom(GraphSweep *s);

/* What became of the members that were looked for by a map. */
typedef struct GraphMapUse
{
	uint64		seen;
	uint64		unknown;		/* not in it */
	uint64		stale;			/* not where it says */
} GraphMapUse;

/* Have too many rows come, or gone elsewhere, since the map was made? */
extern bool GraphMapIsWorn(const GraphTidMap *map, const GraphMapUse *use);

/*
 * Find the members by a map: measure their nodes, or have them wait, if the map has codes.  False
 * when it is worn, or does not do for this set: then what was found is good for nothing.
 */
extern bool GraphSweepKnown(GraphSweep *s, const GraphTidMap *map, GraphMapUse *use);

#endif							/* QV_GRAPH_SWEEP_STATE_H */
