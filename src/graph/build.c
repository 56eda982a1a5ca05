/*
 * build.c
 *		Building a graph index: every row is inserted into a graph in memory,
 *		which is then written out.
 *
 * What the forms do differently is in build_coded.c and build_plain.c.  When
 * the graph outgrows maintenance_work_mem it is written early, and the rest of
 * the rows are inserted on the pages (src/graph/README.md, "Build").
 */
#include "postgres.h"

#include "access/tableam.h"
#include "catalog/index.h"
#include "commands/defrem.h"
#include "commands/progress.h"
#include "graph/build_coded.h"
#include "graph/build_plain.h"
#include "graph/build_write.h"
#include "graph/cache.h"
#include "graph/graph.h"
#include "graph/insert.h"
#include "graph/meta.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "pages/write.h"
#include "utils/memutils.h"

/* Nearest nodes looked at for one with the same value. */
#define DUPLICATE_CANDIDATES 8

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
		case PHASE_WRITE:
			return "writing graph";
		default:
			return NULL;
	}
}

static void
check_options(const GraphOptions *options)
{
	if (options->ef_construction < 2 * options->m)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("ef_construction must be greater than or equal to 2 * m")));
}

/*
 * Insert node id, the last one added, into the graph in memory, entering at
 * entries.  Returns false when an equal node took the row instead, and id is
 * gone.
 */
static bool
connect_node(GraphBuildState *bs, uint32 id, const uint32 *entries, int nentries)
{
	GraphMem   *mem = &bs->mem;
	ItemPointerData tid = GraphMemGet(mem, id)->tid;
	int			n;

	mem->query = GraphMemGet(mem, id);
	GraphSearchReset(&bs->search, bs->handle.meta.ef_construction);
	for (int i = 0; i < nentries; i++)
		GraphSearchOffer(&bs->search, mem->pair(mem, id, entries[i]), entries[i]);
	GraphSearchRun(&bs->search, &mem->base);

	n = bs->search.pool.count;
	for (int i = 0; i < n; i++)
	{
		bs->chosen[i] = bs->search.pool.items[i];
		bs->chosen[i].id &= ~POOL_EXPANDED;
	}
	for (int i = 0; i < Min(n, DUPLICATE_CANDIDATES); i++)
		if (mem->same(mem, bs->chosen[i].id, id))
		{
			GraphMemRemoveLast(mem);
			GraphMemAddDuplicate(mem, bs->chosen[i].id, &tid);
			return false;
		}
	n = GraphSelectNeighbors(bs->chosen, n, bs->handle.meta.degree, mem->pair, mem,
							 bs->scratch);
	GraphMemConnect(mem, id, bs->chosen, n, bs->scratch);
	return true;
}

/* Add a row to the graph in memory. */
static void
add_row(GraphBuildState *bs, const void *value, ItemPointer tid)
{
	uint32		entries[BUILD_ENTRIES];
	int			nentries;
	uint32		id = bs->ops->add(bs, value, tid, entries, &nentries);

	MemoryContextSwitchTo(bs->graph_context);
	if (connect_node(bs, id, entries, nentries))
		bs->ops->connected(bs, id);
}

/* Insert a row on the pages. */
static void
insert_row(GraphBuildState *bs, const void *value, ItemPointer tid)
{
	GraphHandle *handle = GraphOpen(bs->handle.index, &bs->handle.space.opclass);

	handle->building = true;
	GraphInsertValue(handle, value, tid);
}

/* Write the graph so far: the other rows are inserted on its pages. */
static void
leave_memory(GraphBuildState *bs)
{
	ereport(NOTICE,
			(errmsg("%s graph no longer fits into maintenance_work_mem after " INT64_FORMAT " tuples",
					get_am_name(bs->handle.index->rd_rel->relam), (int64) bs->tuples),
			 errdetail("Building will take longer."),
			 errhint("Increase maintenance_work_mem to speed up builds.")));
	GraphBuildWrite(bs);
	MemoryContextSwitchTo(bs->row_context);
	MemoryContextDelete(bs->graph_context);
	bs->on_pages = true;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_LOAD);
}

static void
load_callback(Relation index, ItemPointer tid, Datum *values, bool *isnull,
			  bool alive, void *state)
{
	GraphBuildState *bs = state;
	const QvOpclassInfo *opclass = &bs->handle.space.opclass;
	MemoryContext old;
	void	   *value;

	if (isnull[0])
		return;
	old = MemoryContextSwitchTo(bs->row_context);
	value = PG_DETOAST_DATUM(values[0]);
	QvCheckDims(opclass, bs->handle.meta.dims, value);
	if (QvIsIndexed(opclass, value))
	{
		if (!bs->on_pages &&
			bs->mem.memory + GraphMemNodeCost(&bs->mem, opclass->type->value_size(value)) > bs->max_memory)
			leave_memory(bs);
		if (bs->on_pages)
			insert_row(bs, value, tid);
		else
			add_row(bs, value, tid);
		bs->tuples++;
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, bs->tuples);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(bs->row_context);
}

/* A handle on an index that has no pages yet. */
static void
init_handle(GraphHandle *handle, Relation index, const QvOpclassInfo *opclass,
			const GraphOptions *options)
{
	GraphMetaData *meta = &handle->meta;

	memset(handle, 0, sizeof(*handle));
	handle->index = index;
	handle->building = true;
	GraphMetaInit(meta, QvColumnDims(index, opclass), options->m,
				  options->ef_construction, opclass);
	if (!GraphLayoutFromMeta(&handle->layout, meta))
		elog(ERROR, "graph node layout does not fit together");
	QvSpaceInit(&handle->space, opclass, meta->dims, meta->pdim);
}

static GraphBuildState *
start_build(Relation heap, IndexInfo *info, const GraphHandle *handle)
{
	const GraphBuildOps *ops = handle->layout.form == QV_FORM_CODED ?
		&graph_coded_build : &graph_plain_build;
	GraphBuildState *bs = palloc0(ops->state_size);

	bs->ops = ops;
	bs->heap = heap;
	bs->info = info;
	bs->handle = *handle;
	bs->max_memory = (Size) maintenance_work_mem * 1024;
	if (handle->layout.form == QV_FORM_CODED)
		QvSpaceInitRotation(&bs->handle.space, handle->meta.seed);
	bs->hints.context = CurrentMemoryContext;
	bs->handle.hints = &bs->hints;
	bs->row_context = AllocSetContextCreate(CurrentMemoryContext, "quiver build row",
											ALLOCSET_DEFAULT_SIZES);
	bs->graph_context = AllocSetContextCreate(CurrentMemoryContext, "quiver build graph",
											  ALLOCSET_DEFAULT_SIZES);
	ops->prepare(bs);
	return bs;
}

IndexBuildResult *
GraphBuild(Relation heap, Relation index, IndexInfo *info,
		   const QvOpclassInfo *opclass, const GraphOptions *options)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));
	GraphBuildState *bs;
	GraphHandle handle;
	GraphMetaData meta;
	MemoryContext old;
	Size		most;

	check_options(options);
	init_handle(&handle, index, opclass, options);
	bs = start_build(heap, info, &handle);
	most = Max(options->ef_construction, bs->mem.max_edges) + 1;
	bs->chosen = palloc(most * sizeof(Candidate));
	bs->scratch = palloc(most * sizeof(Candidate));
	old = MemoryContextSwitchTo(bs->graph_context);
	GraphSearchInit(&bs->search, bs->mem.base.exact, false);
	MemoryContextSwitchTo(old);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_LOAD);
	result->heap_tuples = table_index_build_scan(heap, index, info, true, true,
												 load_callback, bs, NULL);
	if (!bs->on_pages)
		GraphBuildWrite(bs);
	GraphReadMeta(index, &meta);
	meta.tuples = bs->tuples;
	QvMetaWrite(index, MAIN_FORKNUM, &meta, sizeof(GraphMetaData));
	QvWriteLogAll(index, MAIN_FORKNUM);
	result->index_tuples = bs->tuples;
	return result;
}

void
GraphBuildEmpty(Relation index, const QvOpclassInfo *opclass,
				const GraphOptions *options)
{
	GraphHandle handle;

	check_options(options);
	init_handle(&handle, index, opclass, options);
	GraphWriteFixedPages(&handle, INIT_FORKNUM, NULL);
	QvWriteLogAll(index, INIT_FORKNUM);
}
