/*
 * coded.c
 *		Coded graphs: the functions of GraphFormOps (form.h).
 *
 * A vector is searched for by its rotated, centered form and look-up table.  A node is its
 * own code and, beside the edges, the codes of its neighbors.
 */
#include "postgres.h"

#include "graph/form/coded.h"
#include "graph/form/coded_choice.h"
#include "graph/page/node.h"
#include "graph/page/pool.h"
#include "graph/page/query.h"
#include "graph/page/rows.h"
#include "graph/walk/store_coded.h"

typedef struct CodedPoint
{
	GraphPoint	base;
	const float *rotated;
	GraphQuery	query;
	GraphCode	code;			/* its bytes are NULL until it is encoded */
} CodedPoint;

typedef struct CodedNeighborhood
{
	GraphNeighborhood base;
	GraphCode  *codes;
	uint8	   *bytes;			/* capacity x pdim */
	GraphEdge  *edges;			/* set by make_edges() */
	uint8	   *bits;			/* codes of these edges */
} CodedNeighborhood;

/*
 * hnsw.ef_search promises at least pgvector's recall.  The pool is ordered by estimates, so
 * it is larger than pgvector's exact pool.
 */
static uint32
coded_pool_size(const GraphHandle *handle, int ef)
{
	return GraphPoolFor(&handle->meta, ef);
}

/* ---- points ---- */

static CodedPoint *
make_point(GraphHandle *handle, const float *rotated)
{
	CodedPoint *point = palloc0(sizeof(CodedPoint));

	point->rotated = rotated;
	GraphQueryInit(handle, &point->query, rotated);
	point->base.query = &point->query.base;
	return point;
}

static GraphPoint *
coded_prepare(GraphHandle *handle, const void *value)
{
	float	   *floats = palloc(handle->meta.dims * sizeof(float));
	float	   *rotated = palloc(handle->meta.pdim * sizeof(float));

	QvSpaceRotateValue(&handle->space, value, floats, rotated);
	return &make_point(handle, rotated)->base;
}

static GraphPoint *
coded_node_point(GraphHandle *handle, uint32 id)
{
	const GraphLayout *layout = &handle->layout;
	uint8	   *bytes = palloc(layout->pdim);
	float	   *rotated = palloc(layout->pdim * sizeof(float));
	CodedPoint *point;
	GraphCode	code;
	GraphNode	node;
	Buffer		buf = GraphLockNode(handle, id, BUFFER_LOCK_SHARE, &node);

	if (node != NULL)
	{
		GraphNodeCode(layout, node, &code, bytes);
		if (code.bytes != bytes)
			memcpy(bytes, code.bytes, layout->pdim);
		code.bytes = bytes;
	}
	UnlockReleaseBuffer(buf);
	if (node == NULL)
		return NULL;
	qv_kernels.decode_u8(bytes, code.scale, QvCodeOffset(layout->own_bits),
						 rotated, layout->pdim);
	for (uint32 i = 0; i < layout->pdim; i++)
		rotated[i] += handle->space.mean[i];
	point = make_point(handle, rotated);
	point->code = code;
	return &point->base;
}

/* ---- neighborhoods ---- */

/* Copies the node's code: the store's visit callback. */
static void
copy_code(void *arg, uint32 id, float distance, GraphNode node, const uint8 *code)
{
	CodedNeighborhood *nb = arg;
	uint32		pdim = nb->base.handle->layout.pdim;
	GraphCode  *copy;
	uint8	   *bytes;

	if (!GraphNeighborhoodAdd(&nb->base, id, distance))
		return;
	copy = &nb->codes[nb->base.count - 1];
	bytes = nb->bytes + (Size) (nb->base.count - 1) * pdim;
	memcpy(bytes, code, pdim);
	copy->norm2 = node->norm2;
	copy->scale = node->scale;
	copy->residual = node->residual;
	copy->aux = node->aux;
	copy->sum = qv_kernels.sum_u8(bytes, pdim);
	copy->bytes = bytes;
}

static GraphCodedStore *
open_store(GraphHandle *handle, const GraphPoint *point)
{
	GraphCodedStore *store = palloc(sizeof(GraphCodedStore));

	GraphCodedStoreInit(store, handle, &((const CodedPoint *) point)->query);
	return store;
}

static GraphStore *
coded_open(GraphHandle *handle, const GraphPoint *point)
{
	return &open_store(handle, point)->base;
}

static float
coded_pair(void *arg, uint32_t a, uint32_t b)
{
	const CodedNeighborhood *nb = arg;
	const GraphHandle *handle = nb->base.handle;

	return GraphCodeDistance(&handle->layout, handle->meta.space,
							 handle->space.mean_norm2, &nb->codes[a], &nb->codes[b]);
}

static GraphNeighborhood *
coded_neighborhood(GraphHandle *handle, GraphPoint *base, uint32 capacity)
{
	CodedPoint *point = (CodedPoint *) base;
	CodedNeighborhood *nb = palloc0(sizeof(CodedNeighborhood));
	GraphCodedStore *store = open_store(handle, base);
	uint32		pdim = handle->layout.pdim;
	float	   *centered = palloc(pdim * sizeof(float));

	QvSpaceCenter(&handle->space, point->rotated, centered);
	nb->base.centered = centered;
	if (point->code.bytes == NULL)
		GraphEncode(&handle->layout, centered, handle->space.mean, &point->code, palloc(pdim));
	GraphNeighborhoodInit(&nb->base, handle, base, capacity, coded_pair);
	nb->codes = palloc(capacity * sizeof(GraphCode));
	nb->bytes = MemoryContextAllocHuge(CurrentMemoryContext, (Size) capacity * pdim);
	store->visit = copy_code;
	store->visit_arg = nb;
	nb->base.store = &store->base;
	return &nb->base;
}

static const GraphCode *
point_code(const GraphNeighborhood *nb)
{
	return &((const CodedPoint *) nb->point)->code;
}

/*
 * A longer vector in the direction of others is nearer to these, by inner product.  Codes of equal
 * lengths differ by rounding: so it is to be twice as long.
 */
static bool
coded_surpasses(const GraphNeighborhood *base)
{
	const CodedNeighborhood *nb = (const CodedNeighborhood *) base;
	const GraphHandle *handle = base->handle;
	QvSpaceKind space = handle->meta.space;
	float		mean_norm2 = handle->space.mean_norm2;
	const GraphCode *nearest;

	if (space == QV_SPACE_L2 || base->count == 0)
		return false;
	nearest = &nb->codes[base->candidates[0].id];
	return GraphCodeDistance(&handle->layout, space, mean_norm2, nearest, point_code(base)) <
		2 * GraphCodeDistance(&handle->layout, space, mean_norm2, nearest, nearest);
}

static bool
coded_same(const GraphNeighborhood *base, uint32 at)
{
	const GraphCode *a = &((const CodedNeighborhood *) base)->codes[at];
	const GraphCode *b = point_code(base);

	return a->norm2 == b->norm2 && a->scale == b->scale &&
		memcmp(a->bytes, b->bytes, base->handle->layout.pdim) == 0;
}

static void
coded_make_edges(GraphNeighborhood *base, int n)
{
	CodedNeighborhood *nb = (CodedNeighborhood *) base;
	const GraphCode *code = point_code(base);
	const GraphLayout *layout = &base->handle->layout;
	Size		stride = layout->code_bits / 8;
	float	   *decoded = palloc(layout->pdim * sizeof(float));

	nb->edges = palloc(layout->degree * sizeof(GraphEdge));
	nb->bits = palloc(layout->degree * stride);
	qv_kernels.decode_u8(code->bytes, code->scale, QvCodeOffset(layout->own_bits),
						 decoded, layout->pdim);
	for (int i = 0; i < n; i++)
		GraphEncodeEdge(layout, &base->handle->space, code, decoded,
						&nb->codes[base->candidates[i].id],
						GraphNeighborId(base, i), &nb->edges[i],
						nb->bits + i * stride);
	pfree(decoded);
}

/* ---- nodes on pages ---- */

static void
coded_fill_node(const GraphNeighborhood *base, int n, GraphNode node)
{
	const CodedNeighborhood *nb = (const CodedNeighborhood *) base;
	const GraphLayout *layout = &base->handle->layout;

	GraphNodeInit(layout, node);
	GraphNodeSetCode(layout, node, point_code(base));
	GraphNodeSetEdges(layout, node, nb->edges, nb->bits, n);
}

static void
coded_set_edge(const GraphNeighborhood *base, int i, GraphNode node, int place)
{
	const CodedNeighborhood *nb = (const CodedNeighborhood *) base;
	const GraphLayout *layout = &base->handle->layout;

	GraphNodeSetEdge(layout, node, place, &nb->edges[i],
					 nb->bits + (Size) i * layout->code_bits / 8);
}

/* ---- edges back ---- */

static int
coded_choose_place(const GraphNeighborhood *nb, uint32 to, const uint32 *places, bool force)
{
	return GraphChooseByCodes(nb->handle, to, point_code(nb), places, force);
}

static void
coded_edge_back(const GraphNeighborhood *nb, uint32 id, const GraphHost *host, int place, bool anchor)
{
	GraphHandle *handle = nb->handle;
	const GraphLayout *layout = &handle->layout;
	uint8	   *scratch = palloc(layout->pdim);
	float	   *decoded = palloc(layout->pdim * sizeof(float));
	uint8	   *bits = palloc(layout->code_bits / 8);
	GraphCode	code;
	GraphEdge	edge;
	QvWrite		w;
	GraphNode	node;

	GraphNodeCode(layout, host->node, &code, scratch);
	qv_kernels.decode_u8(code.bytes, code.scale, QvCodeOffset(layout->own_bits), decoded,
						 layout->pdim);
	GraphEncodeEdge(layout, &handle->space, &code, decoded, point_code(nb), id, &edge, bits);
	node = GraphBeginChange(handle, &w, host->buf, host->id);
	GraphNodeSetEdge(layout, node, place, &edge, bits);
	if (anchor)
		GraphNodeSetAnchor(layout, node, place);
	QvWriteCommit(&w);
	pfree(bits);
	pfree(decoded);
	pfree(scratch);
}

const GraphFormOps graph_coded_ops = {
	.pool_size = coded_pool_size,
	.prepare = coded_prepare,
	.node_point = coded_node_point,
	.open = coded_open,
	.neighborhood = coded_neighborhood,
	.same = coded_same,
	.surpasses = coded_surpasses,
	.make_edges = coded_make_edges,
	.fill_node = coded_fill_node,
	.set_edge = coded_set_edge,
	.choose_place = coded_choose_place,
	.edge_back = coded_edge_back
};
