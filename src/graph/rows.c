/*
 * rows.c
 *		Node slots and the heap TIDs of nodes; see rows.h.
 */
#include "postgres.h"

#include "graph/rows.h"
#include "containers/pool.h"
#include "miscadmin.h"
#include "storage/indexfsm.h"
#include "pages/write.h"

Buffer
GraphLockNode(GraphHandle *handle, uint32 id, int lockmode, GraphNode *node)
{
	const GraphLayout *layout = &handle->layout;
	Buffer		buf;

	buf = QvReadPage(handle->index, handle->hints, GraphNodeBlock(layout, id),
					 QV_PAGE_NODES, lockmode);
	*node = GraphPageNode(layout, BufferGetPage(buf), GraphNodeSlot(layout, id));
	if ((*node)->state != GRAPH_SLOT_LIVE && (*node)->state != GRAPH_SLOT_DELETED)
		*node = NULL;
	return buf;
}

/*
 * A page that the free space map knows to have free slots, or
 * InvalidBlockNumber.  Only node pages are recorded there, but the map is not
 * WAL-logged: after a crash it may say anything.
 */
static BlockNumber
recycled_page(GraphHandle *handle)
{
	Relation	index = handle->index;
	BlockNumber block = GetFreeIndexPage(index);
	Buffer		buf;
	bool		usable;

	if (!BlockNumberIsValid(block) || block >= RelationGetNumberOfBlocks(index))
		return InvalidBlockNumber;
	buf = QvReadBuffer(index, block, NULL);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	usable = QvPageIs(BufferGetPage(buf), QV_PAGE_NODES);
	UnlockReleaseBuffer(buf);
	return usable ? block : InvalidBlockNumber;
}

Buffer
GraphAllocSlot(GraphHandle *handle, bool building, uint32 *number)
{
	Relation	index = handle->index;
	const GraphLayout *layout = &handle->layout;
	BlockNumber block = handle->meta.insert_block;

	for (;;)
	{
		Buffer		buf,
					meta_buf;
		GraphMetaData *meta;
		QvWrite		w;

		if (BlockNumberIsValid(block))
		{
			buf = QvReadPage(index, handle->hints, block, QV_PAGE_NODES,
							 BUFFER_LOCK_EXCLUSIVE);
			for (uint32 slot = 0; slot < layout->per_page; slot++)
				if (GraphPageNode(layout, BufferGetPage(buf), slot)->state == GRAPH_SLOT_FREE)
				{
					*number = GraphNodeNumber(layout, block, slot);
					return buf;
				}
			UnlockReleaseBuffer(buf);
		}

		/* another page: one that vacuum freed, or a new one */
		meta_buf = QvReadPage(index, handle->hints, QV_META_BLOCK, QV_PAGE_META,
							  BUFFER_LOCK_EXCLUSIVE);
		meta = GraphPageMeta(index, BufferGetPage(meta_buf));
		if (meta->insert_block != block)
		{
			/* somebody found one */
			block = meta->insert_block;
			UnlockReleaseBuffer(meta_buf);
			continue;
		}
		buf = InvalidBuffer;
		block = building ? InvalidBlockNumber : recycled_page(handle);
		if (!BlockNumberIsValid(block))
		{
			buf = QvNewPage(index, MAIN_FORKNUM);
			block = BufferGetBlockNumber(buf);
			if (((uint64) block + 1) * layout->per_page > POOL_MAX_ID)
				ereport(ERROR,
						(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						 errmsg("index \"%s\" has too many nodes",
								RelationGetRelationName(index))));
		}
		QvWriteBegin(&w, index, building);
		meta = (GraphMetaData *) QvPageGetData(QvWriteRegister(&w, meta_buf));
		meta->insert_block = block;
		if (BufferIsValid(buf))
			QvWriteRegisterNew(&w, buf, QV_PAGE_NODES);
		QvWriteCommit(&w);
		if (BufferIsValid(buf))
			UnlockReleaseBuffer(buf);
		UnlockReleaseBuffer(meta_buf);
	}
}

/*
 * The node was seen live under the update lock, so it is still what it was:
 * vacuum may delete it meanwhile, but waits for us before it frees the slot.
 */
bool
GraphAddRow(GraphHandle *handle, uint32 id, ItemPointer tid, bool building)
{
	const GraphLayout *layout = &handle->layout;
	Relation	index = handle->index;
	GraphNode	node;
	Buffer		buf;
	QvWrite		w;
	Page		page;
	uint32		head,
				next,
				added,
				steps = 0;
	GraphTids	tids;

	buf = GraphLockNode(handle, id, BUFFER_LOCK_EXCLUSIVE, &node);
	if (node == NULL || node->state != GRAPH_SLOT_LIVE)
	{
		UnlockReleaseBuffer(buf);
		return false;
	}
	if (node->ntids < GRAPH_INLINE_TIDS)
	{
		QvWriteBegin(&w, index, building);
		page = QvWriteRegister(&w, buf);
		node = GraphPageNode(layout, page, GraphNodeSlot(layout, id));
		node->tids[node->ntids++] = *tid;
		QvWriteCommit(&w);
		UnlockReleaseBuffer(buf);
		return true;
	}
	head = node->overflow;
	UnlockReleaseBuffer(buf);

	/* a slot of the chain with room: the newest is first */
	for (next = head; next != GRAPH_NONE;)
	{
		CHECK_FOR_INTERRUPTS();
		buf = QvReadPage(index, handle->hints, GraphNodeBlock(layout, next),
						 QV_PAGE_NODES, BUFFER_LOCK_EXCLUSIVE);
		tids = (GraphTids) GraphPageNode(layout, BufferGetPage(buf),
										 GraphNodeSlot(layout, next));
		if (tids->state != GRAPH_SLOT_TIDS || tids->owner != id)
		{
			UnlockReleaseBuffer(buf);
			return false;
		}
		if (tids->ntids < layout->tids_per_slot)
		{
			QvWriteBegin(&w, index, building);
			page = QvWriteRegister(&w, buf);
			tids = (GraphTids) GraphPageNode(layout, page, GraphNodeSlot(layout, next));
			tids->tids[tids->ntids++] = *tid;
			QvWriteCommit(&w);
			UnlockReleaseBuffer(buf);
			return true;
		}
		next = tids->next;
		UnlockReleaseBuffer(buf);
		if (next == head || ++steps > POOL_MAX_ID / layout->tids_per_slot)
			QvReportCorruption(index, GraphNodeBlock(layout, id),
							   "The chain of heap TIDs of node %u is broken.", id);
	}

	/* a new one, linked in afterwards: until then nobody sees it */
	buf = GraphAllocSlot(handle, building, &added);
	QvWriteBegin(&w, index, building);
	page = QvWriteRegister(&w, buf);
	tids = (GraphTids) GraphPageNode(layout, page, GraphNodeSlot(layout, added));
	memset(tids, 0, layout->node_size);
	tids->state = GRAPH_SLOT_TIDS;
	tids->owner = id;
	tids->next = head;
	tids->tids[tids->ntids++] = *tid;
	QvWriteCommit(&w);
	UnlockReleaseBuffer(buf);

	buf = GraphLockNode(handle, id, BUFFER_LOCK_EXCLUSIVE, &node);
	if (node != NULL && node->state == GRAPH_SLOT_LIVE && node->overflow == head)
	{
		QvWriteBegin(&w, index, building);
		page = QvWriteRegister(&w, buf);
		GraphPageNode(layout, page, GraphNodeSlot(layout, id))->overflow = added;
		QvWriteCommit(&w);
		UnlockReleaseBuffer(buf);
		return true;
	}
	UnlockReleaseBuffer(buf);

	/* somebody else linked one in meanwhile: give ours back */
	buf = QvReadPage(index, handle->hints, GraphNodeBlock(layout, added),
					 QV_PAGE_NODES, BUFFER_LOCK_EXCLUSIVE);
	QvWriteBegin(&w, index, building);
	page = QvWriteRegister(&w, buf);
	memset(GraphPageNode(layout, page, GraphNodeSlot(layout, added)), 0,
		   layout->node_size);
	QvWriteCommit(&w);
	UnlockReleaseBuffer(buf);
	return false;
}
