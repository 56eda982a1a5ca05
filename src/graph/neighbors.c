/*
 * neighbors.c
 *		Neighbors of a node on its pages; see neighbors.h.
 */
#include "postgres.h"

#include "graph/forms.h"
#include "graph/neighbors.h"

/* Entry points that a search for neighbors starts from. */
#define NEIGHBORS_ENTRIES 8

/*
 * A pool of estimates is this many times ef_construction: as in a scan, but
 * recall matters less.
 */
#define ESTIMATES_POOL 2

/* Times that a repair goes on when most of what it met was deleted. */
#define MAX_REPAIR_ROUNDS 32

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
	GraphSearch search;

	nb->exclude = around;
	GraphSearchInit(&search, store->exact, around != GRAPH_NONE);
	GraphSearchReset(&search, pool_size);
	if (around != GRAPH_NONE)
		GraphSearchOffer(&search, 0, around);
	store->enter(store, &search, NEIGHBORS_ENTRIES);
	GraphSearchRun(&search, store);

	/*
	 * A repair begins where nodes were deleted.  They are way-points, but
	 * they also fill the pool: of ef nodes after a large deletion few are
	 * live.
	 */
	for (int round = 0; around != GRAPH_NONE && nb->count < ef &&
		 round < MAX_REPAIR_ROUNDS; round++)
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
	int			n;

	/* pairs are compared by whole distances */
	for (uint32 i = 0; i < nb->count; i++)
		nb->candidates[i].distance += nb->point->offset;
	n = GraphSelectNeighbors(nb->candidates, nb->count, nb->handle->layout.degree,
							 nb->pair, nb, scratch);
	pfree(scratch);
	if (ops->make_edges)
		ops->make_edges(nb, n);
	return n;
}

bool
GraphLinkAllBack(GraphNeighborhood *nb, int n, uint32 id)
{
	const GraphFormOps *ops = GraphFormOf(nb->handle);
	bool		any = false;

	for (int i = 0; i < Min(n, GraphInsertLinks(&nb->handle->layout)); i++)
		any |= ops->link_back(nb, id, GraphNeighborId(nb, i), false);

	/* somebody must lead to it: the nearest that still can */
	for (int i = 0; i < n && !any; i++)
		any = ops->link_back(nb, id, GraphNeighborId(nb, i), true);
	return any;
}
