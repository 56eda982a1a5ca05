/*
 * team.c
 *		The participants of a graph build; see team.h.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "graph/build/team.h"
#include "graph/update/calibrate.h"
#include "pgstat.h"
#include "space/parallel.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

struct GraphTeam
{
	ParallelContext *pcxt;		/* NULL: the leader is alone */
	QvParallelUsage usage;
	Snapshot	snapshot;
	TableScanDesc scan;
};

/* What participants share: GraphBuildShared, the memory of the calibration, the scan. */
#define SHARED_SIZE BUFFERALIGN(sizeof(GraphBuildShared))
#define MEASURED_SIZE(participants) BUFFERALIGN(GraphCalibrateMemory(participants))
#define ParallelScan(shared) \
	((ParallelTableScanDesc) ((char *) (shared) + SHARED_SIZE + \
							  MEASURED_SIZE((shared)->participants)))

static void
init_shared(GraphBuildShared *shared, const GraphBuildState *bs, const GraphBuildShared *prepared,
			int participants)
{
	memcpy(shared, prepared, sizeof(*shared));
	SpinLockInit(&shared->mutex);
	pg_atomic_init_u64(&shared->progress, 0);
	pg_atomic_init_u32(&shared->claims[0], 0);
	pg_atomic_init_u32(&shared->claims[1], 0);
	GraphMemBudgetInit(&shared->budget,
					   GraphMemNodesShare(&bs->handle.layout, bs->ops->payload(&bs->handle), bs->max_memory));
	shared->participants = participants;
}

/*
 * Makes shared memory and a parallel context for that many workers.  Returns NULL if there
 * is no memory.
 */
static ParallelContext *
begin_context(GraphTeam *team, GraphBuildState *bs, int workers, const float *floats, Size n)
{
	const GraphBuildShared *prepared = bs->shared;
	double		graph = GraphMemEstimate(&bs->handle.layout, bs->ops->payload(&bs->handle), 0, prepared->rows);
	ParallelContext *pcxt;
	Size		shared_size;
	float	   *copy;

	if (workers <= 0 || !QvHasSharedMemory(Min(graph, bs->max_memory)))
		return NULL;
	EnterParallelMode();
	pcxt = CreateParallelContext("quiver", "GraphParallelBuildMain", workers);
	team->snapshot = prepared->concurrent ? RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
	shared_size = add_size(SHARED_SIZE + MEASURED_SIZE(workers + 1),
						   table_parallelscan_estimate(bs->heap, team->snapshot));
	shm_toc_estimate_chunk(&pcxt->estimator, shared_size);
	shm_toc_estimate_chunk(&pcxt->estimator, n * sizeof(float));
	shm_toc_estimate_keys(&pcxt->estimator, 2);
	QvParallelEstimate(pcxt);
	InitializeParallelDSM(pcxt);
	if (pcxt->seg == NULL)
	{
		if (IsMVCCSnapshot(team->snapshot))
			UnregisterSnapshot(team->snapshot);
		DestroyParallelContext(pcxt);
		ExitParallelMode();
		return NULL;
	}
	bs->shared = shm_toc_allocate(pcxt->toc, shared_size);
	init_shared(bs->shared, bs, prepared, workers + 1);
	memset(GraphTeamMeasured(bs), 0, MEASURED_SIZE(workers + 1));
	table_parallelscan_initialize(bs->heap, ParallelScan(bs->shared), team->snapshot);
	shm_toc_insert(pcxt->toc, QV_KEY_SHARED, bs->shared);
	copy = shm_toc_allocate(pcxt->toc, n * sizeof(float));
	memcpy(copy, floats, n * sizeof(float));
	shm_toc_insert(pcxt->toc, QV_KEY_FLOATS, copy);
	QvParallelStore(pcxt, &team->usage);
	return pcxt;
}

static void
end_context(GraphTeam *team)
{
	if (IsMVCCSnapshot(team->snapshot))
		UnregisterSnapshot(team->snapshot);
	DestroyParallelContext(team->pcxt);
	ExitParallelMode();
	team->pcxt = NULL;
}

GraphTeam *
GraphTeamBegin(GraphBuildState *bs, int workers, const float *floats, Size n)
{
	GraphTeam  *team = palloc0(sizeof(GraphTeam));
	GraphBuildShared *alone = palloc0(SHARED_SIZE + MEASURED_SIZE(1));

	init_shared(alone, bs, bs->shared, 1);
	bs->leader = true;
	team->pcxt = begin_context(team, bs, workers, floats, n);
	if (team->pcxt)
	{
		ParallelContext *pcxt = team->pcxt;
		GraphBuildShared *shared = bs->shared;

		/*
		 * the leader joins for all, and leaves for workers that are not
		 * launched
		 */
		BarrierInit(&shared->barrier, 0);
		for (int i = 0; i <= workers; i++)
			BarrierAttach(&shared->barrier);
		LaunchParallelWorkers(pcxt);
		for (int i = pcxt->nworkers_launched; i < workers; i++)
			BarrierDetach(&shared->barrier);
		if (pcxt->nworkers_launched == 0)
			end_context(team);
		else
		{
			/* workers that could not start would be waited for */
			WaitForParallelWorkersToAttach(pcxt);
			team->scan = table_beginscan_parallel(bs->heap, ParallelScan(shared));
			ereport(DEBUG1,
					(errmsg_internal("building index \"%s\" using %d parallel workers",
									 RelationGetRelationName(bs->index), pcxt->nworkers_launched)));
		}
	}
	if (team->pcxt == NULL)
		bs->shared = alone;
	return team;
}

TableScanDesc
GraphTeamScan(GraphTeam *team)
{
	return team->scan;
}

void
GraphTeamEnd(GraphTeam *team)
{
	if (team->pcxt == NULL)
		return;
	QvParallelWait(team->pcxt, &team->usage);
	end_context(team);
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
	if (shared->participants > 1)
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
	if (bs->shared->participants == 1)
		return MemoryContextAllocHuge(CurrentMemoryContext, size);
	bs->segment = dsm_create(size, 0);
	bs->shared->arrays = dsm_segment_handle(bs->segment);
	return dsm_segment_address(bs->segment);
}

void *
GraphTeamAttach(GraphBuildState *bs)
{
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

void
GraphTeamWork(shm_toc *toc, void (*get_opclass) (Relation index, QvOpclassInfo *opclass),
			  void (*work) (Relation heap, Relation index, const QvOpclassInfo *opclass,
							GraphBuildShared *shared, float *floats, TableScanDesc scan))
{
	GraphBuildShared *shared = shm_toc_lookup(toc, QV_KEY_SHARED, false);
	LOCKMODE	heap_lock = shared->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	LOCKMODE	index_lock = shared->concurrent ? RowExclusiveLock : AccessExclusiveLock;
	QvOpclassInfo opclass;
	Relation	heap;
	Relation	index;

	QvParallelStart(toc);
	/* the leader has these locks */
	heap = table_open(shared->heap, heap_lock);
	index = index_open(shared->index, index_lock);
	get_opclass(index, &opclass);
	work(heap, index, &opclass, shared, shm_toc_lookup(toc, QV_KEY_FLOATS, false),
		 table_beginscan_parallel(heap, ParallelScan(shared)));
	index_close(index, index_lock);
	table_close(heap, heap_lock);
	QvParallelReport(toc);
}
