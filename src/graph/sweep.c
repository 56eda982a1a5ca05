/*
 * sweep.c
 *		Measuring every node that has rows of a set; see sweep.h.
 */
#include "postgres.h"

#include <math.h>

#include "containers/compare.h"
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

bool
GraphSweep(GraphHandle *handle, GraphSearch *search, const GraphSweepParams *params,
		   float *beyond)
{
	Sweep		s = {.params = params, .handle = handle, .search = search, .beyond = INFINITY};
	BlockNumber nblocks = RelationGetNumberOfBlocks(handle->index);
	BufferAccessStrategy strategy = NULL;

	/* as the server reads tables */
	if (nblocks > NBuffers / 4)
		strategy = GetAccessStrategy(BAS_BULKREAD);
	for (BlockNumber block = QV_META_BLOCK + 1; block < nblocks; block++)
	{
		CHECK_FOR_INTERRUPTS();
		prefetch_heads(&s, block + PAGES_AHEAD);
		sweep_page(&s, block, strategy);
		if (search->nresults >= params->most)
			keep_nearest(&s);
	}
	if (strategy)
		FreeAccessStrategy(strategy);
	*beyond = s.beyond;
	return !s.dropped;
}
