/*
 * halfvec.c
 *		The type halfvec, with elements of IEEE binary16.
 */
#include "types/aggregate.h"
#include "types/casts.h"
#include "types/dense.h"

#include <math.h>

static void
LoadHalves(const void *elems, float *out, int n)
{
	qv_kernels.f16_to_f32(elems, out, n);
}

static void
StoreHalves(const float *x, void *elems, int n)
{
	qv_kernels.f32_to_f16(x, elems, n);
}

static bool
ScatterHalves(const QvSparse *v, void *elems, int dim)
{
	return qv_kernels.scatter_f16(v, qv_halfvec_type.overflow, elems, dim);
}

static void
PositiveHalves(const void *elems, uint8 *bytes, int n)
{
	qv_kernels.positive_bits_f16(elems, n, bytes);
}

/*
 * Rounding is to nearest even.  The first float that rounds to infinity is 65520, halfway
 * from the largest half to the next power of two.  The last that rounds to zero is 2^-25,
 * half of the smallest half.
 */
const DenseType qv_halfvec_type = {
	.name = "halfvec",
	.max_dim = HALFVEC_MAX_DIM,
	.elem_size = sizeof(uint16),
	.overflow = 65520.0f,
	.underflow = 0x1p-25f,
	.load = LoadHalves,
	.store = StoreHalves,
	.scatter = ScatterHalves,
	.positive_bits = PositiveHalves
};

#define HALFVEC_FUNCTION(symbol, result) \
	QV_FUNCTION(symbol) { return result; }

HALFVEC_FUNCTION(halfvec_in, QvDenseIn(fcinfo, &qv_halfvec_type))
HALFVEC_FUNCTION(halfvec_out, QvDenseOut(fcinfo, &qv_halfvec_type))
HALFVEC_FUNCTION(halfvec_recv, QvDenseRecv(fcinfo, &qv_halfvec_type))
HALFVEC_FUNCTION(halfvec_send, QvDenseSend(fcinfo, &qv_halfvec_type))
HALFVEC_FUNCTION(halfvec_typmod_in, QvTypmodIn(fcinfo, "halfvec", HALFVEC_MAX_DIM))

HALFVEC_FUNCTION(halfvec, QvDenseTypmodCast(fcinfo))

HALFVEC_FUNCTION(halfvec_vector_dims, QvDenseDims(fcinfo))
HALFVEC_FUNCTION(halfvec_l2_norm, QvDenseNorm(fcinfo, &qv_halfvec_type))
HALFVEC_FUNCTION(halfvec_l2_normalize, QvDenseNormalize(fcinfo, &qv_halfvec_type))
HALFVEC_FUNCTION(halfvec_binary_quantize, QvDenseQuantize(fcinfo, &qv_halfvec_type))
HALFVEC_FUNCTION(halfvec_subvector, QvDenseSubvector(fcinfo, &qv_halfvec_type))

HALFVEC_FUNCTION(halfvec_add, QvDenseAdd(fcinfo, &qv_halfvec_type))
HALFVEC_FUNCTION(halfvec_sub, QvDenseArithmetic(fcinfo, &qv_halfvec_type, DENSE_SUB))
HALFVEC_FUNCTION(halfvec_mul, QvDenseArithmetic(fcinfo, &qv_halfvec_type, DENSE_MUL))
HALFVEC_FUNCTION(halfvec_concat, QvDenseConcat(fcinfo, &qv_halfvec_type))

HALFVEC_FUNCTION(halfvec_accum, QvDenseAccum(fcinfo, &qv_halfvec_type))
HALFVEC_FUNCTION(halfvec_avg, QvDenseAvg(fcinfo, &qv_halfvec_type))

/* Returns a half as an integer of the same order.  Both zeros are 0. */
static inline int
HalfOrder(uint16 h)
{
	int			magnitude = h & 0x7fff;

	return (h & 0x8000) ? -magnitude : magnitude;
}

/* Compares the elements, then the number of them, as for arrays. */
static int
CompareHalfVectors(DenseView a, DenseView b)
{
	const qv_unaligned_half *x = a.x;
	const qv_unaligned_half *y = b.x;
	int			n = Min(a.dim, b.dim);

	for (int i = 0; i < n; i++)
	{
		int			p = HalfOrder(x[i]);
		int			q = HalfOrder(y[i]);

		if (p != q)
			return p < q ? -1 : 1;
	}
	return (a.dim > b.dim) - (a.dim < b.dim);
}

QV_COMPARISONS(halfvec, DenseViewOf, CompareHalfVectors)
