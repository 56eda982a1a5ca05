/*
 * build.c
 *		Building a graph index, alone or with workers.  Rows become nodes in memory
 *		(load.c), which are connected (connect.c) and written (write.c).
 *
 * coded_build.c and plain_build.c have what the forms do differently.
 */
#include "postgres.h"

#include "catalog/index.h"
#include "commands/progress.h"
#include "compat.h"
#include "graph/build/coded_build.h"
#include "graph/build/connect.h"
#include "graph/build/load.h"
#include "graph/build/plain_build.h"
#include "graph/build/team.h"
#include "graph/build/write.h"
#include "graph/graph.h"
#include "graph/page/cache.h"
#include "graph/page/meta.h"
#include "graph/update/calibrate.h"
#include "graph/update/reach.h"
#include "graph/update/row_pages.h"
#include "miscadmin.h"
#include "pages/write.h"
#include "pgstat.h"
#include "rows/write.h"
#include "space/count.h"
#include "utils/memutils.h"

char *
GraphBuildPhaseName(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case PHASE_SAMPLE:
			return "sampling table";
		case PHASE_CLUSTER:
			return "clustering sample";
		case PHASE_LOAD:
			return "loading tuples";
		case PHASE_CONNECT:
			return "connecting nodes";
		case PHASE_WRITE:
			return "writing graph";
		default:
			return NULL;
	}
}

/* Makes a handle for an index that has no pages yet. */
static void
init_handle_from_meta(GraphHandle *handle, Relation index, const QvOpclassInfo *opclass,
					  const GraphMetaData *meta)
{
	*handle = (GraphHandle) {.index = index, .building = true, .meta = *meta};
	if (!GraphLayoutFromMeta(&handle->layout, meta))
		elog(ERROR, "graph node layout does not fit together");
	QvSpaceInit(&handle->space, opclass, meta->dims, meta->pdim, meta->seed);
	handle->space.kind = meta->space;
	handle->space.level = meta->level;
}

static void
init_handle(GraphHandle *handle, Relation index, const QvOpclassInfo *opclass,
			const QvIndexOptions *options)
{
	GraphMetaData meta;

	GraphMetaInit(&meta, QvColumnDims(index, opclass), options->m, options->ef_construction,
				  opclass);
	init_handle_from_meta(handle, index, opclass, &meta);
}

static GraphBuildState *
start_build(Relation heap, IndexInfo *info, const GraphHandle *handle)
{
	const GraphBuildOps *ops = handle->layout.form == QV_FORM_CODED ?
		&graph_coded_build : &graph_plain_build;
	GraphBuildState *bs = palloc0(ops->state_size);

	bs->ops = ops;
	bs->heap = heap;
	bs->index = handle->index;
	bs->info = info;
	bs->handle = *handle;
	bs->max_memory = (Size) maintenance_work_mem * 1024;
	bs->hints.context = CurrentMemoryContext;
	bs->handle.hints = &bs->hints;
	bs->row_context = AllocSetContextCreate(CurrentMemoryContext, "quiver build row",
											ALLOCSET_DEFAULT_SIZES);
	return bs;
}

static void
show_phase(const GraphBuildState *bs, int phase)
{
	if (!bs->leader)
		return;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, phase);
	if (phase == PHASE_CONNECT)
	{
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, bs->mem.count);
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, 0);
	}
}

/* Leader: writes to the metapage what is known when all rows are there. */
static void
complete_meta(GraphBuildState *bs)
{
	GraphBuildShared *shared = bs->shared;
	GraphMetaData meta;

	GraphReadMeta(bs->index, &meta);
	meta.tuples = shared->base.index_tuples;
	meta.reached_rows = Max(1, shared->base.heap_tuples);
	QvMetaWrite(bs->index, MAIN_FORKNUM, &meta, sizeof(GraphMetaData));
}

static uint32
claim(void *bs, uint32 pieces)
{
	return GraphClaim(bs, pieces);
}

static void
meet(void *bs)
{
	GraphMeet(bs);
}

/* Everyone: measures how large a scan's pool must be. */
static void
measure(GraphBuildState *bs)
{
	GraphHandle *pages = GraphOpen(bs->index, &bs->handle.space.opclass);
	GraphCrew	crew = {
		.participants = bs->shared->base.participants,
		.memory = GraphTeamMeasured(bs),
		.arg = bs,
		.claim = claim,
		.meet = meet
	};

	pages->building = true;
	GraphCalibrate(pages, GraphAnswerInterrupts, &crew, bs->leader);
}

/* Does the work of a participant, from the rows of the table to the index's pages. */
static void
take_part(GraphBuildState *bs, float *floats, TableScanDesc scan)
{
	bool		shares = bs->shared->base.participants > 1;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver build graph",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	int			most;

	bs->ops->begin(bs, floats, shares);
	most = Max(bs->handle.meta.ef_construction, bs->mem.max_edges) + 1;
	bs->chosen = palloc(most * sizeof(Candidate));
	bs->scratch = palloc(most * sizeof(Candidate));
	GraphSearchInit(&bs->search, bs->mem.base.exact, false);

	show_phase(bs, PHASE_LOAD);
	GraphLoadRows(bs, scan);
	GraphMeet(bs);
	if (bs->leader)
		GraphArrangeNodes(bs);
	GraphMeet(bs);
	if (!bs->leader)
		GraphSeeNodes(bs);
	show_phase(bs, PHASE_CONNECT);
	GraphConnectNodes(bs);
	show_phase(bs, PHASE_WRITE);
	if (bs->leader)
	{
		GraphReachNodes(bs);
		GraphWriteHead(bs);
	}
	GraphMeet(bs);
	GraphWriteNodes(bs);
	GraphMeet(bs);
	if (bs->leader)
		GraphWriteTail(bs);

	GraphChunksDetach(&bs->mem.nodes);
	GraphChunksDetach(&bs->mem.values);
	QvRoomFree(&bs->mem.seen_room);
	QvRoomFree(&bs->room);
	if (bs->segment)
		dsm_detach(bs->segment);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	GraphMeet(bs);
	if (bs->leader)
		complete_meta(bs);
	GraphMeet(bs);
	measure(bs);
}

static void
make_row_pages(Relation index, const QvOpclassInfo *opclass, double table_rows)
{
	GraphHandle *handle = GraphOpen(index, opclass);

	handle->building = true;
	if (GraphCanHaveRows(&handle->meta))
		QvRowsMerge(&handle->rows, true, table_rows, GraphVisitRows, handle);
}

IndexBuildResult *
GraphBuild(Relation heap, Relation index, IndexInfo *info,
		   const QvOpclassInfo *opclass, const QvIndexOptions *options, int *left_out)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));
	GraphBuildShared *prepared = palloc0(sizeof(GraphBuildShared));
	GraphBuildState *bs;
	GraphHandle handle;
	QvParallel	team = {0};
	TableScanDesc scan;
	double		rows,
				table_rows;
	float	   *floats;
	Size		n;

	GraphCheckOptions(options);
	init_handle(&handle, index, opclass, options);
	rows = prepared->rows = QvCountRows(heap, info, opclass, &table_rows);
	prepared->meta = handle.meta;
	bs = start_build(heap, info, &handle);
	bs->shared = prepared;
	floats = bs->ops->prepare(bs, &n);
	scan = GraphTeamBegin(&team, bs, QvBuildWorkers(heap, index, info), floats, n);
	take_part(bs, floats, scan);
	result->heap_tuples = bs->shared->base.heap_tuples;
	result->index_tuples = bs->shared->base.index_tuples;
	*left_out = bs->shared->base.left_out;
	info->ii_BrokenHotChain = bs->shared->base.broken_hot_chain;
	GraphTeamEnd(&team);
	QvReportCount(index, rows, result->index_tuples);
	make_row_pages(index, opclass, result->heap_tuples);
	QvWriteLogAll(index, MAIN_FORKNUM);
	return result;
}

void
GraphParallelWork(dsm_segment *segment, shm_toc *toc,
				  void (*get_opclass) (Relation index, QvOpclassInfo *opclass))
{
	QvWorker	worker;
	GraphBuildShared *shared = QvWorkerBegin(&worker, toc, get_opclass);
	GraphHandle handle;
	GraphBuildState *bs;

	init_handle_from_meta(&handle, worker.index, &worker.opclass, &shared->meta);
	bs = start_build(worker.heap, worker.info, &handle);
	bs->shared = shared;
	SharedFileSetAttach(&shared->budget.files, segment);
	take_part(bs, shm_toc_lookup(toc, QV_KEY_MORE, true), worker.scan);
	QvWorkerEnd(&worker);
}

void
GraphBuildEmpty(Relation index, const QvOpclassInfo *opclass,
				const QvIndexOptions *options)
{
	GraphHandle handle;

	GraphCheckOptions(options);
	init_handle(&handle, index, opclass, options);
	GraphWriteFixedPages(&handle, INIT_FORKNUM, NULL);
	QvWriteLogAll(index, INIT_FORKNUM);
}
