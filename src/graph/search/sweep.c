/*
 * sweep.c
 *		Measuring every node that has rows of a set; see sweep.h.
 */
#include "postgres.h"

#include <math.h>

#include "graph/page/cache.h"
#include "graph/page/rows.h"
#include "graph/search/sweep.h"
#include "graph/search/sweep_known.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"

/* Pages whose nodes the CPU is asked for before they are read. */
#define PAGES_AHEAD 4

/* Copy what the result says of the node's rows in the set; false when it has none. */
static bool
take_members(GraphSweepState *s, GraphResult *result, uint32 id, GraphNode node)
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
prefetch_heads(const GraphSweepState *s, BlockNumber block)
{
	const GraphLayout *layout = &s->handle->layout;

	for (uint32 slot = 0; slot < layout->per_page; slot++)
	{
		Size		head = QV_PAGE_START + (Size) slot * layout->node_size;

		QvPrefetchPage(s->handle->hints, block, head, 1);
		QvPrefetchPage(s->handle->hints, block, head + sizeof(GraphNodeData) - 1, 1);
	}
}

/* Keep a code of a node for the map. */
static void
note_code(GraphSweepState *s, uint32 number, GraphNode node)
{
	const GraphLayout *layout = &s->handle->layout;
	const uint8 *own = GraphNodeOwn(layout, node);

	if (number >= s->map->rows.codes.count)
		return;
	if (layout->own_bits != 8)
	{
		uint8	   *unpacked = (uint8 *) (s->scratch + layout->pdim);

		qv_kernels.unpack_bits(own, layout->own_bits, unpacked, layout->pdim);
		own = unpacked;
	}
	qv_kernels.decode_u8(own, node->scale, QvCodeOffset(layout->own_bits), s->scratch, layout->pdim);
	QvBitCodesPut(&s->map->rows.codes, number, s->scratch, node->norm2, node->residual);
}

/* Note a node and the rows of its slot for the map; returns how many there are on the page now. */
static int
note_rows(GraphSweepState *s, int n, uint32 number, GraphNode node)
{
	note_code(s, number, node);
	for (int i = 0; i < Min(node->ntids, GRAPH_INLINE_TIDS); i++)
	{
		s->rows[n].node = number;
		s->rows[n++].tid = node->tids[i];
	}
	return n;
}

/* Put the rows of a page into the map; there is none any more when it would be too large. */
static void
map_rows(GraphSweepState *s, const GraphMappedRow *rows, int n)
{
	for (int i = 0; i < n && s->map; i++)
		if (!QvTidMapPut(&s->map->rows.numbers, rows[i].node, &rows[i].tid))
			s->map = NULL;
}

static void
sweep_page(GraphSweepState *s, BlockNumber block, BufferAccessStrategy strategy)
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
	if (PageIsNew(page) || QvPageIs(page, QV_PAGE_FLOATS) || QvPageIs(page, QV_PAGE_ENTRIES) ||
		QvPageIsOfRows(page))
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
		s->params->counters->nodes++;
		if (!take_members(s, result, GraphNodeNumber(layout, block, slot), node))
			continue;
		s->params->store->base.measure(&s->params->store->base, node, result);
		search->nresults += !s->dropped || GraphSweepBound(s, result) < s->beyond;
	}
	UnlockReleaseBuffer(buf);
	map_rows(s, s->rows, nrows);
}

/* Read all pages. */
static void
sweep_all(GraphSweepState *s)
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

/* ---- with a map ---- */

/* An empty map, below CurrentMemoryContext until it is kept; NULL when it would be too large. */
static GraphTidMap *
new_map(const GraphSweepState *s)
{
	const GraphHandle *handle = s->handle;
	GraphTidMap *map = QvRelCacheNewPart(sizeof(GraphTidMap));
	uint32		nodes = GraphNodeNumber(&handle->layout, s->nblocks, 0);
	Size		codes = QvBitCodesSize(handle->layout.pdim, nodes);

	map->rows.vacuums = handle->meta.vacuums;
	if (codes < QvTidMapMemory() &&
		QvTidMapInit(&map->rows.numbers, map->part.context, s->params->only->nblocks,
					 handle->meta.live_nodes, QvTidMapMemory() - codes))
	{
		QvBitCodesInit(&map->rows.codes, handle->meta.space, handle->meta.dims, handle->layout.pdim,
					   nodes, map->part.context);
		map->had_codes = map->rows.codes.codes != NULL;
		return map;
	}
	if (QvTidMapInit(&map->rows.numbers, map->part.context, s->params->only->nblocks,
					 handle->meta.live_nodes, QvTidMapMemory()))
		return map;
	MemoryContextDelete(map->part.context);
	return NULL;
}

/* Read all nodes, and make a map of them if there can be one. */
static void
sweep_and_map(GraphSweepState *s)
{
	const QvTidSet *only = s->params->only;
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
		map->rows.absent = QvShareAbsent(&map->rows, only);
	else
	{
		if (map)
			MemoryContextDelete(map->part.context);
		GraphNoteTooLarge(s->handle);
	}
	GraphKeepTidMap(s->handle, s->map);
	s->map = NULL;
}

/* Find the members by what is known of their nodes; false when that does not do. */
static bool
sweep_known(GraphSweepState *s, GraphTidMap *known, QvKnownUse *use)
{
	if (known->had_codes && known->rows.codes.codes == NULL)
		known->without_codes++;
	if (!s->params->known_only && GraphIsMapWanted(known, use))
		return false;
	if (!GraphSweepKnown(s, known, use))
		return false;
	QvKnownNoteUse(&known->rows, use);
	GraphForgetSpent(s->handle);
	return true;
}

bool
GraphSweep(GraphHandle *handle, GraphSearch *search, const GraphSweepParams *params,
		   float *beyond)
{
	GraphSweepState s = {.params = params, .handle = handle, .search = search, .beyond = INFINITY};
	GraphTidMap *known = GraphKnownFor(handle, params->only);
	QvKnownUse	use = {0};

	s.nblocks = RelationGetNumberOfBlocks(handle->index);
	if (known == NULL || !sweep_known(&s, known, &use))
	{
		search->nresults = 0;
		s.dropped = params->known_only;
		s.beyond = params->known_only ? -INFINITY : INFINITY;
		if (params->known_only)
		{
			if (known && GraphIsMapWanted(known, &use))
				GraphKeepTidMap(handle, NULL);
		}
		else if (GraphIsMapWanted(known, &use))
			sweep_and_map(&s);
		else
			sweep_all(&s);
	}
	*beyond = s.beyond;
	return !s.dropped;
}
