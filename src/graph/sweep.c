/*
 * sweep.c
 *		Measuring every node that has rows of a set; see sweep.h.
 */
#include "postgres.h"

#include <math.h>

#include "containers/compare.h"
#include "graph/cache.h"
#include "graph/rows.h"
#include "graph/sweep.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"

/* Pages whose nodes the CPU is asked for before they are read. */
#define PAGES_AHEAD 4

typedef struct Sweep
{
	const GraphSweepParams *params;
	GraphHandle *handle;
	GraphSearch *search;
	bool		dropped;		/* some results were left out: */
	float		beyond;			/* of this bound, or more */
	GraphTidMap *map;			/* to be filled, or NULL */
	BlockNumber nblocks;		/* of the index */
} Sweep;

/* How near the node may be.  Damaged factors give no number: its rows will tell. */
static float
bound_of(const Sweep *s, const GraphResult *result)
{
	float		bound = result->distance - result->error * s->params->certainty;

	return isnan(bound) ? -INFINITY : bound;
}

/* There are too many results: keep the nearer half. */
static void
keep_nearest(Sweep *s)
{
	GraphSearch *search = s->search;
	uint32		half = search->nresults / 2;
	float	   *bounds = palloc(search->nresults * sizeof(float));
	uint32		equal = half;
	uint32		kept = 0;

	for (uint32 i = 0; i < search->nresults; i++)
		bounds[i] = bound_of(s, &search->results[i]);
	qsort(bounds, search->nresults, sizeof(float), CompareFloats);
	s->beyond = bounds[half];
	s->dropped = true;
	/* of those with the same bound as many as complete the half */
	for (uint32 i = 0; i < half && bounds[i] < s->beyond; i++)
		equal--;
	pfree(bounds);
	for (uint32 i = 0; i < search->nresults; i++)
	{
		float		bound = bound_of(s, &search->results[i]);

		if (bound < s->beyond || (bound == s->beyond && equal > 0))
		{
			equal -= bound == s->beyond;
			search->results[kept++] = search->results[i];
		}
	}
	search->nresults = kept;
}

/* Copy what the result says of the node's rows in the set; false when it has none. */
static bool
take_members(Sweep *s, GraphResult *result, uint32 id, GraphNode node)
{
	QvScanCounters *counters = s->params->counters;

	GraphResultSetNode(result, id, node);
	counters->tested += result->ntids;
	result->ntids = QvTidSetKeep(s->params->only, result->tids, result->ntids);
	counters->members += result->ntids;
	return result->ntids > 0 || result->overflow != GRAPH_NONE;
}

/*
 * Ask the CPU for the heads of the nodes of a page that comes soon: they are far from each
 * other, and waiting for them was half of a sweep's time.
 */
static void
prefetch_heads(const Sweep *s, BlockNumber block)
{
	const GraphLayout *layout = &s->handle->layout;

	for (uint32 slot = 0; slot < layout->per_page; slot++)
	{
		Size		head = QV_PAGE_START + (Size) slot * layout->node_size;

		QvPrefetchPage(s->handle->hints, block, head, 1);
		QvPrefetchPage(s->handle->hints, block, head + sizeof(GraphNodeData) - 1, 1);
	}
}

/* Put a slot's rows into the map; false when that would be too large. */
static bool
map_slot(Sweep *s, uint32 number, GraphNode node)
{
	const GraphTidsData *more = (const GraphTidsData *) node;

	if (node->state == GRAPH_SLOT_LIVE)
		return GraphTidMapPut(s->map, number, node->tids, Min(node->ntids, GRAPH_INLINE_TIDS));
	if (node->state == GRAPH_SLOT_TIDS)
		return GraphTidMapPut(s->map, more->owner, more->tids,
							  Min(more->ntids, s->handle->layout.tids_per_slot));
	return true;
}

static void
sweep_page(Sweep *s, BlockNumber block, BufferAccessStrategy strategy)
{
	const GraphLayout *layout = &s->handle->layout;
	GraphSearch *search = s->search;
	Buffer		buf;
	Page		page;

	/* room first: nothing may fail while the page is locked */
	while (search->max_results - search->nresults < layout->per_page)
		GraphSearchGrowResults(search);
	buf = QvReadPassedPage(s->handle->index, s->handle->hints, block, strategy, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buf);
	/* what else a coded graph has; a new page was never used */
	if (PageIsNew(page) || QvPageIs(page, QV_PAGE_FLOATS) || QvPageIs(page, QV_PAGE_ENTRIES))
	{
		UnlockReleaseBuffer(buf);
		return;
	}
	QvPageCheck(s->handle->index, block, page, QV_PAGE_NODES);
	for (uint32 slot = 0; slot < layout->per_page; slot++)
	{
		GraphNode	node = GraphPageNode(layout, page, slot);
		GraphResult *result = &search->results[search->nresults];

		if (s->map && !map_slot(s, GraphNodeNumber(layout, block, slot), node))
			s->map = NULL;
		if (node->state != GRAPH_SLOT_LIVE)
			continue;
		s->params->counters->nodes++;
		if (!take_members(s, result, GraphNodeNumber(layout, block, slot), node))
			continue;
		s->params->store->measure(s->params->store, node, result);
		search->nresults += !s->dropped || bound_of(s, result) < s->beyond;
	}
	UnlockReleaseBuffer(buf);
}

/* Read all pages. */
static void
sweep_all(Sweep *s)
{
	BufferAccessStrategy strategy = NULL;

	/* as the server reads tables */
	if (s->nblocks > NBuffers / 4)
		strategy = GetAccessStrategy(BAS_BULKREAD);
	for (BlockNumber block = QV_META_BLOCK + 1; block < s->nblocks; block++)
	{
		CHECK_FOR_INTERRUPTS();
		prefetch_heads(s, block + PAGES_AHEAD);
		sweep_page(s, block, strategy);
		if (s->search->nresults >= s->params->most)
			keep_nearest(s);
	}
	if (strategy)
		FreeAccessStrategy(strategy);
}

/* ---- by a map of heap TIDs ---- */

/* A member and the node that had it. */
typedef struct Member
{
	uint32		node;
	ItemPointerData tid;
} Member;

#define ST_SORT sort_members
#define ST_ELEMENT_TYPE Member
#define ST_COMPARE(a, b) ((a)->node < (b)->node ? -1 : (a)->node > (b)->node)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* Members whose nodes are read together, page by page. */
#define MEMBERS_TOGETHER 16384

/* Members ahead of the one measured whose nodes the CPU is asked for. */
#define HEADS_AHEAD 8
#define CODES_AHEAD 3

/*
 * A map does not do any more when more members than so many, and this share, and what
 * more than usual are in no node, were not where it says.
 */
#define FEW_LOST 64
#define LOST_SHARE 0.125

/* A row of which no node is known: whoever asked will measure it, so it comes first. */
static void
add_lost(GraphSearch *search, const ItemPointerData *tid)
{
	GraphResult *result = GraphSearchResult(search);

	memset(result, 0, sizeof(*result));
	result->distance = -INFINITY;
	result->id = result->overflow = GRAPH_NONE;
	result->live = true;
	result->ntids = 1;
	result->tids[0] = *tid;
}

/*
 * Measure a node for the n members that the map says it has.  Those that it has not, or
 * not in its own slot, are lost; returns how many.
 */
static uint32
take_node(Sweep *s, const Member *members, uint32 n)
{
	QvScanCounters *counters = s->params->counters;
	GraphSearch *search = s->search;
	GraphResult *result = GraphSearchResult(search);	/* nothing may fail
														 * while the page is
														 * locked */
	GraphResult has = {0};
	uint32		id = members[0].node;
	BlockNumber block = GraphNodeBlock(&s->handle->layout, id);
	Buffer		buf = QvReadPassedPage(s->handle->index, s->handle->hints, block, NULL, BUFFER_LOCK_SHARE);
	GraphNode	node = GraphPageNode(&s->handle->layout, BufferGetPage(buf),
									 GraphNodeSlot(&s->handle->layout, id));
	uint32		lost = 0;
	int			kept = 0;

	counters->nodes++;
	QvPageCheck(s->handle->index, block, BufferGetPage(buf), QV_PAGE_NODES);
	if (node->state == GRAPH_SLOT_LIVE)
	{
		GraphResultSetNode(&has, id, node);
		s->params->store->measure(s->params->store, node, result);
		has.distance = result->distance;
		has.error = result->error;
	}
	UnlockReleaseBuffer(buf);
	search->nresults--;
	for (int i = 0; i < has.ntids; i++)
		for (uint32 j = 0; j < n; j++)
			if (ItemPointerEquals(&has.tids[i], (ItemPointer) &members[j].tid))
			{
				has.tids[kept++] = has.tids[i];
				break;
			}
	counters->members += kept;
	for (uint32 j = 0; j < n; j++)
	{
		bool		found = false;

		for (int i = 0; i < kept && !found; i++)
			found = ItemPointerEquals(&has.tids[i], (ItemPointer) &members[j].tid);
		if (found)
			continue;
		add_lost(search, &members[j].tid);
		lost++;
	}
	has.ntids = kept;
	/* those of further slots are members of their own */
	has.overflow = GRAPH_NONE;
	if (kept > 0 && (!s->dropped || bound_of(s, &has) < s->beyond))
		*GraphSearchResult(search) = has;
	return lost;
}

/* Ask the CPU for the nodes of members that come soon. */
static void
prefetch_members(const Sweep *s, const Member *members, uint32 n)
{
	const GraphLayout *layout = &s->handle->layout;

	if (n > HEADS_AHEAD)
	{
		uint32		id = members[HEADS_AHEAD].node;

		QvPrefetchPage(s->handle->hints, GraphNodeBlock(layout, id),
					   QV_PAGE_START + (Size) GraphNodeSlot(layout, id) * layout->node_size,
					   sizeof(GraphNodeData));
	}
	if (n > CODES_AHEAD)
	{
		uint32		id = members[CODES_AHEAD].node;

		QvPrefetchPage(s->handle->hints, GraphNodeBlock(layout, id),
					   QV_PAGE_START + (Size) GraphNodeSlot(layout, id) * layout->node_size + layout->own,
					   layout->own_bytes);
	}
}

/*
 * Measure members together, those of a node that follow one another at once; returns how
 * many were lost.
 */
static uint32
take_members_together(Sweep *s, Member *members, uint32 n)
{
	uint32		lost = 0;
	uint32		next;

	/* page by page, where these may have to be read */
	if (s->nblocks > (BlockNumber) NBuffers / 2)
		sort_members(members, n);
	for (uint32 i = 0; i < n; i = next)
	{
		CHECK_FOR_INTERRUPTS();
		for (next = i + 1; next < n && members[next].node == members[i].node; next++)
			;
		prefetch_members(s, members + i, n - i);
		lost += take_node(s, members + i, next - i);
		if (s->search->nresults >= s->params->most)
			keep_nearest(s);
	}
	return lost;
}

/* Read the nodes that the map knows; false when it does not do any more. */
static bool
sweep_members(Sweep *s, const GraphTidMap *map)
{
	QvTidSetIterator it = {.set = s->params->only};
	Member	   *members = palloc(MEMBERS_TOGETHER * sizeof(Member));
	double		share = LOST_SHARE + 2 * map->absent;
	uint64		seen = 0,
				lost = 0;
	bool		more = true;

	while (more && lost <= s->params->most / 4 && lost <= FEW_LOST + share * seen)
	{
		uint32		n = 0,
					unknown = 0;

		while (n + unknown < MEMBERS_TOGETHER &&
			   (more = QvTidSetNext(&it, &members[n].tid)))
		{
			members[n].node = GraphTidMapFind(map, &members[n].tid);
			if (members[n].node != GRAPH_NONE)
			{
				n++;
				continue;
			}
			add_lost(s->search, &members[n].tid);
			unknown++;
		}
		s->params->counters->tested += n + unknown;
		seen += n + unknown;
		lost += unknown + take_members_together(s, members, n);
	}
	pfree(members);
	return !more && lost <= s->params->most / 4 && lost <= FEW_LOST + share * seen;
}

/* Of the members, the share that are in no node. */
static double
share_absent(const QvTidSet *only, const GraphTidMap *map)
{
	QvTidSetIterator it = {.set = only};
	ItemPointerData tid;
	uint64		members = 0,
				absent = 0;

	for (; QvTidSetNext(&it, &tid); members++)
		absent += GraphTidMapFind(map, &tid) == GRAPH_NONE;
	return absent / (double) Max(1, members);
}

bool
GraphSweep(GraphHandle *handle, GraphSearch *search, const GraphSweepParams *params,
		   float *beyond)
{
	Sweep		s = {.params = params, .handle = handle, .search = search, .beyond = INFINITY, .nblocks = RelationGetNumberOfBlocks(handle->index)};
	const GraphTidMap *known = params->only->words > 0 ? GraphKeptTidMap(handle) : NULL;

	if (known == NULL || !sweep_members(&s, known))
	{
		GraphTidMap *map;

		search->nresults = 0;
		s.dropped = false;
		s.beyond = INFINITY;
		s.map = map = params->only->words > 0 ?
			GraphTidMapNew(params->only->nblocks, GraphTidMapMemory()) : NULL;
		sweep_all(&s);
		if (s.map)
			map->absent = share_absent(params->only, map);
		else if (map)
			MemoryContextDelete(map->part.context);
		GraphKeepTidMap(handle, s.map);
	}
	*beyond = s.beyond;
	return !s.dropped;
}
