/*
 * plain.c
 *		Plain graphs: what GraphFormOps asks for (form.h).
 *
 * A full neighbor chooses again exactly, as pgvector does, which reads the
 * values of all its neighbors: without holding its lock, so it looks again
 * before it changes anything.
 */
#include "postgres.h"

#include "graph/form.h"
#include "graph/node.h"
#include "graph/plain.h"
#include "graph/rows.h"
#include "pages/write.h"

/* Times that a neighbor that changes under our hands is judged again. */
#define LINK_ATTEMPTS 3

typedef struct PlainPoint
{
	GraphPoint	base;
	const void *value;			/* NULL: none, all distances are 0 */
	Size		size;
	GraphValueRef ref;			/* where it is stored, when not in the node */
} PlainPoint;

typedef struct PlainNeighborhood
{
	GraphNeighborhood base;
	GraphScratch scratch;
	void	  **values;
} PlainNeighborhood;

/* ---- points ---- */

/*
 * Exact distances, as pgvector has them, so ef is ef; a little more, since the
 * two graphs are not the same.  Among the few whole numbers of Hamming
 * distances many nodes tie with the last of a pool: pgvector expands those
 * that it has met, so there the pool is half as large again (measured:
 * src/graph/README.md, "Plain graphs").  In few dimensions clusters of near
 * rows want more.
 */
static uint32
pool_size(const GraphHandle *handle, int ef)
{
	if (handle->meta.dims <= GRAPH_MAX_FEW_DIMS && handle->space.opclass.type->dense_float)
		return ef + ef / 4 + 8;
	return (handle->space.opclass.metric == QV_METRIC_HAMMING ? ef + ef / 2 : ef + ef / 16) + 2;
}

static GraphPoint *
prepare(GraphHandle *handle, const void *value)
{
	PlainPoint *point = palloc0(sizeof(PlainPoint));

	point->base.scale = 1;
	point->value = value;
	point->size = value ? handle->space.opclass.type->value_size(value) : 0;
	return &point->base;
}

static void
encode(GraphHandle *handle, GraphPoint *point)
{
}

static GraphPoint *
node_point(GraphHandle *handle, uint32 id)
{
	GraphScratch scratch = {NULL, 0};
	void	   *value = GraphCopyValue(handle, id, &scratch);

	return value ? prepare(handle, value) : NULL;
}

/* ---- neighborhoods ---- */

static GraphNeighborhood *
neighborhood(GraphHandle *handle, uint32 capacity)
{
	PlainNeighborhood *nb = palloc0(sizeof(PlainNeighborhood));

	GraphNeighborhoodInit(&nb->base, handle, capacity);
	nb->values = palloc(capacity * sizeof(void *));
	return &nb->base;
}

/* A plain store's visit callback: copy the node's value. */
static void
copy_value(void *arg, uint32 id, float distance)
{
	PlainNeighborhood *nb = arg;
	void	   *value;

	if (nb->base.count == nb->base.capacity || id == nb->base.exclude)
		return;
	value = GraphCopyValue(nb->base.handle, id, &nb->scratch);
	if (value != NULL && GraphNeighborhoodAdd(&nb->base, id, distance))
		nb->values[nb->base.count - 1] = value;
}

static GraphStore *
open_store(GraphHandle *handle, const GraphPoint *point, GraphNeighborhood *nb)
{
	GraphPlainStore *store = palloc(sizeof(GraphPlainStore));

	GraphPlainStoreInit(store, handle, ((const PlainPoint *) point)->value);
	if (nb)
	{
		store->visit = copy_value;
		store->visit_arg = nb;
	}
	return &store->base;
}

static float
pair(void *arg, uint32_t a, uint32_t b)
{
	const PlainNeighborhood *nb = arg;

	return GraphExactDistance(&nb->base.handle->space.opclass, nb->values[a], nb->values[b]);
}

static bool
same(const GraphNeighborhood *base, uint32 at, const GraphPoint *point)
{
	const void *other = ((const PlainNeighborhood *) base)->values[at];
	const PlainPoint *p = (const PlainPoint *) point;

	return base->handle->space.opclass.type->value_size(other) == p->size &&
		memcmp(other, p->value, p->size) == 0;
}

/* An edge is the neighbor's number, which the neighborhood holds. */
static void
make_edges(GraphNeighborhood *nb, const GraphPoint *point, int n)
{
}

/* ---- nodes on pages ---- */

static void
store_value(GraphHandle *handle, GraphPoint *base, bool building)
{
	PlainPoint *point = (PlainPoint *) base;

	if (handle->layout.value_size == 0)
		GraphStoreValue(handle, point->value, point->size, building, &point->ref);
}

static void
free_value(GraphHandle *handle, uint32 id)
{
	GraphNode	node;
	GraphValueRef ref;
	Buffer		buf;

	if (handle->layout.value_size != 0)
		return;
	buf = GraphLockNode(handle, id, BUFFER_LOCK_SHARE, &node);
	if (node != NULL)
		memcpy(&ref, GraphNodeOwn(&handle->layout, node), sizeof(ref));
	UnlockReleaseBuffer(buf);
	if (node != NULL)
		GraphFreeStored(handle, &ref);
}

static void
fill_node(const GraphNeighborhood *nb, const GraphPoint *base, int n,
		  GraphNode node)
{
	const GraphLayout *layout = &nb->handle->layout;
	const PlainPoint *point = (const PlainPoint *) base;

	GraphNodeInit(layout, node);
	for (int i = 0; i < n; i++)
		GraphNodeIds(layout, node)[i] = GraphNeighborId(nb, i);
	if (layout->value_size == 0)
		memcpy(GraphNodeOwn(layout, node), &point->ref, sizeof(point->ref));
	else
		memcpy(GraphNodeOwn(layout, node), point->value, point->size);
}

static void
set_edge(const GraphNeighborhood *nb, int i, GraphNode node, int place)
{
	GraphNodeIds(&nb->handle->layout, node)[place] = GraphNeighborId(nb, i);
}

/* ---- edges back ---- */

/* The neighbors of a full node and a newcomer, which is the last. */
typedef struct Rivals
{
	const QvOpclassInfo *opclass;
	const void *values[GRAPH_MAX_DEGREE + 1];
} Rivals;

static float
rival_pair(void *arg, uint32_t a, uint32_t b)
{
	const Rivals *r = arg;

	return GraphExactDistance(r->opclass, r->values[a], r->values[b]);
}

/*
 * Which place of the full node "to", with those neighbors, the newcomer gets;
 * -1: none.
 */
static int
choose_place(GraphHandle *handle, const PlainPoint *point, uint32 to,
			 const uint32 *ids, bool force)
{
	const GraphLayout *layout = &handle->layout;
	Rivals		r = {&handle->space.opclass};
	float		from_self[GRAPH_MAX_DEGREE + 1];
	GraphScratch scratch = {NULL, 0};
	void	   *self = GraphCopyValue(handle, to, &scratch);
	int			place = -1;
	uint32		n = 0;

	if (self == NULL)
		return -1;
	while (n < layout->degree && place < 0)
	{
		r.values[n] = GraphCopyValue(handle, ids[n], &scratch);
		if (r.values[n] == NULL)
			place = n;			/* it leads nowhere */
		else
		{
			from_self[n] = GraphExactDistance(r.opclass, self, r.values[n]);
			n++;
		}
	}
	if (place < 0)
	{
		r.values[n] = point->value;
		from_self[n] = GraphExactDistance(r.opclass, self, point->value);
		place = GraphChoosePlace(from_self, n, rival_pair, &r, force);
	}
	for (uint32 i = 0; i < n; i++)
		pfree((void *) r.values[i]);
	pfree(self);
	if (scratch.data)
		pfree(scratch.data);
	return place;
}

static bool
link_back(GraphHandle *handle, const GraphPoint *base, uint32 id, uint32 to,
		  bool force, bool building)
{
	const GraphLayout *layout = &handle->layout;
	uint32		ids[GRAPH_MAX_DEGREE];
	int			chosen = -1;

	for (int attempt = 0; attempt < LINK_ATTEMPTS; attempt++)
	{
		GraphNode	node;
		Buffer		buf = GraphLockNode(handle, to, BUFFER_LOCK_EXCLUSIVE, &node);
		int			place = -1;
		bool		linked;

		if (node == NULL || node->state != GRAPH_SLOT_LIVE)
		{
			UnlockReleaseBuffer(buf);
			return false;
		}
		linked = GraphNodeFindEdge(layout, node, id, &place);
		/* full, and still as it was judged: the place chosen */
		if (place < 0 && chosen >= 0 &&
			GraphNodeIds(layout, node)[chosen] == ids[chosen])
			place = chosen;
		if (place >= 0 && !linked)
		{
			QvWrite		w;

			QvWriteBegin(&w, handle->index, building);
			node = GraphPageNode(layout, QvWriteRegister(&w, buf),
								 GraphNodeSlot(layout, to));
			GraphNodeIds(layout, node)[place] = id;
			QvWriteCommit(&w);
			linked = true;
		}
		else
			memcpy(ids, GraphNodeIds(layout, node), layout->degree * sizeof(uint32));
		UnlockReleaseBuffer(buf);
		if (linked)
			return true;
		chosen = choose_place(handle, (const PlainPoint *) base, to, ids, force);
		if (chosen < 0)
			return false;
	}
	return false;
}

const GraphFormOps graph_plain_ops = {
	.exact = true,
	.entry_factor = 2,
	.pool_size = pool_size,
	.insert_pool = 1,
	.prepare = prepare,
	.node_point = node_point,
	.encode = encode,
	.open = open_store,
	.enter = GraphPlainStoreEnter,
	.read_entries = GraphPlainReadEntries,
	.neighborhood = neighborhood,
	.pair = pair,
	.same = same,
	.make_edges = make_edges,
	.store_value = store_value,
	.free_value = free_value,
	.fill_node = fill_node,
	.set_edge = set_edge,
	.link_back = link_back
};
