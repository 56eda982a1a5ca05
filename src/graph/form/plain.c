/*
 * plain.c
 *		Plain graphs: the functions of GraphFormOps (form.h).
 *
 * A full neighbor chooses again by exact distances, as in pgvector.  It reads the values of
 * all its neighbors.
 */
#include "postgres.h"

#include "graph/form/plain.h"
#include "graph/page/meta.h"
#include "graph/page/node.h"
#include "graph/page/node_value.h"
#include "graph/page/rows.h"
#include "graph/walk/store_plain.h"

typedef struct PlainPoint
{
	GraphPoint	base;
	const void *value;			/* NULL: none, all distances are 0 */
	Size		size;
} PlainPoint;

typedef struct PlainNeighborhood
{
	GraphNeighborhood base;
	GraphScratch scratch;
	void	  **values;
	GraphValueRef ref;			/* place of the point's value, if it is not in
								 * its node */
} PlainNeighborhood;

/* ---- points ---- */

/*
 * Distances are exact, as in pgvector, so a pool of ef would do.  It is a little larger,
 * since the two graphs are not the same.  Hamming distances are a few whole numbers.  Many
 * nodes therefore tie with the last one of a pool.  pgvector expands these, too, so the
 * pool is half as large again.  In few dimensions, clusters of near rows need a larger pool
 * (src/graph/form/README.md, "Plain graphs").
 */
static uint32
plain_pool_size(const GraphHandle *handle, int ef)
{
	if (handle->meta.dims <= GRAPH_MAX_FEW_DIMS && handle->space.opclass.type->dense_float)
		return ef + ef / 4 + 8;
	return (handle->space.opclass.metric == QV_METRIC_HAMMING ? ef + ef / 2 : ef + ef / 16) + 2;
}

static GraphPoint *
plain_prepare(GraphHandle *handle, const void *value)
{
	PlainPoint *point = palloc0(sizeof(PlainPoint));

	point->value = value;
	point->size = value ? handle->space.opclass.type->value_size(value) : 0;
	return &point->base;
}

static GraphPoint *
plain_node_point(GraphHandle *handle, uint32 id)
{
	GraphScratch scratch = {NULL, 0};
	void	   *value = GraphCopyValue(handle, id, &scratch);

	return value ? plain_prepare(handle, value) : NULL;
}

/* ---- neighborhoods ---- */

/* Copies the node's value: the store's visit callback. */
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

static GraphPlainStore *
open_store(GraphHandle *handle, const GraphPoint *point)
{
	GraphPlainStore *store = palloc(sizeof(GraphPlainStore));

	GraphPlainStoreInit(store, handle, ((const PlainPoint *) point)->value);
	return store;
}

static GraphStore *
plain_open(GraphHandle *handle, const GraphPoint *point)
{
	return &open_store(handle, point)->base;
}

static float
plain_pair(void *arg, uint32_t a, uint32_t b)
{
	const PlainNeighborhood *nb = arg;

	return GraphExactDistance(&nb->base.handle->space.opclass, nb->values[a], nb->values[b]);
}

static GraphNeighborhood *
plain_neighborhood(GraphHandle *handle, GraphPoint *point, uint32 capacity)
{
	PlainNeighborhood *nb = palloc0(sizeof(PlainNeighborhood));
	GraphPlainStore *store = open_store(handle, point);

	GraphNeighborhoodInit(&nb->base, handle, point, capacity, plain_pair);
	nb->values = palloc(capacity * sizeof(void *));
	store->visit = copy_value;
	store->visit_arg = nb;
	nb->base.store = &store->base;
	return &nb->base;
}

static const PlainPoint *
point_of(const GraphNeighborhood *nb)
{
	return (const PlainPoint *) nb->point;
}

static bool
plain_same(const GraphNeighborhood *base, uint32 at)
{
	const void *other = ((const PlainNeighborhood *) base)->values[at];
	const PlainPoint *point = point_of(base);

	return base->handle->space.opclass.type->value_size(other) == point->size &&
		memcmp(other, point->value, point->size) == 0;
}

/* ---- nodes on pages ---- */

static void
plain_store_value(GraphNeighborhood *base)
{
	PlainNeighborhood *nb = (PlainNeighborhood *) base;

	if (GraphValuesApart(&base->handle->layout))
		GraphStoreValue(base->handle, point_of(base)->value, point_of(base)->size, &nb->ref);
}

/* An edge is the neighbor's number, which the neighborhood has. */
static void
plain_set_edge(const GraphNeighborhood *nb, int i, GraphNode node, int place)
{
	GraphNodeIds(&nb->handle->layout, node)[place] = GraphNeighborId(nb, i);
}

static void
plain_fill_node(const GraphNeighborhood *base, int n, GraphNode node)
{
	const PlainNeighborhood *nb = (const PlainNeighborhood *) base;
	const GraphLayout *layout = &base->handle->layout;

	GraphNodeInit(layout, node);
	for (int i = 0; i < n; i++)
		plain_set_edge(base, i, node, i);
	if (GraphValuesApart(layout))
		memcpy(GraphNodeOwn(layout, node), &nb->ref, sizeof(nb->ref));
	else
		memcpy(GraphNodeOwn(layout, node), point_of(base)->value, point_of(base)->size);
}

/* ---- edges back ---- */

/* GraphChoosePlace()'s rivals with their values. */
typedef struct Rivals
{
	GraphRivals base;
	const QvOpclassInfo *opclass;
	const void *values[GRAPH_MAX_DEGREE + 1];
} Rivals;

static float
rival_pair(void *arg, uint32_t a, uint32_t b)
{
	const Rivals *r = arg;

	return GraphExactDistance(r->opclass, r->values[a], r->values[b]);
}

static int
plain_choose_place(const GraphNeighborhood *nb, uint32 to, const uint32 *places, bool force)
{
	GraphHandle *handle = nb->handle;
	Rivals		r = {.opclass = &handle->space.opclass};
	float	   *from_self = r.base.from_self;
	GraphScratch scratch = {NULL, 0};
	void	   *self = GraphCopyValue(handle, to, &scratch);
	int			place = -1;
	uint32		n = 0;

	if (self == NULL)
		return -1;
	while (n < handle->layout.degree && place < 0)
	{
		r.values[n] = GraphCopyValue(handle, GraphEdgeTo(places[n]), &scratch);
		if (r.values[n] == NULL)
			place = n;			/* the edge leads to no node */
		else
		{
			r.base.anchored[n] = GraphEdgeIsAnchor(places[n]);
			from_self[n] = GraphExactDistance(r.opclass, self, r.values[n]);
			n++;
		}
	}
	if (place < 0)
	{
		r.base.n = n;
		r.values[n] = point_of(nb)->value;
		from_self[n] = GraphExactDistance(r.opclass, self, r.values[n]);
		place = GraphChoosePlace(&r.base, rival_pair, &r, force);
	}
	for (uint32 i = 0; i < n; i++)
		pfree((void *) r.values[i]);
	pfree(self);
	if (scratch.data)
		pfree(scratch.data);
	return place;
}

static void
plain_edge_back(const GraphNeighborhood *nb, uint32 id, const GraphHost *host, int place, bool anchor)
{
	QvWrite		w;
	GraphNode	node = GraphBeginChange(nb->handle, &w, host->buf, host->id);

	GraphNodeIds(&nb->handle->layout, node)[place] = anchor ? id | GRAPH_ANCHOR : id;
	QvWriteCommit(&w);
}

const GraphFormOps graph_plain_ops = {
	.pool_size = plain_pool_size,
	.prepare = plain_prepare,
	.node_point = plain_node_point,
	.open = plain_open,
	.neighborhood = plain_neighborhood,
	.same = plain_same,
	.store_value = plain_store_value,
	.fill_node = plain_fill_node,
	.set_edge = plain_set_edge,
	.choose_place = plain_choose_place,
	.edge_back = plain_edge_back
};
