/*
 * team.h
 *		The participants of a graph build: the leader, and workers if there are any.  They
 *		do the same work in steps, and meet after each.
 */
#ifndef QV_GRAPH_BUILD_TEAM_H
#define QV_GRAPH_BUILD_TEAM_H

#include "graph/build/build_form.h"
#include "space/parallel.h"

/*
 * Leader: sets what participants share in bs, and starts workers, if there are to be any.
 * All participants get the floats, as QV_KEY_MORE.  With workers the server is in parallel mode
 * from here to GraphTeamEnd().  Returns the scan to read the table by; NULL: all of it.
 * *team is zeroed by the caller.
 */
extern TableScanDesc GraphTeamBegin(QvParallel *team, GraphBuildState *bs, int workers,
									const float *floats, Size n);

/* Waits for the workers to end. */
extern void GraphTeamEnd(QvParallel *team);

/* Ends the step for this participant: waits for the others. */
extern void GraphMeet(GraphBuildState *bs);

/* Claims pieces of a step's work.  Returns the number of the first. */
extern uint32 GraphClaim(GraphBuildState *bs, uint32 pieces);

/* Memory for all participants.  The leader allocates it, and the others attach to it. */
extern void *GraphTeamAlloc(GraphBuildState *bs, Size size);
extern void *GraphTeamAttach(GraphBuildState *bs);

/* Returns memory for all participants to calibrate in, GraphCalibrateMemory() bytes, zeroed. */
extern void *GraphTeamMeasured(GraphBuildState *bs);

#endif							/* QV_GRAPH_BUILD_TEAM_H */
