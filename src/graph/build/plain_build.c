/*
 * plain_build.c
 *		The plain graph's part of a build: whole values, and an even sample of the nodes
 *		to enter at.
 */
#include "postgres.h"

#include <math.h>

#include "graph/build/plain_build.h"
#include "graph/build/store_mem_plain.h"
#include "graph/page/node.h"
#include "graph/page/rows.h"
#include "graph/page/values.h"
#include "utils/memutils.h"

typedef struct PlainBuild
{
	GraphBuildState base;
	uint32	   *entries;		/* nodes */
	uint32		nentries;
	uint32		max_entries;
	uint32		resample_at;	/* nodes */
} PlainBuild;

/* Number of lists by the hash, so that equal rows meet. */
#define HASH_LISTS 1024

static Size
build_plain_payload(const GraphHandle *handle)
{
	return GraphMemPlainPayload(&handle->space.opclass, handle->meta.dims);
}

static float *
build_plain_prepare(GraphBuildState *base, Size *n)
{
	*n = 0;
	return NULL;
}

static void
build_plain_begin(GraphBuildState *base, float *floats, bool in_shared_memory)
{
	GraphMemInitPlain(&base->mem, &base->handle, &base->shared->budget, in_shared_memory,
					  base->shared->rows);
}

/* ---- rows ---- */

static void
build_plain_add(GraphBuildState *base, const void *value, ItemPointer tid)
{
	GraphMemNode *node = GraphMemAddValue(&base->mem, value, tid);

	node->list = GraphMemLoadedOf(node)->hash % HASH_LISTS;
}

static uint32
build_plain_count_lists(const GraphBuildState *base)
{
	return HASH_LISTS;
}

/* ---- edges ---- */

/* Chooses entries evenly among the first n nodes in the order of insertion. */
static void
sample_entries(PlainBuild *bs, uint32 n)
{
	uint32		wanted = Max(1, GRAPH_ENTRY_FACTOR * sqrt(n));

	if (wanted > bs->max_entries)
	{
		bs->max_entries = wanted * 2;
		bs->entries = bs->entries ?
			repalloc(bs->entries, bs->max_entries * sizeof(uint32)) :
			palloc(bs->max_entries * sizeof(uint32));
	}
	bs->nentries = Min(n, wanted);
	for (uint32 i = 0; i < bs->nentries; i++)
		bs->entries[i] = bs->base.arrays.order[(uint64) n * i / bs->nentries];
	bs->resample_at = n + n / 8 + 1;
}

static void
build_plain_connected(GraphBuildState *base, uint32 count)
{
	PlainBuild *bs = (PlainBuild *) base;

	if (count > 0 && count >= bs->resample_at)
		sample_entries(bs, count);
}

static int
build_plain_enter(GraphBuildState *base, uint32 id, uint32 connected, uint32 *entries)
{
	PlainBuild *bs = (PlainBuild *) base;
	GraphMem   *mem = &base->mem;
	Candidate	items[PoolEntries(BUILD_ENTRIES)];
	Candidate	found[BUILD_ENTRIES];
	Pool		nearest;
	int			n;

	PoolReset(&nearest, items, BUILD_ENTRIES);
	for (uint32 i = 0; i < bs->nentries; i++)
		PoolInsert(&nearest, mem->pair(mem, id, bs->entries[i]), bs->entries[i], NULL);
	n = PoolCopyWaiting(&nearest, found);
	for (int i = 0; i < n; i++)
		entries[i] = found[i].id;
	return n;
}

static uint32 *
build_plain_choose_entry_points(GraphBuildState *base, uint32 *n)
{
	PlainBuild *bs = (PlainBuild *) base;
	uint32	   *nodes;

	sample_entries(bs, base->mem.count);
	*n = bs->nentries;
	nodes = palloc(Max(1, bs->nentries) * sizeof(uint32));
	memcpy(nodes, bs->entries, bs->nentries * sizeof(uint32));
	return nodes;
}

/* ---- pages ---- */

/*
 * Sets a node's list to the entry from which a walk from all entries at once reaches it
 * first.  Nodes that no walk reaches go to the last list.
 */
static void
build_plain_assign_lists(GraphBuildState *base)
{
	PlainBuild *bs = (PlainBuild *) base;
	GraphMem   *mem = &base->mem;
	uint32	   *queue;
	QvRoom		room;
	uint32		head = 0,
				tail = 0;

	if (mem->count == 0)
		return;
	for (uint32 i = 0; i < mem->count; i++)
		GraphMemGet(mem, i)->list = bs->nentries;
	queue = GraphMemRoom(mem, &room, mem->count * sizeof(uint32));
	for (uint32 i = 0; i < bs->nentries; i++)
	{
		GraphMemGet(mem, bs->entries[i])->list = i;
		queue[tail++] = bs->entries[i];
	}
	while (head < tail)
	{
		GraphMemNode *node = GraphMemGet(mem, queue[head++]);

		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < node->degree; i++)
		{
			uint32		id = GraphEdgeTo(node->edges[i].id);
			GraphMemNode *to = GraphMemGet(mem, id);

			if (to->list < bs->nentries)
				continue;
			to->list = node->list;
			queue[tail++] = id;
		}
	}
	QvRoomFree(&room);
}

static GraphEntryPoints *
build_plain_make_entry_points(GraphBuildState *base, const uint32 *position)
{
	PlainBuild *bs = (PlainBuild *) base;
	GraphEntryPoints *entry_points = GraphNewEntryPoints(&base->handle, bs->nentries + base->nunreached);

	for (uint32 i = 0; i < bs->nentries; i++)
		GraphAppendEntryPoint(&base->handle, entry_points, position[bs->entries[i]], NULL);
	for (uint32 i = 0; i < base->nunreached; i++)
		GraphAppendEntryPoint(&base->handle, entry_points, position[base->unreached[i]], NULL);
	return entry_points;
}

static void
build_plain_write_node(GraphBuildState *base, GraphMemNode *from, GraphNode to,
					   const uint32 *position, uint32 first)
{
	const GraphLayout *layout = &base->handle.layout;

	GraphNodeInit(layout, to);
	for (int i = 0; i < from->degree; i++)
	{
		uint32		id = from->edges[i].id;

		GraphNodeIds(layout, to)[i] = first + position[GraphEdgeTo(id)];
		if (GraphEdgeIsAnchor(id))
			GraphNodeSetAnchor(layout, to, i);
	}
	if (!GraphValuesApart(layout))
		memcpy(GraphNodeOwn(layout, to), GraphMemValue(&base->mem, from),
			   layout->value_size);
}

/* Writes the values that are not in nodes, when all nodes are there. */
static void
build_plain_finish(GraphBuildState *base, const uint32 *order, uint32 first)
{
	GraphHandle *handle = &base->handle;

	if (!GraphValuesApart(&handle->layout))
		return;
	for (uint32 i = 0; i < base->mem.count; i++)
	{
		const void *value = GraphMemValue(&base->mem, GraphMemGet(&base->mem, order[i]));
		GraphValueRef ref;
		GraphNode	node;
		Buffer		buf;

		CHECK_FOR_INTERRUPTS();
		GraphStoreValue(handle, value, handle->space.opclass.type->value_size(value), &ref);
		buf = GraphLockNode(handle, first + i, BUFFER_LOCK_EXCLUSIVE, &node);
		memcpy(GraphNodeOwn(&handle->layout, node), &ref, sizeof(ref));
		MarkBufferDirty(buf);
		UnlockReleaseBuffer(buf);
	}
}

const GraphBuildOps graph_plain_build = {
	.state_size = sizeof(PlainBuild),
	.payload = build_plain_payload,
	.prepare = build_plain_prepare,
	.begin = build_plain_begin,
	.add = build_plain_add,
	.count_lists = build_plain_count_lists,
	.connected = build_plain_connected,
	.enter = build_plain_enter,
	.choose_entry_points = build_plain_choose_entry_points,
	.assign_lists = build_plain_assign_lists,
	.make_entry_points = build_plain_make_entry_points,
	.write_node = build_plain_write_node,
	.finish = build_plain_finish
};
