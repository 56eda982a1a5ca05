/*
 * reach.c
 *		Which nodes a search can come to; see reach.h.
 *
 * Page after page, again and again: a node that was reached leads to its
 * neighbors, once.  There are so many entry points, and near nodes so often share
 * pages, that most are reached the first time, and pages without news are not
 * read again.
 */
#include "postgres.h"

#include "containers/bitmap.h"
#include "graph/entry_points.h"
#include "graph/forms.h"
#include "graph/meta.h"
#include "graph/neighbors.h"
#include "graph/node.h"
#include "graph/reach.h"
#include "miscadmin.h"
#include "pages/read.h"
#include "utils/memutils.h"

/* Times that lost nodes are linked before they become entry points. */
#define LINK_ROUNDS 2

typedef struct Reacher
{
	const GraphReach *params;
	const GraphLayout *layout;
	BlockNumber nblocks;
	uint8	   *live;			/* by number: what was found on the pages */
	uint8	   *reached;
	uint8	   *followed;		/* its edges too */
	uint8	   *news;			/* by block: it has nodes to be followed */
	bool		behind;			/* so has one that this round has passed */
	bool		sound;			/* edges lead to pages of nodes */
	BlockNumber block;			/* looked at */
	PGAlignedBlock copy;
} Reacher;

static void
reach(Reacher *r, uint32 number)
{
	BlockNumber block = GraphNodeBlock(r->layout, number);

	if (block >= r->nblocks)
	{
		/* a new page's, when it was added meanwhile */
		r->sound &= block < RelationGetNumberOfBlocks(r->params->handle->index);
		return;
	}
	if (BitmapHas(r->reached, number))
		return;
	BitmapSet(r->reached, number);
	BitmapSet(r->news, block);
	r->behind |= block <= r->block;
}

static void
follow_page(Reacher *r, BlockNumber block)
{
	const GraphReach *params = r->params;
	Page		page = (Page) r->copy.data;
	Buffer		buf;

	params->pause();
	buf = QvReadAnyPage(params->handle->index, NULL, block, params->strategy, BUFFER_LOCK_SHARE);
	memcpy(page, BufferGetPage(buf), BLCKSZ);
	UnlockReleaseBuffer(buf);
	r->block = block;
	if (!QvPageIs(page, QV_PAGE_NODES))
	{
		r->sound &= !BitmapHas(r->news, block);
		BitmapClear(r->news, block);
		return;
	}
	BitmapClear(r->news, block);
	for (uint32 slot = 0; slot < r->layout->per_page; slot++)
	{
		GraphNode	node = GraphPageNode(r->layout, page, slot);
		uint32		number = GraphNodeNumber(r->layout, block, slot);

		if (node->state == GRAPH_SLOT_LIVE)
			BitmapSet(r->live, number);
		else if (node->state != GRAPH_SLOT_DELETED)
			continue;
		if (!BitmapHas(r->reached, number) || BitmapHas(r->followed, number))
			continue;
		BitmapSet(r->followed, number);
		for (uint32 i = 0; i < r->layout->degree; i++)
			if (GraphNodeHasEdge(r->layout, node, i))
				reach(r, GraphNodeIds(r->layout, node)[i]);
	}
}

/* Follow until there is no news; all: look at every page once. */
static void
follow(Reacher *r, bool all)
{
	do
	{
		r->behind = false;
		for (BlockNumber block = 1; block < r->nblocks; block++)
		{
			/* eight at a time */
			if (!all && block % 8 == 0 && r->news[block / 8] == 0)
				block += 7;
			else if (all || BitmapHas(r->news, block))
				follow_page(r, block);
		}
		all = false;
	} while (r->behind);
}

static void
reach_entry_points(Reacher *r)
{
	GraphHandle *handle = r->params->handle;
	GraphEntryPoints *entry_points;

	GraphReadMeta(handle->index, &handle->meta);
	entry_points = GraphReadEntryPoints(handle);
	for (uint32 i = 0; i < entry_points->nbatches; i++)
	{
		const GraphEntryBatch *batch = GraphEntryBatchAt(entry_points, i);

		for (uint32 j = 0; j < batch->count; j++)
			reach(r, batch->ids[j]);
	}
	MemoryContextDelete(entry_points->part.context);
}

uint32
GraphFindUnreached(const GraphReach *params, uint32 *live, bool *sound)
{
	Reacher		r = {.params = params, .layout = &params->handle->layout};
	Size		bytes;
	uint32		unreached = 0;

	r.nblocks = RelationGetNumberOfBlocks(params->handle->index);
	bytes = BitmapBytes((Size) r.nblocks * r.layout->per_page);
	r.live = MemoryContextAllocExtended(CurrentMemoryContext, bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	r.reached = MemoryContextAllocExtended(CurrentMemoryContext, bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	r.news = MemoryContextAllocExtended(CurrentMemoryContext, BitmapBytes(r.nblocks), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	r.followed = MemoryContextAllocExtended(CurrentMemoryContext, bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	r.sound = true;
	reach_entry_points(&r);
	follow(&r, true);
	*live = 0;
	for (Size number = 0; number < (Size) r.nblocks * r.layout->per_page; number++)
	{
		if (!BitmapHas(r.live, number))
			continue;
		(*live)++;
		if (BitmapHas(r.reached, number))
			continue;
		unreached++;
		/* a search in a damaged index would raise an error */
		if (params->mend && r.sound)
		{
			params->mend(params->arg, number);
			reach(&r, number);
			follow(&r, false);
		}
	}
	*sound = r.sound;
	pfree(r.live);
	pfree(r.news);
	pfree(r.reached);
	pfree(r.followed);
	return unreached;
}

void
GraphAnswerInterrupts(void)
{
	CHECK_FOR_INTERRUPTS();
}

typedef struct Mender
{
	GraphHandle *handle;
	MemoryContext context;		/* reset after every node */
	bool		links;			/* else entry points */
} Mender;

/*
 * Offer a node to its neighbors as an insert does: the nearest takes it, if need be in
 * the place of another.  Where none can, it becomes an entry point.
 */
static void
mend(void *arg, uint32 number)
{
	Mender	   *m = arg;
	const GraphFormOps *ops = GraphFormOf(m->handle);
	MemoryContext old = MemoryContextSwitchTo(m->context);
	GraphPoint *point = ops->node_point(m->handle, number);

	if (point != NULL)
	{
		GraphNeighborhood *nb;
		bool		linked = false;

		if (m->links)
		{
			nb = GraphFindNeighborhood(m->handle, point, number);
			linked = GraphLinkAllBack(nb, GraphChooseNeighbors(nb), number);
		}
		else
			nb = ops->neighborhood(m->handle, point, 1);
		if (!linked)
			GraphAddEntryPoint(m->handle, number, nb->centered);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(m->context);
}

uint32
GraphReachAll(GraphHandle *handle, BufferAccessStrategy strategy, void (*pause) (void),
			  bool *sound)
{
	Mender		m = {handle, AllocSetContextCreate(CurrentMemoryContext, "quiver lost node",
												   ALLOCSET_DEFAULT_SIZES)};
	uint32		unreached = 1;
	uint32		live = 0;

	/* who gave up a place may be lost now: look again, and end it */
	for (int round = 0; round < LINK_ROUNDS + 1 && unreached > 0; round++)
	{
		m.links = round < LINK_ROUNDS;
		unreached = GraphFindUnreached(&(GraphReach) {handle, strategy, pause, mend, &m},
									   &live, sound);
	}
	MemoryContextDelete(m.context);
	return live;
}
