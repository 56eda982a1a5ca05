/*
 * connect.c
 *		Connecting the nodes of a graph in memory; see connect.h.
 *
 * Nodes are inserted in batches (after "prefix doubling" of ParlayANN, arXiv 2305.04359).
 * Each is searched for in the graph before the batch, which nobody changes meanwhile.  Then
 * each node that the new ones lead to gets its edges back.  So there are no locks, and the
 * graph is the same for any number of participants.
 */
#include "postgres.h"

#include "commands/progress.h"
#include "common/hashfn.h"
#include "containers/bitmap.h"
#include "graph/build/connect.h"
#include "graph/build/team.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"

/*
 * A batch is at most this part of the graph before it, and of all nodes.  Its nodes do not
 * see one another.  Larger batches cost recall, and save nothing [M28].
 */
#define OF_GRAPH_SO_FAR 64
#define OF_WHOLE_GRAPH 512

/*
 * Nodes that are claimed at a time: at most CLAIM, and few enough that each participant
 * gets some.
 */
#define CLAIM 16
#define CLAIMS_EACH 4

uint32
GraphNextBatch(uint32 done, uint32 n)
{
	uint32		batch = Max(1, Min(done / OF_GRAPH_SO_FAR, n / OF_WHOLE_GRAPH));

	return Min(batch, n - done);
}

uint32
GraphLargestBatch(uint32 n)
{
	return n / OF_WHOLE_GRAPH + 1;
}

/* ---- the new nodes ---- */

/*
 * Chooses the neighbors of node i of the batch after the first "done" nodes, and leaves
 * each of them a link.  Link number i * degree + j is edge j of node i.
 */
static void
find_neighbors(GraphBuildState *bs, uint32 done, uint32 i)
{
	GraphMem   *mem = &bs->mem;
	GraphBuildArrays *arrays = &bs->arrays;
	uint32		id = arrays->order[done + i];
	GraphMemNode *node = GraphMemGet(mem, id);
	int			degree = bs->handle.meta.degree;
	uint32		entries[BUILD_ENTRIES];
	int			nentries = done > 0 ? bs->ops->enter(bs, id, done, entries) : 0;
	int			n;

	GraphMemSearch(mem, &bs->search, id, bs->handle.meta.ef_construction, entries, nentries);
	n = bs->search.pool.nexpanded;
	memcpy(bs->chosen, bs->search.pool.expanded, n * sizeof(Candidate));
	GraphMemChoose(mem, node, bs->chosen, n, bs->scratch);
	for (int j = 0; j < node->degree; j++)
	{
		uint32		link = i * degree + j;

		arrays->next[link] = pg_atomic_exchange_u32(&arrays->links[node->edges[j].id], link);
	}
}

/* ---- the edges back ---- */

/* Memory for edges to one node, of one participant. */
typedef struct Incoming
{
	Candidate  *edges;
	uint32		max;
} Incoming;

/* Turns the links to a node into edges, nearest first, in whatever order they came. */
static void
link_back(GraphBuildState *bs, Incoming *incoming, uint32 done, uint32 id, uint32 link)
{
	GraphMem   *mem = &bs->mem;
	GraphBuildArrays *arrays = &bs->arrays;
	int			degree = bs->handle.meta.degree;
	uint32		n = 0;

	for (; link != GRAPH_NONE; link = arrays->next[link])
	{
		uint32		from = arrays->order[done + link / degree];

		if (n == incoming->max)
		{
			incoming->max *= 2;
			incoming->edges = repalloc_huge(incoming->edges, incoming->max * sizeof(Candidate));
		}
		incoming->edges[n].distance = GraphMemGet(mem, from)->edges[link % degree].distance;
		incoming->edges[n++].id = from;
	}
	if (n > 1)
		qsort(incoming->edges, n, sizeof(Candidate), CompareCandidates);
	for (uint32 i = 0; i < n; i++)
		GraphMemAddEdge(mem, GraphMemGet(mem, id), incoming->edges[i], bs->scratch);
}

/*
 * Links the neighbors of node i back.  The participant that takes a neighbor's first link
 * gets all of its links.
 */
static void
link_back_neighbors(GraphBuildState *bs, Incoming *incoming, uint32 done, uint32 i)
{
	GraphMem   *mem = &bs->mem;
	GraphBuildArrays *arrays = &bs->arrays;
	const GraphMemNode *node = GraphMemGet(mem, arrays->order[done + i]);

	for (int j = 0; j < node->degree; j++)
	{
		uint32		to = node->edges[j].id;
		uint32		link;

		if (pg_atomic_read_u32(&arrays->links[to]) == GRAPH_NONE)
			continue;
		link = pg_atomic_exchange_u32(&arrays->links[to], GRAPH_NONE);
		if (link != GRAPH_NONE)
			link_back(bs, incoming, done, to, link);
	}
}

void
GraphConnectNodes(GraphBuildState *bs)
{
	uint32		n = bs->mem.count;
	Incoming	incoming = {palloc(64 * sizeof(Candidate)), 64};

	for (uint32 done = 0; done < n;)
	{
		uint32		batch = GraphNextBatch(done, n);

		uint32		claim = Max(1, Min(CLAIM, batch / (CLAIMS_EACH * bs->shared->base.participants)));

		if (bs->ops->connected)
			bs->ops->connected(bs, done);
		for (uint32 at; (at = GraphClaim(bs, claim)) < batch;)
			for (uint32 i = at; i < Min(at + claim, batch); i++)
				find_neighbors(bs, done, i);
		GraphMeet(bs);
		for (uint32 at; (at = GraphClaim(bs, claim)) < batch;)
		{
			CHECK_FOR_INTERRUPTS();
			for (uint32 i = at; i < Min(at + claim, batch); i++)
				link_back_neighbors(bs, &incoming, done, i);
		}
		GraphMeet(bs);
		done += batch;
		if (bs->leader)
			pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);
	}
	pfree(incoming.edges);
	for (uint32 at; (at = GraphClaim(bs, 64)) < n;)
	{
		CHECK_FOR_INTERRUPTS();
		for (uint32 i = at; i < Min(at + 64, n); i++)
			GraphMemShrink(&bs->mem, GraphMemGet(&bs->mem, i), bs->scratch);
	}
	GraphMeet(bs);
}

/* ---- reaching all ---- */

/*
 * Most anchors that lead from a node after the first walk.  They are fewer than a node may
 * have, so that nodes near the entry points are not full of them.
 */
#define FIRST_ANCHORS 3

typedef struct Walk
{
	GraphMem   *mem;
	uint8	   *reached;		/* bitmap by node */
	uint8	   *anchors;		/* number of anchors that lead from each node */
	uint8		max_anchors;
	uint32	   *queue;			/* the nodes that were reached */
	uint32		head;
	uint32		tail;
} Walk;

#define IsReached(walk, id) BitmapHas((walk)->reached, id)

static void
reach(Walk *walk, uint32 id)
{
	BitmapSet(walk->reached, id);
	walk->queue[walk->tail++] = id;
}

/*
 * Goes on from the nodes that were reached.  The edge that reaches a node first becomes its
 * anchor.
 */
static void
walk_on(Walk *walk)
{
	while (walk->head < walk->tail)
	{
		uint32		at = walk->queue[walk->head++];
		GraphMemNode *node = GraphMemGet(walk->mem, at);

		if (walk->head % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < node->degree && walk->anchors[at] < walk->max_anchors; i++)
		{
			uint32		to = GraphEdgeTo(node->edges[i].id);

			if (IsReached(walk, to))
				continue;
			node->edges[i].id |= GRAPH_ANCHOR;
			walk->anchors[at]++;
			reach(walk, to);
		}
	}
}

/* Returns the last edge of a full node that is no anchor. */
static int
place_to_give(const GraphMemNode *node)
{
	int			place = node->degree - 1;

	while (GraphEdgeIsAnchor(node->edges[place].id))
		place--;
	return place;
}

/* Makes a node with room for another anchor the anchor of node id. */
static void
anchor_to(Walk *walk, uint32 from, uint32 id)
{
	GraphMemNode *host = GraphMemGet(walk->mem, from);
	int			place = host->degree < walk->mem->layout->degree ? host->degree++ : place_to_give(host);

	host->edges[place].distance = walk->mem->pair(walk->mem, from, id);
	host->edges[place].id = id | GRAPH_ANCHOR;
	walk->anchors[from]++;
}

/*
 * Returns a node that descends from a full one, at any depth, and is not full.  GRAPH_NONE:
 * there is none.
 */
static uint32
room_below(const Walk *walk, uint32 host, uint32 id)
{
	for (int depth = 0; depth < GRAPH_MAX_ANCHOR_DEPTH; depth++)
	{
		const GraphMemNode *node = GraphMemGet(walk->mem, host);
		uint32		below[GRAPH_MAX_DEGREE];
		int			n = 0;

		for (int i = 0; i < node->degree; i++)
		{
			uint32		to = GraphEdgeTo(node->edges[i].id);

			if (!GraphEdgeIsAnchor(node->edges[i].id))
				continue;
			if (walk->anchors[to] < walk->max_anchors)
				return to;
			below[n++] = to;
		}
		if (n == 0)
			break;
		host = below[hash_bytes_uint32(id + depth) % n];
	}
	return GRAPH_NONE;
}

/*
 * Makes the nearest reached neighbor of node id its anchor: in a free place, or in that of
 * its last edge.  If all have as many as they may, a node that descends from the nearest is
 * used.  Returns false if there is none.
 */
static bool
lead_to(Walk *walk, uint32 id)
{
	const GraphMemNode *node = GraphMemGet(walk->mem, id);
	uint32		from = GRAPH_NONE;

	for (int i = 0; i < node->degree; i++)
	{
		uint32		neighbor = GraphEdgeTo(node->edges[i].id);

		if (!IsReached(walk, neighbor))
			continue;
		if (walk->anchors[neighbor] < walk->max_anchors)
		{
			anchor_to(walk, neighbor, id);
			return true;
		}
		if (from == GRAPH_NONE)
			from = neighbor;
	}
	if (from != GRAPH_NONE)
		from = room_below(walk, from, id);
	if (from == GRAPH_NONE)
		return false;
	anchor_to(walk, from, id);
	return true;
}

void
GraphReachNodes(GraphBuildState *bs)
{
	uint32		n = bs->mem.count;
	Walk		walk = {&bs->mem};
	QvRoom		reached,
				anchors;
	uint32	   *entries;
	uint32		nentries,
				led = 0,
				max = 64;

	walk.reached = memset(GraphMemRoom(&bs->mem, &reached, BitmapBytes(n)), 0, BitmapBytes(n));
	walk.anchors = memset(GraphMemRoom(&bs->mem, &anchors, n), 0, n);
	/* nobody links any more: the memory is free */
	walk.queue = bs->arrays.position;
	bs->unreached = palloc(max * sizeof(uint32));
	entries = bs->ops->choose_entry_points(bs, &nentries);
	walk.max_anchors = Min(FIRST_ANCHORS, GraphMaxAnchors(bs->mem.layout));
	/* where there is a path, other entry points get anchors, too */
	for (uint32 i = 0; i < nentries; i++)
		if (!IsReached(&walk, entries[i]))
		{
			reach(&walk, entries[i]);
			walk_on(&walk);
		}
	/* all of them again: they may have more anchors now */
	walk.max_anchors = GraphMaxAnchors(bs->mem.layout);
	walk.head = 0;
	walk_on(&walk);
	for (uint32 id = 0; id < n; id++)
	{
		if (IsReached(&walk, id))
			continue;
		if (lead_to(&walk, id))
			led++;
		else
		{
			if (bs->nunreached == max)
				bs->unreached = repalloc_huge(bs->unreached, (max *= 2) * sizeof(uint32));
			bs->unreached[bs->nunreached++] = id;
		}
		reach(&walk, id);
		walk_on(&walk);
	}
	elog(DEBUG1, "%u of %u nodes have been made to be reached, %u have become entry points",
		 led, n, bs->nunreached);
	pfree(entries);
	QvRoomFree(&anchors);
	QvRoomFree(&reached);
}
