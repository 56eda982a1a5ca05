/*
 * neighbors.c
 *		Neighbors of a node on its pages; see neighbors.h.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "graph/form/forms.h"
#include "graph/page/node.h"
#include "graph/page/rows.h"
#include "graph/update/link.h"
#include "graph/update/neighbors.h"
#include "miscadmin.h"

/* Entry points that a search for neighbors starts from. */
#define NEIGHBORS_ENTRIES 8

/*
 * Factor of ef_construction that gives the pool of estimates.  It is larger than 1 as in a
 * scan, but recall matters less.
 */
#define ESTIMATES_POOL 2

/* Most times that a search goes on when most nodes that it found were deleted. */
#define MAX_ROUNDS 32

static int
compare_candidates(const void *a, const void *b)
{
	float		x = ((const Candidate *) a)->distance;
	float		y = ((const Candidate *) b)->distance;

	return (x > y) - (x < y);
}

GraphNeighborhood *
GraphFindNeighborhood(GraphHandle *handle, GraphPoint *point, uint32 around)
{
	uint32		ef = handle->meta.ef_construction;
	GraphNeighborhood *nb = GraphFormOf(handle)->neighborhood(handle, point, 2 * ef);
	GraphStore *store = nb->store;
	uint32		pool_size = store->exact ? ef : ef * ESTIMATES_POOL;
	uint32		enough = around != GRAPH_NONE ? ef : handle->layout.degree;
	GraphSearch search;

	nb->exclude = around;
	GraphSearchInit(&search, store->exact, true);
	GraphSearchReset(&search, pool_size);
	if (around != GRAPH_NONE)
		GraphSearchOffer(&search, 0, around);
	store->enter(store, &search, NEIGHBORS_ENTRIES);
	GraphSearchRun(&search, store);

	/*
	 * Deleted nodes are way-points, but they also fill the pool.  After a
	 * large deletion few of ef nodes are live.  A repair begins among the
	 * deleted.  An insert meets them while VACUUM has not unlinked them.
	 */
	for (int round = 0; nb->count < enough && round < MAX_ROUNDS; round++)
		if (!GraphSearchResume(&search, store, pool_size))
			break;
	qsort(nb->candidates, nb->count, sizeof(Candidate), compare_candidates);
	return nb;
}

int
GraphChooseNeighbors(GraphNeighborhood *nb)
{
	const GraphFormOps *ops = GraphFormOf(nb->handle);
	Candidate  *scratch = palloc(Max(1, nb->count) * sizeof(Candidate));
	int			chosen;
	int			n;

	/* pairs are compared by whole distances */
	for (uint32 i = 0; nb->point->query && i < nb->count; i++)
		nb->candidates[i].distance = nb->point->query->scale *
			(nb->candidates[i].distance + nb->point->query->offset);
	n = GraphSelect(nb->candidates, nb->count, nb->handle->layout.degree, nb->pair, nb, scratch, &chosen);
	pfree(scratch);
	if (ops->make_edges)
		ops->make_edges(nb, n);
	return n;
}

/* Returns how many nodes a node is the anchor of, and their numbers in ids. */
static int
anchored_by(GraphHandle *handle, uint32 host, uint32 *ids)
{
	const GraphLayout *layout = &handle->layout;
	GraphNode	node;
	Buffer		buf = GraphLockNode(handle, host, BUFFER_LOCK_SHARE, &node);
	int			n = 0;

	for (uint32 i = 0; node != NULL && i < layout->degree; i++)
	{
		uint32		place = GraphNodeIds(layout, node)[i];

		if (GraphEdgeIsAnchor(place))
			ids[n++] = GraphEdgeTo(place);
	}
	UnlockReleaseBuffer(buf);
	return n;
}

/*
 * Asks the nodes that descend from a host without room for an anchor, then those below one
 * of these.  All of them are reached without the node itself.
 */
static bool
anchor_below(GraphNeighborhood *nb, uint32 id, uint32 host,
			 bool (*may_anchor) (void *arg, uint32 number), void *arg)
{
	uint32		below[GRAPH_MAX_DEGREE];

	for (int depth = 0; depth < GRAPH_MAX_ANCHOR_DEPTH; depth++)
	{
		int			n = anchored_by(nb->handle, host, below);
		int			full = 0;

		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < n; i++)
		{
			GraphAnswer answer;

			if (below[i] == id || below[i] > GRAPH_MAX_ID || (may_anchor && !may_anchor(arg, below[i])))
				continue;
			answer = GraphLinkBack(nb, id, below[i], GRAPH_ANCHOR_FORCED);
			if (answer == GRAPH_TAKEN)
				return true;
			if (answer == GRAPH_NO_MORE_ANCHORS)
				below[full++] = below[i];
		}
		if (full == 0)
			return false;
		host = below[hash_bytes_uint32(id + depth) % full];
	}
	return false;
}

/*
 * The anchor is the nearest neighbor that takes the edge of its own accord, else the
 * nearest that has room, else a node that descends from the nearest.  A neighbor that
 * refuses is not asked again.
 */
bool
GraphAnchor(GraphNeighborhood *nb, int n, uint32 id,
			bool (*may_anchor) (void *arg, uint32 number), void *arg)
{
	uint32		full = GRAPH_NONE;

	nb->asked = palloc0(Max(1, n) * sizeof(bool));
	for (GraphOffer offer = GRAPH_ANCHOR_EDGE; offer <= GRAPH_ANCHOR_FORCED; offer++)
		for (int i = 0; i < n; i++)
		{
			uint32		to = GraphNeighborId(nb, i);
			GraphAnswer answer;

			if (may_anchor && !may_anchor(arg, to))
				continue;
			answer = GraphLinkBack(nb, id, to, offer);
			nb->asked[i] = answer != GRAPH_NO_MORE_ANCHORS;
			if (answer == GRAPH_TAKEN)
				return true;
			if (answer == GRAPH_NO_MORE_ANCHORS && full == GRAPH_NONE)
				full = to;
		}
	return full != GRAPH_NONE && anchor_below(nb, id, full, may_anchor, arg);
}

/*
 * Limits of the neighbors that are offered an edge back, those first that the rule chose.
 * By L2 codes these are as many as OFFERS_WAL bytes of WAL pay for, from a third to half:
 * more find little more.  By inner product all are asked [M25].
 */
#define OFFERS_WAL 1250
#define WAL_BESIDE_CODE 60		/* bytes of an edge's WAL without its code */

static int
offers_back(const GraphHandle *handle)
{
	const GraphLayout *layout = &handle->layout;
	int			paid = OFFERS_WAL / (layout->code_bits / 8 + WAL_BESIDE_CODE);

	if (handle->meta.form == QV_FORM_CODED && handle->meta.space == QV_SPACE_L2)
		return Max(layout->degree / 3, Min(layout->degree / 2, paid));
	return layout->degree;
}

void
GraphLinkAllBack(GraphNeighborhood *nb, int n, uint32 id)
{
	for (int i = 0; i < Min(n, offers_back(nb->handle)); i++)
		if (!(nb->asked && nb->asked[i]))
			(void) GraphLinkBack(nb, id, GraphNeighborId(nb, i), GRAPH_EDGE);
}
