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
#include "miscadmin.h"
#include "pgstat.h"
#include "space/grow.h"
#include "utils/memutils.h"

/* Rows between two looks at interrupts. */
#define CHECK_ROWS 1000

/* ---- rows ---- */

static void
add_row(void *state, const void *value, ItemPointer tid)
{
	GraphBuildState *bs = state;

	bs->ops->add(bs, value, tid);
}

void
GraphLoadRows(GraphBuildState *bs, TableScanDesc scan)
{
	QvLoader	loader = {
		.heap = bs->heap,
		.index = bs->index,
		.info = bs->info,
		.space = &bs->handle.space,
		.shared = &bs->shared->base,
		.leader = bs->leader,
		.add = add_row,
		.state = bs
	};

	QvLoadRows(&loader, scan);
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
	QvRoom		from_room;
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
		a->duplicates = QvGrow(CurrentMemoryContext, a->duplicates, &a->max_duplicates, 1024,
							   sizeof(GraphMemDuplicate));
	a->duplicates[a->nduplicates].tid = *tid;
	a->duplicates[a->nduplicates].next = node->duplicates;
	node->duplicates = a->nduplicates++;
}

/*
 * Numbers the nodes of a list.  Nodes with the same hash are distinct from "kept" on:
 * mostly one, unless hashes collide.
 *
 * By inner product a node that is much longer than the representative, in the direction of the
 * centroid, counts as the nearest to it when nodes are ranked.  Many nodes want an edge to it, and
 * those before it could not have one.
 */
static void
arrange_list(Arranger *a, uint32 list, Place *places, uint32 n)
{
	GraphMem   *mem = &a->bs->mem;
	float		best = INFINITY;
	uint32		kept = a->count;
	GraphMemLoaded *longest = NULL;

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
		if (longest == NULL || GraphMemLoadedOf(node)->ip > longest->ip)
			longest = GraphMemLoadedOf(node);
		a->from[a->count++] = places[i].slot;
	}
	if (longest != NULL && a->bs->handle.meta.space != QV_SPACE_L2)
	{
		uint32		slot = a->from[a->representative[list]];

		if (longest->ip > GRAPH_MUCH_LONGER * GraphMemLoadedOf(GraphMemGet(mem, slot))->ip)
			longest->to_centroid = 0;
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
	QvRoom		places_room;

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
	by_list = GraphMemRoom(mem, &a->from_room, n * sizeof(uint32));
	FOR_EACH_LOADED(mem, slot)
		by_list[start[GraphMemGet(mem, slot)->list + 1]++] = slot;
	places = GraphMemRoom(mem, &places_room, most * sizeof(Place));

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
	QvRoomFree(&places_room);
	pfree(start);
}

/* Moves each node to its place, slot i for node i. */
static void
move_nodes(Arranger *a)
{
	GraphMem   *mem = &a->bs->mem;
	uint32		n = a->count;
	QvRoom		needed_room;
	uint8	   *needed = memset(GraphMemRoom(mem, &needed_room, BitmapBytes(n)), 0, BitmapBytes(n));
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
	QvRoomFree(&needed_room);
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
rank_nodes(GraphBuildState *bs, QvRoom *room)
{
	uint32		n = bs->shared->nodes;
	uint32		nlists = bs->ops->count_lists(bs);
	Candidate  *ranked = GraphMemRoom(&bs->mem, room, n * sizeof(Candidate));
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
	QvRoom		room;
	Candidate  *ranked = rank_nodes(bs, &room);

	for (int others = 0; others <= 1; others++)
		for (uint32 i = 0; i < n; i++)
		{
			uint32		id = ranked[i].id;
			uint32		list = GraphMemGet(&bs->mem, id)->list;

			if ((arrays->representative[list] != id) == others)
				arrays->order[count++] = id;
		}
	QvRoomFree(&room);
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

/* Counts the loaded nodes that are in no file. */
static uint32
count_in_memory(const GraphChunks *chunks)
{
	const GraphChunkTable *table = chunks->table;
	uint32		n = 0;

	for (uint32 i = 0; i < table->count; i++)
		if (table->chunks[i - table->chunks[i].index].in_file == 0)
			n += table->chunks[i].used;
	return n;
}

void
GraphArrangeNodes(GraphBuildState *bs)
{
	GraphBuildShared *shared = bs->shared;
	Arranger	a = {.bs = bs, .nlists = bs->ops->count_lists(bs)};

	GraphChunksAttach(&bs->mem.nodes);
	GraphChunksAttach(&bs->mem.values);
	if (shared->budget.full)
		ereport(NOTICE,
				(errmsg("%s graph no longer fits into %s after %u tuples",
						get_am_name(bs->index->rd_rel->relam),
						shared->budget.no_shared_memory ? "shared memory" : "maintenance_work_mem",
						count_in_memory(&bs->mem.nodes)),
				 errdetail("The rest of it is in temporary files during the build. The index will be the same."),
				 shared->budget.no_shared_memory ?
				 errhint("Give the system more shared memory (/dev/shm), or set max_parallel_maintenance_workers to 0.") :
				 errhint("Increase maintenance_work_mem; quiver_estimate() predicts how much is needed.")));
	a.representative = palloc(a.nlists * sizeof(uint32));
	number_nodes(&a);
	move_nodes(&a);
	QvRoomFree(&a.from_room);

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
