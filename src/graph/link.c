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

#include "graph/link.h"
#include "graph/rows.h"
#include "graph/select.h"
#include "pages/write.h"

/* The neighbors of a full node and a newcomer, as GraphSelectNeighbors() wants them. */
typedef struct Rivals
{
	bool		l2;
	int			n;				/* neighbors; number n is the newcomer */
	int			places[GRAPH_MAX_DEGREE];
	float		from_self[GRAPH_MAX_DEGREE + 1];
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

	if (a == r->n)
		return r->from_new[b];
	if (b == r->n)
		return r->from_new[a];
	cosine = cosf((float) M_PI *
				  qv_kernels.hamming(r->bits + a * stride, r->bits + b * stride, stride) /
				  r->code_bits);
	ip = r->offset[a] * r->offset[b] * cosine;
	if (r->l2)
		return r->from_self[a] + r->from_self[b] - 2 * ip;
	/* <s + u, s + v> = |s|^2 + <s, u> + <s, v> + <u, v> */
	return r->from_self[a] + r->from_self[b] + r->self_norm2 - ip;
}

/* Distances from a vector to all neighbors of a node, by their codes. */
static void
estimate_neighbors(const GraphLayout *layout, GraphNode node, const QvQuery *q,
				   float base, float a_factor, float *out)
{
	QvEstimateParams p;

	p.base = base;
	p.a_scale = node->a_scale * a_factor;
	p.b_scale = node->b_scale;
	p.lut_scale = q->lut_scale;
	p.lut_bias = QvQueryLutBias(q, layout->code_bits);
	for (uint32 first = 0; first < layout->degree; first += QV_BATCH)
	{
		p.a = GraphNodeA(layout, node) + first;
		p.b = GraphNodeB(layout, node) + first;
		qv_kernels.fastscan_estimate(GraphNodeCodes(layout, node, first / QV_BATCH),
									 q->lut, layout->code_bits / 4, &p, INFINITY,
									 out + first);
	}
}

/*
 * Which place of a full node the newcomer gets: that of the neighbor left out
 * when the node chooses again.  -1: the newcomer is left out.  own and decoded
 * are the node's code and vector; to_new and ip_new the newcomer's distance
 * from and inner product with it.
 */
static int
choose_place(const GraphHandle *handle, const GraphQuery *query, GraphNode node,
			 const GraphCode *own, const float *decoded, float to_new,
			 float ip_new, bool force)
{
	const GraphLayout *layout = &handle->layout;
	Size		stride = layout->code_bits / 8;
	Rivals	   *r = palloc(sizeof(Rivals));
	uint8	   *bits = palloc(layout->degree * stride);
	float	   *x = palloc(layout->pdim * sizeof(float));
	char	   *mem = palloc(QvQuerySize(layout->pdim, layout->code_bits) + 64);
	float	   *from_self = palloc(layout->degree * sizeof(float));
	float	   *from_new = palloc(layout->degree * sizeof(float));
	QvQuery		self;
	float		self_ip = 0,
				self_offset = 0;
	int			place;

	r->l2 = handle->meta.space == QV_SPACE_L2;
	r->code_bits = layout->code_bits;
	r->bits = bits;
	r->n = 0;
	memcpy(x, decoded, layout->pdim * sizeof(float));
	if (!r->l2)
	{
		for (uint32 i = 0; i < layout->pdim; i++)
			x[i] += handle->space.mean[i];
		self_offset = -qv_kernels.ip_f32(handle->space.mean, x, layout->pdim);
		self_ip = qv_kernels.ip_f32(x, decoded, layout->pdim);
		r->self_norm2 = qv_kernels.norm2_f32(x, layout->pdim);
	}
	QvQueryInit(&self, (void *) TYPEALIGN(64, mem), x, layout->pdim, layout->code_bits);
	estimate_neighbors(layout, node, &self, r->l2 ? 0 : -self_ip,
					   r->l2 ? 1 : own->norm2 > 0 ? self_ip / own->norm2 : 0, from_self);
	estimate_neighbors(layout, node, &query->base.q, to_new - (float) query->base.offset,
					   r->l2 ? 1 : own->norm2 > 0 ? ip_new / own->norm2 : 0, from_new);

	for (uint32 at = 0; at < layout->degree; at++)
	{
		int			i = r->n;

		if (!GraphNodeHasEdge(layout, node, at))
			continue;
		QvUnpackSlot(GraphNodeCodes(layout, node, at / QV_BATCH), layout->code_bits,
					 at % QV_BATCH, bits + i * stride);
		r->places[i] = at;
		r->from_self[i] = from_self[at] + self_offset;
		r->from_new[i] = from_new[at] + (float) query->base.offset;
		if (r->l2)
			r->offset[i] = sqrtf(Max(0, r->from_self[i]));
		else
			r->offset[i] = GraphNodeEdgeLength(layout, node, at);
		r->n++;
	}
	r->from_self[r->n] = to_new;
	place = GraphChoosePlace(r->from_self, r->n, rival_pair, r, force);
	if (place >= 0)
		place = r->places[place];
	pfree(from_new);
	pfree(from_self);
	pfree(mem);
	pfree(x);
	pfree(bits);
	pfree(r);
	return place;
}

bool
GraphLinkBack(GraphHandle *handle, const GraphQuery *query, const GraphCode *code,
			  uint32 id, uint32 to, bool force, bool building)
{
	const GraphLayout *layout = &handle->layout;
	float	   *decoded = palloc(layout->pdim * sizeof(float));
	uint8	   *bits = palloc(layout->code_bits / 8);
	uint8	   *scratch = palloc(layout->pdim);
	GraphCode	own;
	GraphNode	node;
	GraphEdge	edge;
	int			place = -1;
	Buffer		buf = GraphLockNode(handle, to, BUFFER_LOCK_EXCLUSIVE, &node);
	bool		linked = false;

	if (node != NULL && node->state == GRAPH_SLOT_LIVE)
	{
		linked = GraphNodeFindEdge(layout, node, id, &place);
		if (!linked)
		{
			GraphNodeCode(layout, node, &own, scratch);
			qv_kernels.decode_u8(own.bytes, own.scale, QvCodeOffset(layout->own_bits),
								 decoded, layout->pdim);
			if (place < 0)
			{
				float		ip = QvCodeIp(&query->base.q, own.bytes, layout->own_bits, own.scale);
				float		d = QvSpaceQueryDistance(&query->base, ip, own.norm2) + (float) query->base.offset;

				place = choose_place(handle, query, node, &own, decoded, d, ip, force);
			}
		}
		if (place >= 0 && !linked)
		{
			QvWrite		w;
			Page		page;

			GraphEncodeEdge(layout, handle->meta.space, &own, decoded, code, id,
							&edge, bits);
			QvWriteBegin(&w, handle->index, building);
			page = QvWriteRegister(&w, buf);
			GraphNodeSetEdge(layout, GraphPageNode(layout, page, GraphNodeSlot(layout, to)),
							 place, &edge, bits);
			QvWriteCommit(&w);
			linked = true;
		}
	}
	UnlockReleaseBuffer(buf);
	pfree(decoded);
	pfree(bits);
	pfree(scratch);
	return linked;
}
