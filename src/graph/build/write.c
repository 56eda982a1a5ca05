/*
 * write.c
 *		Writing a graph that was built in memory.
 */
#include "postgres.h"

#include "commands/progress.h"
#include "graph/build/team.h"
#include "graph/build/write.h"
#include "miscadmin.h"
#include "pages/write.h"
#include "pgstat.h"
#include "utils/memutils.h"

void
GraphWriteFixedPages(GraphHandle *handle, ForkNumber fork, const GraphEntryPoints *entry_points)
{
	GraphMetaData *meta = &handle->meta;
	Buffer		buf;

	/* the metapage is filled in last, when the others are known */
	QvNewBuildPage(handle->index, fork, QV_PAGE_META, &buf);
	Assert(BufferGetBlockNumber(buf) == QV_META_BLOCK);
	UnlockReleaseBuffer(buf);
	meta->mean_block = QvWriteFloats(handle->index, fork, handle->space.mean, meta->pdim);
	GraphWriteEntryPoints(handle, fork, entry_points);
	QvMetaWrite(handle->index, fork, meta, sizeof(*meta));
}

/* Pages of nodes that are claimed at a time. */
#define CLAIM 16

/*
 * Sets the positions of a plain graph's nodes on the pages: by list, so that near nodes
 * share pages.  The nodes of a coded graph have the right numbers already.
 */
static void
order_nodes(GraphBuildState *bs)
{
	uint32		n = bs->mem.count,
				nlists = 1;
	uint32	   *start;

	bs->ops->assign_lists(bs);
	for (uint32 i = 0; i < n; i++)
		nlists = Max(nlists, GraphMemGet(&bs->mem, i)->list + 1);
	start = palloc0((nlists + 1) * sizeof(uint32));
	for (uint32 i = 0; i < n; i++)
		start[GraphMemGet(&bs->mem, i)->list + 1]++;
	for (uint32 i = 1; i <= nlists; i++)
		start[i] += start[i - 1];
	for (uint32 i = 0; i < n; i++)
	{
		uint32		at = start[GraphMemGet(&bs->mem, i)->list]++;

		bs->arrays.position[i] = at;
		bs->arrays.order[at] = i;
	}
	pfree(start);
}

/* Returns the node at a position. */
static uint32
node_at(const GraphBuildState *bs, uint32 position)
{
	return bs->ops->assign_lists ? bs->arrays.order[position] : position;
}

/*
 * Gives numbers to the slots of heap TIDs, which come after all nodes.  A node with more
 * heap TIDs than fit in its slot gets the first of its slots.  Returns how many slots.
 */
static uint32
number_overflow(GraphBuildState *bs)
{
	uint32		per_slot = bs->handle.layout.tids_per_slot;
	uint32		slots = 0;

	if (bs->shared->nduplicates == 0)
		return 0;
	for (uint32 i = 0; i < bs->mem.count; i++)
	{
		GraphMemNode *node = GraphMemGet(&bs->mem, node_at(bs, i));
		uint32		rows = 1;

		CHECK_FOR_INTERRUPTS();
		for (uint32 d = node->duplicates; d != GRAPH_NONE; d = bs->mem.duplicates[d].next)
			rows++;
		if (rows <= GRAPH_INLINE_TIDS)
			continue;
		node->overflow = bs->shared->first + bs->mem.count + slots;
		slots += (rows - GRAPH_INLINE_TIDS + per_slot - 1) / per_slot;
	}
	return slots;
}

/*
 * Writes metapage, mean and entry points.  These have the positions of their nodes.  Notes
 * which number the node at position 0 will have.
 */
static void
write_fixed_pages(GraphBuildState *bs, GraphEntryPoints *entry_points)
{
	GraphHandle *handle = &bs->handle;
	const GraphLayout *layout = &handle->layout;
	uint32		n = bs->mem.count;
	uint32		first;
	BlockNumber head;

	/* the fixed pages come first: their number says where the nodes start */
	head = 1 + (layout->pdim + QV_FLOATS_PER_PAGE - 1) / QV_FLOATS_PER_PAGE +
		GraphEntryPointPages(handle, entry_points);
	if ((uint64) (head + 1) * layout->per_page + n >= GRAPH_MAX_ID)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("index \"%s\" would have too many nodes",
						RelationGetRelationName(handle->index))));
	first = GraphNodeNumber(layout, head, 0);
	for (uint32 i = 0; i < entry_points->nbatches; i++)
	{
		GraphEntryBatch *batch = GraphEntryBatchAt(entry_points, i);

		for (uint32 j = 0; j < batch->count; j++)
			batch->ids[j] += first;
	}
	handle->meta.live_nodes = n;
	GraphWriteFixedPages(handle, MAIN_FORKNUM, entry_points);
	bs->shared->first = first;
}

void
GraphWriteHead(GraphBuildState *bs)
{
	Relation	index = bs->index;
	BlockNumber pages = (bs->mem.count + bs->handle.layout.per_page - 1) / bs->handle.layout.per_page;

	if (bs->ops->assign_lists)
		order_nodes(bs);
	write_fixed_pages(bs, bs->ops->make_entry_points(bs, bs->ops->assign_lists ?
													 bs->arrays.position : NULL));
	for (BlockNumber i = 0; i < pages; i++)
	{
		CHECK_FOR_INTERRUPTS();
		UnlockReleaseBuffer(QvNewPage(index, MAIN_FORKNUM));
	}
	if (RelationGetNumberOfBlocks(index) !=
		GraphNodeBlock(&bs->handle.layout, bs->shared->first) + pages)
		elog(ERROR, "unexpected size of index \"%s\"", RelationGetRelationName(index));
	(void) number_overflow(bs);
}

/* Puts the node's first rows into its slot. */
static void
write_tids(GraphBuildState *bs, const GraphMemNode *from, GraphNode to)
{
	uint32		d = from->duplicates;

	to->tids[to->ntids++] = from->tid;
	for (; d != GRAPH_NONE && to->ntids < GRAPH_INLINE_TIDS; d = bs->mem.duplicates[d].next)
		to->tids[to->ntids++] = bs->mem.duplicates[d].tid;
	to->overflow = from->overflow;
}

void
GraphWriteNodes(GraphBuildState *bs)
{
	const GraphLayout *layout = &bs->handle.layout;
	uint32		first = bs->shared->first;
	BlockNumber block = GraphNodeBlock(layout, first);
	uint32		n = bs->mem.count;
	uint32		pages = (n + layout->per_page - 1) / layout->per_page;
	const uint32 *position = bs->ops->assign_lists ? bs->arrays.position : NULL;

	for (uint32 at; (at = GraphClaim(bs, CLAIM)) < pages;)
		for (uint32 i = at; i < Min(at + CLAIM, pages); i++)
		{
			Buffer		buf;
			Page		page;

			/* not while the page is locked: that holds interrupts off */
			CHECK_FOR_INTERRUPTS();
			buf = ReadBufferExtended(bs->index, MAIN_FORKNUM, block + i, RBM_ZERO_AND_LOCK, NULL);
			page = BufferGetPage(buf);
			QvPageInit(page, QV_PAGE_NODES);
			for (uint32 slot = 0; slot < layout->per_page && i * layout->per_page + slot < n; slot++)
			{
				uint32		id = node_at(bs, i * layout->per_page + slot);
				GraphMemNode *node = GraphMemGet(&bs->mem, id);
				GraphNode	to = GraphPageNode(layout, page, slot);

				bs->ops->write_node(bs, node, to, position, first);
				write_tids(bs, node, to);
			}
			MarkBufferDirty(buf);
			UnlockReleaseBuffer(buf);
		}
}

typedef struct SlotWriter
{
	Relation	index;
	const GraphLayout *layout;
	Buffer		buf;
	uint32		next;			/* number of the next slot */
} SlotWriter;

/* Returns the memory of the next slot, on a new page when the last one is full. */
static void *
next_slot(SlotWriter *sw)
{
	uint32		slot = GraphNodeSlot(sw->layout, sw->next);

	if (slot == 0)
	{
		if (BufferIsValid(sw->buf))
			UnlockReleaseBuffer(sw->buf);
		CHECK_FOR_INTERRUPTS();
		(void) QvNewBuildPage(sw->index, MAIN_FORKNUM, QV_PAGE_NODES, &sw->buf);
		if (BufferGetBlockNumber(sw->buf) != GraphNodeBlock(sw->layout, sw->next))
			elog(ERROR, "unexpected block %u while building index \"%s\"",
				 BufferGetBlockNumber(sw->buf), RelationGetRelationName(sw->index));
	}
	else if (!BufferIsValid(sw->buf))
	{
		/* the last page of nodes has room */
		sw->buf = ReadBuffer(sw->index, GraphNodeBlock(sw->layout, sw->next));
		LockBuffer(sw->buf, BUFFER_LOCK_EXCLUSIVE);
		MarkBufferDirty(sw->buf);
	}
	sw->next++;
	return GraphPageNode(sw->layout, BufferGetPage(sw->buf), slot);
}

/* Writes the slots that number_overflow() has given numbers to, in the same order. */
static void
write_overflow(GraphBuildState *bs, SlotWriter *sw)
{
	const GraphLayout *layout = &bs->handle.layout;
	const GraphMemDuplicate *duplicates = bs->mem.duplicates;

	for (uint32 i = 0; i < bs->mem.count; i++)
	{
		const GraphMemNode *node = GraphMemGet(&bs->mem, node_at(bs, i));
		uint32		d = node->duplicates;

		if (node->overflow == GRAPH_NONE)
			continue;
		Assert(node->overflow == sw->next);
		for (int j = 1; j < GRAPH_INLINE_TIDS; j++)
			d = duplicates[d].next;
		while (d != GRAPH_NONE)
		{
			GraphTids	tids = next_slot(sw);

			tids->state = GRAPH_SLOT_TIDS;
			tids->owner = bs->shared->first + i;
			for (; d != GRAPH_NONE && tids->ntids < layout->tids_per_slot; d = duplicates[d].next)
				tids->tids[tids->ntids++] = duplicates[d].tid;
			tids->next = d == GRAPH_NONE ? GRAPH_NONE : sw->next;
		}
	}
}

void
GraphWriteTail(GraphBuildState *bs)
{
	GraphHandle *handle = &bs->handle;
	SlotWriter	sw = {bs->index, &handle->layout, InvalidBuffer, bs->shared->first + bs->mem.count};

	write_overflow(bs, &sw);
	if (BufferIsValid(sw.buf))
		UnlockReleaseBuffer(sw.buf);
	/* the last page may have room for what is inserted next */
	if (bs->mem.count > 0)
		handle->meta.insert_block = RelationGetNumberOfBlocks(bs->index) - 1;
	QvMetaWrite(bs->index, MAIN_FORKNUM, &handle->meta, sizeof(GraphMetaData));
	if (bs->ops->finish)
		bs->ops->finish(bs, bs->arrays.order, bs->shared->first);
}
