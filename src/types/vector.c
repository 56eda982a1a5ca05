/*
 * vector.c
 *		The type vector, with float32 elements.
 */
#include "types/aggregate.h"
#include "types/casts.h"
#include "types/dense.h"

#include <math.h>

static void
LoadFloats(const void *elems, float *out, int n)
{
	memcpy(out, elems, n * sizeof(float));
}

static void
StoreFloats(const float *x, void *elems, int n)
{
	memcpy(elems, x, n * sizeof(float));
}

static bool
ScatterFloats(const QvSparse *v, void *elems, int dim)
{
	return qv_kernels.scatter_f32(v, qv_vector_type.overflow, elems, dim);
}

static void
PositiveFloats(const void *elems, uint8 *bytes, int n)
{
	qv_kernels.positive_bits_f32(elems, n, bytes);
}

const DenseType qv_vector_type = {
	.name = "vector",
	.max_dim = VECTOR_MAX_DIM,
	.elem_size = sizeof(float),
	.overflow = INFINITY,
	.underflow = 0,
	.load = LoadFloats,
	.store = StoreFloats,
	.scatter = ScatterFloats,
	.positive_bits = PositiveFloats
};

#define VECTOR_FUNCTION(symbol, result) \
	QV_FUNCTION(symbol) { return result; }

VECTOR_FUNCTION(vector_in, QvDenseIn(fcinfo, &qv_vector_type))
VECTOR_FUNCTION(vector_out, QvDenseOut(fcinfo, &qv_vector_type))
VECTOR_FUNCTION(vector_recv, QvDenseRecv(fcinfo, &qv_vector_type))
VECTOR_FUNCTION(vector_send, QvDenseSend(fcinfo, &qv_vector_type))
VECTOR_FUNCTION(vector_typmod_in, QvTypmodIn(fcinfo, "vector", VECTOR_MAX_DIM))

VECTOR_FUNCTION(vector, QvDenseTypmodCast(fcinfo))

VECTOR_FUNCTION(vector_dims, QvDenseDims(fcinfo))
VECTOR_FUNCTION(vector_norm, QvDenseNorm(fcinfo, &qv_vector_type))
VECTOR_FUNCTION(l2_normalize, QvDenseNormalize(fcinfo, &qv_vector_type))
VECTOR_FUNCTION(binary_quantize, QvDenseQuantize(fcinfo, &qv_vector_type))
VECTOR_FUNCTION(subvector, QvDenseSubvector(fcinfo, &qv_vector_type))

VECTOR_FUNCTION(vector_add, QvDenseAdd(fcinfo, &qv_vector_type))
VECTOR_FUNCTION(vector_sub, QvDenseArithmetic(fcinfo, &qv_vector_type, DENSE_SUB))
VECTOR_FUNCTION(vector_mul, QvDenseArithmetic(fcinfo, &qv_vector_type, DENSE_MUL))
VECTOR_FUNCTION(vector_concat, QvDenseConcat(fcinfo, &qv_vector_type))

VECTOR_FUNCTION(vector_accum, QvDenseAccum(fcinfo, &qv_vector_type))
VECTOR_FUNCTION(vector_avg, QvDenseAvg(fcinfo, &qv_vector_type))

/* Compares the elements, then the number of them, as for arrays. */
static int
CompareVectors(DenseView a, DenseView b)
{
	const qv_unaligned_float *x = a.x;
	const qv_unaligned_float *y = b.x;
	int			n = Min(a.dim, b.dim);

	for (int i = 0; i < n; i++)
	{
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	}
	return (a.dim > b.dim) - (a.dim < b.dim);
}

QV_COMPARISONS(vector, DenseViewOf, CompareVectors)
