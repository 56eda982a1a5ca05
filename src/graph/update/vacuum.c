/*
 * vacuum.c
 *		Removing dead rows from a graph.
 *
 *	1. Read every page: drop dead heap TIDs.  A node without rows becomes DELETED, and is
 *	   still a way-point.
 *	2. If there are deleted nodes: wait for the inserts that may have chosen one, and give
 *	   new anchors to the nodes that are reached through them.
 *	3. Read every page again, and remove edges to deleted nodes.  Nodes that lost many are
 *	   repaired by a search of their own.
 *	4. Entry points move to live nodes.  Slots become FREE, and their pages go to the free
 *	   space map.
 *
 * src/graph/README.md, "Locks" says why scans need no lock against this.
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "compat.h"
#include "containers/bitmap.h"
#include "containers/compare.h"
#include "graph/form/forms.h"
#include "graph/graph.h"
#include "graph/page/cache.h"
#include "graph/page/entry_points.h"
#include "graph/page/meta.h"
#include "graph/page/node.h"
#include "graph/page/node_value.h"
#include "graph/page/rows.h"
#include "graph/update/calibrate.h"
#include "graph/update/neighbors.h"
#include "graph/update/reach.h"
#include "graph/update/row_pages.h"
#include "miscadmin.h"
#include "pages/turnover.h"
#include "rows/write.h"
#include "space/grow.h"
#include "storage/indexfsm.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

/* A node with less than this share of its edges, after losing a neighbor, looks for new ones. */
#define REPAIR_BELOW 0.75

typedef struct NumberList
{
	uint32	   *items;
	uint32		count;
	uint32		capacity;
} NumberList;

typedef struct GraphVacuum
{
	IndexVacuumInfo *info;
	Relation	index;
	IndexBulkDeleteResult *stats;
	IndexBulkDeleteCallback callback;
	void	   *callback_state;
	GraphHandle *handle;
	MemoryContext row_context;
	BlockNumber nblocks;
	uint8	   *deleted;		/* bitmap by node number: deleted */
	uint8	   *live;			/* bitmap by node number: live */
	uint32		some_live;		/* a live node, if "live" has none */
	uint32		ndeleted;
	double		live_nodes;
	NumberList	owners;			/* nodes whose chain of heap TIDs has an empty
								 * slot */
	NumberList	empties;		/* empty slots of chains */
	NumberList	repairs;
} GraphVacuum;

static void
number_add(NumberList *list, uint32 number)
{
	if (list->count == list->capacity)
		list->items = QvGrow(CurrentMemoryContext, list->items, &list->capacity, 1024, sizeof(uint32));
	list->items[list->count++] = number;
}

static inline bool
is_deleted(const GraphVacuum *v, uint32 number)
{
	return number / v->handle->layout.per_page < v->nblocks &&
		BitmapHas(v->deleted, number);
}

static void
set_deleted(GraphVacuum *v, uint32 number)
{
	if (number / v->handle->layout.per_page >= v->nblocks)
		return;
	BitmapSet(v->deleted, number);
	BitmapClear(v->live, number);
	v->ndeleted++;
}

/* Pins and locks a block.  Returns InvalidBuffer if it is no page of nodes. */
static Buffer
lock_nodes(GraphVacuum *v, BlockNumber block, int lockmode)
{
	Buffer		buf;
	Page		page;

	QvVacuumDelayPoint();
	buf = QvReadBuffer(v->index, block, v->info->strategy);
	LockBuffer(buf, lockmode);
	page = BufferGetPage(buf);
	/* a page added just before a crash was never initialized */
	if (PageIsNew(page) || (QvPageGetHeader(page)->magic == QV_PAGE_MAGIC &&
							QvPageGetHeader(page)->kind != QV_PAGE_NODES))
	{
		UnlockReleaseBuffer(buf);
		return InvalidBuffer;
	}
	QvPageCheck(v->index, block, page, QV_PAGE_NODES);
	return buf;
}

/* ---- rows ---- */

/*
 * Drops the dead rows of an array in place (without apply: only counts them).  Returns how
 * many.  A damaged page may have invalid heap TIDs.  The server's callback must not get
 * these.  They stay for quiver_check() to find.
 */
static int
drop_dead(GraphVacuum *v, ItemPointer tids, int n, bool apply)
{
	int			kept = 0;

	for (int i = 0; i < n; i++)
		if (!ItemPointerIsValid(&tids[i]) ||
			!v->callback(&tids[i], v->callback_state))
		{
			if (apply && kept != i)
				tids[kept] = tids[i];
			kept++;
		}
	return n - kept;
}

/* Returns the heap TIDs in a slot of any kind, *n of them. */
static ItemPointer
slot_tids(const GraphLayout *layout, GraphNode node, int *n)
{
	GraphTids	tids = (GraphTids) node;

	if (node->state == GRAPH_SLOT_LIVE)
	{
		*n = Min(node->ntids, GRAPH_INLINE_TIDS);
		return node->tids;
	}
	*n = node->state == GRAPH_SLOT_TIDS ? Min(tids->ntids, layout->tids_per_slot) : 0;
	return tids->tids;
}

/* Tells whether there is anything to remove from a page. */
static bool
has_dead(GraphVacuum *v, Page page)
{
	const GraphLayout *layout = &v->handle->layout;

	for (uint32 slot = 0; slot < layout->per_page; slot++)
	{
		GraphNode	node = GraphPageNode(layout, page, slot);
		int			n;
		ItemPointer tids = slot_tids(layout, node, &n);

		if (drop_dead(v, tids, n, false) > 0)
			return true;
		/* a VACUUM was interrupted just before it deleted the node */
		if (node->state == GRAPH_SLOT_LIVE && node->ntids == 0 && node->overflow == GRAPH_NONE)
			return true;
	}
	return false;
}

/* Drops the dead rows of a slot, and deletes the node if it has no others. */
static void
clean_slot(GraphVacuum *v, GraphNode node)
{
	int			n;
	ItemPointer tids = slot_tids(&v->handle->layout, node, &n);
	int			dead = drop_dead(v, tids, n, true);

	v->stats->tuples_removed += dead;
	if (node->state == GRAPH_SLOT_TIDS)
		((GraphTids) node)->ntids -= dead;
	else if (node->state == GRAPH_SLOT_LIVE)
	{
		node->ntids -= dead;
		if (node->ntids == 0 && node->overflow == GRAPH_NONE)
			node->state = GRAPH_SLOT_DELETED;
	}
}

/* Counts what a slot has, and notes what to do about it later. */
static void
note_slot(GraphVacuum *v, GraphNode node, uint32 number)
{
	GraphTids	tids = (GraphTids) node;

	switch (node->state)
	{
		case GRAPH_SLOT_LIVE:
			v->stats->num_index_tuples += node->ntids;
			v->live_nodes++;
			BitmapSet(v->live, number);
			if (node->ntids == 0)
				number_add(&v->owners, number);
			break;
		case GRAPH_SLOT_DELETED:
			set_deleted(v, number);
			break;
		case GRAPH_SLOT_TIDS:
			v->stats->num_index_tuples += tids->ntids;
			if (tids->ntids == 0)
			{
				number_add(&v->owners, tids->owner);
				number_add(&v->empties, number);
			}
			break;
	}
}

static void
remove_rows(GraphVacuum *v, BlockNumber block)
{
	const GraphLayout *layout = &v->handle->layout;
	Buffer		buf = lock_nodes(v, block, BUFFER_LOCK_SHARE);
	Page		page;
	QvWrite		w = {0};		/* gcc 13 with LTO does not follow "change" */
	bool		change;

	if (!BufferIsValid(buf))
		return;
	page = BufferGetPage(buf);
	change = has_dead(v, page);
	if (change)
	{
		LockBuffer(buf, BUFFER_LOCK_UNLOCK);
		LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
		QvWriteBegin(&w, v->index, v->handle->building);
		page = QvWriteRegister(&w, buf);
	}
	for (uint32 slot = 0; slot < layout->per_page; slot++)
	{
		GraphNode	node = GraphPageNode(layout, page, slot);

		if (change)
			clean_slot(v, node);
		note_slot(v, node, GraphNodeNumber(layout, block, slot));
	}
	if (change)
		QvWriteCommit(&w);
	UnlockReleaseBuffer(buf);
	if (change)
		QvInjectionPoint("quiver-graph-rows-dropped");
}

/* Unlinks an empty slot: the slot before it, or the node itself, leads past it. */
static void
unlink_slot(GraphVacuum *v, uint32 owner, uint32 previous, uint32 after)
{
	const GraphLayout *layout = &v->handle->layout;
	uint32		at = previous == GRAPH_NONE ? owner : previous;
	Buffer		buf = QvReadPage(v->index, v->handle->hints, GraphNodeBlock(layout, at),
								 QV_PAGE_NODES, BUFFER_LOCK_EXCLUSIVE);
	QvWrite		w;
	GraphNode	node = GraphBeginChange(v->handle, &w, buf, at);

	if (previous == GRAPH_NONE)
		node->overflow = after;
	else
		((GraphTids) node)->next = after;
	QvWriteEnd(&w);
	QvInjectionPoint("quiver-graph-slot-unlinked");
}

/* Unlinks the empty slots of a node's chain. */
static void
unlink_empty(GraphVacuum *v, uint32 owner, uint32 head)
{
	const GraphLayout *layout = &v->handle->layout;
	uint32		previous = GRAPH_NONE,
				steps = 0;

	for (uint32 at = head, after; at != GRAPH_NONE; at = after)
	{
		Buffer		buf = QvReadPage(v->index, v->handle->hints, GraphNodeBlock(layout, at),
									 QV_PAGE_NODES, BUFFER_LOCK_SHARE);
		GraphTids	tids = (GraphTids) GraphPageNode(layout, BufferGetPage(buf),
													 GraphNodeSlot(layout, at));
		bool		ours = tids->state == GRAPH_SLOT_TIDS && tids->owner == owner;
		bool		empty = tids->ntids == 0;

		after = tids->next;
		UnlockReleaseBuffer(buf);
		if (!ours)
			break;
		CHECK_FOR_INTERRUPTS();
		if (++steps > v->nblocks * layout->per_page)
			GraphReportBrokenChain(v->handle, owner);
		if (empty)
			unlink_slot(v, owner, previous, after);
		else
			previous = at;
	}
}

/* Deletes a node that has no rows any more. */
static void
delete_if_empty(GraphVacuum *v, uint32 id)
{
	GraphNode	node;
	Buffer		buf = GraphLockNode(v->handle, id, BUFFER_LOCK_EXCLUSIVE, &node);
	QvWrite		w;

	if (node != NULL && node->state == GRAPH_SLOT_LIVE &&
		node->ntids == 0 && node->overflow == GRAPH_NONE)
	{
		GraphBeginChange(v->handle, &w, buf, id)->state = GRAPH_SLOT_DELETED;
		QvWriteCommit(&w);
		set_deleted(v, id);
		v->live_nodes--;
	}
	UnlockReleaseBuffer(buf);
	QvInjectionPoint("quiver-graph-node-deleted");
}

/*
 * Unlinks the empty slots of a node's chain, and deletes the node if nothing is left.
 * Inserts are kept out meanwhile, since they add to chains.
 */
static void
clean_chain(GraphVacuum *v, uint32 owner)
{
	GraphNode	node;
	uint32		head;
	Buffer		buf;

	LockPage(v->index, GRAPH_UPDATE_LOCK, ExclusiveLock);
	buf = GraphLockNode(v->handle, owner, BUFFER_LOCK_SHARE, &node);
	head = node ? node->overflow : GRAPH_NONE;
	UnlockReleaseBuffer(buf);
	if (node != NULL)
	{
		unlink_empty(v, owner, head);
		delete_if_empty(v, owner);
	}
	UnlockPage(v->index, GRAPH_UPDATE_LOCK, ExclusiveLock);
}

/* Frees a slot, unless it turns out to be in use. */
static void
free_slot(GraphVacuum *v, uint32 number, uint8 state)
{
	const GraphLayout *layout = &v->handle->layout;
	BlockNumber block = GraphNodeBlock(layout, number);
	Buffer		buf = lock_nodes(v, block, BUFFER_LOCK_EXCLUSIVE);
	GraphNode	node;
	QvWrite		w;

	if (!BufferIsValid(buf))
		return;
	node = GraphPageNode(layout, BufferGetPage(buf), GraphNodeSlot(layout, number));
	if (node->state == state &&
		(state != GRAPH_SLOT_TIDS || ((GraphTids) node)->ntids == 0))
	{
		memset(GraphBeginChange(v->handle, &w, buf, number), 0, layout->node_size);
		QvWriteCommit(&w);
	}
	UnlockReleaseBuffer(buf);
	QvInjectionPoint("quiver-graph-slot-freed");
}

static void
clean_chains(GraphVacuum *v)
{
	uint32		last = GRAPH_NONE;

	if (v->owners.count == 0)
		return;
	qsort(v->owners.items, v->owners.count, sizeof(uint32), CompareUint32);
	for (uint32 i = 0; i < v->owners.count; i++)
	{
		if (v->owners.items[i] != last)
			clean_chain(v, v->owners.items[i]);
		last = v->owners.items[i];
	}
	for (uint32 i = 0; i < v->empties.count; i++)
		free_slot(v, v->empties.items[i], GRAPH_SLOT_TIDS);
}

/* ---- edges ---- */

/* Tells whether a live node of the page has an edge to a deleted one. */
static bool
has_dead_edge(GraphVacuum *v, Page page)
{
	const GraphLayout *layout = &v->handle->layout;

	for (uint32 slot = 0; slot < layout->per_page; slot++)
	{
		GraphNode	node = GraphPageNode(layout, page, slot);
		const uint32 *ids = GraphNodeIds(layout, node);

		if (node->state != GRAPH_SLOT_LIVE)
			continue;
		for (uint32 i = 0; i < layout->degree; i++)
			if (ids[i] != GRAPH_NONE && is_deleted(v, GraphEdgeTo(ids[i])))
				return true;
	}
	return false;
}

/*
 * Empties a node's places that lead to deleted nodes.  Notes the node for repair if it lost
 * many.
 */
static void
remove_dead_edges(GraphVacuum *v, GraphNode node, uint32 number)
{
	const GraphLayout *layout = &v->handle->layout;
	const uint32 *ids = GraphNodeIds(layout, node);
	uint32		used = 0,
				lost = 0;

	for (uint32 i = 0; i < layout->degree; i++)
	{
		if (ids[i] == GRAPH_NONE)
			continue;
		if (is_deleted(v, GraphEdgeTo(ids[i])))
		{
			GraphNodeClearEdge(layout, node, i);
			lost++;
		}
		else
			used++;
	}
	if (lost > 0 && used < layout->degree * REPAIR_BELOW)
		number_add(&v->repairs, number);
}

static void
remove_edges(GraphVacuum *v, BlockNumber block)
{
	const GraphLayout *layout = &v->handle->layout;
	Buffer		buf = lock_nodes(v, block, BUFFER_LOCK_SHARE);

	if (!BufferIsValid(buf))
		return;
	if (has_dead_edge(v, BufferGetPage(buf)))
	{
		QvWrite		w;
		Page		page;

		LockBuffer(buf, BUFFER_LOCK_UNLOCK);
		LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
		QvWriteBegin(&w, v->index, v->handle->building);
		page = QvWriteRegister(&w, buf);
		for (uint32 slot = 0; slot < layout->per_page; slot++)
		{
			GraphNode	node = GraphPageNode(layout, page, slot);

			if (node->state == GRAPH_SLOT_LIVE)
				remove_dead_edges(v, node, GraphNodeNumber(layout, block, slot));
		}
		QvWriteCommit(&w);
	}
	UnlockReleaseBuffer(buf);
	QvInjectionPoint("quiver-graph-edges-removed");
}

/* Searches around a node's own value.  Returns NULL if the node is gone. */
static GraphNeighborhood *
search_around(GraphVacuum *v, uint32 id)
{
	GraphPoint *point = GraphFormOf(v->handle)->node_point(v->handle, id);

	return point ? GraphFindNeighborhood(v->handle, point, id) : NULL;
}

/* Puts the n prepared edges into empty places of node id, except edges that it has already. */
static void
fill_places(const GraphNeighborhood *nb, uint32 id, int n)
{
	GraphHandle *handle = nb->handle;
	GraphNode	node;
	Buffer		buf = GraphLockNode(handle, id, BUFFER_LOCK_EXCLUSIVE, &node);

	if (node != NULL && node->state == GRAPH_SLOT_LIVE)
	{
		QvWrite		w;
		int			place;

		node = GraphBeginChange(handle, &w, buf, id);
		for (int i = 0; i < n; i++)
			if (GraphNodeFindEdge(&handle->layout, node, GraphNeighborId(nb, i), &place) < 0 &&
				place >= 0)
				GraphFormOf(handle)->set_edge(nb, i, node, place);
		QvWriteCommit(&w);
	}
	UnlockReleaseBuffer(buf);
	QvInjectionPoint("quiver-graph-places-filled");
}

/* Fills a node's empty places with neighbors that a search finds. */
static void
repair(GraphVacuum *v, uint32 id)
{
	MemoryContext old;
	GraphNeighborhood *nb;

	QvVacuumDelayPoint();
	MemoryContextReset(v->row_context);
	old = MemoryContextSwitchTo(v->row_context);
	nb = search_around(v, id);
	if (nb != NULL)
	{
		int			n = GraphChooseNeighbors(nb);

		fill_places(nb, id, n);
		GraphLinkAllBack(nb, n, id);
	}
	MemoryContextSwitchTo(old);
}

/* Returns the first live node on the pages, or GRAPH_NONE. */
static uint32
first_live(GraphVacuum *v)
{
	const GraphLayout *layout = &v->handle->layout;
	uint32		found = GRAPH_NONE;

	for (BlockNumber block = 1;
		 found == GRAPH_NONE && block < RelationGetNumberOfBlocks(v->index); block++)
	{
		Buffer		buf = lock_nodes(v, block, BUFFER_LOCK_SHARE);

		if (!BufferIsValid(buf))
			continue;
		for (uint32 slot = 0; slot < layout->per_page && found == GRAPH_NONE; slot++)
			if (GraphPageNode(layout, BufferGetPage(buf), slot)->state == GRAPH_SLOT_LIVE)
				found = GraphNodeNumber(layout, block, slot);
		UnlockReleaseBuffer(buf);
	}
	return found;
}

/* Returns the live node with the nearest number.  A build gives near nodes near numbers. */
static uint32
live_beside(GraphVacuum *v, uint32 id)
{
	uint32		end = v->nblocks * v->handle->layout.per_page;

	for (uint32 d = 1; d < end; d++)
	{
		if (d % 65536 == 0)
			CHECK_FOR_INTERRUPTS();
		if (id + d < end && BitmapHas(v->live, id + d))
			return id + d;
		if (id >= d && BitmapHas(v->live, id - d))
			return id - d;
	}
	return v->some_live;
}

/* Returns a live node near a deleted one that an entry point leads to. */
static uint32
replace_entry_point(void *arg, uint32 id)
{
	GraphVacuum *v = arg;
	MemoryContext old;
	GraphNeighborhood *nb;
	uint32		to = id;

	if (!is_deleted(v, id))
		return id;
	MemoryContextReset(v->row_context);
	old = MemoryContextSwitchTo(v->row_context);
	nb = search_around(v, id);
	if (nb != NULL && nb->count > 0)
		to = GraphNeighborId(nb, 0);
	else if ((to = live_beside(v, id)) == GRAPH_NONE)
		to = id;				/* emptied meanwhile: left to the next VACUUM */
	MemoryContextSwitchTo(old);
	return to;
}

/* Frees every slot of a deleted node. */
static void
free_deleted(GraphVacuum *v)
{
	uint32		end = v->nblocks * v->handle->layout.per_page;

	for (uint32 number = 0; number < end; number++)
	{
		if (!is_deleted(v, number))
			continue;
		GraphFreeValue(v->handle, number);
		free_slot(v, number, GRAPH_SLOT_DELETED);
	}
}

/* ---- all of it ---- */

/* Returns how many entry points there are now. */
static uint32
count_entry_points(GraphVacuum *v)
{
	GraphMetaData meta;

	GraphReadMeta(v->index, &meta);
	return meta.entry_count;
}

/* Waits for the inserts under way, which may have chosen nodes that were deleted meanwhile. */
static void
wait_for_inserts(GraphVacuum *v)
{
	LockPage(v->index, GRAPH_UPDATE_LOCK, ExclusiveLock);
	UnlockPage(v->index, GRAPH_UPDATE_LOCK, ExclusiveLock);
}

/*
 * Empties the entry points if no node is left.  They would lead nowhere, and later inserts
 * would start a graph that they do not lead to.  Pages are read without the lock.  No
 * insert is under way that began before nodes were deleted.  The first insert after that
 * finds no live node, and adds an entry point.  If there are as many entry points as
 * before, there was no such insert.
 */
static void
clear_if_empty(GraphVacuum *v)
{
	bool		cleared = false;

	while (!cleared)
	{
		uint32		entries = count_entry_points(v);

		v->some_live = first_live(v);
		if (v->some_live != GRAPH_NONE)
			return;
		LockPage(v->index, GRAPH_UPDATE_LOCK, ExclusiveLock);
		if (count_entry_points(v) == entries)
		{
			GraphClearEntryPoints(v->handle);
			cleared = true;
		}
		UnlockPage(v->index, GRAPH_UPDATE_LOCK, ExclusiveLock);
	}
}

static void
delay(void)
{
	QvVacuumDelayPoint();
}

/*
 * Unlinks the deleted nodes, and frees their slots.  The nodes that they are the anchor of
 * get another anchor first.  Until then deleted nodes lead to these.
 */
static void
remove_deleted(GraphVacuum *v)
{
	GraphReach	reach = {v->handle, v->info->strategy, delay};
	GraphReached found;
	BlockNumber nblocks;

	wait_for_inserts(v);
	if (v->live_nodes == 0)
		clear_if_empty(v);
	GraphReachAll(&reach, &found);

	/* those inserts may have added pages; later ones choose no deleted node */
	nblocks = RelationGetNumberOfBlocks(v->index);
	for (BlockNumber block = 1; block < nblocks; block++)
	{
		/* at once: if it is canceled, nobody knows which nodes lost edges */
		remove_edges(v, block);
		for (uint32 i = 0; i < v->repairs.count; i++)
			repair(v, v->repairs.items[i]);
		v->repairs.count = 0;
	}
	if (!found.anchored)
		GraphReachAll(&reach, &found);
	GraphReplaceEntryPoints(v->handle, replace_entry_point, v);
	free_deleted(v);
}

/* Writes the counts for the planner, and changes the number of VACUUMs. */
static void
write_counts(GraphVacuum *v)
{
	GraphMetaData *meta;
	Buffer		buf = GraphLockMeta(v->index, v->handle->hints, &meta);
	QvWrite		w;

	QvWriteBegin(&w, v->index, v->handle->building);
	meta = GraphRegisterMeta(&w, buf);
	meta->live_nodes = v->live_nodes;
	meta->tuples = v->stats->num_index_tuples;
	meta->pool_nodes = QvTurnoverRemoved(meta->pool_nodes, v->ndeleted);
	/* also if an interrupted VACUUM has left nothing to remove */
	meta->vacuums++;
	QvWriteEnd(&w);
	QvInjectionPoint("quiver-graph-counts-written");
}

void
GraphBulkDelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
				IndexBulkDeleteCallback callback, void *callback_state,
				const QvOpclassInfo *opclass)
{
	GraphVacuum v = {0};
	Size		bitmap_size;

	stats->num_index_tuples = 0;
	v.info = info;
	v.index = info->index;
	v.stats = stats;
	v.callback = callback;
	v.callback_state = callback_state;
	v.handle = GraphOpen(info->index, opclass);
	v.row_context = AllocSetContextCreate(CurrentMemoryContext, "quiver vacuum row",
										  ALLOCSET_DEFAULT_SIZES);
	v.nblocks = RelationGetNumberOfBlocks(info->index);
	bitmap_size = (Size) v.nblocks * v.handle->layout.per_page / 8 + 8;
	v.deleted = palloc_extended(bitmap_size, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	v.live = palloc_extended(bitmap_size, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	v.some_live = GRAPH_NONE;

	if (QvRowsExist(&v.handle->rows))
		QvRowsClear(&v.handle->rows, callback, callback_state, info->strategy);
	for (BlockNumber block = 1; block < v.nblocks; block++)
		remove_rows(&v, block);
	clean_chains(&v);
	if (v.ndeleted > 0)
		remove_deleted(&v);
	write_counts(&v);
}

/* ---- at the end of all ---- */

/* Share of the table's rows: if their number has changed by more, anchors are checked. */
#define NEW_ROWS 0.05

/* Writes what was found, and how many rows there were then. */
static void
write_reached(GraphHandle *handle, double rows, double live_nodes)
{
	GraphMetaData *meta;
	Buffer		buf = GraphLockMeta(handle->index, handle->hints, &meta);
	QvWrite		w;

	QvWriteBegin(&w, handle->index, handle->building);
	meta = GraphRegisterMeta(&w, buf);
	meta->reached_rows = Max(1, rows);
	/* as many rows per node as before */
	if (meta->live_nodes > 0)
		meta->tuples *= live_nodes / meta->live_nodes;
	else
		meta->tuples = live_nodes;
	meta->live_nodes = live_nodes;
	QvWriteEnd(&w);
	QvInjectionPoint("quiver-graph-reached-written");
}

/*
 * Records the pages with free slots.  The free space map may have to grow, for which a full disk
 * has no room.  By now the table is rid of its dead rows.
 */
static void
record_free_pages(IndexVacuumInfo *info, GraphHandle *handle)
{
	GraphVacuum v = {.info = info, .index = info->index, .handle = handle};
	BlockNumber nblocks = RelationGetNumberOfBlocks(info->index);

	for (BlockNumber block = 1; block < nblocks; block++)
	{
		Buffer		buf = lock_nodes(&v, block, BUFFER_LOCK_SHARE);
		bool		has_room;

		if (!BufferIsValid(buf))
			continue;
		has_room = GraphHasFreeSlot(&handle->layout, BufferGetPage(buf));
		UnlockReleaseBuffer(buf);
		if (has_room)
			RecordFreeIndexPage(info->index, block);
	}
	QvPublishFreePages(info->index);
}

/* Makes all nodes reachable, and calibrates again, when many rows have come or gone. */
static void
look_after(IndexVacuumInfo *info, GraphHandle *handle)
{
	GraphMetaData *meta = &handle->meta;
	double		before = meta->reached_rows;

	/* also true if the metapage has a NaN */
	if (!(fabs(Max(1, info->num_heap_tuples) - before) <= NEW_ROWS * before) ||
		GraphWantsCalibration(meta, meta->live_nodes))
	{
		GraphReached found;
		bool		calibrates;

		GraphReachAll(&(GraphReach) {handle, info->strategy, delay}, &found);

		/*
		 * Searches of a damaged index raise errors.  Nothing more is done
		 * then.
		 */
		calibrates = found.sound && GraphWantsCalibration(meta, found.live);
		/* if the calibration is canceled, the next VACUUM does it */
		write_reached(handle, calibrates ? before : info->num_heap_tuples, found.live);
		GraphReadMeta(info->index, meta);
		if (calibrates)
		{
			GraphCalibrateAlone(handle, delay);
			write_reached(handle, info->num_heap_tuples, found.live);
		}
	}
	if (GraphCanHaveRows(meta) && QvRowsWantMerge(&meta->rows, info->num_heap_tuples))
		QvRowsMerge(&handle->rows, false, info->num_heap_tuples, GraphVisitRows, handle);
}

IndexBulkDeleteResult *
GraphVacuumCleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
				   const QvOpclassInfo *opclass)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver vacuum",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GraphHandle *handle = GraphOpen(info->index, opclass);

	if (stats)
		record_free_pages(info, handle);
	look_after(info, handle);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	if (stats)
		stats->num_pages = RelationGetNumberOfBlocks(info->index);
	return stats;
}
