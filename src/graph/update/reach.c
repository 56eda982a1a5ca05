/*
 * reach.c
 *		Which nodes a search can reach; see reach.h.
 *
 * The walk reads page after page, again and again: a node that was reached leads to others.
 * There are many entry points, and near nodes often share pages.  Most nodes are therefore
 * reached in the first round.  Pages without news are not read again.
 */
#include "postgres.h"

#include "containers/bitmap.h"
#include "graph/form/forms.h"
#include "graph/page/entry_points.h"
#include "graph/page/meta.h"
#include "graph/page/node.h"
#include "graph/page/rows.h"
#include "graph/update/neighbors.h"
#include "graph/update/reach.h"
#include "miscadmin.h"
#include "pages/read.h"
#include "utils/memutils.h"

typedef struct Walk
{
	const GraphReach *params;
	const GraphLayout *layout;
	bool		anchors_only;
	bool		through_deleted;
	BlockNumber nblocks;
	Size		nslots;
	uint8	   *live;			/* by number: live when its page was read */
	uint8	   *reached;
	uint8	   *led;			/* by number: some live node is its anchor */
	uint8	   *news;			/* by block: has nodes that were reached since
								 * it was read */
	uint8	   *nodes_here;		/* by block: a page of nodes */
	uint8	   *led_here;		/* by block: an edge leads there */
	bool		behind;			/* this round has passed a block with news */
	bool		sound;			/* all edges lead to pages of nodes */
	uint32		entered;		/* nodes that became entry points */
	uint32		nodes;			/* live nodes */
	uint32		anchors;		/* anchors, to live and deleted nodes */
	BlockNumber block;			/* block that is read */
	PGAlignedBlock copy;
} Walk;

static uint8 *
make_bitmap(Size n)
{
	return MemoryContextAllocExtended(CurrentMemoryContext, BitmapBytes(n),
									  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
}

static bool
is_reached(const Walk *w, uint32 number)
{
	return number < w->nslots && BitmapHas(w->reached, number);
}

static void
reach(Walk *w, uint32 number)
{
	BlockNumber block = GraphNodeBlock(w->layout, number);

	if (block == QV_META_BLOCK || block >= w->nblocks)
	{
		/* the edge leads to a new page, if one was added meanwhile */
		w->sound &= block != QV_META_BLOCK &&
			block < RelationGetNumberOfBlocks(w->params->handle->index);
		return;
	}
	if (BitmapHas(w->reached, number))
		return;
	BitmapSet(w->reached, number);
	BitmapSet(w->news, block);
	w->behind |= block <= w->block;
}

/* Notes where an edge leads.  Searches follow all edges, whichever ones the walk follows. */
static void
note_edge(Walk *w, uint32 to)
{
	BlockNumber block = GraphNodeBlock(w->layout, to);

	if (block < w->nblocks)
		BitmapSet(w->led_here, block);
	else
		w->sound &= block < RelationGetNumberOfBlocks(w->params->handle->index);
}

/* Notes what a node is, the first time that its page is read. */
static void
note_node(Walk *w, GraphNode node, uint32 number)
{
	const uint32 *places = GraphNodeIds(w->layout, node);

	if (node->state == GRAPH_SLOT_LIVE)
	{
		w->nodes++;
		BitmapSet(w->live, number);
	}
	for (uint32 i = 0; i < w->layout->degree; i++)
	{
		if (places[i] != GRAPH_NONE)
			note_edge(w, GraphEdgeTo(places[i]));
		if (GraphEdgeIsAnchor(places[i]))
		{
			w->anchors++;
			if (node->state == GRAPH_SLOT_LIVE && GraphEdgeTo(places[i]) < w->nslots)
				BitmapSet(w->led, GraphEdgeTo(places[i]));
		}
	}
}

static void
follow_page(Walk *w, BlockNumber block, bool first)
{
	const GraphReach *params = w->params;
	Page		page = (Page) w->copy.data;
	Buffer		buf;

	params->pause();
	buf = QvReadAnyPage(params->handle->index, NULL, block, params->strategy, BUFFER_LOCK_SHARE);
	memcpy(page, BufferGetPage(buf), BLCKSZ);
	UnlockReleaseBuffer(buf);
	w->block = block;
	if (!QvPageIs(page, QV_PAGE_NODES))
	{
		w->sound &= !BitmapHas(w->news, block);
		BitmapClear(w->news, block);
		return;
	}
	BitmapClear(w->news, block);
	BitmapSet(w->nodes_here, block);
	for (uint32 slot = 0; slot < w->layout->per_page; slot++)
	{
		GraphNode	node = GraphPageNode(w->layout, page, slot);
		uint32		number = GraphNodeNumber(w->layout, block, slot);
		const uint32 *places = GraphNodeIds(w->layout, node);

		if (node->state != GRAPH_SLOT_LIVE && node->state != GRAPH_SLOT_DELETED)
			continue;
		if (first)
			note_node(w, node, number);
		if (!BitmapHas(w->reached, number) ||
			(node->state == GRAPH_SLOT_DELETED && !w->through_deleted))
			continue;
		for (uint32 i = 0; i < w->layout->degree; i++)
			if (w->anchors_only ? GraphEdgeIsAnchor(places[i]) : places[i] != GRAPH_NONE)
				reach(w, GraphEdgeTo(places[i]));
	}
}

/* Follows edges until there is no news.  first: reads every page once. */
static void
follow(Walk *w, bool first)
{
	do
	{
		w->behind = false;
		for (BlockNumber block = 1; block < w->nblocks; block++)
		{
			/* eight blocks at a time */
			if (!first && block % 8 == 0 && w->news[block / 8] == 0)
				block += 7;
			else if (first || BitmapHas(w->news, block))
				follow_page(w, block, first);
		}
		first = false;
	} while (w->behind);
}

/* Checks that all edges lead to pages of nodes.  A page may have become one since it was read. */
static void
look_where_edges_lead(Walk *w)
{
	for (BlockNumber block = 0; block < w->nblocks; block++)
	{
		Buffer		buf;

		if (!BitmapHas(w->led_here, block) || BitmapHas(w->nodes_here, block))
			continue;
		w->params->pause();
		buf = QvReadAnyPage(w->params->handle->index, NULL, block, w->params->strategy,
							BUFFER_LOCK_SHARE);
		w->sound &= QvPageIs(BufferGetPage(buf), QV_PAGE_NODES);
		UnlockReleaseBuffer(buf);
	}
}

static void
reach_entry_points(Walk *w)
{
	GraphHandle *handle = w->params->handle;
	GraphEntryPoints *entry_points;

	GraphReadMeta(handle->index, &handle->meta);
	entry_points = GraphReadEntryPoints(handle);
	for (uint32 i = 0; i < entry_points->nbatches; i++)
	{
		const GraphEntryBatch *batch = GraphEntryBatchAt(entry_points, i);

		for (uint32 j = 0; j < batch->count; j++)
			reach(w, batch->ids[j]);
	}
	MemoryContextDelete(entry_points->part.context);
}

/* Begins a walk, and walks from the entry points. */
static void
begin_walk(Walk *w, const GraphReach *params)
{
	w->params = params;
	w->layout = &params->handle->layout;
	w->nblocks = RelationGetNumberOfBlocks(params->handle->index);
	w->nslots = (Size) w->nblocks * w->layout->per_page;
	w->live = make_bitmap(w->nslots);
	w->reached = make_bitmap(w->nslots);
	w->led = make_bitmap(w->nslots);
	w->news = make_bitmap(w->nblocks);
	w->nodes_here = make_bitmap(w->nblocks);
	w->led_here = make_bitmap(w->nblocks);
	w->sound = true;
	reach_entry_points(w);
	follow(w, true);
	look_where_edges_lead(w);
}

static void
end_walk(Walk *w)
{
	pfree(w->live);
	pfree(w->reached);
	pfree(w->led);
	pfree(w->news);
	pfree(w->nodes_here);
	pfree(w->led_here);
}

static inline bool
is_unreached(const Walk *w, uint32 number)
{
	return BitmapHas(w->live, number) && !BitmapHas(w->reached, number);
}

/*
 * Tells whether the index has anchors.  If it has, there is one for each live node except
 * the entry points.  A deleted node may have lost its own to a VACUUM that was interrupted.
 * Earlier versions made none.
 */
static bool
has_anchors(const Walk *w)
{
	return (double) w->anchors + w->params->handle->meta.entry_count >= w->nodes / 2.0;
}

/* Returns how many nodes are live.  *unreached is how many of them were not reached. */
static uint32
count_live(const Walk *w, uint32 *unreached)
{
	uint32		live = 0;

	*unreached = 0;
	for (Size number = 0; number < w->nslots; number++)
	{
		live += BitmapHas(w->live, number);
		*unreached += is_unreached(w, number);
	}
	return live;
}

void
GraphFindUnreached(const GraphReach *params, bool anchors_only, GraphReached *found)
{
	Walk		w = {.anchors_only = anchors_only, .through_deleted = true};

	begin_walk(&w, params);
	found->anchored = has_anchors(&w);
	found->live = count_live(&w, &found->unreached);
	found->sound = w.sound;
	end_walk(&w);
}

void
GraphAnswerInterrupts(void)
{
	CHECK_FOR_INTERRUPTS();
}

/* ---- mending ---- */

typedef bool (*Mend) (Walk *w, uint32 number);

/* Copies a node's edges.  They are all empty if the node is gone. */
static void
copy_places(Walk *w, uint32 number, uint32 *places)
{
	Size		bytes = w->layout->degree * sizeof(uint32);
	GraphNode	node;
	Buffer		buf = GraphLockNode(w->params->handle, number, BUFFER_LOCK_SHARE, &node);

	if (node != NULL)
		memcpy(places, GraphNodeIds(w->layout, node), bytes);
	else
		memset(places, 0xFF, bytes);
	UnlockReleaseBuffer(buf);
}

/* Makes one of the node's neighbors its anchor.  Most of them have an edge back to it. */
static bool
anchor_by_edge(Walk *w, uint32 number)
{
	uint32		places[GRAPH_MAX_DEGREE];

	w->params->pause();
	copy_places(w, number, places);
	for (uint32 i = 0; i < w->layout->degree; i++)
		if (is_reached(w, GraphEdgeTo(places[i])) &&
			GraphMakeAnchor(w->params->handle, GraphEdgeTo(places[i]), number))
			return true;
	return false;
}

static bool
may_anchor(void *arg, uint32 number)
{
	return is_reached(arg, number);
}

/* Offers the node to the nearest nodes, as an insert does. */
static bool
anchor_by_search(Walk *w, uint32 number)
{
	GraphHandle *handle = w->params->handle;
	GraphPoint *point;
	GraphNeighborhood *nb;
	int			n;

	w->params->pause();
	point = GraphFormOf(handle)->node_point(handle, number);
	if (point == NULL)
		return false;
	nb = GraphFindNeighborhood(handle, point, number);
	n = GraphChooseNeighbors(nb);
	if (!GraphAnchor(nb, n, number, may_anchor, w))
		return false;
	GraphLinkAllBack(nb, n, number);
	return true;
}

/*
 * Makes the node an entry point if nothing outside leads here.  Other nodes may then be
 * reached from it.
 */
static bool
enter_here(Walk *w, uint32 number)
{
	GraphHandle *handle = w->params->handle;
	const GraphFormOps *ops = GraphFormOf(handle);
	GraphPoint *point;

	if (anchor_by_edge(w, number) || anchor_by_search(w, number))
		return true;
	point = ops->node_point(handle, number);
	if (point == NULL)
		return false;
	w->entered++;
	GraphAddEntryPoint(handle, number, ops->neighborhood(handle, point, 1)->centered);
	return true;
}

/*
 * Mends the nodes that were not reached: all of them (also_led), or only those without an
 * anchor from a live node.  The nodes that they lead to are reached afterwards, or before
 * the next node is mended (at_once).  Returns how many were mended.
 */
static uint32
mend_all(Walk *w, Mend mend, bool also_led, bool at_once)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver lost node",
												  ALLOCSET_DEFAULT_SIZES);
	uint32		mended = 0;

	for (Size number = 0; number < w->nslots; number++)
	{
		MemoryContext old;

		if (!is_unreached(w, number) || (!also_led && BitmapHas(w->led, number)))
			continue;
		old = MemoryContextSwitchTo(context);
		if (mend(w, number))
		{
			mended++;
			reach(w, number);
			if (at_once)
				follow(w, false);
		}
		MemoryContextSwitchTo(old);
		MemoryContextReset(context);
	}
	MemoryContextDelete(context);
	follow(w, false);
	return mended;
}

/*
 * Nodes that have lost their anchor come first, and all that they lead to is reached with
 * them.  An anchor must not come from below the node itself, so it comes from a node that
 * was reached.
 */
static void
mend_walk(Walk *w)
{
	uint32		by_edge = 0,
				by_search = 0,
				n;

	while ((n = mend_all(w, anchor_by_edge, false, false)) > 0)
		by_edge += n;
	while ((n = mend_all(w, anchor_by_search, false, false)) > 0)
		by_search += n;
	n = mend_all(w, enter_here, false, true);
	/* in a circle, which only damage makes */
	n += mend_all(w, enter_here, true, true);
	elog(DEBUG1, "index \"%s\": new anchors for %u nodes by an edge, for %u by a search, for %u by %u new entry points",
		 RelationGetRelationName(w->params->handle->index), by_edge, by_search, n - w->entered, w->entered);
}

/* Follows all edges from now on. */
static void
follow_all_edges(Walk *w)
{
	w->anchors_only = false;
	for (Size number = 0; number < w->nslots; number++)
		if (BitmapHas(w->reached, number))
			BitmapSet(w->news, GraphNodeBlock(w->layout, number));
	follow(w, false);
}

void
GraphReachAll(const GraphReach *params, GraphReached *found)
{
	Walk		w = {.anchors_only = true};

	begin_walk(&w, params);
	found->anchored = has_anchors(&w);
	if (!found->anchored)
	{
		follow_all_edges(&w);
		memset(w.led, 0, BitmapBytes(w.nslots));
	}
	found->live = count_live(&w, &found->unreached);
	/* a search in a damaged index would raise an error */
	if (w.sound && found->unreached > 0)
		mend_walk(&w);
	found->sound = w.sound;
	end_walk(&w);
}
