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
#include "graph/build.h"
#include "graph/insert.h"
#include "graph/pages.h"
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

bool
GraphBuildConnect(GraphBuildState *bs, uint32 id, const uint32 *entries,
				  int nentries)
{
	GraphMem   *mem = &bs->mem;
	ItemPointerData tid = GraphMemGet(mem, id)->tid;
	int			n;

	mem->query = GraphMemGet(mem, id);
	GraphSearchReset(&bs->search, bs->meta.ef_construction);
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
	n = GraphSelectNeighbors(bs->chosen, n, bs->meta.degree, mem->pair, mem,
							 bs->scratch);
	GraphMemConnect(mem, id, bs->chosen, n, bs->scratch);
	return true;
}

/* Write the graph so far: the other rows are inserted on its pages. */
static void
leave_memory(GraphBuildState *bs)
{
	ereport(NOTICE,
			(errmsg("%s graph no longer fits into maintenance_work_mem after " INT64_FORMAT " tuples",
					get_am_name(bs->index->rd_rel->relam), (int64) bs->tuples),
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
	MemoryContext old;
	void	   *value;

	if (isnull[0])
		return;
	old = MemoryContextSwitchTo(bs->row_context);
	value = PG_DETOAST_DATUM(values[0]);
	QvCheckDims(bs->opclass, bs->meta.dims, value);
	if (QvIsIndexed(bs->opclass, value))
	{
		if (!bs->on_pages &&
			bs->mem.memory + GraphMemNodeCost(&bs->mem, bs->opclass->type->value_size(value)) > bs->max_memory)
			leave_memory(bs);
		if (bs->on_pages)
			GraphInsertValue(bs->index, bs->opclass, value, tid, true);
		else
			bs->ops->add(bs, value, tid);
		bs->tuples++;
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, bs->tuples);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(bs->row_context);
}

static void
init_handle(GraphBuildState *bs)
{
	GraphHandle *handle = &bs->handle;

	handle->index = bs->index;
	QvSpaceInit(&handle->space, bs->opclass, bs->meta.dims, bs->meta.pdim);
	handle->ops = GraphFormOf(&bs->meta);
	handle->meta = bs->meta;
	if (!GraphLayoutFromMeta(&handle->layout, &bs->meta))
		elog(ERROR, "graph node layout does not fit together");
	if (bs->meta.form == QV_FORM_CODED)
		QvSpaceInitRotation(&handle->space, bs->meta.seed);
	bs->hints.context = CurrentMemoryContext;
	handle->hints = &bs->hints;
}

static GraphBuildState *
start_build(Relation heap, Relation index, IndexInfo *info,
			const QvOpclassInfo *opclass, const GraphOptions *options)
{
	int			dims = QvColumnDims(index, opclass);
	const GraphBuildOps *ops = GraphChooseForm(opclass, dims) == QV_FORM_CODED ?
		&graph_coded_build : &graph_plain_build;
	GraphBuildState *bs = palloc0(ops->state_size);

	bs->ops = ops;
	bs->heap = heap;
	bs->index = index;
	bs->info = info;
	bs->opclass = opclass;
	bs->max_memory = (Size) maintenance_work_mem * 1024;
	GraphMetaInit(&bs->meta, dims, options->m,
				  options->ef_construction, opclass);
	init_handle(bs);
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
	GraphMetaData meta;
	MemoryContext old;
	Size		most;

	check_options(options);
	bs = start_build(heap, index, info, opclass, options);
	most = Max(options->ef_construction, bs->mem.max_edges) + 1;
	bs->chosen = palloc(most * sizeof(Candidate));
	bs->scratch = palloc(most * sizeof(Candidate));
	old = MemoryContextSwitchTo(bs->graph_context);
	GraphSearchInit(&bs->search, true, false);
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
	GraphMetaData meta;

	check_options(options);
	GraphMetaInit(&meta, QvColumnDims(index, opclass), options->m,
				  options->ef_construction, opclass);
	GraphCreatePages(index, INIT_FORKNUM, &meta, NULL, NULL);
	QvWriteLogAll(index, INIT_FORKNUM);
}
