/*
 * vacuum.c
 *		Removing dead rows from a graph.
 *
 *	1. Read every page: drop dead heap TIDs; a node without rows becomes
 *	   DELETED (still a way-point).
 *	2. If there are deleted nodes: wait for the inserts that may have chosen
 *	   one, then read every page again, removing edges to them; nodes that
 *	   lost much are repaired by a search of their own.
 *	3. Entry points move to live nodes, the slots become FREE
 *	   and their pages go to the free space map.
 *
 * Locks and the reasons why scans need none against this: src/graph/README.md.
 */
#include "postgres.h"

#include "access/genam.h"
#include "compat.h"
#include "containers/bitmap.h"
#include "containers/compare.h"
#include "graph/graph.h"
#include "graph/insert.h"
#include "graph/node.h"
#include "graph/pages.h"
#include "graph/rows.h"
#include "miscadmin.h"
#include "storage/indexfsm.h"
#include "storage/lmgr.h"
#include "pages/write.h"
#include "utils/memutils.h"

/*
 * A node that has fewer than this share of its edges after losing a
 * neighbor looks for new ones.
 */
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
	uint8	   *deleted;		/* bitmap by node number */
	uint8	   *live;			/* likewise */
	uint32		some_live;		/* a live node, when "live" has none */
	uint32		ndeleted;
	double		live_nodes;
	NumberList	owners;			/* nodes whose chain of rows has an empty slot */
	NumberList	empties;		/* those slots */
	NumberList	repairs;
} GraphVacuum;

static void
number_add(NumberList *list, uint32 number)
{
	if (list->count == list->capacity)
	{
		uint32		size = list->capacity ? list->capacity * 2 : 1024;

		list->items = list->items ?
			repalloc_huge(list->items, size * sizeof(uint32)) :
			palloc(size * sizeof(uint32));
		list->capacity = size;
	}
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

/* Pin and lock a block; InvalidBuffer when it holds no nodes. */
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

/* ---- pass 1: rows ---- */

/*
 * Drop dead rows of an array in place (without apply: only count).  Returns how
 * many.  A damaged page may hold invalid pointers, of which the server's
 * callback must not be asked; they stay for quiver_check() to find.
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

static void
remove_rows(GraphVacuum *v, BlockNumber block)
{
	const GraphLayout *layout = &v->handle->layout;
	Buffer		buf = lock_nodes(v, block, BUFFER_LOCK_SHARE);
	Page		page;
	QvWrite		w;
	int			dead = 0;
	bool		again;

	if (!BufferIsValid(buf))
		return;
	page = BufferGetPage(buf);
	for (uint32 slot = 0; slot < layout->per_page; slot++)
	{
		GraphNode	node = GraphPageNode(layout, page, slot);
		GraphTids	tids = (GraphTids) node;

		if (node->state == GRAPH_SLOT_LIVE)
		{
			dead += drop_dead(v, node->tids, Min(node->ntids, GRAPH_INLINE_TIDS), false);
			/* a vacuum was interrupted just before it deleted the node */
			dead += node->ntids == 0 && node->overflow == GRAPH_NONE;
		}
		else if (node->state == GRAPH_SLOT_TIDS)
			dead += drop_dead(v, tids->tids, Min(tids->ntids, layout->tids_per_slot), false);
	}
	again = dead > 0;
	if (again)
	{
		LockBuffer(buf, BUFFER_LOCK_UNLOCK);
		LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
		QvWriteBegin(&w, v->index, false);
		page = QvWriteRegister(&w, buf);
	}
	for (uint32 slot = 0; slot < layout->per_page; slot++)
	{
		GraphNode	node = GraphPageNode(layout, page, slot);
		GraphTids	tids = (GraphTids) node;
		uint32		number = GraphNodeNumber(layout, block, slot);
		int			n;

		if (node->state == GRAPH_SLOT_LIVE)
		{
			if (again)
			{
				n = drop_dead(v, node->tids, Min(node->ntids, GRAPH_INLINE_TIDS), true);
				node->ntids -= n;
				v->stats->tuples_removed += n;
			}
			v->stats->num_index_tuples += node->ntids;
			if (node->ntids > 0 || node->overflow != GRAPH_NONE)
			{
				v->live_nodes++;
				BitmapSet(v->live, number);
			}
			if (node->ntids == 0 && node->overflow != GRAPH_NONE)
				number_add(&v->owners, number);
			else if (again && node->ntids == 0)
				node->state = GRAPH_SLOT_DELETED;
		}
		else if (node->state == GRAPH_SLOT_TIDS)
		{
			if (again)
			{
				n = drop_dead(v, tids->tids, Min(tids->ntids, layout->tids_per_slot), true);
				tids->ntids -= n;
				v->stats->tuples_removed += n;
			}
			v->stats->num_index_tuples += tids->ntids;
			if (tids->ntids == 0)
			{
				number_add(&v->owners, tids->owner);
				number_add(&v->empties, number);
			}
		}
		if (node->state == GRAPH_SLOT_DELETED)
			set_deleted(v, number);
	}
	if (again)
		QvWriteCommit(&w);
	UnlockReleaseBuffer(buf);
}

/* Slots of heap TIDs, looked at or changed alone. */
static GraphTids
lock_tids(GraphVacuum *v, uint32 number, int lockmode, Buffer *buf)
{
	const GraphLayout *layout = &v->handle->layout;

	*buf = QvReadPage(v->index, v->handle->hints, GraphNodeBlock(layout, number),
					  QV_PAGE_NODES, lockmode);
	return (GraphTids) GraphPageNode(layout, BufferGetPage(*buf),
									 GraphNodeSlot(layout, number));
}

/*
 * Take the empty slots out of a node's chain, and delete the node when nothing
 * is left.  Inserts are kept out meanwhile: they add to chains.
 */
static void
clean_chain(GraphVacuum *v, uint32 owner)
{
	const GraphLayout *layout = &v->handle->layout;
	uint32		previous = GRAPH_NONE,
				next,
				steps = 0;
	GraphNode	node;
	Buffer		buf;
	QvWrite		w;
	Page		page;

	LockPage(v->index, GRAPH_UPDATE_LOCK, ExclusiveLock);
	buf = GraphLockNode(v->handle, owner, BUFFER_LOCK_SHARE, &node);
	next = node ? node->overflow : GRAPH_NONE;
	UnlockReleaseBuffer(buf);
	while (node != NULL && next != GRAPH_NONE)
	{
		GraphTids	tids = lock_tids(v, next, BUFFER_LOCK_SHARE, &buf);
		uint32		after = tids->next;
		bool		empty = tids->ntids == 0;
		bool		ours = tids->state == GRAPH_SLOT_TIDS && tids->owner == owner;

		UnlockReleaseBuffer(buf);
		if (!ours)
			break;
		CHECK_FOR_INTERRUPTS();
		if (++steps > v->nblocks * layout->per_page)
			QvReportCorruption(v->index, GraphNodeBlock(layout, owner),
							   "The chain of heap TIDs of node %u is broken.", owner);
		if (empty)
		{
			uint32		at = previous == GRAPH_NONE ? owner : previous;

			buf = QvReadPage(v->index, v->handle->hints, GraphNodeBlock(layout, at),
							 QV_PAGE_NODES, BUFFER_LOCK_EXCLUSIVE);
			QvWriteBegin(&w, v->index, false);
			page = QvWriteRegister(&w, buf);
			if (previous == GRAPH_NONE)
				GraphPageNode(layout, page, GraphNodeSlot(layout, at))->overflow = after;
			else
				((GraphTids) GraphPageNode(layout, page, GraphNodeSlot(layout, at)))->next = after;
			QvWriteCommit(&w);
			UnlockReleaseBuffer(buf);
		}
		else
			previous = next;
		next = after;
	}
	if (node != NULL)
	{
		buf = GraphLockNode(v->handle, owner, BUFFER_LOCK_EXCLUSIVE, &node);
		if (node != NULL && node->state == GRAPH_SLOT_LIVE &&
			node->ntids == 0 && node->overflow == GRAPH_NONE)
		{
			QvWriteBegin(&w, v->index, false);
			page = QvWriteRegister(&w, buf);
			GraphPageNode(layout, page, GraphNodeSlot(layout, owner))->state = GRAPH_SLOT_DELETED;
			QvWriteCommit(&w);
			set_deleted(v, owner);
			v->live_nodes--;
		}
		UnlockReleaseBuffer(buf);
	}
	UnlockPage(v->index, GRAPH_UPDATE_LOCK, ExclusiveLock);
}

/* Make a slot free, unless it turned out to be in use. */
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
		QvWriteBegin(&w, v->index, false);
		node = GraphPageNode(layout, QvWriteRegister(&w, buf), GraphNodeSlot(layout, number));
		memset(node, 0, layout->node_size);
		QvWriteCommit(&w);
		RecordFreeIndexPage(v->index, block);
	}
	UnlockReleaseBuffer(buf);
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

/* ---- pass 2: edges ---- */

static void
remove_edges(GraphVacuum *v, BlockNumber block)
{
	const GraphLayout *layout = &v->handle->layout;
	Buffer		buf = lock_nodes(v, block, BUFFER_LOCK_SHARE);
	Page		page;
	QvWrite		w;
	bool		found = false;

	if (!BufferIsValid(buf))
		return;
	page = BufferGetPage(buf);
	for (uint32 slot = 0; slot < layout->per_page && !found; slot++)
	{
		GraphNode	node = GraphPageNode(layout, page, slot);
		const uint32 *ids = GraphNodeIds(layout, node);

		if (node->state != GRAPH_SLOT_LIVE)
			continue;
		for (uint32 i = 0; i < layout->degree && !found; i++)
			found = ids[i] != GRAPH_NONE && is_deleted(v, ids[i]);
	}
	if (!found)
	{
		UnlockReleaseBuffer(buf);
		return;
	}

	LockBuffer(buf, BUFFER_LOCK_UNLOCK);
	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	QvWriteBegin(&w, v->index, false);
	page = QvWriteRegister(&w, buf);
	for (uint32 slot = 0; slot < layout->per_page; slot++)
	{
		GraphNode	node = GraphPageNode(layout, page, slot);
		const uint32 *ids = GraphNodeIds(layout, node);
		uint32		used = 0,
					lost = 0;

		if (node->state != GRAPH_SLOT_LIVE)
			continue;
		for (uint32 i = 0; i < layout->degree; i++)
		{
			if (ids[i] == GRAPH_NONE)
				continue;
			if (is_deleted(v, ids[i]))
			{
				GraphNodeClearEdge(layout, node, i);
				lost++;
			}
			else
				used++;
		}
		if (lost > 0 && used < layout->degree * REPAIR_BELOW)
			number_add(&v->repairs, GraphNodeNumber(layout, block, slot));
	}
	QvWriteCommit(&w);
	UnlockReleaseBuffer(buf);
}

/*
 * Search around a node's own value.  Returns NULL when the node is gone.
 */
static GraphNeighborhood *
search_around(GraphVacuum *v, uint32 id, GraphPoint **point)
{
	*point = v->handle->ops->node_point(v->handle, id);
	return *point ? GraphFindNeighborhood(v->handle, *point, id) : NULL;
}

/* Put those of the n edges made that node id has not yet into its empty places. */
static void
fill_places(GraphVacuum *v, const GraphNeighborhood *nb, uint32 id, int n)
{
	const GraphLayout *layout = &v->handle->layout;
	GraphNode	node;
	Buffer		buf = GraphLockNode(v->handle, id, BUFFER_LOCK_EXCLUSIVE, &node);

	if (node != NULL && node->state == GRAPH_SLOT_LIVE)
	{
		QvWrite		w;
		int			place;

		QvWriteBegin(&w, v->index, false);
		node = GraphPageNode(layout, QvWriteRegister(&w, buf), GraphNodeSlot(layout, id));
		for (int i = 0; i < n; i++)
			if (!GraphNodeFindEdge(layout, node, GraphNeighborId(nb, i), &place) &&
				place >= 0)
				v->handle->ops->set_edge(nb, i, node, place);
		QvWriteCommit(&w);
	}
	UnlockReleaseBuffer(buf);
}

/* Fill a node's empty places with neighbors found by a search. */
static void
repair(GraphVacuum *v, uint32 id)
{
	MemoryContext old;
	GraphNeighborhood *nb;
	GraphPoint *point;

	QvVacuumDelayPoint();
	MemoryContextReset(v->row_context);
	old = MemoryContextSwitchTo(v->row_context);
	nb = search_around(v, id, &point);
	if (nb != NULL)
	{
		int			n = GraphChooseNeighbors(nb, point);

		fill_places(v, nb, id, n);
		GraphLinkAllBack(nb, point, n, id, false);
	}
	MemoryContextSwitchTo(old);
}

/* The first live node on the pages; GRAPH_NONE when there is none. */
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

/* The live node with the nearest number: a build numbers near nodes alike. */
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

/* A live node near a deleted one that an entry point leads to. */
static uint32
replace_entry(void *arg, uint32 id)
{
	GraphVacuum *v = arg;
	MemoryContext old;
	GraphNeighborhood *nb;
	GraphPoint *point;
	uint32		to = id;

	if (!is_deleted(v, id))
		return id;
	MemoryContextReset(v->row_context);
	old = MemoryContextSwitchTo(v->row_context);
	nb = search_around(v, id, &point);
	if (nb != NULL && nb->count > 0)
		to = GraphNeighborId(nb, 0);
	else if ((to = live_beside(v, id)) == GRAPH_NONE)
		to = id;				/* emptied meanwhile: the next vacuum's */
	MemoryContextSwitchTo(old);
	return to;
}

/* Every slot of a deleted node becomes free. */
static void
free_deleted(GraphVacuum *v)
{
	uint32		end = v->nblocks * v->handle->layout.per_page;

	for (uint32 number = 0; number < end; number++)
	{
		if (!is_deleted(v, number))
			continue;
		if (v->handle->ops->free_value)
			v->handle->ops->free_value(v->handle, number);
		free_slot(v, number, GRAPH_SLOT_DELETED);
	}
}

IndexBulkDeleteResult *
GraphBulkDelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
				IndexBulkDeleteCallback callback, void *callback_state,
				const QvOpclassInfo *opclass)
{
	GraphVacuum v = {0};
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver vacuum",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;
	QvWrite		w;
	Buffer		buf;

	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	stats->num_index_tuples = 0;
	old = MemoryContextSwitchTo(context);
	v.info = info;
	v.index = info->index;
	v.stats = stats;
	v.callback = callback;
	v.callback_state = callback_state;
	v.handle = GraphOpen(info->index, opclass);
	v.row_context = AllocSetContextCreate(context, "quiver vacuum row",
										  ALLOCSET_DEFAULT_SIZES);
	v.nblocks = RelationGetNumberOfBlocks(info->index);
	v.deleted = MemoryContextAllocExtended(context,
										   (Size) v.nblocks * v.handle->layout.per_page / 8 + 8,
										   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

	v.live = MemoryContextAllocExtended(context,
										(Size) v.nblocks * v.handle->layout.per_page / 8 + 8,
										MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	v.some_live = GRAPH_NONE;

	for (BlockNumber block = 1; block < v.nblocks; block++)
		remove_rows(&v, block);
	clean_chains(&v);
	if (v.ndeleted > 0)
	{
		/* inserts that began before their neighbors were deleted */
		LockPage(v.index, GRAPH_UPDATE_LOCK, ExclusiveLock);

		/*
		 * With no node left, entries would lead nowhere, and later inserts
		 * would start a graph that they do not lead to.
		 */
		if (v.live_nodes == 0 && (v.some_live = first_live(&v)) == GRAPH_NONE)
			GraphClearEntryPoints(v.index);
		UnlockPage(v.index, GRAPH_UPDATE_LOCK, ExclusiveLock);

		/* pages added since have no edges to deleted nodes */
		v.nblocks = Min(v.nblocks, RelationGetNumberOfBlocks(info->index));
		for (BlockNumber block = 1; block < RelationGetNumberOfBlocks(info->index); block++)
			remove_edges(&v, block);
		for (uint32 i = 0; i < v.repairs.count; i++)
			repair(&v, v.repairs.items[i]);
		GraphReplaceEntryPoints(v.index, replace_entry, &v);
		free_deleted(&v);
	}

	buf = QvReadPage(v.index, NULL, QV_META_BLOCK, QV_PAGE_META, BUFFER_LOCK_EXCLUSIVE);
	QvWriteBegin(&w, v.index, false);
	{
		GraphMetaData *meta = (GraphMetaData *) QvPageGetData(QvWriteRegister(&w, buf));

		meta->live_nodes = v.live_nodes;
		meta->tuples = stats->num_index_tuples;
	}
	QvWriteCommit(&w);
	UnlockReleaseBuffer(buf);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return stats;
}

IndexBulkDeleteResult *
GraphVacuumCleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	/* nothing was deleted: nothing changed */
	if (info->analyze_only || stats == NULL)
		return stats;
	IndexFreeSpaceMapVacuum(info->index);
	stats->num_pages = RelationGetNumberOfBlocks(info->index);
	return stats;
}
