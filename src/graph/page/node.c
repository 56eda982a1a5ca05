/*
 * node.c
 *		Filling node slots; src/graph/page/README.md, "Factors" has the formulas.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "graph/page/handle.h"
#include "graph/page/node.h"

void
GraphEncode(const GraphLayout *layout, const float *x, const float *mean,
			GraphCode *code, uint8 *bytes)
{
	QvCodeFactors factors;

	QvEncode(x, layout->pdim, layout->own_bits, bytes, &factors);
	code->norm2 = factors.norm2;
	code->scale = factors.scale;
	code->residual = factors.residual;
	code->aux = qv_kernels.ip_f32(x, mean, layout->pdim);
	code->sum = qv_kernels.sum_u8(bytes, layout->pdim);
	code->bytes = bytes;
}

static inline float
pair_ip(const GraphLayout *layout, const GraphCode *a, const GraphCode *b)
{
	return QvCodePairIp(a->bytes, a->scale, a->sum, b->bytes, b->scale, b->sum,
						layout->pdim, layout->own_bits);
}

float
GraphCodeDistance(const GraphLayout *layout, QvSpaceKind space,
				  float mean_norm2, const GraphCode *a, const GraphCode *b)
{
	float		ip = pair_ip(layout, a, b);

	if (space == QV_SPACE_L2)
		return a->norm2 + b->norm2 - 2 * ip;
	return -(ip + a->aux + b->aux + mean_norm2);
}

/*
 * The step of a two-bit code that is best for coordinates of a normal distribution, in their
 * standard deviations (Max, "Quantizing for minimum distortion", 1960, table II).
 */
#define TWO_BIT_STEP 0.9957f

/* Returns the squared norm of the decoded code.  The residual is orthogonal to it. */
static inline float
decoded_norm2(const GraphCode *code)
{
	return Max(0, code->norm2 - code->residual * code->residual);
}

/* Least cosine of p and o that counts below.  The factor is finite then. */
#define LEAST_COSINE 0.1f

/* Share of |p|^2 that rounding may leave of a difference of squares. */
#define ROUNDED 1e-5f

/*
 * Returns the factor for neighbor o that makes factor * o - p orthogonal to p, by inner product.
 * Estimates are exact along p, so the rest is as short as it can be.
 */
static inline float
ip_stretch(float ip, float p2, float o2)
{
	float		least = LEAST_COSINE * sqrtf(p2) * sqrtf(o2);

	if (p2 < FLT_MIN || o2 < FLT_MIN)
		return 1;
	return p2 / (ip < 0 ? Min(ip, -least) : Max(ip, least));
}

void
GraphEncodeEdge(const GraphLayout *layout, const QvSpace *space, const GraphCode *p,
				const float *p_decoded, const GraphCode *o, uint32 id,
				GraphEdge *edge, uint8 *bits)
{
	float		ip = pair_ip(layout, p, o);
	float		p2 = decoded_norm2(p);
	float		o2 = decoded_norm2(o);
	bool		as_ip = space->kind == QV_SPACE_IP || GraphIsLong(space, p->norm2, p->aux);
	float		stretch = as_ip ? ip_stretch(ip, p2, o2) : 1;
	float		o_scale = o->scale * stretch;
	float		r2 = Max(0, stretch * (stretch * o2) + p2 - 2 * stretch * ip);
	float		offset = QvCodeOffset(layout->own_bits);
	float		yr,
				yp,
				f;

	/* of a multiple of p nothing is left but rounding */
	if (as_ip && r2 < ROUNDED * p2)
		r2 = 0;
	if (GraphHasTwoBits(layout))
		QvResidualTwoBits(o->bytes, o_scale, offset, p_decoded, layout->pdim,
						  TWO_BIT_STEP * sqrtf(r2 / layout->pdim), bits, &yr, &yp);
	else
	{
		qv_kernels.residual_bits(o->bytes, o_scale, offset, p_decoded, layout->code_bits, bits, &yr, &yp);
		/* y is half a sign */
		yr /= 2;
	}
	f = yr > 0 ? r2 / yr / stretch : 0;
	edge->id = id;
	if (!as_ip)
	{
		edge->a = r2 + 2 * f * yp;
		edge->b = -2 * f;
		/* what their lengths differ by */
		if (space->kind == QV_SPACE_POWER)
			edge->a += (p->norm2 + 2 * p->aux) - (o->norm2 + 2 * o->aux);
	}
	else
	{
		edge->a = f * yp - (ip - p2);
		edge->b = -f;
	}
}

void
GraphNodeInit(const GraphLayout *layout, GraphNode node)
{
	memset(node, 0, layout->node_size);
	node->state = GRAPH_SLOT_LIVE;
	node->overflow = GRAPH_NONE;
	for (uint32 i = 0; i < layout->degree; i++)
		GraphNodeClearEdge(layout, node, i);
}

void
GraphNodeSetCode(const GraphLayout *layout, GraphNode node, const GraphCode *code)
{
	node->norm2 = code->norm2;
	node->scale = code->scale;
	node->residual = code->residual;
	node->aux = code->aux;
	if (layout->own_bits == 8)
		memcpy(GraphNodeOwn(layout, node), code->bytes, layout->pdim);
	else
		QvPackCode(code->bytes, layout->pdim, layout->own_bits,
				   GraphNodeOwn(layout, node));
}

void
GraphNodeCode(const GraphLayout *layout, GraphNode node, GraphCode *code,
			  uint8 *scratch)
{
	code->norm2 = node->norm2;
	code->scale = node->scale;
	code->residual = node->residual;
	code->aux = node->aux;
	code->bytes = GraphNodeOwnBytes(layout, node, scratch);
	code->sum = qv_kernels.sum_u8(code->bytes, layout->pdim);
}

void
GraphNodeClearEdge(const GraphLayout *layout, GraphNode node, int place)
{
	GraphNodeIds(layout, node)[place] = GRAPH_NONE;
	if (layout->form != QV_FORM_CODED)
		return;
	GraphNodeA(layout, node)[place] = QV_EMPTY_FACTOR;
	GraphNodeB(layout, node)[place] = 0;
}

int
GraphNodeFindEdge(const GraphLayout *layout, GraphNode node, uint32 id, int *empty)
{
	const uint32 *ids = GraphNodeIds(layout, node);

	*empty = -1;
	for (uint32 i = 0; i < layout->degree; i++)
	{
		if (GraphEdgeTo(ids[i]) == id)
			return i;
		if (ids[i] == GRAPH_NONE && *empty < 0)
			*empty = i;
	}
	return -1;
}

bool
GraphNodeTakesAnchor(const GraphLayout *layout, GraphNode node)
{
	const uint32 *ids = GraphNodeIds(layout, node);
	uint32		anchors = 0;

	for (uint32 i = 0; i < layout->degree; i++)
		anchors += GraphEdgeIsAnchor(ids[i]);
	return anchors < GraphMaxAnchors(layout);
}

static void
put_edge(const GraphLayout *layout, GraphNode node, int place,
		 const GraphEdge *edge)
{
	GraphNodeIds(layout, node)[place] = edge->id;
	GraphNodeA(layout, node)[place] =
		QvFactorPack(node->a_scale > 0 ? edge->a / node->a_scale : 0);
	GraphNodeB(layout, node)[place] =
		QvFactorPack(node->b_scale > 0 ? edge->b / node->b_scale : 0);
}

/*
 * Returns a scale for factors, a power of two, so that scaling is exact.  It has room for
 * edges that are twice as long, because another scale changes the factors of all neighbors.
 */
static float
factor_scale(float largest)
{
	int			exponent;

	if (largest == 0)
		return 0;
	frexpf(largest, &exponent);
	return ldexpf(1, Min(exponent + 1, FLT_MAX_EXP - 1));
}

void
GraphNodeSetEdges(const GraphLayout *layout, GraphNode node,
				  const GraphEdge *edges, const uint8 *bits, int n)
{
	Size		stride = layout->code_bits / 8;

	Assert(n <= layout->degree);
	node->a_scale = node->b_scale = 0;
	for (int i = 0; i < n; i++)
	{
		node->a_scale = Max(node->a_scale, fabsf(edges[i].a));
		node->b_scale = Max(node->b_scale, fabsf(edges[i].b));
	}
	node->a_scale = factor_scale(node->a_scale);
	node->b_scale = factor_scale(node->b_scale);
	for (int i = 0; i < layout->degree; i++)
		if (i < n)
			put_edge(layout, node, i, &edges[i]);
		else
			GraphNodeClearEdge(layout, node, i);
	if (!layout->batches)
		memcpy(GraphNodeCodes(layout, node, 0), bits, n * stride);
	else
		for (int first = 0; first < layout->degree; first += QV_BATCH)
			QvPackBatch(GraphNodeCodes(layout, node, first), layout->code_bits,
						bits + first * stride, stride, Max(0, Min(n - first, QV_BATCH)));
}

/* Enlarges a scale to fit the factor of another edge, and rescales the other factors. */
static void
fit_scale(const GraphLayout *layout, GraphNode node, uint16 *factors, float *scale,
		  float factor)
{
	float		fitting;

	if (fabsf(factor) <= *scale)
		return;
	fitting = factor_scale(fabsf(factor));
	for (uint32 i = 0; i < layout->degree; i++)
		if (GraphNodeHasEdge(layout, node, i))
			factors[i] = QvFactorPack(QvFactorUnpack(factors[i]) * (*scale / fitting));
	*scale = fitting;
}

void
GraphNodeSetEdge(const GraphLayout *layout, GraphNode node, int place,
				 const GraphEdge *edge, const uint8 *bits)
{
	GraphNodeClearEdge(layout, node, place);
	fit_scale(layout, node, GraphNodeA(layout, node), &node->a_scale, edge->a);
	fit_scale(layout, node, GraphNodeB(layout, node), &node->b_scale, edge->b);
	put_edge(layout, node, place, edge);
	if (layout->batches)
		QvPackSlot(GraphNodeCodes(layout, node, place / QV_BATCH * QV_BATCH),
				   layout->code_bits, place % QV_BATCH, bits);
	else
		memcpy(GraphNodeCodes(layout, node, place), bits, layout->code_bits / 8);
}
