/*
 * check.c
 *		Verifying a graph index: all invariants of src/graph/README.md.
 *
 * VACUUM is kept out.  Inserts are kept out while the entry points and the list of value
 * pages are verified.  Otherwise they go on.  They only fill free slots, add pages and give
 * slots of heap TIDs back.  An edge to a slot that was no node when the index was surveyed
 * is therefore verified again.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "graph/graph.h"
#include "graph/page/cache.h"
#include "graph/page/meta.h"
#include "graph/page/node.h"
#include "graph/page/node_value.h"
#include "graph/page/pool.h"
#include "graph/page/rows.h"
#include "graph/update/reach.h"
#include "graph/update/row_pages.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

typedef struct GraphChecker
{
	Relation	index;
	GraphHandle *handle;
	const GraphLayout *layout;
	BlockNumber nblocks;
	BlockNumber surveyed;		/* blocks whose slots have a state in "states" */
	uint8	   *states;			/* by number: state of the slot, two bits each */
	PGAlignedBlock copy;		/* copy of the page that is verified */
	GraphInfo	info;
	BlockNumber block;			/* the page and the slot that are verified */
	uint32		slot;
} GraphChecker;

StaticAssertDecl(GRAPH_SLOT_TIDS <= 3, "a slot's state has two bits");

static inline void
set_state(GraphChecker *c, uint32 number, uint8 state)
{
	uint8	   *at = &c->states[number / 4];
	int			shift = number % 4 * 2;

	*at = (*at & ~(3 << shift)) | state << shift;
}

/* Returns the state as surveyed.  It is free where there are no node slots. */
static inline uint8
state_of(const GraphChecker *c, uint32 number)
{
	if (number / c->layout->per_page >= c->surveyed)
		return GRAPH_SLOT_FREE;
	return c->states[number / 4] >> (number % 4 * 2) & 3;
}

static Buffer
lock_block(GraphChecker *c, BlockNumber block)
{
	Buffer		buf;

	CHECK_FOR_INTERRUPTS();
	buf = QvReadBuffer(c->index, block, NULL);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	return buf;
}

/*
 * Returns the state of a slot as it is now.  The caller has no page locked.  Without VACUUM
 * nodes stay nodes, but an insert may give back a slot of heap TIDs.
 */
static uint8
state_now(GraphChecker *c, uint32 number)
{
	BlockNumber block = GraphNodeBlock(c->layout, number);
	uint8		state = state_of(c, number);
	Buffer		buf;

	if (state == GRAPH_SLOT_LIVE || state == GRAPH_SLOT_DELETED)
		return state;
	if (block >= c->nblocks)
		c->nblocks = RelationGetNumberOfBlocks(c->index);
	if (block >= c->nblocks)
		return GRAPH_SLOT_FREE;
	buf = lock_block(c, block);
	if (QvPageIs(BufferGetPage(buf), QV_PAGE_NODES))
		state = GraphPageNode(c->layout, BufferGetPage(buf), GraphNodeSlot(c->layout, number))->state;
	UnlockReleaseBuffer(buf);
	return state;
}

static bool
is_node(GraphChecker *c, uint32 number)
{
	uint8		state = state_now(c, number);

	return state == GRAPH_SLOT_LIVE || state == GRAPH_SLOT_DELETED;
}

/* Notes the state of a slot, and counts its contents. */
static void
count_slot(GraphChecker *c, GraphNode node)
{
	if (node->state > GRAPH_SLOT_TIDS)
		QvReportCorruption(c->index, c->block, "Slot %u is in the unknown state %d.",
						   c->slot, node->state);
	set_state(c, GraphNodeNumber(c->layout, c->block, c->slot), node->state);
	switch (node->state)
	{
		case GRAPH_SLOT_FREE:
			c->info.free_slots++;
			break;
		case GRAPH_SLOT_LIVE:
			c->info.nodes++;
			c->info.tuples += node->ntids;
			for (uint32 i = 0; i < c->layout->degree; i++)
				c->info.edges += GraphNodeHasEdge(c->layout, node, i);
			break;
		case GRAPH_SLOT_DELETED:
			c->info.deleted++;
			break;
		case GRAPH_SLOT_TIDS:
			c->info.tuples += ((GraphTids) node)->ntids;
			break;
	}
}

/* Reads all pages for the first time: kinds of pages, states of slots, counts. */
static void
survey(GraphChecker *c)
{
	for (c->block = 1; c->block < c->nblocks; c->block++)
	{
		Buffer		buf = lock_block(c, c->block);
		Page		page = BufferGetPage(buf);
		QvPageHeader header = QvPageGetHeader(page);

		if (PageIsNew(page))
		{
			/* added just before a crash: allowed, and unused */
			UnlockReleaseBuffer(buf);
			continue;
		}
		if (header->magic != QV_PAGE_MAGIC || header->version != QV_PAGE_VERSION ||
			(header->kind != QV_PAGE_FLOATS && header->kind != QV_PAGE_ENTRIES &&
			 header->kind != QV_PAGE_NODES && header->kind != QV_PAGE_VALUES &&
			 !QvPageIsOfRows(page)))
			QvReportCorruption(c->index, c->block, "The page is of no kind that a graph index has.");
		if (header->kind == QV_PAGE_NODES)
			for (c->slot = 0; c->slot < c->layout->per_page; c->slot++)
				count_slot(c, GraphPageNode(c->layout, page, c->slot));
		UnlockReleaseBuffer(buf);
	}
}

static void
check_tids(GraphChecker *c, ItemPointer tids, uint32 n, uint32 max)
{
	if (n > max)
		QvReportCorruption(c->index, c->block, "Slot %u claims %u heap TIDs, but holds at most %u.",
						   c->slot, n, max);
	for (uint32 i = 0; i < n; i++)
		if (!ItemPointerIsValid(&tids[i]))
			QvReportCorruption(c->index, c->block, "Slot %u holds an invalid heap TID.", c->slot);
}

/* Verifies what a coded node has besides its edges and rows. */
static void
check_factors(GraphChecker *c, GraphNode node)
{
	const GraphLayout *layout = c->layout;
	const uint16 *a = GraphNodeA(layout, node);
	const uint16 *b = GraphNodeB(layout, node);

	if (!isfinite(node->norm2) || node->norm2 < 0 || !isfinite(node->scale) ||
		node->scale < 0 || !isfinite(node->residual) || node->residual < 0 ||
		!isfinite(node->aux) || !isfinite(node->a_scale) || node->a_scale < 0 ||
		!isfinite(node->b_scale) || node->b_scale < 0)
		QvReportCorruption(c->index, c->block, "Slot %u has factors that are not finite or negative.",
						   c->slot);
	if (node->residual * node->residual > node->norm2 * 1.001f + FLT_MIN)
		QvReportCorruption(c->index, c->block, "The code in slot %u is farther from its vector than zero is.",
						   c->slot);
	for (uint32 i = 0; i < layout->degree; i++)
	{
		if (!GraphNodeHasEdge(layout, node, i))
		{
			if (a[i] != QV_EMPTY_FACTOR)
				QvReportCorruption(c->index, c->block, "Neighbor %u of slot %u is empty, but has a factor.",
								   i, c->slot);
		}
		else if (node->state == GRAPH_SLOT_LIVE &&
				 (!QvFactorIsFinite(a[i]) || !QvFactorIsFinite(b[i])))
			QvReportCorruption(c->index, c->block, "Neighbor %u of slot %u has a factor that is not finite.",
							   i, c->slot);
	}
}

static void
check_edges(GraphChecker *c, GraphNode node)
{
	uint32		number = GraphNodeNumber(c->layout, c->block, c->slot);
	const uint32 *ids = GraphNodeIds(c->layout, node);

	for (uint32 i = 0; i < c->layout->degree; i++)
	{
		uint32		neighbor = GraphEdgeTo(ids[i]);

		if (neighbor == GRAPH_NONE)
			continue;
		if (neighbor == number)
			QvReportCorruption(c->index, c->block, "Slot %u is its own neighbor.", c->slot);
		if (!is_node(c, neighbor))
			QvReportCorruption(c->index, c->block, "Neighbor %u of slot %u is %u, which is not a node.",
							   i, c->slot, neighbor);
		for (uint32 j = 0; j < i; j++)
			if (GraphEdgeTo(ids[j]) == neighbor)
				QvReportCorruption(c->index, c->block, "Slot %u has neighbor %u twice.",
								   c->slot, neighbor);
	}
}

static void
check_node(GraphChecker *c, GraphNode node)
{
	check_tids(c, node->tids, node->ntids, GRAPH_INLINE_TIDS);
	if (node->state == GRAPH_SLOT_DELETED && (node->ntids > 0 || node->overflow != GRAPH_NONE))
		QvReportCorruption(c->index, c->block, "The deleted node in slot %u has rows.", c->slot);
	if (node->overflow != GRAPH_NONE &&
		state_now(c, node->overflow) != GRAPH_SLOT_TIDS)
		QvReportCorruption(c->index, c->block, "The overflow of slot %u leads to %u, which holds no heap TIDs.",
						   c->slot, node->overflow);
	if (c->layout->form == QV_FORM_CODED)
		check_factors(c, node);
	/* nothing uses the edges of deleted nodes any more */
	if (node->state == GRAPH_SLOT_LIVE)
		check_edges(c, node);
}

/* Verifies that the slots of a node's chain lead from one to the next, and belong to the node. */
static void
check_chain(GraphChecker *c, uint32 owner, uint32 next)
{
	const GraphLayout *layout = c->layout;
	Size		steps = 0;

	while (next != GRAPH_NONE)
	{
		BlockNumber block = GraphNodeBlock(layout, next);
		Buffer		buf;
		GraphTids	tids;

		if (state_now(c, next) != GRAPH_SLOT_TIDS ||
			++steps > (Size) c->nblocks * layout->per_page)
			GraphReportBrokenChain(c->handle, owner);
		buf = lock_block(c, block);
		tids = (GraphTids) GraphPageNode(layout, BufferGetPage(buf), GraphNodeSlot(layout, next));
		if (tids->owner != owner)
			QvReportCorruption(c->index, block, "Slot %u belongs to node %u, not %u.",
							   GraphNodeSlot(layout, next), tids->owner, owner);
		next = tids->next;
		UnlockReleaseBuffer(buf);
	}
}

/* Verifies that every live node of a plain graph has its value. */
static void
check_values(GraphChecker *c)
{
	GraphScratch scratch = {NULL, 0};

	for (Size number = 0; number < (Size) c->surveyed * c->layout->per_page; number++)
	{
		Buffer		buf;

		if (state_of(c, number) != GRAPH_SLOT_LIVE)
			continue;
		CHECK_FOR_INTERRUPTS();
		if (GraphBorrowValue(c->handle, number, &scratch, &buf) == NULL)
			QvReportCorruption(c->index, GraphNodeBlock(c->layout, number),
							   "The value of slot %u is not where the slot says.",
							   GraphNodeSlot(c->layout, (uint32) number));
		GraphReturnValue(buf);
	}
}

/* Verifies the list of value pages with room. */
static void
check_value_list(GraphChecker *c)
{
	BlockNumber block = c->handle->meta.value_block,
				steps = 0;

	while (BlockNumberIsValid(block))
	{
		Buffer		buf;
		Page		page;

		if (block >= c->nblocks || ++steps > c->nblocks)
			QvReportCorruption(c->index, QV_META_BLOCK, "The list of value pages is broken.");
		buf = lock_block(c, block);
		page = BufferGetPage(buf);
		QvPageCheck(c->index, block, page, QV_PAGE_VALUES);
		if (!((GraphValuePage) QvPageGetData(page))->listed)
			QvReportCorruption(c->index, block, "The page is in the list of value pages, but does not say so.");
		block = QvPageGetHeader(page)->next;
		UnlockReleaseBuffer(buf);
	}
}

/*
 * Verifies the slots of a page, the second time that it is read.  Returns how many chains
 * to check start there.
 */
static int
check_node_page(GraphChecker *c, Page page, uint32 *owners, uint32 *heads)
{
	const GraphLayout *layout = c->layout;
	int			nchains = 0;

	for (c->slot = 0; c->slot < layout->per_page; c->slot++)
	{
		GraphNode	node = GraphPageNode(layout, page, c->slot);

		if (node->state == GRAPH_SLOT_LIVE || node->state == GRAPH_SLOT_DELETED)
		{
			check_node(c, node);
			if (node->overflow != GRAPH_NONE)
			{
				owners[nchains] = GraphNodeNumber(layout, c->block, c->slot);
				heads[nchains++] = node->overflow;
			}
		}
		else if (node->state == GRAPH_SLOT_TIDS)
		{
			GraphTids	tids = (GraphTids) node;

			check_tids(c, tids->tids, tids->ntids, layout->tids_per_slot);
		}
	}
	return nchains;
}

static void
check_pages(GraphChecker *c)
{
	uint32	   *owners = palloc(c->layout->per_page * sizeof(uint32));
	uint32	   *heads = palloc(c->layout->per_page * sizeof(uint32));

	for (c->block = 1; c->block < c->surveyed; c->block++)
	{
		Buffer		buf = lock_block(c, c->block);
		Page		page = (Page) c->copy.data;
		int			nchains = 0;

		/* other pages are read meanwhile */
		memcpy(page, BufferGetPage(buf), BLCKSZ);
		UnlockReleaseBuffer(buf);
		if (QvPageIs(page, QV_PAGE_NODES))
			nchains = check_node_page(c, page, owners, heads);
		else if (QvPageIs(page, QV_PAGE_VALUES))
			GraphCheckValuePage(c->index, c->block, page);
		for (int i = 0; i < nchains; i++)
			check_chain(c, owners[i], heads[i]);
	}
}

/* Verifies a page of entry points.  Returns how many it has. */
static uint32
check_entry_page(GraphChecker *c, BlockNumber block, Page page)
{
	int			entry_bits = c->handle->meta.entry_bits;
	uint32		count = 0;

	for (int i = 0; i < GraphEntryBatchesPerPage(entry_bits); i++)
	{
		const GraphEntryBatch *batch = GraphPageEntryBatch(page, entry_bits, i);

		if (batch->count > QV_BATCH)
			QvReportCorruption(c->index, block, "A batch claims %u entry points.", batch->count);
		for (uint32 j = 0; j < batch->count; j++)
		{
			if (!is_node(c, batch->ids[j]))
				QvReportCorruption(c->index, block, "An entry point is %u, which is not a node.",
								   batch->ids[j]);
			if (!isfinite(batch->a[j]) || !isfinite(batch->b[j]))
				QvReportCorruption(c->index, block, "An entry point has a factor that is not finite.");
		}
		count += batch->count;
	}
	return count;
}

static void
check_entry_points(GraphChecker *c)
{
	const GraphMetaData *meta = &c->handle->meta;
	BlockNumber block = meta->entry_head,
				last = InvalidBlockNumber,
				steps = 0;
	uint32		count = 0;

	while (BlockNumberIsValid(block))
	{
		Buffer		buf;
		Page		page;

		if (block >= c->nblocks || ++steps > c->nblocks)
			QvReportCorruption(c->index, QV_META_BLOCK, "The chain of entry point pages is broken.");
		buf = lock_block(c, block);
		page = (Page) c->copy.data;
		memcpy(page, BufferGetPage(buf), BLCKSZ);
		UnlockReleaseBuffer(buf);
		QvPageCheck(c->index, block, page, QV_PAGE_ENTRIES);
		count += check_entry_page(c, block, page);
		last = block;
		/* pages after the tail are left from before VACUUM emptied them */
		block = block == meta->entry_tail ? InvalidBlockNumber : QvPageGetHeader(page)->next;
	}
	if (last != meta->entry_tail)
		QvReportCorruption(c->index, QV_META_BLOCK, "The last page of entry points is %u, not %u.",
						   last, meta->entry_tail);
	if (count != meta->entry_count)
		QvReportCorruption(c->index, QV_META_BLOCK, "There are %u entry points, not %u.",
						   count, meta->entry_count);
	if (count > 0 || c->info.nodes == 0)
		return;
	if (meta->live_nodes > 0)
		QvReportCorruption(c->index, QV_META_BLOCK, "There are nodes, but no entry point.");
	ereport(NOTICE,
			(errmsg("index \"%s\" has nodes, but no entry point", RelationGetRelationName(c->index)),
			 errdetail("A crash while the first row was inserted leaves that."),
			 errhint("The next INSERT makes an entry point.")));
}

/* Tells whether a measured number is possible.  0: not measured. */
static bool
may_be(double x, double least, double most)
{
	return x == 0 || (x >= least && x <= most);
}

/* Verifies the calibrated numbers. */
static void
check_measures(GraphChecker *c)
{
	const GraphMetaData *meta = &c->handle->meta;
	bool		sound = may_be(meta->pool_slope, GRAPH_POOL_SLOPE - 0.01, GRAPH_MAX_SLOPE) &&
		may_be(meta->pool_extra, 1, GRAPH_MAX_EXTRA) &&
		may_be(meta->pool_nodes, 1, GRAPH_MAX_ID);

	for (int i = 0; i < GRAPH_RECALLS; i++)
		sound &= may_be(meta->recall_pools[i], 1, GRAPH_MAX_POOL) &&
			may_be(meta->hard_new_rows[i], 1, GRAPH_SETTLED_ROWS + 1);
	for (int i = 0; i < GRAPH_DEPTHS; i++)
		sound &= may_be(meta->deep_efs[i], 0, GRAPH_MAX_DEEP_EF);
	sound &= QvCurveIsSound(&meta->curve);
	if (!sound)
		QvReportCorruption(c->index, QV_META_BLOCK, "What searches look at cannot have been measured.");
}

/*
 * Verifies what inserts change in several places.  Inserts wait meanwhile, and VACUUM is
 * not at work.
 */
static void
check_heads(GraphChecker *c)
{
	bool		standby = RecoveryInProgress();

	if (!standby)
		LockPage(c->index, GRAPH_UPDATE_LOCK, ExclusiveLock);
	GraphReadMeta(c->index, &c->handle->meta);
	check_measures(c);
	c->nblocks = RelationGetNumberOfBlocks(c->index);
	if (c->layout->form == QV_FORM_PLAIN)
		check_value_list(c);
	check_entry_points(c);
	if (!standby)
		UnlockPage(c->index, GRAPH_UPDATE_LOCK, ExclusiveLock);
}

void
GraphCheck(Relation index, const QvOpclassInfo *opclass, bool verify, GraphInfo *info)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver check",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GraphChecker c = {0};
	const GraphMetaData *meta;
	Size		state_bytes;

	c.index = index;
	c.handle = GraphOpen(index, opclass);
	c.layout = &c.handle->layout;
	c.nblocks = c.surveyed = RelationGetNumberOfBlocks(index);
	state_bytes = (Size) c.surveyed * c.layout->per_page / 4 + 1;
	c.states = MemoryContextAllocExtended(context, state_bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	survey(&c);
	if (verify)
	{
		GraphReach	reach = {c.handle, NULL, GraphAnswerInterrupts};
		GraphReached found;

		check_pages(&c);
		if (c.layout->form == QV_FORM_PLAIN)
			check_values(&c);
		check_heads(&c);
		if (QvRowsExist(&c.handle->rows))
			QvRowsCheck(&c.handle->rows, GraphVisitRows, c.handle, &c.info.rows);
		GraphFindUnreached(&reach, false, &found);
		c.info.unreached = found.unreached;
		if (message_level_is_interesting(DEBUG1))
		{
			GraphFindUnreached(&reach, true, &found);
			elog(DEBUG1, "index \"%s\": no anchors lead to %u of %u nodes",
				 RelationGetRelationName(index), found.unreached, found.live);
		}
	}
	meta = &c.handle->meta;
	c.info.dims = meta->dims;
	c.info.m = meta->m;
	c.info.ef_construction = meta->ef_construction;
	c.info.max_degree = meta->degree;
	c.info.code_bits = meta->code_bits;
	c.info.own_bits = meta->own_bits;
	c.info.nodes_per_page = meta->nodes_per_page;
	c.info.entries = meta->entry_count;
	*info = c.info;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
