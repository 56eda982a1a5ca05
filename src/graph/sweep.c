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

/* A row, and the node that has it. */
typedef struct MappedRow
{
	uint32		node;
	ItemPointerData tid;
} MappedRow;

typedef struct Sweep
{
	const GraphSweepParams *params;
	GraphHandle *handle;
	GraphSearch *search;
	bool		dropped;		/* some results were left out: */
	float		beyond;			/* of this bound, or more */
	GraphTidMap *map;			/* to be filled, or NULL */
	MappedRow  *rows;			/* of a page, for it */
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

/* Note the rows of a node's slot for the map; returns how many there are on the page now. */
static int
note_rows(MappedRow *rows, int n, uint32 number, GraphNode node)
{
	for (int i = 0; i < Min(node->ntids, GRAPH_INLINE_TIDS); i++)
	{
		rows[n].node = number;
		rows[n++].tid = node->tids[i];
	}
	return n;
}

/* Put the rows of a page into the map; there is none any more when it would be too large. */
static void
map_rows(Sweep *s, const MappedRow *rows, int n)
{
	for (int i = 0; i < n && s->map; i++)
		if (!QvTidMapPut(&s->map->nodes, rows[i].node, &rows[i].tid))
			s->map = NULL;
}

static void
sweep_page(Sweep *s, BlockNumber block, BufferAccessStrategy strategy)
{
	const GraphLayout *layout = &s->handle->layout;
	GraphSearch *search = s->search;
	Buffer		buf;
	Page		page;
	int			nrows = 0;

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

		if (node->state != GRAPH_SLOT_LIVE)
			continue;
		if (s->map)
			nrows = note_rows(s->rows, nrows, GraphNodeNumber(layout, block, slot), node);
		s->params->counters->nodes++;
		if (!take_members(s, result, GraphNodeNumber(layout, block, slot), node))
			continue;
		s->params->store->measure(s->params->store, node, result);
		search->nresults += !s->dropped || bound_of(s, result) < s->beyond;
	}
	UnlockReleaseBuffer(buf);
	map_rows(s, s->rows, nrows);
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

#define ST_SORT sort_members
#define ST_ELEMENT_TYPE MappedRow
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
 * A map is worn when more members than so many, and this share of all, are not where it
 * says, or as many more than usual are not in it.
 */
#define FEW_LOST 64

/*
 * What is usual is the most of the last sets; where that is more than so much, a sweep of all
 * nodes makes another map.
 */
#define ABSENT_DECAY 0.9
#define MOST_ABSENT 0.75
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
take_node(Sweep *s, const MappedRow *members, uint32 n)
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
prefetch_members(const Sweep *s, const MappedRow *members, uint32 n)
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
take_members_together(Sweep *s, MappedRow *members, uint32 n)
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

/* What became of the members that were looked for by a map. */
typedef struct MapUse
{
	uint64		seen;
	uint64		unknown;		/* not in it */
	uint64		stale;			/* not where it says */
} MapUse;

/* Have too many rows come, or gone elsewhere, since the map was made? */
static bool
is_worn(const GraphTidMap *map, const MapUse *use)
{
	double		usual = FEW_LOST + LOST_SHARE * use->seen;

	return use->stale > usual ||
		(use->unknown > usual + map->absent * use->seen && map->absent < 1 - LOST_SHARE);
}

/* Is there room for those that are lost? */
static bool
has_room(const Sweep *s, const MapUse *use)
{
	return use->unknown + use->stale <= s->params->most / 4;
}

/* Read the nodes that the map knows; false when it is worn, or does not do for this set. */
static bool
sweep_members(Sweep *s, const GraphTidMap *map, MapUse *use)
{
	QvTidSetIterator it = {.set = s->params->only};
	MappedRow  *members = palloc(MEMBERS_TOGETHER * sizeof(MappedRow));
	bool		more = true;

	while (more && has_room(s, use) && !is_worn(map, use))
	{
		uint32		n = 0;

		while (n < MEMBERS_TOGETHER && (more = QvTidSetNext(&it, &members[n].tid)))
		{
			use->seen++;
			members[n].node = QvTidMapFind(&map->nodes, &members[n].tid);
			if (members[n].node != QV_NOWHERE)
			{
				n++;
				continue;
			}
			use->unknown++;
			if (!has_room(s, use))
				break;
			add_lost(s->search, &members[n].tid);
		}
		use->stale += take_members_together(s, members, n);
	}
	s->params->counters->tested += use->seen;
	pfree(members);
	return !more && has_room(s, use) && !is_worn(map, use);
}

/* Of the members, the share that the map does not know. */
static double
share_absent(const QvTidSet *only, const GraphTidMap *map)
{
	QvTidSetIterator it = {.set = only};
	ItemPointerData tid;
	uint64		members = 0,
				absent = 0;

	for (; QvTidSetNext(&it, &tid); members++)
		absent += QvTidMapFind(&map->nodes, &tid) == QV_NOWHERE;
	return absent / (double) Max(1, members);
}

/* An empty map, below CurrentMemoryContext until it is kept; NULL when it would be too large. */
static GraphTidMap *
new_map(BlockNumber blocks, double rows)
{
	GraphTidMap *map = QvRelCacheNewPart(sizeof(GraphTidMap));

	if (QvTidMapInit(&map->nodes, map->part.context, blocks, rows, QvTidMapMemory()))
		return map;
	MemoryContextDelete(map->part.context);
	return NULL;
}

/* Read all nodes, and make a map of them if there can be one. */
static void
sweep_and_map(Sweep *s)
{
	const QvTidSet *only = s->params->only;
	GraphTidMap *map = NULL;

	if (only->words > 0 && !GraphTidMapIsTooLarge(s->handle))
	{
		map = new_map(only->nblocks, s->handle->meta.live_nodes);
		s->rows = palloc(s->handle->layout.per_page * GRAPH_INLINE_TIDS * sizeof(MappedRow));
	}
	s->map = map;
	sweep_all(s);
	if (s->map)
		map->absent = share_absent(only, map);
	else
	{
		if (map)
			MemoryContextDelete(map->part.context);
		GraphNoteTooLarge(s->handle);
	}
	GraphKeepTidMap(s->handle, s->map);
}

bool
GraphSweep(GraphHandle *handle, GraphSearch *search, const GraphSweepParams *params,
		   float *beyond)
{
	Sweep		s = {.params = params, .handle = handle, .search = search, .beyond = INFINITY};
	GraphTidMap *known = params->only->words > 0 ? GraphKeptTidMap(handle) : NULL;
	MapUse		use = {0};

	s.nblocks = RelationGetNumberOfBlocks(handle->index);
	if (known && (params->known_only || known->absent < MOST_ABSENT) && sweep_members(&s, known, &use))
	{
		known->absent = Max(known->absent * ABSENT_DECAY, use.unknown / (double) Max(1, use.seen));
		GraphForgetSpent(handle);
	}
	else
	{
		bool		worn = known && (is_worn(known, &use) || known->absent >= MOST_ABSENT);

		search->nresults = 0;
		s.dropped = params->known_only;
		s.beyond = params->known_only ? -INFINITY : INFINITY;
		if (params->known_only)
		{
			if (worn)
				GraphKeepTidMap(handle, NULL);
		}
		else if (known == NULL || worn)
			sweep_and_map(&s);
		else
			sweep_all(&s);
	}
	*beyond = s.beyond;
	return !s.dropped;
}
