/*
 * build_write.c
 *		Writing a graph that was built in memory: the last phase of a build.
 */
#include "postgres.h"

#include "commands/progress.h"
#include "graph/build_write.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "pages/write.h"
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

/*
 * Positions of the nodes on the pages: by list, so that near nodes share
 * pages, in the order of arrival within one.
 */
static uint32 *
order_nodes(GraphBuildState *bs, uint32 **nodes_in_order)
{
	uint32		n = bs->mem.count,
				nlists = 1;
	uint32	   *start;
	uint32	   *position = MemoryContextAllocHuge(CurrentMemoryContext, Max(1, n) * sizeof(uint32));
	uint32	   *order = MemoryContextAllocHuge(CurrentMemoryContext, Max(1, n) * sizeof(uint32));

	for (uint32 i = 0; i < n; i++)
		nlists = Max(nlists, GraphMemGet(&bs->mem, i)->list + 1);
	start = palloc0((nlists + 1) * sizeof(uint32));
	for (uint32 i = 0; i < n; i++)
		start[GraphMemGet(&bs->mem, i)->list + 1]++;
	for (uint32 i = 1; i <= nlists; i++)
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

/* The slots that hold heap TIDs beyond a node's own. */
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

/*
 * Write metapage, mean and entry points, which have the positions of their
 * nodes, and say in *first which number the node at position 0 will have.
 */
static void
write_head(GraphBuildState *bs, GraphEntryPoints *entry_points, uint32 *first)
{
	GraphHandle *handle = &bs->handle;
	const GraphLayout *layout = &handle->layout;
	uint32		n = bs->mem.count;
	BlockNumber head;

	/* the fixed pages come first: their number says where the nodes start */
	head = 1 + (layout->pdim + QV_FLOATS_PER_PAGE - 1) / QV_FLOATS_PER_PAGE +
		GraphEntryPointPages(handle, entry_points);
	if ((uint64) (head + 1) * layout->per_page + n >= POOL_MAX_ID)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("index \"%s\" would have too many nodes",
						RelationGetRelationName(handle->index))));
	*first = GraphNodeNumber(layout, head, 0);
	for (uint32 i = 0; i < entry_points->nbatches; i++)
	{
		GraphEntryBatch *batch = GraphEntryBatchAt(entry_points, i);

		for (uint32 j = 0; j < batch->count; j++)
			batch->ids[j] += *first;
	}
	handle->meta.live_nodes = n;
	GraphWriteFixedPages(handle, MAIN_FORKNUM, entry_points);
}

void
GraphBuildWrite(GraphBuildState *bs)
{
	GraphHandle *handle = &bs->handle;
	SlotWriter	sw = {handle->index, &handle->layout, InvalidBuffer, 0};
	TidWriter	tw = {bs, 0, 0};
	uint32	   *order,
			   *position;
	uint32		first,
				n = bs->mem.count;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_WRITE);
	if (bs->ops->assign_lists)
		bs->ops->assign_lists(bs);
	position = order_nodes(bs, &order);
	write_head(bs, bs->ops->make_entry_points(bs, position), &first);

	sw.next = first;
	tw.first = first + n;
	for (uint32 i = 0; i < n; i++)
	{
		GraphMemNode *node = GraphMemGet(&bs->mem, order[i]);
		GraphNode	to = next_slot(&sw);

		bs->ops->write_node(bs, node, to, position, first);
		write_tids(&tw, node, to);
	}
	write_overflow(bs, &sw, order, first);
	if (BufferIsValid(sw.buf))
	{
		/* the last page may have room for what is inserted next */
		handle->meta.insert_block = BufferGetBlockNumber(sw.buf);
		UnlockReleaseBuffer(sw.buf);
		QvMetaWrite(handle->index, MAIN_FORKNUM, &handle->meta, sizeof(GraphMetaData));
	}
	Assert(sw.next == tw.first + tw.used);
	if (bs->ops->finish)
		bs->ops->finish(bs, order, first);
}
