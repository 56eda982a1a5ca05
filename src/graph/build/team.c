/*
 * team.c
 *		The participants of a graph build; see team.h.
 */
#include "postgres.h"

#include "graph/build/team.h"
#include "graph/update/calibrate.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

/* What participants share: GraphBuildShared, then the memory of the calibration. */
#define SHARED_SIZE BUFFERALIGN(sizeof(GraphBuildShared))
/* Name of the file that has the arrays of all participants. */
#define ARRAYS "arrays"

#define MEASURED_SIZE(participants) BUFFERALIGN(GraphCalibrateMemory(participants))

static void
init_shared(GraphBuildShared *shared, const GraphBuildState *bs, const GraphBuildShared *prepared,
			int participants, dsm_segment *segment)
{
	memcpy(shared, prepared, sizeof(*shared));
	QvBuildSharedInit(&shared->base, bs->heap, bs->index, bs->info, participants);
	pg_atomic_init_u32(&shared->claims[0], 0);
	pg_atomic_init_u32(&shared->claims[1], 0);
	GraphMemBudgetInit(&shared->budget,
					   GraphMemNodesShare(&bs->handle.layout, bs->ops->payload(&bs->handle), bs->max_memory),
					   segment);
}

/*
 * Makes shared memory for that many workers, in place of the leader's own.  Returns false if
 * there is none.
 */
static bool
share_memory(QvParallel *team, GraphBuildState *bs, int workers, const float *floats, Size n)
{
	const GraphBuildShared *prepared = bs->shared;
	double		graph = GraphMemEstimate(&bs->handle.layout, bs->ops->payload(&bs->handle), 0, prepared->rows);

	if (workers <= 0 || !QvHasSharedMemory(Min(graph, bs->max_memory)) ||
		!QvParallelBegin(team, "GraphParallelBuildMain", workers,
						 SHARED_SIZE + MEASURED_SIZE(workers + 1), n * sizeof(float), bs->heap,
						 bs->info->ii_Concurrent))
		return false;
	bs->shared = team->shared;
	init_shared(bs->shared, bs, prepared, workers + 1, team->pcxt->seg);
	memset(GraphTeamMeasured(bs), 0, MEASURED_SIZE(workers + 1));
	if (n > 0)
		memcpy(team->more, floats, n * sizeof(float));
	return true;
}

/* Starts the workers.  Returns false if there are none. */
static bool
start_workers(ParallelContext *pcxt, GraphBuildState *bs, int workers)
{
	Barrier    *barrier = &bs->shared->barrier;

	/* the leader joins for all, and leaves for workers that are not launched */
	BarrierInit(barrier, 0);
	for (int i = 0; i <= workers; i++)
		BarrierAttach(barrier);
	LaunchParallelWorkers(pcxt);
	for (int i = pcxt->nworkers_launched; i < workers; i++)
		BarrierDetach(barrier);
	if (pcxt->nworkers_launched == 0)
		return false;
	/* workers that could not start would be waited for */
	WaitForParallelWorkersToAttach(pcxt);
	ereport(DEBUG1,
			(errmsg_internal("building index \"%s\" using %d parallel workers",
							 RelationGetRelationName(bs->index), pcxt->nworkers_launched)));
	return true;
}

TableScanDesc
GraphTeamBegin(QvParallel *team, GraphBuildState *bs, int workers, const float *floats, Size n)
{
	GraphBuildShared *alone = palloc0(SHARED_SIZE + MEASURED_SIZE(1));

	init_shared(alone, bs, bs->shared, 1, NULL);
	bs->leader = true;
	if (share_memory(team, bs, workers, floats, n) && start_workers(team->pcxt, bs, workers))
		return QvParallelScan(team->pcxt->toc, bs->heap);
	QvParallelEnd(team);
	bs->shared = alone;
	return NULL;
}

void
GraphTeamEnd(QvParallel *team)
{
	if (team->pcxt)
		QvParallelWait(team);
	QvParallelEnd(team);
}

void
GraphMeet(GraphBuildState *bs)
{
	GraphBuildShared *shared = bs->shared;

	/*
	 * the claims of the next step; nobody has used them since the last
	 * meeting
	 */
	if (bs->leader)
		pg_atomic_write_u32(&shared->claims[(bs->step + 1) % 2], 0);
	if (shared->base.participants > 1)
		BarrierArriveAndWait(&shared->barrier, PG_WAIT_EXTENSION);
	bs->step++;
}

uint32
GraphClaim(GraphBuildState *bs, uint32 pieces)
{
	return pg_atomic_fetch_add_u32(&bs->shared->claims[bs->step % 2], pieces);
}

void *
GraphTeamAlloc(GraphBuildState *bs, Size size)
{
	if (bs->shared->base.participants == 1)
		return GraphMemRoom(&bs->mem, &bs->room, size);
	bs->shared->arrays = DSM_HANDLE_INVALID;
	bs->shared->arrays_size = size;
	if (bs->shared->budget.full)
		return QvRoomMakeShared(&bs->room, &bs->shared->budget.files, ARRAYS, size);
	bs->segment = dsm_create(size, 0);
	bs->shared->arrays = dsm_segment_handle(bs->segment);
	return dsm_segment_address(bs->segment);
}

void *
GraphTeamAttach(GraphBuildState *bs)
{
	if (bs->shared->arrays == DSM_HANDLE_INVALID)
		return QvRoomOpenShared(&bs->room, &bs->shared->budget.files, ARRAYS, bs->shared->arrays_size);
	bs->segment = dsm_attach(bs->shared->arrays);
	if (bs->segment == NULL)
		elog(ERROR, "could not attach shared memory of a parallel build");
	return dsm_segment_address(bs->segment);
}

void *
GraphTeamMeasured(GraphBuildState *bs)
{
	return (char *) bs->shared + SHARED_SIZE;
}
