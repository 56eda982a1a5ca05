/*
 * rows.c
 *		Node slots and the heap TIDs of nodes; see rows.h.
 */
#include "postgres.h"

#include "compat.h"
#include "containers/pool.h"
#include "graph/page/meta.h"
#include "graph/page/node.h"
#include "graph/page/rows.h"
#include "miscadmin.h"
#include "storage/indexfsm.h"

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

GraphNode
GraphBeginChange(GraphHandle *handle, QvWrite *w, Buffer buf, uint32 number)
{
	QvWriteBegin(w, handle->index, handle->building);
	return GraphPageNode(&handle->layout, QvWriteRegister(w, buf),
						 GraphNodeSlot(&handle->layout, number));
}

bool
GraphAsk(GraphHandle *handle, GraphHost *host, uint32 to, uint32 id,
		 GraphOffer offer, GraphAnswer *answer)
{
	const GraphLayout *layout = &handle->layout;
	bool		anchor = offer != GRAPH_EDGE;
	int			place;
	QvWrite		w;

	host->id = to;
	host->buf = GraphLockNode(handle, to, BUFFER_LOCK_EXCLUSIVE, &host->node);
	*answer = GRAPH_REFUSED;
	if (host->node == NULL || host->node->state != GRAPH_SLOT_LIVE)
		return true;
	place = GraphNodeFindEdge(layout, host->node, id, &host->empty);
	if (place >= 0 && (!anchor || GraphEdgeIsAnchor(GraphNodeIds(layout, host->node)[place])))
		*answer = GRAPH_TAKEN;
	else if (anchor && !GraphNodeTakesAnchor(layout, host->node))
		*answer = GRAPH_NO_MORE_ANCHORS;
	else if (place >= 0)
	{
		GraphNodeSetAnchor(layout, GraphBeginChange(handle, &w, host->buf, to), place);
		QvWriteCommit(&w);
		*answer = GRAPH_TAKEN;
	}
	else
		return false;
	return true;
}

bool
GraphMakeAnchor(GraphHandle *handle, uint32 from, uint32 to)
{
	GraphHost	host;
	GraphAnswer answer;
	bool		settled = GraphAsk(handle, &host, from, to, GRAPH_ANCHOR_EDGE, &answer);

	UnlockReleaseBuffer(host.buf);
	if (!settled || answer != GRAPH_TAKEN)
		return false;
	QvInjectionPoint("quiver-graph-anchor-moved");
	return true;
}

/* Returns the first free slot of a page, or per_page. */
static uint32
free_slot(const GraphLayout *layout, Page page)
{
	uint32		slot = 0;

	while (slot < layout->per_page && GraphPageNode(layout, page, slot)->state != GRAPH_SLOT_FREE)
		slot++;
	return slot;
}

bool
GraphHasFreeSlot(const GraphLayout *layout, Page page)
{
	return free_slot(layout, page) < layout->per_page;
}

/*
 * Returns a page that the free space map names, or InvalidBlockNumber.  Only node pages are
 * recorded in the map.  The map is not WAL-logged as inserts use it, so after a crash or on a
 * new primary it may name any number of pages that are full.  Each page is therefore checked.
 */
static BlockNumber
recycled_page(GraphHandle *handle)
{
	Relation	index = handle->index;
	BlockNumber nblocks = RelationGetNumberOfBlocks(index);

	for (int i = 0; i < QV_MAX_RECYCLED; i++)
	{
		BlockNumber block = GetFreeIndexPage(index);
		Buffer		buf;
		bool		usable;

		CHECK_FOR_INTERRUPTS();
		if (!BlockNumberIsValid(block))
			break;
		if (block == QV_META_BLOCK || block >= nblocks)
			continue;
		buf = QvReadBuffer(index, block, NULL);
		LockBuffer(buf, BUFFER_LOCK_SHARE);
		usable = QvPageIs(BufferGetPage(buf), QV_PAGE_NODES) &&
			GraphHasFreeSlot(&handle->layout, BufferGetPage(buf));
		UnlockReleaseBuffer(buf);
		if (usable)
			return block;
	}
	return InvalidBlockNumber;
}

/* Adds a page of free slots.  Returns it pinned and exclusively locked. */
static Buffer
new_node_page(GraphHandle *handle)
{
	/* every process may add a page of values meanwhile */
	if (((uint64) RelationGetNumberOfBlocks(handle->index) + MaxBackends) * handle->layout.per_page > GRAPH_MAX_ID)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("index \"%s\" has too many nodes",
						RelationGetRelationName(handle->index))));
	return QvNewPage(handle->index, MAIN_FORKNUM);
}

/*
 * Returns another node page for the full one: the page that others went on to, one that
 * VACUUM has freed slots of, or a new one.
 */
static BlockNumber
next_page(GraphHandle *handle, BlockNumber full)
{
	/*
	 * the metapage is not locked while pages are looked for: all searches
	 * read it
	 */
	BlockNumber recycled = handle->building ? InvalidBlockNumber : recycled_page(handle);
	GraphMetaData *meta;
	Buffer		meta_buf = GraphLockMeta(handle->index, handle->hints, &meta);
	Buffer		new_buf = InvalidBuffer;
	BlockNumber next = meta->insert_block;
	QvWrite		w;

	if (next == full)
	{
		next = recycled;
		recycled = InvalidBlockNumber;
		if (!BlockNumberIsValid(next))
		{
			new_buf = new_node_page(handle);
			next = BufferGetBlockNumber(new_buf);
		}
		QvWriteBegin(&w, handle->index, handle->building);
		GraphRegisterMeta(&w, meta_buf)->insert_block = next;
		if (BufferIsValid(new_buf))
			QvWriteRegisterNew(&w, new_buf, QV_PAGE_NODES);
		QvWriteCommit(&w);
		if (BufferIsValid(new_buf))
			UnlockReleaseBuffer(new_buf);
	}
	UnlockReleaseBuffer(meta_buf);
	/* others have gone on: the page is for another time */
	if (BlockNumberIsValid(recycled))
		RecordFreeIndexPage(handle->index, recycled);
	QvInjectionPoint("quiver-graph-another-page");
	return next;
}

Buffer
GraphAllocSlot(GraphHandle *handle, uint32 *number)
{
	const GraphLayout *layout = &handle->layout;
	BlockNumber block = handle->meta.insert_block;

	for (;; block = next_page(handle, block))
	{
		Buffer		buf;
		uint32		slot;

		if (!BlockNumberIsValid(block))
			continue;
		buf = QvReadPage(handle->index, handle->hints, block, QV_PAGE_NODES,
						 BUFFER_LOCK_EXCLUSIVE);
		slot = free_slot(layout, BufferGetPage(buf));
		if (slot < layout->per_page)
		{
			*number = GraphNodeNumber(layout, block, slot);
			return buf;
		}
		UnlockReleaseBuffer(buf);
	}
}

/* ---- heap TIDs ---- */

void
GraphReportBrokenChain(const GraphHandle *handle, uint32 id)
{
	QvReportCorruption(handle->index, GraphNodeBlock(&handle->layout, id),
					   "The chain of heap TIDs of node %u is broken.", id);
}

typedef enum AddResult
{
	ADDED,
	FULL,						/* no room in that slot */
	GONE						/* the node is no longer live */
} AddResult;

/* Adds a row in the node's own slot.  If that is FULL, *head is the first slot of its chain. */
static AddResult
add_to_node(GraphHandle *handle, uint32 id, ItemPointer tid, uint32 *head)
{
	GraphNode	node;
	Buffer		buf = GraphLockNode(handle, id, BUFFER_LOCK_EXCLUSIVE, &node);
	AddResult	result = FULL;

	if (node == NULL || node->state != GRAPH_SLOT_LIVE)
		result = GONE;
	else if (node->ntids < GRAPH_INLINE_TIDS)
	{
		QvWrite		w;

		node = GraphBeginChange(handle, &w, buf, id);
		node->tids[node->ntids++] = *tid;
		QvWriteEnd(&w);
		return ADDED;
	}
	else
		*head = node->overflow;
	UnlockReleaseBuffer(buf);
	return result;
}

/* Adds a row in slot "at" of the node's chain.  If that is FULL, *next is the slot after it. */
static AddResult
add_to_slot(GraphHandle *handle, uint32 id, ItemPointer tid, uint32 at, uint32 *next)
{
	const GraphLayout *layout = &handle->layout;
	Buffer		buf = QvReadPage(handle->index, handle->hints, GraphNodeBlock(layout, at),
								 QV_PAGE_NODES, BUFFER_LOCK_EXCLUSIVE);
	GraphTids	tids = (GraphTids) GraphPageNode(layout, BufferGetPage(buf),
												 GraphNodeSlot(layout, at));
	AddResult	result = FULL;

	if (tids->state != GRAPH_SLOT_TIDS || tids->owner != id)
		result = GONE;
	else if (tids->ntids < layout->tids_per_slot)
	{
		QvWrite		w;

		tids = (GraphTids) GraphBeginChange(handle, &w, buf, at);
		tids->tids[tids->ntids++] = *tid;
		QvWriteEnd(&w);
		return ADDED;
	}
	*next = tids->next;
	UnlockReleaseBuffer(buf);
	return result;
}

/* Adds a row in a slot of the node's chain with room.  The newest slot is the first. */
static AddResult
add_to_chain(GraphHandle *handle, uint32 id, ItemPointer tid, uint32 head)
{
	const GraphLayout *layout = &handle->layout;
	AddResult	result = FULL;
	uint32		steps = 0;

	for (uint32 at = head, next; at != GRAPH_NONE && result == FULL; at = next)
	{
		CHECK_FOR_INTERRUPTS();
		result = add_to_slot(handle, id, tid, at, &next);
		if (result == FULL &&
			(next == head || ++steps > GRAPH_MAX_ID / layout->tids_per_slot))
			GraphReportBrokenChain(handle, id);
	}
	return result;
}

/*
 * Adds a row in a new slot before the first of the chain.  The node leads to the slot only
 * after that, so no scan sees it before.
 */
static bool
add_slot(GraphHandle *handle, uint32 id, ItemPointer tid, uint32 head)
{
	const GraphLayout *layout = &handle->layout;
	GraphTids	tids;
	GraphNode	node;
	uint32		added;
	Buffer		buf = GraphAllocSlot(handle, &added);
	QvWrite		w;

	tids = (GraphTids) GraphBeginChange(handle, &w, buf, added);
	memset(tids, 0, layout->node_size);
	tids->state = GRAPH_SLOT_TIDS;
	tids->owner = id;
	tids->next = head;
	tids->tids[tids->ntids++] = *tid;
	QvWriteEnd(&w);
	QvInjectionPoint("quiver-graph-tids-written");

	buf = GraphLockNode(handle, id, BUFFER_LOCK_EXCLUSIVE, &node);
	if (node != NULL && node->state == GRAPH_SLOT_LIVE && node->overflow == head)
	{
		GraphBeginChange(handle, &w, buf, id)->overflow = added;
		QvWriteEnd(&w);
		QvInjectionPoint("quiver-graph-tids-linked");
		return true;
	}
	UnlockReleaseBuffer(buf);

	/* another insert has linked one in meanwhile: give ours back */
	buf = QvReadPage(handle->index, handle->hints, GraphNodeBlock(layout, added),
					 QV_PAGE_NODES, BUFFER_LOCK_EXCLUSIVE);
	memset(GraphBeginChange(handle, &w, buf, added), 0, layout->node_size);
	QvWriteEnd(&w);
	QvInjectionPoint("quiver-graph-tids-given-back");
	return false;
}

/*
 * The node was seen live under the update lock, so it is still what it was.  VACUUM may
 * delete it meanwhile, but waits for this insert before it frees the slot.
 */
bool
GraphAddRow(GraphHandle *handle, uint32 id, ItemPointer tid)
{
	uint32		head;
	AddResult	result = add_to_node(handle, id, tid, &head);

	if (result == FULL)
		result = add_to_chain(handle, id, tid, head);
	if (result == FULL)
		return add_slot(handle, id, tid, head);
	QvInjectionPoint("quiver-graph-row-added");
	return result == ADDED;
}
