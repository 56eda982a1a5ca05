/*
 * sweep_known.c
 *		The nodes of a set's rows, where it is known which nodes have them; see sweep.h.
 */
#include "postgres.h"

#include <math.h>

#include "graph/rows.h"
#include "graph/sweep_state.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"

#define ST_SORT sort_members
#define ST_ELEMENT_TYPE GraphMappedRow
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
take_node(GraphSweep *s, const GraphMappedRow *members, uint32 n)
{
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

	s->params.counters->nodes++;
	s->measured++;
	QvPageCheck(s->handle->index, block, BufferGetPage(buf), QV_PAGE_NODES);
	if (node->state == GRAPH_SLOT_LIVE)
	{
		GraphResultSetNode(&has, id, node);
		s->params.store->base.measure(&s->params.store->base, node, result);
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
	if (kept > 0 && (!s->dropped || GraphSweepBound(s, &has) < s->beyond))
		*GraphSearchResult(search) = has;
	return lost;
}

/* Ask the CPU for a part of a node's slot. */
static void
prefetch_node(const GraphSweep *s, uint32 id, Size offset, Size bytes)
{
	const GraphLayout *layout = &s->handle->layout;

	QvPrefetchPage(s->handle->hints, GraphNodeBlock(layout, id),
				   QV_PAGE_START + (Size) GraphNodeSlot(layout, id) * layout->node_size + offset, bytes);
}

static void
prefetch_head(const GraphSweep *s, uint32 id)
{
	prefetch_node(s, id, 0, sizeof(GraphNodeData));
}

static void
prefetch_code(const GraphSweep *s, uint32 id)
{
	prefetch_node(s, id, s->handle->layout.own, s->handle->layout.own_bytes);
}

/* Ask the CPU for the nodes of members that come soon. */
static void
prefetch_members(const GraphSweep *s, const GraphMappedRow *members, uint32 n)
{
	if (n > HEADS_AHEAD)
		prefetch_head(s, members[HEADS_AHEAD].node);
	if (n > CODES_AHEAD)
		prefetch_code(s, members[CODES_AHEAD].node);
}

/*
 * Measure members together, those of a node that follow one another at once; returns how
 * many were lost.
 */
static uint32
take_members_together(GraphSweep *s, GraphMappedRow *members, uint32 n)
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
		GraphSweepMakeRoom(s);
	}
	s->params.counters->members += n - lost;
	return lost;
}

bool
GraphMapIsWorn(const GraphTidMap *map, const GraphMapUse *use)
{
	double		usual = FEW_LOST + LOST_SHARE * use->seen;

	return use->stale > usual ||
		(use->unknown > usual + map->absent * use->seen && map->absent < 1 - LOST_SHARE);
}

/* Is there room for those that are lost? */
static bool
has_room(const GraphSweep *s, const GraphMapUse *use)
{
	return use->unknown + use->stale <= s->params.most / 4;
}

/* ---- nodes that are measured at once ---- */

/* Read the nodes that the map knows. */
static bool
measure_members(GraphSweep *s, const GraphTidMap *map, GraphMapUse *use)
{
	QvTidSetIterator it = {.set = s->params.only};
	GraphMappedRow *members = palloc(MEMBERS_TOGETHER * sizeof(GraphMappedRow));
	bool		more = true;

	while (more && has_room(s, use) && !GraphMapIsWorn(map, use))
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
	s->params.counters->tested += use->seen;
	pfree(members);
	return !more && has_room(s, use) && !GraphMapIsWorn(map, use);
}


/* ---- nodes that wait, by their codes ---- */

/* Members whose codes the CPU is asked for together. */
#define CODES_TOGETHER 64

/* Of all members, as many are sorted at a time as will likely be measured, at least so many. */
#define RUN_SHARE 16
#define LEAST_RUN 64

/* Nodes measured together, so that waiting for one is waiting for all. */
#define NODES_TOGETHER 16

/* Is there memory for all members of the set to wait? */
static bool
can_wait(const GraphSweep *s)
{
	Size		bytes = s->params.only->members * (sizeof(GraphMappedRow) + sizeof(BacklogItem));

	return s->params.only->members < UINT32_MAX && bytes <= s->params.max_memory / 2;
}

/* Have n members wait, by how near their codes say that they may be. */
static void
have_wait(GraphSweep *s, const GraphBitCodes *codes, const GraphBitQuery *query, uint32 first, uint32 n)
{
	for (uint32 i = first; i < first + n; i++)
	{
		const char *code = (const char *) GraphBitCodeOf(codes, s->members[i].node);

		for (Size at = 0; at < codes->stride; at += 64)
			__builtin_prefetch(code + at);
		__builtin_prefetch(code + codes->stride - 1);
	}
	for (uint32 i = first; i < first + n; i++)
		BacklogAdd(&s->waiting, GraphBitBound(query, GraphBitCodeOf(codes, s->members[i].node)), i);
	s->params.counters->codes += n;
	s->params.counters->members += n;
}

/* Have those members wait whose nodes the map knows; the others are to be measured by the table. */
static bool
estimate_members(GraphSweep *s, const GraphTidMap *map, GraphMapUse *use)
{
	QvTidSetIterator it = {.set = s->params.only};
	Size		members = Max(1, s->params.only->members);
	GraphBitQuery query;
	ItemPointerData tid;
	uint32		n = 0;
	uint32		done = 0;

	GraphBitQueryInit(&query, &map->codes, s->handle, &s->params.store->query->base);
	s->members = MemoryContextAllocHuge(CurrentMemoryContext, members * sizeof(GraphMappedRow));
	s->waiting.items = MemoryContextAllocHuge(CurrentMemoryContext, members * sizeof(BacklogItem));
	s->waiting.capacity = members;
	while (has_room(s, use) && !GraphMapIsWorn(map, use) && QvTidSetNext(&it, &tid))
	{
		uint32		node = QvTidMapFind(&map->nodes, &tid);

		use->seen++;
		if (node >= map->codes.count)
		{
			use->unknown++;
			add_lost(s->search, &tid);
			continue;
		}
		s->members[n].node = node;
		s->members[n++].tid = tid;
		if (n - done < CODES_TOGETHER)
			continue;
		CHECK_FOR_INTERRUPTS();
		have_wait(s, &map->codes, &query, done, n - done);
		done = n;
	}
	have_wait(s, &map->codes, &query, done, n - done);
	s->params.counters->tested += use->seen;
	return has_room(s, use) && !GraphMapIsWorn(map, use);
}

bool
GraphSweepKnown(GraphSweep *s, const GraphTidMap *map, GraphMapUse *use)
{
	bool		done;

	if (map->codes.codes == NULL || !can_wait(s))
		return measure_members(s, map, use);
	done = estimate_members(s, map, use);
	if (!done)
		BacklogClear(&s->waiting);
	return done;
}

bool
GraphSweepMore(GraphSweep *s)
{
	GraphMappedRow members[NODES_TOGETHER];
	uint32		n = 0;

	if (s->measured >= s->params.most)
		return false;
	while (n < NODES_TOGETHER &&
		   BacklogSort(&s->waiting, Max(LEAST_RUN, s->waiting.capacity / RUN_SHARE)))
	{
		members[n] = s->members[BacklogId(BacklogTake(&s->waiting))];
		QvPrefetchPage(s->handle->hints, GraphNodeBlock(&s->handle->layout, members[n].node), 0, QV_PAGE_START);
		prefetch_head(s, members[n].node);
		prefetch_code(s, members[n].node);
		n++;
	}
	for (uint32 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		take_node(s, &members[i], 1);
	}
	return n > 0;
}

/* The nearest that waits, of a run; the others are not nearer. */
float
GraphSweepFrontier(const GraphSweep *s)
{
	if (BacklogHasRun(&s->waiting))
		return BacklogDistance(s->waiting.items[s->waiting.first]);
	return s->waiting.sorted < s->waiting.count ? -INFINITY : s->beyond;
}

bool
GraphSweepIsWhole(const GraphSweep *s)
{
	return !s->dropped && s->waiting.first == s->waiting.count;
}
