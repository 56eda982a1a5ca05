/*
 * load.c
 *		The rows of the table, as nodes without edges; see load.h.
 *
 * The rows that a participant gets, and their order, are random.  The result is not: nodes
 * are numbered by list, then by a hash of their code or value.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "commands/defrem.h"
#include "commands/progress.h"
#include "common/pg_prng.h"
#include "compat.h"
#include "containers/bitmap.h"
#include "containers/compare.h"
#include "graph/build/connect.h"
#include "graph/build/load.h"
#include "graph/build/team.h"
#include "graph/page/cache.h"
#include "graph/update/insert.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"

/* Rows between two looks at interrupts. */
#define CHECK_ROWS 1000

/* ---- rows ---- */

/* Head of a spilled row.  Its value follows. */
typedef struct Spilled
{
	ItemPointerData tid;
	uint32		list;
	uint32		size;
} Spilled;

/* Place of a spilled row. */
typedef struct SpilledPlace
{
	uint32		list;
	int			fileno;
	off_t		offset;
} SpilledPlace;

/*
 * Share of a participant's memory for places of spilled rows, and limits of their number.
 * The upper limit is needed because their sort cannot be canceled.
 */
#define PLACES_SHARE 4
#define LEAST_PLACES 1000
#define MOST_PLACES 4000000

static void
spill_row(GraphBuildState *bs, const void *value, ItemPointer tid, uint32 list)
{
	Spilled		head;

	if (bs->spill == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(bs));

		bs->spill = BufFileCreateTemp(false);
		MemoryContextSwitchTo(old);
	}
	memset(&head, 0, sizeof(head));
	head.tid = *tid;
	head.list = list;
	head.size = bs->handle.space.opclass.type->value_size(value);
	BufFileWrite(bs->spill, &head, sizeof(head));
	BufFileWrite(bs->spill, unconstify(void *, value), head.size);
	bs->nspilled++;
}

static void
add_row(void *state, const void *value, ItemPointer tid)
{
	GraphBuildState *bs = state;
	uint32		list = 0;

	/* spilled rows are counted when they are inserted */
	if (bs->ops->add(bs, value, tid, &list))
		QvReportRows(&bs->shared->base, ++bs->nloaded, bs->leader);
	else
		spill_row(bs, value, tid, list);
}

void
GraphLoadRows(GraphBuildState *bs, TableScanDesc scan)
{
	GraphBuildShared *shared = bs->shared;
	QvLoader	loader = {
		.heap = bs->heap,
		.index = bs->index,
		.info = bs->info,
		.space = &bs->handle.space,
		.shared = &shared->base,
		.leader = bs->leader,
		.add = add_row,
		.state = bs
	};

	QvLoadRows(&loader, scan);
	SpinLockAcquire(&shared->base.mutex);
	shared->spilled += bs->nspilled;
	SpinLockRelease(&shared->base.mutex);
}

static void
seek_spilled(GraphBuildState *bs, int fileno, off_t offset)
{
	if (BufFileSeek(bs->spill, fileno, offset, SEEK_SET) != 0)
		elog(ERROR, "could not rewind a temporary file");
}

static int
compare_spilled(const void *a, const void *b)
{
	const SpilledPlace *x = a;
	const SpilledPlace *y = b;

	if (x->list != y->list)
		return x->list > y->list ? 1 : -1;
	if (x->fileno != y->fileno)
		return x->fileno > y->fileno ? 1 : -1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/*
 * Reads the places of the next n rows, and sorts them by list.  Each participant begins
 * with another list, so that they do not change the same nodes.
 */
static void
sort_places(GraphBuildState *bs, SpilledPlace *places, int64 n)
{
	uint32		nlists = Max(1, bs->shared->nlists);
	uint32		first = (double) nlists * (ParallelWorkerNumber + 1) / bs->shared->base.participants;

	for (int64 i = 0; i < n; i++)
	{
		Spilled		head;
		SpilledPlace *place = &places[i];

		CHECK_FOR_INTERRUPTS();
		BufFileTell(bs->spill, &place->fileno, &place->offset);
		QvBufFileReadExact(bs->spill, &head, sizeof(head));
		place->list = (head.list + nlists - first) % nlists;
		if (BufFileSeek(bs->spill, 0, head.size, SEEK_CUR) != 0)
			elog(ERROR, "could not read a temporary file");
	}
	qsort(places, n, sizeof(SpilledPlace), compare_spilled);
}

static void
insert_spilled(GraphBuildState *bs, const SpilledPlace *place)
{
	GraphHandle *handle;
	Spilled		head;
	void	   *value;

	seek_spilled(bs, place->fileno, place->offset);
	QvBufFileReadExact(bs->spill, &head, sizeof(head));
	value = palloc(head.size);
	QvBufFileReadExact(bs->spill, value, head.size);
	handle = GraphOpen(bs->index, &bs->handle.space.opclass);
	handle->building = true;
	GraphInsertValue(handle, value, NULL, &head.tid);
}

/*
 * Inserts rows by their lists, as many at a time as memory has places for.  Near rows one
 * after another find the pages that they read and change in the processor's caches.
 */
void
GraphInsertSpilled(GraphBuildState *bs)
{
	MemoryContext old;
	Size		memory = bs->max_memory / bs->shared->base.participants / PLACES_SHARE;
	int64		most = Max(LEAST_PLACES, Min(MOST_PLACES, memory / sizeof(SpilledPlace)));
	SpilledPlace *places;
	int			fileno = 0;
	off_t		offset = 0;
	int64		n;

	if (bs->leader && bs->shared->spilled > 0)
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL,
									 bs->shared->base.index_tuples);
	if (bs->spill == NULL)
		return;
	most = Min(most, bs->nspilled);
	places = MemoryContextAllocHuge(CurrentMemoryContext, most * sizeof(SpilledPlace));
	old = MemoryContextSwitchTo(bs->row_context);
	for (int64 done = 0; done < bs->nspilled; done += n)
	{
		n = Min(most, bs->nspilled - done);
		seek_spilled(bs, fileno, offset);
		sort_places(bs, places, n);
		BufFileTell(bs->spill, &fileno, &offset);
		for (int64 i = 0; i < n; i++)
		{
			CHECK_FOR_INTERRUPTS();
			insert_spilled(bs, &places[i]);
			MemoryContextReset(bs->row_context);
			QvReportRows(&bs->shared->base, done + i + 1, bs->leader);
		}
	}
	MemoryContextSwitchTo(old);
	pfree(places);
	BufFileClose(bs->spill);
}

/* ---- numbers ---- */

/* A loaded node and its place. */
typedef struct Place
{
	uint64		hash;
	ItemPointerData tid;
	uint32		slot;
} Place;

static int
compare_places(const void *a, const void *b)
{
	const Place *x = a,
			   *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return ItemPointerCompare(unconstify(ItemPointerData *, &x->tid), unconstify(ItemPointerData *, &y->tid));
}

typedef struct Arranger
{
	GraphBuildState *bs;
	uint32		nlists;
	uint32	   *from;			/* slots of the nodes, in the order that they
								 * are to have */
	uint32		count;
	uint32	   *representative; /* of each list */
	GraphMemDuplicate *duplicates;
	uint32		nduplicates;
	uint32		max_duplicates;
} Arranger;

static void
add_duplicate(Arranger *a, GraphMemNode *node, ItemPointer tid)
{
	if (a->nduplicates == a->max_duplicates)
	{
		a->max_duplicates = Max(1024, a->max_duplicates * 2);
		a->duplicates = a->duplicates ?
			repalloc_huge(a->duplicates, a->max_duplicates * sizeof(GraphMemDuplicate)) :
			MemoryContextAllocHuge(CurrentMemoryContext,
								   a->max_duplicates * sizeof(GraphMemDuplicate));
	}
	a->duplicates[a->nduplicates].tid = *tid;
	a->duplicates[a->nduplicates].next = node->duplicates;
	node->duplicates = a->nduplicates++;
}

/*
 * Numbers the nodes of a list.  Nodes with the same hash are distinct from "kept" on:
 * mostly one, unless hashes collide.
 */
static void
arrange_list(Arranger *a, uint32 list, Place *places, uint32 n)
{
	GraphMem   *mem = &a->bs->mem;
	float		best = INFINITY;
	uint32		kept = a->count;

	qsort(places, n, sizeof(Place), compare_places);
	a->representative[list] = GRAPH_NONE;
	for (uint32 i = 0; i < n; i++)
	{
		GraphMemNode *node = GraphMemGet(mem, places[i].slot);
		bool		found = false;

		if (i % CHECK_ROWS == 0)
			CHECK_FOR_INTERRUPTS();
		if (i > 0 && places[i].hash != places[i - 1].hash)
			kept = a->count;
		for (uint32 j = kept; j < a->count && !found; j++)
		{
			GraphMemNode *other = GraphMemGet(mem, a->from[j]);

			found = mem->same(mem, node, other);
			if (found)
				add_duplicate(a, other, &node->tid);
		}
		if (found)
			continue;
		if (GraphMemLoadedOf(node)->to_centroid < best || a->representative[list] == GRAPH_NONE)
		{
			best = GraphMemLoadedOf(node)->to_centroid;
			a->representative[list] = a->count;
		}
		a->from[a->count++] = places[i].slot;
	}
}

/* Goes through all loaded slots.  A participant's chunk is filled from its first slot on. */
#define FOR_EACH_LOADED(mem, slot) \
	for (uint32 chunk = 0; chunk < (mem)->nodes.table->count; chunk++) \
		for (uint32 slot = chunk << (mem)->chunk_shift; \
			 slot < (chunk << (mem)->chunk_shift) + (mem)->nodes.table->chunks[chunk].used; slot++)

/* Brings the slots into the order of lists, then each list in order. */
static void
number_nodes(Arranger *a)
{
	GraphMem   *mem = &a->bs->mem;
	uint32	   *start = palloc0((a->nlists + 2) * sizeof(uint32));
	uint32		n = 0,
				most = 0;
	uint32	   *by_list;
	Place	   *places;

	FOR_EACH_LOADED(mem, slot)
	{
		start[GraphMemGet(mem, slot)->list + 2]++;
		n++;
	}
	for (uint32 i = 1; i <= a->nlists + 1; i++)
	{
		most = Max(most, start[i]);
		start[i] += start[i - 1];
	}
	by_list = MemoryContextAllocHuge(CurrentMemoryContext, Max(1, n) * sizeof(uint32));
	FOR_EACH_LOADED(mem, slot)
		by_list[start[GraphMemGet(mem, slot)->list + 1]++] = slot;
	places = MemoryContextAllocHuge(CurrentMemoryContext, Max(1, most) * sizeof(Place));

	/* numbers never overtake slots: by_list becomes the order */
	a->from = by_list;
	a->count = 0;
	for (uint32 list = 0; list < a->nlists; list++)
	{
		uint32		size = start[list + 1] - start[list];

		CHECK_FOR_INTERRUPTS();
		for (uint32 i = 0; i < size; i++)
		{
			uint32		slot = by_list[start[list] + i];
			const GraphMemNode *node = GraphMemGet(mem, slot);

			places[i] = (Place) {GraphMemLoadedOf(node)->hash, node->tid, slot};
		}
		arrange_list(a, list, places, size);
	}
	pfree(places);
	pfree(start);
}

/* Moves each node to its place, slot i for node i. */
static void
move_nodes(Arranger *a)
{
	GraphMem   *mem = &a->bs->mem;
	uint32		n = a->count;
	uint8	   *needed = MemoryContextAllocExtended(CurrentMemoryContext, BitmapBytes(n),
													MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	char	   *memory = palloc(mem->node_size);
	GraphMemNode *aside = GraphMemNodeAt(mem, memory);

	/* chains that begin at a slot from which nothing has to be moved first */
	for (uint32 i = 0; i < n; i++)
		if (a->from[i] < n)
			BitmapSet(needed, a->from[i]);
	for (uint32 i = 0; i < n; i++)
	{
		uint32		to = i;

		if (i % CHECK_ROWS == 0)
			CHECK_FOR_INTERRUPTS();
		if (BitmapHas(needed, i))
			continue;
		while (to < n && a->from[to] != GRAPH_NONE)
		{
			uint32		from = a->from[to];

			if (from != to)
				GraphMemMove(mem, GraphMemGet(mem, to), GraphMemGet(mem, from));
			a->from[to] = GRAPH_NONE;
			to = from;
		}
	}
	/* the others are circles */
	for (uint32 i = 0; i < n; i++)
	{
		uint32		to = i;

		if (a->from[i] == GRAPH_NONE || a->from[i] == i)
			continue;
		GraphMemMove(mem, aside, GraphMemGet(mem, i));
		while (a->from[to] != i)
		{
			uint32		from = a->from[to];

			GraphMemMove(mem, GraphMemGet(mem, to), GraphMemGet(mem, from));
			a->from[to] = GRAPH_NONE;
			to = from;
		}
		GraphMemMove(mem, GraphMemGet(mem, to), aside);
		a->from[to] = GRAPH_NONE;
	}
	pfree(memory);
	pfree(needed);
}

/* ---- what all share ---- */

/* Sets where the arrays are in their memory.  Returns its size. */
static Size
place_arrays(GraphBuildArrays *arrays, char *memory, const GraphBuildShared *shared)
{
	Size		nodes = Max(1, shared->nodes);
	Size		end = 0;

#define TAKE(field, n) \
	(arrays->field = (void *) (memory + end), end += TYPEALIGN(64, (Size) (n) * sizeof(*arrays->field)))
	TAKE(order, nodes);
	TAKE(links, nodes);
	arrays->position = (uint32 *) arrays->links;
	TAKE(next, (Size) GraphLargestBatch(shared->nodes) * shared->meta.degree);
	TAKE(representative, shared->nlists);
	TAKE(rank, shared->nlists);
	TAKE(duplicates, shared->nduplicates);
#undef TAKE
	return end;
}

/*
 * Returns all nodes, near ones to their list's centroid first: by the sum of their rank
 * among all nodes and their rank within their list.  Later nodes then find the middle of
 * things connected, which gives more recall than random order [M22].
 */
static Candidate *
rank_nodes(GraphBuildState *bs)
{
	uint32		n = bs->shared->nodes;
	uint32		nlists = bs->ops->count_lists(bs);
	Candidate  *ranked = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(Candidate));
	uint32	   *size = palloc0(nlists * sizeof(uint32));
	uint32	   *seen = palloc0(nlists * sizeof(uint32));

	for (uint32 i = 0; i < n; i++)
	{
		GraphMemNode *node = GraphMemGet(&bs->mem, i);

		ranked[i] = (Candidate) {GraphMemLoadedOf(node)->to_centroid, i};
		size[node->list]++;
	}
	qsort(ranked, n, sizeof(Candidate), CompareCandidates);
	for (uint32 i = 0; i < n; i++)
	{
		uint32		list = GraphMemGet(&bs->mem, ranked[i].id)->list;

		if (i % CHECK_ROWS == 0)
			CHECK_FOR_INTERRUPTS();
		ranked[i].distance = (double) i / n + (double) seen[list]++ / size[list];
	}
	qsort(ranked, n, sizeof(Candidate), CompareCandidates);
	pfree(size);
	pfree(seen);
	return ranked;
}

/* Orders the nodes of a coded graph: the representatives, then the others. */
static void
order_by_rank(GraphBuildState *bs)
{
	GraphBuildArrays *arrays = &bs->arrays;
	uint32		n = bs->shared->nodes;
	uint32		count = 0;
	Candidate  *ranked = rank_nodes(bs);

	for (int others = 0; others <= 1; others++)
		for (uint32 i = 0; i < n; i++)
		{
			uint32		id = ranked[i].id;
			uint32		list = GraphMemGet(&bs->mem, id)->list;

			if ((arrays->representative[list] != id) == others)
				arrays->order[count++] = id;
		}
	pfree(ranked);
}

/* Orders the nodes at random, since a table's own order often depends on its values. */
static void
order_by_chance(GraphBuildState *bs)
{
	uint32	   *order = bs->arrays.order;
	pg_prng_state random;

	pg_prng_seed(&random, bs->handle.meta.seed);
	for (uint32 i = 0; i < bs->shared->nodes; i++)
	{
		uint32		j = pg_prng_uint64_range(&random, 0, i);

		order[i] = order[j];
		order[j] = i;
	}
}

/*
 * Chooses the order of insertion.  Representatives are first, since all other searches
 * begin at them.  Within a batch the order is that of the numbers, so that near nodes are
 * one after another.
 */
static void
choose_order(GraphBuildState *bs)
{
	GraphBuildArrays *arrays = &bs->arrays;
	uint32		n = bs->shared->nodes;
	uint32		nlists = bs->shared->nlists;

	if (nlists > 0)
		order_by_rank(bs);
	else
		order_by_chance(bs);
	for (uint32 done = 0; done < n;)
	{
		uint32		batch = GraphNextBatch(done, n);

		CHECK_FOR_INTERRUPTS();
		qsort(arrays->order + done, batch, sizeof(uint32), CompareUint32);
		done += batch;
	}
	for (uint32 i = 0; i < nlists; i++)
		arrays->rank[i] = UINT32_MAX;
	for (uint32 i = 0; i < n && nlists > 0; i++)
	{
		uint32		list = GraphMemGet(&bs->mem, arrays->order[i])->list;

		if (arrays->representative[list] == arrays->order[i])
			arrays->rank[list] = i;
	}
}

void
GraphArrangeNodes(GraphBuildState *bs)
{
	GraphBuildShared *shared = bs->shared;
	int64		loaded = shared->base.index_tuples - shared->spilled;
	Arranger	a = {.bs = bs, .nlists = bs->ops->count_lists(bs)};

	GraphChunksAttach(&bs->mem.nodes);
	GraphChunksAttach(&bs->mem.values);
	if (shared->spilled > 0 && shared->budget.no_shared_memory)
		ereport(NOTICE,
				(errmsg("%s graph no longer fits into shared memory after " INT64_FORMAT " tuples",
						get_am_name(bs->index->rd_rel->relam), loaded),
				 errdetail("Building will take longer."),
				 errhint("Give the system more shared memory (/dev/shm), or set max_parallel_maintenance_workers to 0.")));
	else if (shared->spilled > 0)
		ereport(NOTICE,
				(errmsg("%s graph no longer fits into maintenance_work_mem after " INT64_FORMAT " tuples",
						get_am_name(bs->index->rd_rel->relam), loaded),
				 errdetail("Building takes longer, and searches stay slower until the index is rebuilt with more memory."),
				 errhint("Increase maintenance_work_mem; quiver_estimate() predicts how much is needed.")));
	a.representative = palloc(a.nlists * sizeof(uint32));
	number_nodes(&a);
	move_nodes(&a);
	pfree(a.from);

	shared->nodes = a.count;
	shared->nduplicates = a.nduplicates;
	bs->mem.count = a.count;
	(void) place_arrays(&bs->arrays, GraphTeamAlloc(bs, place_arrays(&bs->arrays, NULL, shared)),
						shared);
	if (a.nduplicates > 0)
	{
		memcpy(bs->arrays.duplicates, a.duplicates, a.nduplicates * sizeof(GraphMemDuplicate));
		pfree(a.duplicates);
	}
	memcpy(bs->arrays.representative, a.representative, shared->nlists * sizeof(uint32));
	pfree(a.representative);
	for (uint32 i = 0; i < a.count; i++)
		pg_atomic_init_u32(&bs->arrays.links[i], GRAPH_NONE);
	bs->mem.duplicates = bs->arrays.duplicates;
	choose_order(bs);
}

void
GraphSeeNodes(GraphBuildState *bs)
{
	GraphChunksAttach(&bs->mem.nodes);
	GraphChunksAttach(&bs->mem.values);
	bs->mem.count = bs->shared->nodes;
	(void) place_arrays(&bs->arrays, GraphTeamAttach(bs), bs->shared);
	bs->mem.duplicates = bs->arrays.duplicates;
}
