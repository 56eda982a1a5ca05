/*
 * bit_codes.c
 *		One-bit codes of all nodes in memory; see bit_codes.h.
 */
#include "postgres.h"

#include "graph/bit_codes.h"
#include "graph/node.h"
#include "space/scan.h"
#include "utils/memutils.h"

static Size
code_stride(const GraphLayout *layout)
{
	return TYPEALIGN(sizeof(float), offsetof(GraphBitCode, bits) + layout->pdim / 8);
}

Size
GraphBitCodesSize(const GraphLayout *layout, uint32 nodes)
{
	return (Size) nodes * code_stride(layout);
}

void
GraphBitCodesInit(GraphBitCodes *codes, const GraphLayout *layout, uint32 nodes,
				  MemoryContext context)
{
	Size		bytes = GraphBitCodesSize(layout, nodes);

	memset(codes, 0, sizeof(*codes));
	codes->stride = code_stride(layout);
	codes->codes = MemoryContextAllocExtended(context, Max(1, bytes), MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (codes->codes)
		codes->count = nodes;
}

void
GraphBitCodesPut(GraphBitCodes *codes, const GraphHandle *handle, uint32 id, GraphNode node,
				 float *scratch)
{
	const GraphLayout *layout = &handle->layout;
	const uint8 *own = GraphNodeOwn(layout, node);
	GraphBitCode *code;
	float		norm2;			/* of what the own code stands for */

	if (id >= codes->count)
		return;
	code = (GraphBitCode *) (codes->codes + (Size) id * codes->stride);
	if (layout->own_bits != 8)
	{
		uint8	   *unpacked = (uint8 *) (scratch + layout->pdim);

		qv_kernels.unpack_bits(own, layout->own_bits, unpacked, layout->pdim);
		own = unpacked;
	}
	qv_kernels.decode_u8(own, node->scale, QvCodeOffset(layout->own_bits), scratch, layout->pdim);
	code->norm2 = node->norm2;
	code->factor = QvEncodeBits(scratch, layout->pdim, layout->pdim, code->bits);
	norm2 = qv_kernels.norm2_f32(scratch, layout->pdim);

	/*
	 * what the bits stand for is as far from x as Pythagoras says, in a
	 * direction that is by chance, and the own code from the vector
	 */
	code->spread = QvCandidateCertainty(handle->meta.dims) *
		(sqrtf(Max(0, code->factor * code->factor * layout->pdim / 4 - norm2)) + node->residual);
	if (QvIsShortened(handle->meta.space, node->norm2))
		code->spread = INFINITY;
	else
		codes->longest = Max(codes->longest, sqrtf(node->norm2) + node->residual);
}

void
GraphBitQueryInit(GraphBitQuery *query, const GraphBitCodes *codes, const GraphHandle *handle,
				  const QvSpaceQuery *base)
{
	const QvQuery *q = &base->q;
	double		certainty = QvCandidateCertainty(handle->meta.dims);
	double		error2 = 0;
	int64		sum = 0;

	query->base = base;
	query->scale = 256 * q->scale16;
	for (size_t i = 0; i < q->pdim; i++)
	{
		double		error = q->x[i] - query->scale * q->hi[i];

		error2 += error * error;
		sum += q->hi[i];
	}
	query->half_sum = sum / 2.0;
	query->weight = base->kind == QV_SPACE_L2 ? 2 : 1;
	query->rounding = certainty * sqrt(error2) * sqrt(q->pdim) / 2;
	query->slack = query->weight * certainty * codes->longest * q->err16;
	if (QvIsShortened(base->kind, q->norm2))
		query->slack = INFINITY;
}
