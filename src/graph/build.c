/*
 * build.c
 *		Building a graph index: sample, cluster, insert in memory, write out.
 *
 * Phases (src/graph/README.md, "Build"):
 *	1. a sample of the table gives the mean and about 2 sqrt(n) centroids;
 *	2. every row is encoded and inserted into a graph in memory, the search for
 *	   its neighbours entering at the representatives of its nearest centroids;
 *	3. the nodes are written in the order of their centroids, with their
 *	   neighbours' codes beside them.
 * When the graph outgrows maintenance_work_mem, phase 3 happens early and the
 * rest of the rows are inserted on the pages.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "access/tableam.h"
#include "catalog/index.h"
#include "cluster/kmeans.h"
#include "commands/defrem.h"
#include "commands/progress.h"
#include "compat.h"
#include "graph/graph.h"
#include "graph/insert.h"
#include "graph/pages.h"
#include "graph/select.h"
#include "graph/store_mem.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "storage/write.h"
#include "utils/memutils.h"
#include "utils/sampling.h"

/* Rows sampled for each centroid: enough for entry points, not for codebooks. */
#define ROWS_PER_LIST 20
#define KMEANS_ITERATIONS 5
#define MAX_LISTS 32768

/* The least sample, which the mean alone wants. */
#define MIN_SAMPLE 1000

/*
 * Centroids compared exactly for each row, and representatives that its search
 * enters at.
 */
#define NEAREST_LISTS 8
#define ENTRIES 4

/* Build phases, in pg_stat_progress_create_index; 1 is the server's own. */
#define PHASE_SAMPLE 2
#define PHASE_CLUSTER 3
#define PHASE_LOAD 4
#define PHASE_WRITE 5

typedef struct GraphBuildState
{
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	const QvOpclassInfo *opclass;
	GraphMetaData meta;
	GraphHandle handle;			/* made by hand: there are no pages yet */
	QvBufferHints hints;
	Size		max_memory;

	MemoryContext row_context;	/* reset after every row */
	float	   *value;			/* dims */
	float	   *rotated;		/* pdim */
	float	   *centred;		/* pdim */
	uint8	   *bytes;			/* pdim */

	/* sample */
	float	   *sample;			/* target x pdim, rotated */
	int			sample_target;
	int			sampled;
	double		sample_seen;
	double		sample_skip;
	ReservoirStateData reservoir;

	/* lists */
	uint32		nlists;
	float	   *centroids;		/* nlists x pdim */
	uint32	   *medoid;			/* node nearest to each centroid, or NONE */
	float	   *medoid_distance;

	MemoryContext graph_context;
	GraphMem	mem;
	GraphSearch search;
	Candidate  *chosen;
	Candidate  *scratch;
	bool		on_pages;		/* the graph no longer fits in memory */
	double		tuples;			/* rows indexed */
	uint32		nodes;			/* written from memory */
} GraphBuildState;

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

static int
column_dims(Relation index, const QvOpclassInfo *opclass)
{
	int			dims = TupleDescAttr(RelationGetDescr(index), 0)->atttypmod;

	if (dims < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("column does not have dimensions")));
	if (dims > opclass->type->max_dims)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("column cannot have more than %d dimensions for %s index",
						opclass->type->max_dims,
						get_am_name(index->rd_rel->relam))));
	return dims;
}

static void
check_options(const GraphOptions *options)
{
	if (options->ef_construction < 2 * options->m)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("ef_construction must be greater than or equal to 2 * m")));
}

/* Read a row's value into bs->rotated; false when it is not to be indexed. */
static bool
take_row(GraphBuildState *bs, Datum datum)
{
	void	   *value = PG_DETOAST_DATUM(datum);
	int			dims = bs->opclass->type->dims(value);

	if (dims != bs->meta.dims)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_EXCEPTION),
				 errmsg("expected %d dimensions, not %d", bs->meta.dims, dims)));
	bs->opclass->type->to_float(value, bs->value);
	return GraphRotate(&bs->handle, bs->value, bs->rotated);
}

static void
center(GraphBuildState *bs, const float *rotated, float *centred)
{
	for (uint32 i = 0; i < bs->meta.pdim; i++)
		centred[i] = rotated[i] - bs->handle.mean[i];
}

/* ---- phase 1: sample, mean, centroids ---- */

static void
sample_callback(Relation index, ItemPointer tid, Datum *values, bool *isnull,
				bool alive, void *state)
{
	GraphBuildState *bs = state;
	MemoryContext old;
	int			to;

	if (isnull[0])
		return;
	bs->sample_seen++;
	if (bs->sampled < bs->sample_target)
		to = bs->sampled;
	else
	{
		/* Vitter's algorithm, as ANALYZE uses it */
		if (bs->sample_skip < 0)
			bs->sample_skip = reservoir_get_next_S(&bs->reservoir, bs->sample_seen - 1,
												   bs->sample_target);
		if (bs->sample_skip-- > 0)
			return;
		bs->sample_skip = -1;
		to = bs->sample_target * sampler_random_fract(&bs->reservoir.randstate);
	}
	old = MemoryContextSwitchTo(bs->row_context);
	if (take_row(bs, values[0]))
	{
		memcpy(bs->sample + (Size) to * bs->meta.pdim, bs->rotated,
			   bs->meta.pdim * sizeof(float));
		if (to == bs->sampled)
			bs->sampled++;
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(bs->row_context);
}

/* Rows in the table, roughly. */
static double
estimate_rows(Relation heap)
{
	BlockNumber pages;
	double		tuples,
				allvisible;

	table_relation_estimate_size(heap, NULL, &pages, &tuples, &allvisible);
	return tuples;
}

static void
sample_rows(GraphBuildState *bs, double rows)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(bs->heap);
	double		lists = Min(MAX_LISTS, 2 * sqrt(Max(1, rows)));
	double		target = Max(MIN_SAMPLE, lists * ROWS_PER_LIST);
	double		blocks;
	BlockSamplerData sampler;

	/* a quarter of the memory; k-means wants some of the rest */
	target = Min(target, bs->max_memory / 4.0 / (bs->meta.pdim * sizeof(float)));
	target = Max(target, 64);
	bs->sample_target = target;
	bs->sample = MemoryContextAllocHuge(CurrentMemoryContext,
										(Size) bs->sample_target * bs->meta.pdim * sizeof(float));
	bs->sample_skip = -1;
	reservoir_init_selection_state(&bs->reservoir, bs->sample_target);

	/* half as many blocks again as the rows need, for they are uneven */
	blocks = 16 + 1.5 * target * nblocks / Max(1, rows);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SAMPLE);
	if (blocks >= nblocks)
		table_index_build_scan(bs->heap, bs->index, bs->info, false, false,
							   sample_callback, bs, NULL);
	else
	{
		BlockSampler_Init(&sampler, nblocks, blocks, bs->meta.seed & PG_INT32_MAX);
		while (BlockSampler_HasMore(&sampler))
		{
			BlockNumber block = BlockSampler_Next(&sampler);

			CHECK_FOR_INTERRUPTS();
			table_index_build_range_scan(bs->heap, bs->index, bs->info, false,
										 true, false, block, 1,
										 sample_callback, bs, NULL);
		}
	}
}

static void
compute_mean(GraphBuildState *bs, float *mean)
{
	uint32		pdim = bs->meta.pdim;
	double	   *sum = palloc0(pdim * sizeof(double));

	for (int i = 0; i < bs->sampled; i++)
	{
		const float *row = bs->sample + (Size) i * pdim;

		for (uint32 j = 0; j < pdim; j++)
			sum[j] += row[j];
	}
	for (uint32 j = 0; j < pdim; j++)
	{
		mean[j] = bs->sampled > 0 ? sum[j] / bs->sampled : 0;
		/* sums of huge values */
		if (!isfinite(mean[j]))
			mean[j] = 0;
	}
	pfree(sum);
	bs->handle.mean = mean;
	bs->handle.mean_norm2 = qv_kernels.norm2_f32(mean, pdim);
	for (int i = 0; i < bs->sampled; i++)
	{
		float	   *row = bs->sample + (Size) i * pdim;

		center(bs, row, row);
	}
}

static void
kmeans_interrupt(void *arg)
{
	CHECK_FOR_INTERRUPTS();
}

/* An in-memory entry table with room for n entries. */
static GraphRoutes *
new_routes(const GraphMetaData *meta, uint32 n)
{
	GraphRoutes *routes = palloc0(sizeof(GraphRoutes));

	routes->nblocks = (n + QV_BLOCK - 1) / QV_BLOCK;
	routes->block_size = GraphRouteBlockSize(meta->route_bits);
	routes->blocks = MemoryContextAllocExtended(CurrentMemoryContext,
												Max(1, routes->nblocks) * routes->block_size,
												MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	return routes;
}

static void
routes_append(const GraphMetaData *meta, GraphRoutes *routes, uint32 id,
			  const float *x)
{
	GraphRouteBlock *block = GraphRoutesBlock(routes, routes->count / QV_BLOCK);

	GraphRouteSet(block, routes->count % QV_BLOCK, id, x, meta->pdim,
				  meta->route_bits);
	block->count++;
	routes->count++;
}

static void
make_lists(GraphBuildState *bs, double rows)
{
	uint32		pdim = bs->meta.pdim;
	uint32		wanted = Min(MAX_LISTS, 2 * sqrt(Max(1, rows)));
	QvKmeansParams params = {0};
	void	   *workspace;

	wanted = Min(wanted, bs->sampled / 8 + 1);
	if (bs->sampled == 0)
		wanted = 0;
	bs->centroids = MemoryContextAllocHuge(CurrentMemoryContext,
										   (Size) Max(1, wanted) * pdim * sizeof(float));
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_CLUSTER);
	if (wanted > 0)
	{
		params.rows = bs->sample;
		params.n = bs->sampled;
		params.dim = pdim;
		params.k = wanted;
		params.iterations = KMEANS_ITERATIONS;
		params.seed = bs->meta.seed;
		params.interrupt = kmeans_interrupt;
		workspace = MemoryContextAllocHuge(CurrentMemoryContext,
										   QvKmeansWorkspace(bs->sampled, pdim, wanted));
		bs->nlists = QvKmeans(&params, bs->centroids, NULL, workspace);
		pfree(workspace);
	}
	pfree(bs->sample);
	bs->sample = NULL;

	bs->medoid = palloc(Max(1, bs->nlists) * sizeof(uint32));
	bs->medoid_distance = palloc(Max(1, bs->nlists) * sizeof(float));
	bs->handle.routes = new_routes(&bs->meta, bs->nlists);
	for (uint32 i = 0; i < bs->nlists; i++)
	{
		bs->medoid[i] = GRAPH_NONE;
		bs->medoid_distance[i] = FLT_MAX;
		routes_append(&bs->meta, bs->handle.routes, i, bs->centroids + (Size) i * pdim);
	}
}

/* ---- phase 2: insertion ---- */

/*
 * The list of row "centred", and where to enter the graph for it: fills
 * entries with at most ENTRIES node numbers, returns how many.
 */
static int
route_row(GraphBuildState *bs, const GraphQuery *query, uint32 *list,
		  uint32 *entries)
{
	Candidate	near[NEAREST_LISTS];
	int			nnear = GraphRouteQuery(&bs->handle, query, near, NEAREST_LISTS);
	float		best = FLT_MAX;
	int			n = 0;

	*list = 0;
	for (int i = 0; i < nnear; i++)
	{
		float		d = qv_kernels.l2sq_f32(bs->centred,
											bs->centroids + (Size) near[i].id * bs->meta.pdim,
											bs->meta.pdim);

		if (d < best)
		{
			best = d;
			*list = near[i].id;
		}
		if (n < ENTRIES && bs->medoid[near[i].id] != GRAPH_NONE)
			entries[n++] = bs->medoid[near[i].id];
	}

	/*
	 * A table in clustered order: no near list has a node yet.  Enter at the
	 * nearest list that has.
	 */
	if (n == 0 && bs->mem.count > 0)
	{
		float		nearest = FLT_MAX;

		entries[n++] = 0;
		for (uint32 i = 0; i < bs->nlists; i++)
		{
			float		d;

			if (bs->medoid[i] == GRAPH_NONE)
				continue;
			d = qv_kernels.l2sq_f32(bs->centred, bs->centroids + (Size) i * bs->meta.pdim,
									bs->meta.pdim);
			if (d < nearest)
			{
				nearest = d;
				entries[0] = bs->medoid[i];
			}
		}
	}
	return n;
}

/* A node with exactly the same code among the nearest found? */
static uint32
find_duplicate(GraphBuildState *bs, uint32 id, const Candidate *found, int n)
{
	GraphMem   *mem = &bs->mem;
	GraphMemNode *node = GraphMemGet(mem, id);

	for (int i = 0; i < Min(n, 8); i++)
	{
		GraphMemNode *other = GraphMemGet(mem, found[i].id);

		if (other->sum == node->sum && other->scale == node->scale &&
			other->norm2 == node->norm2 &&
			memcmp(GraphMemCode(mem, other), GraphMemCode(mem, node),
				   bs->meta.pdim) == 0)
			return found[i].id;
	}
	return GRAPH_NONE;
}

static void
add_in_memory(GraphBuildState *bs, ItemPointer tid)
{
	GraphMem   *mem = &bs->mem;
	GraphQuery	query;
	GraphCode	code;
	uint32		entries[ENTRIES];
	uint32		list,
				id,
				same;
	int			n,
				nentries;

	center(bs, bs->rotated, bs->centred);
	GraphEncode(&bs->handle.layout, bs->centred, bs->handle.mean, &code, bs->bytes);
	GraphQueryInit(&bs->handle, &query, bs->rotated);
	nentries = route_row(bs, &query, &list, entries);

	MemoryContextSwitchTo(bs->graph_context);
	id = GraphMemAdd(mem, &code, tid);
	GraphMemGet(mem, id)->list = list;
	mem->query = GraphMemGet(mem, id);
	GraphSearchReset(&bs->search, bs->meta.ef_construction);
	for (int i = 0; i < nentries; i++)
		GraphSearchOffer(&bs->search,
						 GraphMemDistance(mem, mem->query, GraphMemGet(mem, entries[i])),
						 entries[i]);
	GraphSearchRun(&bs->search, &mem->base);

	n = bs->search.pool.count;
	for (int i = 0; i < n; i++)
	{
		bs->chosen[i] = bs->search.pool.items[i];
		bs->chosen[i].id &= ~POOL_EXPANDED;
	}
	same = find_duplicate(bs, id, bs->chosen, n);
	if (same != GRAPH_NONE)
	{
		GraphMemRemoveLast(mem);
		GraphMemAddDuplicate(mem, same, tid);
		return;
	}
	n = GraphSelectNeighbors(bs->chosen, n, bs->meta.slots, GraphMemPair, mem,
							 bs->scratch);
	GraphMemConnect(mem, id, bs->chosen, n, bs->scratch);
	if (bs->nlists > 0)
	{
		float		d = qv_kernels.l2sq_f32(bs->centred,
											bs->centroids + (Size) list * bs->meta.pdim,
											bs->meta.pdim);

		if (d < bs->medoid_distance[list])
		{
			bs->medoid_distance[list] = d;
			bs->medoid[list] = id;
		}
	}
}

/* ---- phase 3: pages ---- */

/*
 * Positions of the nodes on the pages: by list, so that near nodes share
 * pages, in the order of arrival within one.
 */
static uint32 *
order_nodes(GraphBuildState *bs, uint32 **nodes_in_order)
{
	uint32		n = bs->mem.count;
	uint32	   *start = palloc0((bs->nlists + 2) * sizeof(uint32));
	uint32	   *position = MemoryContextAllocHuge(CurrentMemoryContext, Max(1, n) * sizeof(uint32));
	uint32	   *order = MemoryContextAllocHuge(CurrentMemoryContext, Max(1, n) * sizeof(uint32));

	for (uint32 i = 0; i < n; i++)
		start[GraphMemGet(&bs->mem, i)->list + 1]++;
	for (uint32 i = 1; i <= bs->nlists; i++)
		start[i] += start[i - 1];
	for (uint32 i = 0; i < n; i++)
	{
		position[i] = start[GraphMemGet(&bs->mem, i)->list]++;
		order[position[i]] = i;
	}
	pfree(start);
	*nodes_in_order = order;
	return position;
}

/* The slots that hold row pointers beyond a node's own. */
typedef struct TidWriter
{
	GraphBuildState *bs;
	uint32		first;			/* number of the first such slot */
	uint32		used;
} TidWriter;

/* Put the node's rows in its slot; what does not fit gets numbers after all nodes. */
static void
write_tids(TidWriter *tw, GraphMemNode *from, GraphNode to)
{
	GraphBuildState *bs = tw->bs;
	uint32		d = from->duplicates;
	uint32		extra = 0;

	to->tids[to->ntids++] = from->tid;
	while (d != GRAPH_NONE && to->ntids < GRAPH_INLINE_TIDS)
	{
		to->tids[to->ntids++] = bs->mem.duplicates[d].tid;
		d = bs->mem.duplicates[d].next;
	}
	/* the rest is written by write_overflow(), which finds it from here */
	from->duplicates = d;
	for (; d != GRAPH_NONE; d = bs->mem.duplicates[d].next)
		extra++;
	if (extra > 0)
	{
		to->overflow = tw->first + tw->used;
		tw->used += (extra + bs->handle.layout.tids_per_slot - 1) /
			bs->handle.layout.tids_per_slot;
	}
}

typedef struct SlotWriter
{
	Relation	index;
	const GraphLayout *layout;
	Buffer		buf;
	uint32		next;			/* number of the next slot */
} SlotWriter;

/* Memory of the next slot, on a new page when the last is full. */
static void *
next_slot(SlotWriter *sw)
{
	uint32		slot = GraphNodeSlot(sw->layout, sw->next);

	if (slot == 0)
	{
		if (BufferIsValid(sw->buf))
			UnlockReleaseBuffer(sw->buf);
		CHECK_FOR_INTERRUPTS();
		sw->buf = QvNewPage(sw->index, MAIN_FORKNUM);
		QvPageInit(BufferGetPage(sw->buf), QV_PAGE_NODES);
		MarkBufferDirty(sw->buf);
		if (BufferGetBlockNumber(sw->buf) != GraphNodeBlock(sw->layout, sw->next))
			elog(ERROR, "unexpected block %u while building index \"%s\"",
				 BufferGetBlockNumber(sw->buf), RelationGetRelationName(sw->index));
	}
	sw->next++;
	return GraphPageNode(sw->layout, BufferGetPage(sw->buf), slot);
}

static void
write_node(GraphBuildState *bs, GraphMemNode *from, GraphNode to,
		   const uint32 *position, uint32 first)
{
	const GraphLayout *layout = &bs->handle.layout;
	GraphEdge	edges[GRAPH_MAX_SLOTS];
	Size		stride = layout->code_bits / 8;
	uint8	   *bits = (uint8 *) bs->value;
	GraphCode	code;

	GraphMemShrink(&bs->mem, from, bs->scratch);
	GraphMemGetCode(&bs->mem, from, &code);
	qv_kernels.decode_u8(code.bytes, code.scale, QvCodeOffset(layout->own_bits),
						 bs->centred, layout->pdim);
	for (int i = 0; i < from->degree; i++)
	{
		uint32		id = from->edges[i].id;
		GraphCode	other;

		GraphMemGetCode(&bs->mem, GraphMemGet(&bs->mem, id), &other);
		GraphEncodeEdge(layout, bs->meta.space, &code, bs->centred, &other,
						first + position[id], &edges[i], bits + i * stride);
	}
	GraphNodeInit(layout, to, &code);
	GraphNodeSetEdges(layout, to, edges, bits, from->degree);
}

static void
write_overflow(GraphBuildState *bs, SlotWriter *sw, const uint32 *order,
			   uint32 first)
{
	const GraphLayout *layout = &bs->handle.layout;

	for (uint32 i = 0; i < bs->mem.count; i++)
	{
		uint32		d = GraphMemGet(&bs->mem, order[i])->duplicates;

		while (d != GRAPH_NONE)
		{
			GraphTids	tids = next_slot(sw);

			tids->state = GRAPH_SLOT_TIDS;
			tids->owner = first + i;
			while (d != GRAPH_NONE && tids->ntids < layout->tids_per_slot)
			{
				tids->tids[tids->ntids++] = bs->mem.duplicates[d].tid;
				d = bs->mem.duplicates[d].next;
			}
			tids->next = d == GRAPH_NONE ? GRAPH_NONE : sw->next;
		}
	}
}

static void
write_graph(GraphBuildState *bs)
{
	const GraphLayout *layout = &bs->handle.layout;
	GraphRoutes *routes = new_routes(&bs->meta, Max(1, bs->nlists));
	uint32	   *order,
			   *position = order_nodes(bs, &order);
	uint32		first,
				n = bs->mem.count;
	BlockNumber head;
	SlotWriter	sw = {bs->index, layout, InvalidBuffer, 0};
	TidWriter	tw = {bs, 0, 0};

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_WRITE);

	/* entry table: the lists that have a node */
	for (uint32 i = 0; i < bs->nlists; i++)
		if (bs->medoid[i] != GRAPH_NONE)
			routes_append(&bs->meta, routes, position[bs->medoid[i]],
						  bs->centroids + (Size) i * bs->meta.pdim);
	if (routes->count == 0 && n > 0)
	{
		GraphCode	code;

		GraphMemGetCode(&bs->mem, GraphMemGet(&bs->mem, 0), &code);
		qv_kernels.decode_u8(code.bytes, code.scale, QvCodeOffset(layout->own_bits),
							 bs->centred, layout->pdim);
		routes_append(&bs->meta, routes, position[0], bs->centred);
	}
	routes->nblocks = (routes->count + QV_BLOCK - 1) / QV_BLOCK;

	/* the fixed pages come first: their number says where the nodes start */
	head = 1 + (bs->meta.pdim + GRAPH_FLOATS_PER_PAGE - 1) / GRAPH_FLOATS_PER_PAGE;
	head += Max(1, (routes->nblocks + GraphRouteBlocksPerPage(bs->meta.route_bits) - 1) /
				GraphRouteBlocksPerPage(bs->meta.route_bits));
	if ((uint64) (head + 1) * layout->per_page + n >= POOL_MAX_ID)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("index \"%s\" would have too many nodes",
						RelationGetRelationName(bs->index))));
	first = GraphNodeNumber(layout, head, 0);
	for (uint32 i = 0; i < routes->nblocks; i++)
	{
		GraphRouteBlock *block = GraphRoutesBlock(routes, i);

		for (uint32 j = 0; j < block->count; j++)
			block->ids[j] += first;
	}
	bs->meta.live_nodes = n;
	GraphCreatePages(bs->index, MAIN_FORKNUM, &bs->meta, bs->handle.mean, routes);

	sw.next = first;
	tw.first = first + n;
	for (uint32 i = 0; i < n; i++)
	{
		GraphMemNode *node = GraphMemGet(&bs->mem, order[i]);
		GraphNode	to = next_slot(&sw);

		write_node(bs, node, to, position, first);
		write_tids(&tw, node, to);
	}
	write_overflow(bs, &sw, order, first);
	if (BufferIsValid(sw.buf))
	{
		/* the last page may have room for what is inserted next */
		bs->meta.insert_block = BufferGetBlockNumber(sw.buf);
		UnlockReleaseBuffer(sw.buf);
		GraphRewriteMeta(bs->index, &bs->meta);
	}
	Assert(sw.next == tw.first + tw.used);
	bs->nodes = n;
}

/* ---- */

static void
load_callback(Relation index, ItemPointer tid, Datum *values, bool *isnull,
			  bool alive, void *state)
{
	GraphBuildState *bs = state;
	MemoryContext old;

	if (isnull[0])
		return;
	old = MemoryContextSwitchTo(bs->row_context);
	if (take_row(bs, values[0]))
	{
		if (!bs->on_pages &&
			bs->mem.memory + GraphMemNodeCost(&bs->mem) > bs->max_memory)
		{
			ereport(NOTICE,
					(errmsg("hnsw graph no longer fits into maintenance_work_mem after " INT64_FORMAT " tuples",
							(int64) bs->tuples),
					 errdetail("Building will take longer."),
					 errhint("Increase maintenance_work_mem to speed up builds.")));
			write_graph(bs);
			MemoryContextSwitchTo(bs->row_context);
			MemoryContextDelete(bs->graph_context);
			bs->on_pages = true;
			pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_LOAD);
		}
		if (bs->on_pages)
			GraphInsertRotated(bs->index, bs->rotated, tid, true);
		else
			add_in_memory(bs, tid);
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
	uint8	   *signs = palloc(QvRotationSignBytes(bs->meta.dims));

	handle->index = bs->index;
	handle->meta = bs->meta;
	if (!GraphLayoutFromMeta(&handle->layout, &bs->meta))
		elog(ERROR, "graph node layout does not fit together");
	QvRotationInit(&handle->rotation, bs->meta.dims, bs->meta.seed, signs);
	bs->hints.context = CurrentMemoryContext;
	handle->hints = &bs->hints;
}

IndexBuildResult *
GraphBuild(Relation heap, Relation index, IndexInfo *info,
		   const QvOpclassInfo *opclass, const GraphOptions *options)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));
	GraphBuildState *bs = palloc0(sizeof(GraphBuildState));
	uint32		pdim;
	double		rows,
				heap_tuples;

	check_options(options);
	bs->heap = heap;
	bs->index = index;
	bs->info = info;
	bs->opclass = opclass;
	bs->max_memory = (Size) maintenance_work_mem * 1024;
	GraphMetaInit(&bs->meta, column_dims(index, opclass), options->m,
				  options->ef_construction, opclass->metric);
	pdim = bs->meta.pdim;
	init_handle(bs);

	bs->row_context = AllocSetContextCreate(CurrentMemoryContext, "quiver build row",
											ALLOCSET_DEFAULT_SIZES);
	bs->graph_context = AllocSetContextCreate(CurrentMemoryContext, "quiver build graph",
											  ALLOCSET_DEFAULT_SIZES);
	/* also holds the bits of a node's edges while it is written */
	bs->value = palloc(Max(pdim * sizeof(float),
						   (Size) bs->meta.slots * bs->meta.code_bits / 8));
	bs->rotated = palloc(pdim * sizeof(float));
	bs->centred = palloc(pdim * sizeof(float));
	bs->bytes = palloc(pdim);

	rows = estimate_rows(heap);
	sample_rows(bs, rows);
	compute_mean(bs, palloc(pdim * sizeof(float)));
	make_lists(bs, rows);

	GraphMemInit(&bs->mem, &bs->handle.layout, bs->meta.space, bs->handle.mean_norm2);
	bs->chosen = palloc((Max(bs->meta.ef_construction, bs->mem.max_edges) + 1) * sizeof(Candidate));
	bs->scratch = palloc((Max(bs->meta.ef_construction, bs->mem.max_edges) + 1) * sizeof(Candidate));
	{
		MemoryContext old = MemoryContextSwitchTo(bs->graph_context);

		GraphSearchInit(&bs->search, true, false);
		MemoryContextSwitchTo(old);
	}

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_LOAD);
	heap_tuples = table_index_build_scan(heap, index, info, true, true,
										 load_callback, bs, NULL);
	if (!bs->on_pages)
		write_graph(bs);
	{
		GraphMetaData meta;

		GraphReadMeta(index, &meta);
		meta.tuples = bs->tuples;
		GraphRewriteMeta(index, &meta);
	}
	QvWriteLogAll(index, MAIN_FORKNUM);

	result->heap_tuples = heap_tuples;
	result->index_tuples = bs->tuples;
	return result;
}

void
GraphBuildEmpty(Relation index, const QvOpclassInfo *opclass,
				const GraphOptions *options)
{
	GraphMetaData meta;

	check_options(options);
	GraphMetaInit(&meta, column_dims(index, opclass), options->m,
				  options->ef_construction, opclass->metric);
	GraphCreatePages(index, INIT_FORKNUM, &meta, NULL, NULL);
	QvWriteLogAll(index, INIT_FORKNUM);
}
