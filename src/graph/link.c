/*
 * link.c
 *		Edges back in a coded graph: offering a new node to a neighbor it chose.
 *
 * A neighbor with a free place takes the newcomer.  A full one chooses again
 * among its neighbors and the newcomer, as in a build, but from what is in
 * its own slot: no other page is read (HNSW as pgvector has it reads them all).
 *	- from the node to its neighbors: its own vector against their codes;
 *	- from the newcomer: its vector against their codes;
 *	- between two neighbors: the angle between their offsets from the node,
 *	  by the share of differing code bits (random hyperplanes: Charikar 2002).
 */
#include "postgres.h"

#include <math.h>

#include "compat.h"
#include "graph/link.h"
#include "graph/rows.h"
#include "graph/select.h"

/* The node that is asked. */
typedef struct Host
{
	GraphHost	base;
	GraphCode	code;
	const float *decoded;		/* pdim */
} Host;

/* GraphChoosePlace()'s rivals, and what their distances are estimated from. */
typedef struct Rivals
{
	GraphRivals base;
	bool		l2;
	int			places[GRAPH_MAX_DEGREE];
	float		from_new[GRAPH_MAX_DEGREE];
	float		offset[GRAPH_MAX_DEGREE];	/* length of neighbor - node */
	float		self_norm2;		/* |node|^2, not centered: inner product */
	uint32		code_bits;
	const uint8 *bits;			/* code_bits / 8 apart */
} Rivals;

static float
rival_pair(void *arg, uint32_t a, uint32_t b)
{
	const Rivals *r = arg;
	Size		stride = r->code_bits / 8;
	float		cosine,
				ip;

	if (a == r->base.n)
		return r->from_new[b];
	if (b == r->base.n)
		return r->from_new[a];
	cosine = cosf((float) M_PI *
				  qv_kernels.hamming(r->bits + a * stride, r->bits + b * stride, stride) /
				  r->code_bits);
	ip = r->offset[a] * r->offset[b] * cosine;
	if (r->l2)
		return r->base.from_self[a] + r->base.from_self[b] - 2 * ip;
	/* <s + u, s + v> = |s|^2 + <s, u> + <s, v> + <u, v> */
	return r->base.from_self[a] + r->base.from_self[b] + r->self_norm2 - ip;
}

/* Distances from a vector to all neighbors of a node, by their codes. */
static void
estimate_neighbors(const GraphLayout *layout, GraphNode node, const QvQuery *q,
				   float base, float a_factor, float *out)
{
	QvEstimateParams p;
	GraphBatchScratch scratch;

	p.base = base;
	p.a_scale = node->a_scale * a_factor;
	p.b_scale = node->b_scale;
	p.lut_scale = q->lut_scale;
	p.lut_bias = QvQueryLutBias(q, layout->code_bits);
	for (uint32 first = 0; first < layout->degree; first += QV_BATCH)
	{
		p.a = GraphNodeA(layout, node) + first;
		p.b = GraphNodeB(layout, node) + first;
		qv_kernels.fastscan_estimate(GraphNodeBatch(layout, node, first, &scratch), q->lut, layout->code_bits / 4, &p, INFINITY,
									 out + first);
	}
}

/* Distances of the neighbors from the host itself. */
static void
measure_from_self(const GraphHandle *handle, const Host *host, Rivals *r, float *out)
{
	const GraphLayout *layout = &handle->layout;
	float	   *x = palloc(layout->pdim * sizeof(float));
	char	   *mem = palloc(QvQuerySize(layout->pdim, layout->code_bits) + 64);
	QvQuery		self;
	float		ip = 0,
				offset = 0;

	memcpy(x, host->decoded, layout->pdim * sizeof(float));
	if (!r->l2)
	{
		for (uint32 i = 0; i < layout->pdim; i++)
			x[i] += handle->space.mean[i];
		offset = -qv_kernels.ip_f32(handle->space.mean, x, layout->pdim);
		ip = qv_kernels.ip_f32(x, host->decoded, layout->pdim);
		r->self_norm2 = qv_kernels.norm2_f32(x, layout->pdim);
	}
	QvQueryInit(&self, (void *) TYPEALIGN(64, mem), x, layout->pdim, layout->code_bits);
	estimate_neighbors(layout, host->base.node, &self, r->l2 ? 0 : -ip,
					   r->l2 ? 1 : host->code.norm2 > 0 ? ip / host->code.norm2 : 0, out);
	for (uint32 i = 0; i < layout->degree; i++)
		out[i] += offset;
	pfree(mem);
	pfree(x);
}

/* Distances from the newcomer: of the host, returned, and of its neighbors. */
static float
measure_from_new(const GraphHandle *handle, const Host *host, const GraphQuery *query,
				 float *out)
{
	const GraphLayout *layout = &handle->layout;
	const GraphCode *code = &host->code;
	float		offset = query->base.offset;
	float		ip = QvCodeIp(&query->base.q, code->bytes, layout->own_bits, code->scale);
	float		to_host = QvSpaceQueryDistance(&query->base, ip, code->norm2) + offset;

	estimate_neighbors(layout, host->base.node, &query->base.q, to_host - offset,
					   query->base.kind == QV_SPACE_L2 ? 1 :
					   code->norm2 > 0 ? ip / code->norm2 : 0, out);
	for (uint32 i = 0; i < layout->degree; i++)
		out[i] += offset;
	return to_host;
}

/*
 * Which place of a full node the newcomer gets: that of the neighbor left out
 * when the node chooses again.  -1: the newcomer is left out.
 */
static int
choose_place(const GraphHandle *handle, const Host *host, const GraphQuery *query, bool force)
{
	const GraphLayout *layout = &handle->layout;
	Size		stride = layout->code_bits / 8;
	Rivals	   *r = palloc(sizeof(Rivals));
	uint8	   *bits = palloc(layout->degree * stride);
	float	   *from_self = palloc(layout->degree * sizeof(float));
	float	   *from_new = palloc(layout->degree * sizeof(float));
	float		to_new;
	int			place;

	r->l2 = handle->meta.space == QV_SPACE_L2;
	r->code_bits = layout->code_bits;
	r->bits = bits;
	r->base.n = 0;
	measure_from_self(handle, host, r, from_self);
	to_new = measure_from_new(handle, host, query, from_new);
	for (uint32 at = 0; at < layout->degree; at++)
	{
		int			i = r->base.n;

		if (!GraphNodeHasEdge(layout, host->base.node, at))
			continue;
		GraphNodeEdgeBits(layout, host->base.node, at, bits + i * stride);
		r->places[i] = at;
		r->base.from_self[i] = from_self[at];
		r->base.anchored[i] = GraphEdgeIsAnchor(GraphNodeIds(layout, host->base.node)[at]);
		r->from_new[i] = from_new[at];
		r->offset[i] = r->l2 ? sqrtf(Max(0, from_self[at])) :
			GraphNodeEdgeLength(layout, host->base.node, at);
		r->base.n++;
	}
	r->base.from_self[r->base.n] = to_new;
	place = GraphChoosePlace(&r->base, rival_pair, r, force);
	if (place >= 0)
		place = r->places[place];
	pfree(from_new);
	pfree(from_self);
	pfree(bits);
	pfree(r);
	return place;
}

/* Put an edge to the newcomer into a place of the host. */
static void
set_edge(GraphHandle *handle, const Host *host, int place, const GraphNewcomer *newcomer,
		 bool anchor)
{
	const GraphLayout *layout = &handle->layout;
	uint8	   *bits = palloc(layout->code_bits / 8);
	GraphEdge	edge;
	QvWrite		w;
	GraphNode	node;

	GraphEncodeEdge(layout, handle->meta.space, &host->code, host->decoded,
					newcomer->code, newcomer->id, &edge, bits);
	node = GraphBeginChange(handle, &w, host->base.buf, host->base.id);
	GraphNodeSetEdge(layout, node, place, &edge, bits);
	if (anchor)
		GraphNodeSetAnchor(layout, node, place);
	QvWriteCommit(&w);
	pfree(bits);
}

/* Offer the newcomer to a live host that has no edge to it. */
static GraphAnswer
offer_to(GraphHandle *handle, Host *host, const GraphNewcomer *newcomer, GraphOffer offer)
{
	const GraphLayout *layout = &handle->layout;
	float	   *decoded = palloc(layout->pdim * sizeof(float));
	uint8	   *scratch = palloc(layout->pdim);
	int			place = host->base.empty;

	GraphNodeCode(layout, host->base.node, &host->code, scratch);
	qv_kernels.decode_u8(host->code.bytes, host->code.scale,
						 QvCodeOffset(layout->own_bits), decoded, layout->pdim);
	host->decoded = decoded;
	if (place < 0)
		place = choose_place(handle, host, newcomer->query, offer == GRAPH_ANCHOR_FORCED);
	if (place >= 0)
		set_edge(handle, host, place, newcomer, offer != GRAPH_EDGE);
	pfree(decoded);
	pfree(scratch);
	return place >= 0 ? GRAPH_TAKEN : GRAPH_REFUSED;
}

GraphAnswer
GraphLinkBack(GraphHandle *handle, const GraphNewcomer *newcomer, uint32 to, GraphOffer offer)
{
	Host		host;
	GraphAnswer answer;

	if (!GraphAsk(handle, &host.base, to, newcomer->id, offer, &answer))
		answer = offer_to(handle, &host, newcomer, offer);
	UnlockReleaseBuffer(host.base.buf);
	if (answer == GRAPH_TAKEN)
		QvInjectionPoint("quiver-graph-edge-back");
	return answer;
}
