/*
 * coded_choice.c
 *		Which edge a full node of a coded graph leaves out; see coded_choice.h.
 */
#include "postgres.h"

#include <math.h>

#include "graph/form/coded_choice.h"
#include "graph/page/rows.h"
#include "graph/walk/select.h"

/* ---- by whole codes ---- */

/* GraphChoosePlace()'s rivals. */
typedef struct CodeRivals
{
	GraphRivals base;
	const GraphHandle *handle;
	GraphCode	codes[GRAPH_MAX_DEGREE + 1];
} CodeRivals;

static float
between(const GraphHandle *handle, const GraphCode *a, const GraphCode *b)
{
	return GraphCodeDistance(&handle->layout, handle->meta.space, handle->space.mean_norm2, a, b);
}

static float
code_pair(void *arg, uint32_t a, uint32_t b)
{
	const CodeRivals *r = arg;

	return between(r->handle, &r->codes[a], &r->codes[b]);
}

/*
 * Copies the own code of node id, its bytes to pdim bytes of memory.  Returns false if
 * there is no such node.
 */
static bool
copy_own_code(GraphHandle *handle, uint32 id, GraphCode *code, uint8 *bytes)
{
	const GraphLayout *layout = &handle->layout;
	GraphNode	node;
	Buffer		buf = GraphLockNode(handle, id, BUFFER_LOCK_SHARE, &node);

	if (node != NULL)
	{
		GraphNodeCode(layout, node, code, bytes);
		if (code->bytes != bytes)
			memcpy(bytes, code->bytes, layout->pdim);
		code->bytes = bytes;
	}
	UnlockReleaseBuffer(buf);
	return node != NULL;
}

int
GraphChooseByCodes(GraphHandle *handle, uint32 to, const GraphCode *newcomer,
				   const uint32 *places, bool force)
{
	uint32		degree = handle->layout.degree;
	uint32		pdim = handle->layout.pdim;
	CodeRivals *r = palloc(sizeof(CodeRivals));
	float	   *from_self = r->base.from_self;
	uint8	   *bytes = palloc((Size) (degree + 1) * pdim);
	BlockNumber nblocks = RelationGetNumberOfBlocks(handle->index);
	GraphCode	self;
	int			place = -1;
	uint32		n = 0;

	r->handle = handle;
	if (copy_own_code(handle, to, &self, bytes + (Size) degree * pdim))
	{
		while (n < degree && place < 0)
		{
			uint32		id = GraphEdgeTo(places[n]);

			if (GraphNodeBlock(&handle->layout, id) >= nblocks ||
				!copy_own_code(handle, id, &r->codes[n], bytes + (Size) n * pdim))
				place = n;		/* the edge leads to no node */
			else
			{
				r->base.anchored[n] = GraphEdgeIsAnchor(places[n]);
				from_self[n] = between(handle, &self, &r->codes[n]);
				n++;
			}
		}
		if (place < 0)
		{
			r->base.n = n;
			r->codes[n] = *newcomer;
			from_self[n] = between(handle, &self, &r->codes[n]);
			place = GraphChoosePlace(&r->base, code_pair, r, force);
		}
	}
	pfree(bytes);
	pfree(r);
	return place;
}

/* ---- by the codes that a node holds itself ---- */

/* The node that is asked. */
typedef struct Host
{
	GraphNode	node;
	GraphCode	code;
	float	   *decoded;		/* pdim */
} Host;

/* GraphChoosePlace()'s rivals, and what their distances are estimated from. */
typedef struct EdgeRivals
{
	GraphRivals base;
	bool		l2;
	int			places[GRAPH_MAX_DEGREE];
	float		from_new[GRAPH_MAX_DEGREE];
	float		offset[GRAPH_MAX_DEGREE];	/* length of neighbor - node */
	float		self_norm2;		/* inner product: |node|^2, not centered */
	uint32		code_bits;
	const uint8 *bits;			/* code_bits / 8 apart */
} EdgeRivals;

static float
edge_pair(void *arg, uint32_t a, uint32_t b)
{
	const EdgeRivals *r = arg;
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

/* Estimates the distances from a vector to all neighbors of a node, by their codes. */
static void
estimate_neighbors(const GraphLayout *layout, GraphNode node, const QvQuery *q,
				   float base, float a_factor, float *out)
{
	QvEstimateParams p;
	GraphBatchScratch scratch;
	float		est[QV_BATCH];

	p.base = base;
	p.a_scale = node->a_scale * a_factor;
	p.b_scale = node->b_scale;
	p.lut_scale = q->lut_scale;
	p.lut_bias = QvQueryLutBias(q, layout->code_bits);
	for (int place = 0; place < layout->degree; place += QV_BATCH)
	{
		int			first = GraphBatchStart(layout, place);

		p.a = GraphNodeA(layout, node) + first;
		p.b = GraphNodeB(layout, node) + first;
		qv_kernels.fastscan_estimate(GraphNodeBatch(layout, node, first, &scratch), q->lut,
									 layout->code_bits / 4, &p, INFINITY, est);
		memcpy(out + place, est + place - first, (first + QV_BATCH - place) * sizeof(float));
	}
}

/* Estimates the distances of the neighbors from the host itself. */
static void
measure_from_self(const GraphHandle *handle, const Host *host, EdgeRivals *r, float *out)
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
	estimate_neighbors(layout, host->node, &self, r->l2 ? 0 : -ip,
					   r->l2 ? 1 : host->code.norm2 > 0 ? ip / host->code.norm2 : 0, out);
	for (uint32 i = 0; i < layout->degree; i++)
		out[i] += offset;
	pfree(mem);
	pfree(x);
}

/*
 * Estimates the distances from the newcomer to the host's neighbors.  Returns the distance
 * to the host.
 */
static float
measure_from_new(const GraphHandle *handle, const Host *host, const GraphQuery *query,
				 float *out)
{
	const GraphLayout *layout = &handle->layout;
	const GraphCode *code = &host->code;
	float		offset = query->base.offset;
	float		ip = QvCodeIp(&query->base.q, code->bytes, layout->own_bits, code->scale);
	float		to_host = QvSpaceQueryDistance(&query->base, ip, code->norm2) + offset;

	estimate_neighbors(layout, host->node, &query->base.q, to_host - offset,
					   query->base.kind == QV_SPACE_L2 ? 1 :
					   code->norm2 > 0 ? ip / code->norm2 : 0, out);
	for (uint32 i = 0; i < layout->degree; i++)
		out[i] += offset;
	return to_host;
}

static int
choose_of_host(const GraphHandle *handle, const Host *host, const GraphQuery *query, bool force)
{
	const GraphLayout *layout = &handle->layout;
	Size		stride = layout->code_bits / 8;
	EdgeRivals *r = palloc(sizeof(EdgeRivals));
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

		if (!GraphNodeHasEdge(layout, host->node, at))
			continue;
		GraphNodeEdgeBits(layout, host->node, at, bits + i * stride);
		r->places[i] = at;
		r->base.from_self[i] = from_self[at];
		r->base.anchored[i] = GraphEdgeIsAnchor(GraphNodeIds(layout, host->node)[at]);
		r->from_new[i] = from_new[at];
		r->offset[i] = r->l2 ? sqrtf(Max(0, from_self[at])) :
			GraphNodeEdgeLength(layout, host->node, at);
		r->base.n++;
	}
	r->base.from_self[r->base.n] = to_new;
	place = GraphChoosePlace(&r->base, edge_pair, r, force);
	if (place >= 0)
		place = r->places[place];
	pfree(from_new);
	pfree(from_self);
	pfree(bits);
	pfree(r);
	return place;
}

int
GraphChooseByEdges(GraphHandle *handle, uint32 to, const GraphQuery *query, bool force)
{
	const GraphLayout *layout = &handle->layout;
	Host		host;
	uint8	   *scratch = palloc(layout->pdim);
	char	   *copy = palloc(layout->node_size);
	int			place = -1;
	Buffer		buf = GraphLockNode(handle, to, BUFFER_LOCK_SHARE, &host.node);

	if (host.node != NULL)
		memcpy(copy, host.node, layout->node_size);
	UnlockReleaseBuffer(buf);
	if (host.node != NULL)
	{
		host.node = (GraphNode) copy;
		host.decoded = palloc(layout->pdim * sizeof(float));
		GraphNodeCode(layout, host.node, &host.code, scratch);
		qv_kernels.decode_u8(host.code.bytes, host.code.scale, QvCodeOffset(layout->own_bits),
							 host.decoded, layout->pdim);
		place = choose_of_host(handle, &host, query, force);
		pfree(host.decoded);
	}
	pfree(copy);
	pfree(scratch);
	return place;
}
