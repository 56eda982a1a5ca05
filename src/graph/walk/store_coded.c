/*
 * store_coded.c
 *		Expanding nodes of a coded graph on their pages.
 *
 * One page access scores a node by its own code and estimates all its
 * neighbors from the codes beside it (arXiv 2411.12229, section 3).
 */
#include "postgres.h"

#include <math.h>

#include "graph/page/entry_points.h"
#include "graph/page/node.h"
#include "graph/page/rows.h"
#include "graph/walk/store_coded.h"

/*
 * Bytes that are prefetched: the node's head, numbers and factors, and the start of its
 * code.  The hardware prefetcher follows from there.
 */
#define PREFETCH_BYTES 640

static void
offer_neighbors(GraphCodedStore *store, GraphSearch *search, GraphNode node,
				float distance, float ip)
{
	const GraphLayout *layout = &store->handle->layout;
	const GraphQuery *query = store->query;
	const QvSpace *space = &store->handle->space;
	bool		is_long = GraphIsLong(space, node->norm2, node->aux);
	const uint32 *ids = GraphNodeIds(layout, node);
	QvEstimateParams params;
	GraphBatchScratch scratch;
	float		est[QV_BATCH];

	search->scored += layout->degree;
	params.base = distance;
	params.a_scale = node->a_scale;
	params.b_scale = node->b_scale;
	params.lut_scale = query->base.q.lut_scale;
	params.lut_bias = query->node_bias;

	/*
	 * Inner product: <r, q> is known exactly along x, and only the rest of q
	 * is estimated.  Factor a is what to add for each unit of <x, q> / |x|^2
	 * (src/graph/page/README.md, "Factors").
	 */
	if (query->base.kind == QV_SPACE_IP || is_long)
		params.a_scale *= node->norm2 > 0 ? ip / node->norm2 : 0;
	if (is_long)
	{
		/*
		 * the mean's part of a neighbor is left out: it is short beside this
		 * node
		 */
		params.base = query->base.q.norm2 + space->level - 2 * ip;
		params.a_scale *= 2;
		params.b_scale *= 2;
	}

	for (int place = 0; place < layout->degree; place += QV_BATCH)
	{
		int			first = GraphBatchStart(layout, place);
		uint32		mask;

		params.a = GraphNodeA(layout, node) + first;
		params.b = GraphNodeB(layout, node) + first;
		mask = qv_kernels.fastscan_estimate(GraphNodeBatch(layout, node, first, &scratch),
											query->base.q.lut, layout->code_bits / 4,
											&params, PoolThreshold(&search->pool), est);
		mask &= UINT32_MAX << (place - first);
		if (search->keep_discarded)
			for (int j = place - first; j < QV_BATCH; j++)
				if (!(mask & (UINT32_C(1) << j)) && ids[first + j] != GRAPH_NONE)
					GraphSearchDiscard(search, est[j], GraphEdgeTo(ids[first + j]));
		while (mask)
		{
			int			j = __builtin_ctz(mask);
			uint32		id = GraphEdgeTo(ids[first + j]);

			mask &= mask - 1;
			if (likely(id != GRAPH_NONE))
				GraphSearchOffer(search, est[j], id);
		}
	}
}

/*
 * Scores a node by its own code.  *ip is its inner product with the query.  Returns the
 * code, unpacked.
 */
static const uint8 *
score_node(GraphCodedStore *store, GraphNode node, GraphResult *result, float *ip)
{
	const GraphLayout *layout = &store->handle->layout;
	const uint8 *code = GraphNodeOwnBytes(layout, node, store->unpacked);

	*ip = QvCodeIp(&store->query->base.q, code, layout->own_bits, node->scale);
	result->distance = QvSpaceQueryDistance(&store->query->base, *ip, GraphNodeNorm2(store->handle, node));
	result->error = GraphQueryError(store->query, node->norm2, node->residual);
	return code;
}

static void
coded_store_measure(GraphStore *base, GraphNode node, GraphResult *result)
{
	float		ip;

	score_node((GraphCodedStore *) base, node, result, &ip);
}

static void
coded_store_expand(GraphStore *base, GraphSearch *search, uint32 id, float offered)
{
	GraphCodedStore *store = (GraphCodedStore *) base;
	const uint8 *code;
	GraphResult *result;
	Buffer		buf;
	GraphNode	node = GraphSearchOpen(search, store->handle, id, &result, &buf);
	float		ip;

	if (node == NULL)
		return;
	code = score_node(store, node, result, &ip);
	if (store->visit && result->live)
		store->visit(store->visit_arg, id, result->distance, node, code);

	offer_neighbors(store, search, node, result->distance, ip);
	UnlockReleaseBuffer(buf);
	if (!result->live)
		search->nresults--;
}

static void
coded_store_prefetch(GraphStore *base, uint32 id)
{
	GraphCodedStore *store = (GraphCodedStore *) base;
	const GraphLayout *layout = &store->handle->layout;

	QvPrefetchPin(store->handle->hints, GraphNodeBlock(layout, id));
	GraphPrefetchNode(store->handle, id, 0, Min(PREFETCH_BYTES, layout->node_size));
}

static void
coded_store_ask(GraphStore *base, uint32 id)
{
	const GraphHandle *handle = ((GraphCodedStore *) base)->handle;

	(void) QvPrefetchBlock(handle->index, handle->hints, GraphNodeBlock(&handle->layout, id));
}

static void
coded_store_enter(GraphStore *base, GraphSearch *search, int n)
{
	GraphCodedStore *store = (GraphCodedStore *) base;
	Candidate  *entries = palloc(n * sizeof(Candidate));
	int			found = GraphNearestEntryPoints(store->handle, store->query, entries, n);

	for (int i = 0; i < found; i++)
		GraphSearchOffer(search, entries[i].distance, entries[i].id);
	pfree(entries);
}

void
GraphCodedStoreInit(GraphCodedStore *store, GraphHandle *handle,
					const GraphQuery *query)
{
	memset(store, 0, sizeof(*store));
	store->base.expand = coded_store_expand;
	store->base.measure = coded_store_measure;
	store->base.prefetch = coded_store_prefetch;
	store->base.ask = coded_store_ask;
	store->base.enter = coded_store_enter;
	store->handle = handle;
	store->query = query;
	if (handle->layout.own_bits != 8)
		store->unpacked = palloc(handle->layout.pdim);
}
