/*
 * sweep.c
 *		Measuring every node that has rows of a set; see sweep.h.
 */
#include "postgres.h"

#include <math.h>

#include "containers/compare.h"
#include "graph/cache.h"
#include "graph/rows.h"
#include "graph/sweep_state.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"

/* Pages whose nodes the CPU is asked for before they are read. */
#define PAGES_AHEAD 4

/* There are too many results: keep the nearer half. */
static void
keep_nearest(GraphSweep *s)
{
	GraphSearch *search = s->search;
	uint32		half = search->nresults / 2;
	float	   *bounds = palloc(search->nresults * sizeof(float));
	uint32		equal = half;
	uint32		kept = 0;

	for (uint32 i = 0; i < search->nresults; i++)
		bounds[i] = GraphSweepBound(s, &search->results[i]);
	qsort(bounds, search->nresults, sizeof(float), CompareFloats);
	s->beyond = bounds[half];
	s->dropped = true;
	/* of those with the same bound as many as complete the half */
	for (uint32 i = 0; i < half && bounds[i] < s->beyond; i++)
		equal--;
	pfree(bounds);
	for (uint32 i = 0; i < search->nresults; i++)
	{
		float		bound = GraphSweepBound(s, &search->results[i]);

		if (bound < s->beyond || (bound == s->beyond && equal > 0))
		{
			equal -= bound == s->beyond;
			search->results[kept++] = search->results[i];
		}
	}
	search->nresults = kept;
}

void
GraphSweepMakeRoom(GraphSweep *s)
{
	if (s->search->nresults >= s->params.most)
		keep_nearest(s);
}

/* Copy what the result says of the node's rows in the set; false when it has none. */
static bool
take_members(GraphSweep *s, GraphResult *result, uint32 id, GraphNode node)
{
	QvScanCounters *counters = s->params.counters;

	GraphResultSetNode(result, id, node);
	counters->tested += result->ntids;
	result->ntids = QvTidSetKeep(s->params.only, result->tids, result->ntids);
	counters->members += result->ntids;
	return result->ntids > 0 || result->overflow != GRAPH_NONE;
}

/*
 * Ask the CPU for the heads of the nodes of a page that comes soon: they are far from each
 * other, and waiting for them was half of a sweep's time.
 */
static void
prefetch_heads(const GraphSweep *s, BlockNumber block)
{
	const GraphLayout *layout = &s->handle->layout;

	for (uint32 slot = 0; slot < layout->per_page; slot++)
	{
		Size		head = QV_PAGE_START + (Size) slot * layout->node_size;

		QvPrefetchPage(s->handle->hints, block, head, 1);
		QvPrefetchPage(s->handle->hints, block, head + sizeof(GraphNodeData) - 1, 1);
	}
}

/* Note a node and the rows of its slot for the map; returns how many there are on the page now. */
static int
note_rows(GraphSweep *s, int n, uint32 number, GraphNode node)
{
	if (s->map->codes.codes)
		GraphBitCodesPut(&s->map->codes, s->handle, number, node, s->scratch);
	for (int i = 0; i < Min(node->ntids, GRAPH_INLINE_TIDS); i++)
	{
		s->rows[n].node = number;
		s->rows[n++].tid = node->tids[i];
	}
	return n;
}

/* Put the rows of a page into the map; there is none any more when it would be too large. */
static void
map_rows(GraphSweep *s, const GraphMappedRow *rows, int n)
{
	for (int i = 0; i < n && s->map; i++)
		if (!QvTidMapPut(&s->map->nodes, rows[i].node, &rows[i].tid))
			s->map = NULL;
}

static void
sweep_page(GraphSweep *s, BlockNumber block, BufferAccessStrategy strategy)
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
			nrows = note_rows(s, nrows, GraphNodeNumber(layout, block, slot), node);
		s->params.counters->nodes++;
		if (!take_members(s, result, GraphNodeNumber(layout, block, slot), node))
			continue;
		s->params.store->base.measure(&s->params.store->base, node, result);
		search->nresults += !s->dropped || GraphSweepBound(s, result) < s->beyond;
	}
	UnlockReleaseBuffer(buf);
	map_rows(s, s->rows, nrows);
}

/* Read all pages. */
static void
sweep_all(GraphSweep *s)
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
		GraphSweepMakeRoom(s);
	}
	if (strategy)
		FreeAccessStrategy(strategy);
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

/* ---- with a map ---- */

/*
 * What is usual is the most of the last sets; where that is more than so much, a sweep of all
 * nodes makes another map.
 */
#define ABSENT_DECAY 0.9
#define MOST_ABSENT 0.75

/*
 * Searches that go by a map without codes, where it could have them, before all nodes are read for
 * new ones: VACUUM makes codes useless.
 */
#define SEARCHES_WITHOUT_CODES 16

/* An empty map, below CurrentMemoryContext until it is kept; NULL when it would be too large. */
static GraphTidMap *
new_map(const GraphSweep *s)
{
	const GraphHandle *handle = s->handle;
	GraphTidMap *map = QvRelCacheNewPart(sizeof(GraphTidMap));
	uint32		nodes = GraphNodeNumber(&handle->layout, s->nblocks, 0);
	Size		codes = GraphBitCodesSize(&handle->layout, nodes);

	map->vacuums = handle->meta.vacuums;
	if (codes < QvTidMapMemory() &&
		QvTidMapInit(&map->nodes, map->part.context, s->params.only->nblocks, handle->meta.live_nodes, QvTidMapMemory() - codes))
	{
		GraphBitCodesInit(&map->codes, &handle->layout, nodes, map->part.context);
		map->had_codes = map->codes.codes != NULL;
		return map;
	}
	if (QvTidMapInit(&map->nodes, map->part.context, s->params.only->nblocks, handle->meta.live_nodes, QvTidMapMemory()))
		return map;
	MemoryContextDelete(map->part.context);
	return NULL;
}

/* Read all nodes, and make a map of them if there can be one. */
static void
sweep_and_map(GraphSweep *s)
{
	const QvTidSet *only = s->params.only;
	const GraphLayout *layout = &s->handle->layout;
	GraphTidMap *map = NULL;

	if (only->words > 0 && !GraphTidMapIsTooLarge(s->handle))
	{
		map = new_map(s);
		s->rows = palloc(layout->per_page * GRAPH_INLINE_TIDS * sizeof(GraphMappedRow));
		s->scratch = palloc(layout->pdim * (sizeof(float) + 1));
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
	s->map = NULL;
}

/*
 * Codes are of rows that were there when the map was made.  When VACUUM has removed some since then, others
 * may have come to their heap TIDs: these must be asked of their nodes.
 */
static void
forget_old_codes(const GraphSweep *s, GraphTidMap *map)
{
	if (map->codes.codes && map->vacuums != s->handle->meta.vacuums)
	{
		pfree(map->codes.codes);
		map->codes.codes = NULL;
	}
}

/* Find the members by what is known of their nodes; false when that does not do. */
static bool
sweep_known(GraphSweep *s, GraphTidMap *known, GraphMapUse *use)
{
	forget_old_codes(s, known);
	if (!s->params.known_only &&
		(known->absent >= MOST_ABSENT ||
		 (known->had_codes && known->codes.codes == NULL && ++known->without_codes > SEARCHES_WITHOUT_CODES)))
		return false;
	if (!GraphSweepKnown(s, known, use))
		return false;
	known->absent = Max(known->absent * ABSENT_DECAY, use->unknown / (double) Max(1, use->seen));
	GraphForgetSpent(s->handle);
	return true;
}

/* May another map be better? */
static bool
is_map_wanted(const GraphTidMap *known, const GraphMapUse *use)
{
	return known == NULL || GraphMapIsWorn(known, use) || known->absent >= MOST_ABSENT ||
		known->without_codes > SEARCHES_WITHOUT_CODES;
}

GraphSweep *
GraphSweepStart(GraphHandle *handle, GraphSearch *search, const GraphSweepParams *params)
{
	GraphSweep *s = palloc0(sizeof(GraphSweep));
	GraphTidMap *known = params->only->words > 0 ? GraphKeptTidMap(handle) : NULL;
	GraphMapUse use = {0};

	s->params = *params;
	s->handle = handle;
	s->search = search;
	s->beyond = INFINITY;
	s->nblocks = RelationGetNumberOfBlocks(handle->index);
	if (known && sweep_known(s, known, &use))
		return s;
	search->nresults = 0;
	s->dropped = params->known_only;
	s->beyond = params->known_only ? -INFINITY : INFINITY;
	if (params->known_only)
	{
		if (known && is_map_wanted(known, &use))
			GraphKeepTidMap(handle, NULL);
	}
	else if (is_map_wanted(known, &use))
		sweep_and_map(s);
	else
		sweep_all(s);
	return s;
}
