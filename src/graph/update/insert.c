/*
 * insert.c
 *		Inserting a row into a graph on its pages.
 *
 * One search finds the neighbors, and copies what comparing them needs.  The node is
 * written with its edges.  Then one neighbor becomes its anchor.  Others are offered an
 * edge back, which changes the page of that neighbor alone.
 *
 * Locks: the update lock, shared, for the whole insert.  Then one page at a time, except in
 * the cases of src/graph/update/README.md, "Locks".
 */
#include "postgres.h"

#include <math.h>

#include "common/pg_prng.h"
#include "compat.h"
#include "graph/form/forms.h"
#include "graph/graph.h"
#include "graph/page/cache.h"
#include "graph/page/entry_points.h"
#include "graph/page/rows.h"
#include "graph/update/neighbors.h"
#include "rows/write.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

/* Nearest nodes that are examined for one with the same value. */
#define DUPLICATE_CANDIDATES 8

/* Writes the node of a neighborhood's point on a page.  Returns its number. */
static uint32
write_node(GraphNeighborhood *nb, int n, ItemPointer tid)
{
	GraphHandle *handle = nb->handle;
	const GraphFormOps *ops = GraphFormOf(handle);
	uint32		id;
	Buffer		buf;
	QvWrite		w;
	GraphNode	node;

	if (ops->store_value)
		ops->store_value(nb);
	buf = GraphAllocSlot(handle, &id);
	node = GraphBeginChange(handle, &w, buf, id);
	ops->fill_node(nb, n, node);
	node->tids[node->ntids++] = *tid;
	QvWriteEnd(&w);
	QvInjectionPoint("quiver-graph-node-written");
	return id;
}

/*
 * Tells whether to add the node to the entry points.  Their number is to stay at about c
 * sqrt(nodes), c = GRAPH_ENTRY_FACTOR.  Adding with probability c^2 / (2 entries) keeps it
 * there: the derivative of c sqrt(n) is c / (2 sqrt(n)) = c^2 / (2 c sqrt(n)).
 *
 * Nodes that take the places of deleted ones would be added, too.  So the pages, which are few
 * then, limit the number.
 *
 * A node that "surpasses" others is the nearest to many queries, but edges lead to it from few
 * nodes.  It is added while there are less than twice as many.
 */
static bool
wants_entry_point(const GraphHandle *handle, bool surpasses)
{
	double		c = GRAPH_ENTRY_FACTOR;
	double		entries = handle->meta.entry_count;
	double		most = c * sqrt((double) RelationGetNumberOfBlocks(handle->index) * handle->layout.per_page);

	return entries == 0 || (surpasses && entries < 2 * most) ||
		(pg_prng_double(&pg_global_prng_state) < c * c / (2 * entries) && entries < most);
}

/* Writes the row entry of a row that is in a node by now. */
static void
put_entry(const GraphNeighborhood *nb, uint32 id, const QvIncludedRow *included, ItemPointer tid)
{
	QvInjectionPoint("quiver-graph-row-added");
	if (GraphCanHaveRows(&nb->handle->meta))
		QvRowsPut(&nb->handle->rows, tid, (QvRowPlace) {.block = id},
				  &(QvRowVector) {nb->centered, 0, nb->point->query->row_norm2}, included);
}

/* A handle serves one insert. */
static void
insert_value(GraphHandle *handle, const void *value, const QvIncludedRow *included, ItemPointer tid)
{
	const GraphFormOps *ops = GraphFormOf(handle);
	GraphNeighborhood *nb;
	bool		surpasses;
	uint32		id;
	int			n;

	QvCheckDims(&handle->space.opclass, handle->meta.dims, value);
	nb = GraphFindNeighborhood(handle, ops->prepare(handle, value), GRAPH_NONE);
	for (uint32 i = 0; i < Min(nb->count, DUPLICATE_CANDIDATES); i++)
		if (ops->same(nb, nb->candidates[i].id) &&
			GraphAddRow(handle, GraphNeighborId(nb, i), tid))
		{
			put_entry(nb, GraphNeighborId(nb, i), included, tid);
			return;
		}

	/* before the candidates are put into another order */
	surpasses = ops->surpasses && ops->surpasses(nb);
	n = GraphChooseNeighbors(nb);
	id = write_node(nb, n, tid);

	/*
	 * The anchor comes first, so that the node is anchored when others find
	 * it.  A node without an anchor must be an entry point: it has no
	 * neighbors, or all of them were deleted meanwhile.
	 */
	if (!GraphAnchor(nb, n, id, NULL, NULL) || wants_entry_point(handle, surpasses))
		GraphAddEntryPoint(handle, id, nb->centered);
	GraphLinkAllBack(nb, n, id);
	put_entry(nb, id, included, tid);
}

void
GraphInsert(Relation index, const QvOpclassInfo *opclass, const void *value,
			const QvIncludedRow *included, ItemPointer tid, Relation heap)
{
	/* inserts share this lock; VACUUM takes it to wait for them */
	LockPage(index, GRAPH_UPDATE_LOCK, ShareLock);
	insert_value(GraphOpen(index, opclass), value, included, tid);
	UnlockPage(index, GRAPH_UPDATE_LOCK, ShareLock);
}
