/*
 * insert.c
 *		Inserting a row into a graph on its pages.
 *
 * One search finds the neighbors and copies what comparing them takes; the
 * node is written with its edges; then each neighbor is offered the node in
 * return, which changes that neighbor's page alone.
 *
 * Locks: the update lock, shared, for the whole insert; then one page at a
 * time (two when the entry points or the index grows: metapage first).  See
 * src/graph/README.md, "Locks".
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "graph/graph.h"
#include "graph/insert.h"
#include "graph/pages.h"
#include "graph/rows.h"
#include "graph/select.h"
#include "storage/lmgr.h"
#include "pages/write.h"
#include "utils/memutils.h"

/* Entry points entries that a search for neighbors starts from. */
#define INSERT_ENTRIES 8

/* Times that a repair goes on when most of what it met was deleted. */
#define MAX_REPAIR_ROUNDS 32

/* Nearest nodes looked at for one with the same value. */
#define DUPLICATE_CANDIDATES 8

static int
compare_candidates(const void *a, const void *b)
{
	float		x = ((const Candidate *) a)->distance;
	float		y = ((const Candidate *) b)->distance;

	return (x > y) - (x < y);
}

GraphNeighborhood *
GraphFindNeighborhood(GraphHandle *handle, const GraphPoint *point, uint32 around)
{
	const GraphFormOps *ops = handle->ops;
	uint32		ef = handle->meta.ef_construction;
	GraphNeighborhood *nb = ops->neighborhood(handle, 2 * ef);
	GraphStore *store = ops->open(handle, point, nb);
	GraphSearch search;

	nb->exclude = around;
	GraphSearchInit(&search, ops->exact, around != GRAPH_NONE);
	GraphSearchReset(&search, ops->insert_pool * ef);
	if (around != GRAPH_NONE)
		GraphSearchOffer(&search, 0, around);
	ops->enter(store, &search, INSERT_ENTRIES);
	GraphSearchRun(&search, store);

	/*
	 * A repair begins where nodes were deleted.  They are way-points, but they
	 * also fill the pool: of ef nodes after a large deletion few are live.
	 */
	for (int round = 0; around != GRAPH_NONE && nb->count < ef &&
		 round < MAX_REPAIR_ROUNDS; round++)
		if (!GraphSearchResume(&search, store, ops->insert_pool * ef))
			break;
	qsort(nb->candidates, nb->count, sizeof(Candidate), compare_candidates);
	return nb;
}

int
GraphChooseNeighbors(GraphNeighborhood *nb, const GraphPoint *point)
{
	const GraphFormOps *ops = nb->handle->ops;
	Candidate  *scratch = palloc(Max(1, nb->count) * sizeof(Candidate));
	int			n;

	/* pairs are compared by whole distances */
	for (uint32 i = 0; i < nb->count; i++)
		nb->candidates[i].distance += point->offset;
	n = GraphSelectNeighbors(nb->candidates, nb->count, nb->handle->layout.degree,
							 ops->pair, nb, scratch);
	pfree(scratch);
	ops->make_edges(nb, point, n);
	return n;
}

void
GraphLinkAllBack(GraphNeighborhood *nb, const GraphPoint *point, int n,
				 uint32 id, bool building)
{
	const GraphFormOps *ops = nb->handle->ops;
	bool		any = false;

	for (int i = 0; i < n; i++)
		any |= ops->link_back(nb->handle, point, id, GraphNeighborId(nb, i),
							  false, building);

	/* somebody must lead to it */
	if (!any && n > 0)
		ops->link_back(nb->handle, point, id, GraphNeighborId(nb, 0), true,
					   building);
}

/* Put the node for a point on a page.  Returns its number. */
static uint32
write_node(GraphNeighborhood *nb, GraphPoint *point, int n, ItemPointer tid,
		   bool building)
{
	GraphHandle *handle = nb->handle;
	const GraphLayout *layout = &handle->layout;
	uint32		id;
	Buffer		buf;
	QvWrite		w;
	GraphNode	node;

	if (handle->ops->store_value)
		handle->ops->store_value(handle, point, building);
	buf = GraphAllocSlot(handle, building, &id);
	QvWriteBegin(&w, handle->index, building);
	node = GraphPageNode(layout, QvWriteRegister(&w, buf), GraphNodeSlot(layout, id));
	handle->ops->fill_node(nb, point, n, node);
	node->tids[node->ntids++] = *tid;
	QvWriteCommit(&w);
	UnlockReleaseBuffer(buf);
	return id;
}

/*
 * Keep the entry points at about c sqrt(nodes) entries, c = entry_factor:
 * adding with probability c^2 / (2 entries) makes it so (the derivative of
 * c sqrt(n) is c / (2 sqrt(n)) = c^2 / (2 c sqrt(n))).
 */
static bool
wants_entry(const GraphHandle *handle)
{
	double		c = handle->ops->entry_factor;
	uint32		entries = handle->meta.entry_count;

	return entries == 0 ||
		pg_prng_double(&pg_global_prng_state) < c * c / (2.0 * entries);
}

void
GraphInsertValue(Relation index, const QvOpclassInfo *opclass,
				 const void *value, ItemPointer tid, bool building)
{
	GraphHandle *handle = GraphOpen(index, opclass);
	const GraphFormOps *ops = handle->ops;
	GraphPoint *point;
	GraphNeighborhood *nb;
	uint32		id;
	int			n;

	QvCheckDims(opclass, handle->meta.dims, value);
	point = ops->prepare(handle, value);
	ops->encode(handle, point);
	nb = GraphFindNeighborhood(handle, point, GRAPH_NONE);
	for (uint32 i = 0; i < Min(nb->count, DUPLICATE_CANDIDATES); i++)
		if (ops->same(nb, nb->candidates[i].id, point) &&
			GraphAddRow(handle, GraphNeighborId(nb, i), tid, building))
			return;

	n = GraphChooseNeighbors(nb, point);
	id = write_node(nb, point, n, tid, building);
	GraphLinkAllBack(nb, point, n, id, building);

	/* a node without neighbors is the start of a graph */
	if (n == 0 || wants_entry(handle))
		GraphAddEntryPoint(index, id, point->centered, building);
}

void
GraphInsert(Relation index, const QvOpclassInfo *opclass, const void *value,
			ItemPointer tid)
{
	MemoryContext context;
	MemoryContext old;

	if (!QvIsIndexed(opclass, value))
		return;
	context = AllocSetContextCreate(CurrentMemoryContext, "quiver insert",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);

	/* inserts share this lock; vacuum takes it to wait for those under way */
	LockPage(index, GRAPH_UPDATE_LOCK, ShareLock);
	GraphInsertValue(index, opclass, value, tid, false);
	UnlockPage(index, GRAPH_UPDATE_LOCK, ShareLock);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
