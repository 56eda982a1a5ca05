/*
 * team.h
 *		The participants of a graph build: the leader, and workers when there are
 *		any.  They do the same work in steps, and meet after each.
 */
#ifndef QV_GRAPH_BUILD_TEAM_H
#define QV_GRAPH_BUILD_TEAM_H

#include "graph/build/build_form.h"

typedef struct GraphTeam GraphTeam;

/*
 * Leader: give bs what participants share, and start workers if there are to be
 * any; the floats are for all.  The server is in parallel mode from here to
 * GraphTeamEnd() when there are workers.
 */
extern GraphTeam *GraphTeamBegin(GraphBuildState *bs, int workers, const float *floats, Size n);

/* Where the table is to be read from; NULL: all of it. */
extern TableScanDesc GraphTeamScan(GraphTeam *team);

/* Wait for the workers to end. */
extern void GraphTeamEnd(GraphTeam *team);

/* The step is over for this participant: wait for the others. */
extern void GraphMeet(GraphBuildState *bs);

/* Claim the next so many pieces of work of a step; returns the first's number. */
extern uint32 GraphClaim(GraphBuildState *bs, uint32 pieces);

/* Memory for all participants, which the leader gets and the others attach to. */
extern void *GraphTeamAlloc(GraphBuildState *bs, Size size);
extern void *GraphTeamAttach(GraphBuildState *bs);

/* Memory for all participants to measure in, GraphCalibrateMemory() bytes, zeroed. */
extern void *GraphTeamMeasured(GraphBuildState *bs);

/* A worker's part, from its entry function. */
extern void GraphTeamWork(shm_toc *toc,
						  void (*get_opclass) (Relation index, QvOpclassInfo *opclass),
						  void (*work) (Relation heap, Relation index,
										const QvOpclassInfo *opclass, GraphBuildShared *shared,
										float *floats, TableScanDesc scan));

#endif							/* QV_GRAPH_BUILD_TEAM_H */
