/*
 * sweep_known.c
 *		Measuring the nodes of a set's rows, where it is known which these are; see sweep.h.
 */
#include "postgres.h"

#include <math.h>

#include "graph/page/rows.h"
#include "graph/search/sweep_known.h"
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
 * Searches that go by a map without codes, where it could have them, before all nodes are read for
 * new ones: VACUUM makes codes useless.
 */
#define SEARCHES_WITHOUT_CODES 16

GraphTidMap *
GraphKnownFor(const GraphHandle *handle, const QvTidSet *only)
{
	GraphTidMap *map = only->words > 0 ? GraphKeptTidMap(handle) : NULL;

	if (map && map->rows.codes.memory && map->rows.vacuums != handle->meta.vacuums)
		QvBitCodesFree(&map->rows.codes, map->part.pins > 0);
	return map;
}

bool
GraphIsMapWanted(const GraphTidMap *known, const QvKnownUse *use)
{
	return known == NULL || QvKnownIsWorn(&known->rows, use) || known->rows.absent >= QV_MOST_ABSENT ||
		known->without_codes > SEARCHES_WITHOUT_CODES;
}

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
take_node(GraphSweepState *s, const GraphMappedRow *members, uint32 n)
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

	s->params->counters->nodes++;
	QvPageCheck(s->handle->index, block, BufferGetPage(buf), QV_PAGE_NODES);
	if (node->state == GRAPH_SLOT_LIVE)
	{
		GraphResultSetNode(&has, id, node);
		s->params->store->base.measure(&s->params->store->base, node, result);
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
prefetch_node(const GraphSweepState *s, uint32 id, Size offset, Size bytes)
{
	const GraphLayout *layout = &s->handle->layout;

	QvPrefetchPage(s->handle->hints, GraphNodeBlock(layout, id),
				   QV_PAGE_START + (Size) GraphNodeSlot(layout, id) * layout->node_size + offset, bytes);
}

static void
prefetch_head(const GraphSweepState *s, uint32 id)
{
	prefetch_node(s, id, 0, sizeof(GraphNodeData));
}

static void
prefetch_code(const GraphSweepState *s, uint32 id)
{
	prefetch_node(s, id, s->handle->layout.own, s->handle->layout.own_bytes);
}

/* Ask the CPU for the nodes of members that come soon. */
static void
prefetch_members(const GraphSweepState *s, const GraphMappedRow *members, uint32 n)
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
take_members_together(GraphSweepState *s, GraphMappedRow *members, uint32 n)
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
	s->params->counters->members += n - lost;
	return lost;
}

/* Is there room for those that are lost? */
static bool
has_room(const GraphSweepState *s, const QvKnownUse *use)
{
	return use->unknown + use->stale <= s->params->most / 4;
}

bool
GraphSweepKnown(GraphSweepState *s, const GraphTidMap *map, QvKnownUse *use)
{
	QvTidSetIterator it = {.set = s->params->only};
	GraphMappedRow *members = palloc(MEMBERS_TOGETHER * sizeof(GraphMappedRow));
	bool		more = true;

	while (more && has_room(s, use) && !QvKnownIsWorn(&map->rows, use))
	{
		uint32		n = 0;

		while (n < MEMBERS_TOGETHER && (more = QvTidSetNext(&it, &members[n].tid)))
		{
			use->seen++;
			members[n].node = QvTidMapFind(&map->rows.numbers, &members[n].tid);
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
	return !more && has_room(s, use) && !QvKnownIsWorn(&map->rows, use);
}
