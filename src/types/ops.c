/*
 * ops.c
 *		The tables by which index layers know the types (type_ops.h).
 */
#include "types/type_ops.h"

#include "types/dense.h"
#include "types/measure.h"
#include "utils/varbit.h"

/* pgvector's limit for an index on bit. */
#define BIT_MAX_INDEX_DIM 64000

static Size
ValueSize(const void *value)
{
	return VARSIZE_ANY(value);
}

/* Is this an uncompressed value, whose whole header says size bytes? */
static bool
IsVarlena(const void *value, Size size, Size least)
{
	return size >= least && VARATT_IS_4B_U(value) && VARSIZE(value) == size;
}

static void
UnknownMetric(const char *type, QvMetric metric)
{
	elog(ERROR, "type %s has no metric %d", type, (int) metric);
}

static int
DenseDims(const void *value)
{
	return DenseViewOf(value).dim;
}

/* --- vector --- */

static Size
VectorFixedSize(int dims)
{
	return offsetof(Vector, x) + (Size) dims * sizeof(float);
}

static bool
VectorWellFormed(const void *value, Size size, int dims)
{
	return IsVarlena(value, size, VectorFixedSize(dims)) &&
		size == VectorFixedSize(dims) && DenseDims(value) == dims;
}

static void
VectorDifferentDims(int a, int b)
{
	QvDifferentDims("vector", a, b);
}

static void
VectorToFloat(const void *value, float *out)
{
	DenseView	v = DenseViewOf(value);

	qv_vector_type.load(v.x, out, v.dim);
}

static double
VectorDistance(QvMetric metric, const void *a, const void *b)
{
	DenseView	x = DenseViewOf(a);
	DenseView	y = DenseViewOf(b);

	switch (metric)
	{
		case QV_METRIC_L2:
			return vector_l2sq(x, y);
		case QV_METRIC_IP:
			return -vector_ip(x, y);
		case QV_METRIC_COSINE:
			return vector_cosine(x, y);
		case QV_METRIC_L1:
			return vector_l1(x, y);
		default:
			UnknownMetric("vector", metric);
			return 0;
	}
}

static bool
VectorIsZero(const void *value)
{
	DenseView	v = DenseViewOf(value);
	const qv_unaligned_float *x = v.x;

	for (int i = 0; i < v.dim; i++)
	{
		if (x[i] != 0)
			return false;
	}
	return true;
}

const VectorTypeOps qv_vector_ops = {
	.name = "vector",
	.max_dims = VECTOR_MAX_DIM,
	.dense_float = true,
	.dims = DenseDims,
	.to_float = VectorToFloat,
	.distance = VectorDistance,
	.value_size = ValueSize,
	.fixed_size = VectorFixedSize,
	.well_formed = VectorWellFormed,
	.different_dims = VectorDifferentDims,
	.is_zero = VectorIsZero
};

/* --- halfvec --- */

static Size
HalfvecFixedSize(int dims)
{
	return offsetof(HalfVector, x) + (Size) dims * sizeof(uint16);
}

static bool
HalfvecWellFormed(const void *value, Size size, int dims)
{
	return IsVarlena(value, size, HalfvecFixedSize(dims)) &&
		size == HalfvecFixedSize(dims) && DenseDims(value) == dims;
}

static void
HalfvecDifferentDims(int a, int b)
{
	QvDifferentDims("halfvec", a, b);
}

static void
HalfvecToFloat(const void *value, float *out)
{
	DenseView	v = DenseViewOf(value);

	qv_halfvec_type.load(v.x, out, v.dim);
}

static double
HalfvecDistance(QvMetric metric, const void *a, const void *b)
{
	DenseView	x = DenseViewOf(a);
	DenseView	y = DenseViewOf(b);

	switch (metric)
	{
		case QV_METRIC_L2:
			return halfvec_l2sq(x, y);
		case QV_METRIC_IP:
			return -halfvec_ip(x, y);
		case QV_METRIC_COSINE:
			return halfvec_cosine(x, y);
		case QV_METRIC_L1:
			return halfvec_l1(x, y);
		default:
			UnknownMetric("halfvec", metric);
			return 0;
	}
}

static bool
HalfvecIsZero(const void *value)
{
	DenseView	v = DenseViewOf(value);
	const qv_unaligned_half *x = v.x;

	for (int i = 0; i < v.dim; i++)
	{
		/* all but the sign */
		if (x[i] & 0x7fff)
			return false;
	}
	return true;
}

const VectorTypeOps qv_halfvec_ops = {
	.name = "halfvec",
	.max_dims = HALFVEC_MAX_DIM,
	.dense_float = true,
	.dims = DenseDims,
	.to_float = HalfvecToFloat,
	.distance = HalfvecDistance,
	.value_size = ValueSize,
	.fixed_size = HalfvecFixedSize,
	.well_formed = HalfvecWellFormed,
	.different_dims = HalfvecDifferentDims,
	.is_zero = HalfvecIsZero
};

/* --- sparsevec --- */

static int
SparsevecDims(const void *value)
{
	return SparseViewOf(value).dim;
}

static Size
SparsevecFixedSize(int dims)
{
	return 0;
}

static bool
SparsevecWellFormed(const void *value, Size size, int dims)
{
	SparseView	v;

	if (!IsVarlena(value, size, offsetof(SparseVector, indices)))
		return false;
	v = SparseViewOf(value);
	return v.dim == dims && v.nnz >= 0 && v.nnz <= SPARSEVEC_MAX_NNZ &&
		size == offsetof(SparseVector, indices) +
		(Size) v.nnz * (sizeof(int32) + sizeof(float));
}

static void
SparsevecDifferentDims(int a, int b)
{
	QvDifferentDims("sparsevec", a, b);
}

static double
SparsevecDistance(QvMetric metric, const void *a, const void *b)
{
	SparseView	x = SparseViewOf(a);
	SparseView	y = SparseViewOf(b);

	switch (metric)
	{
		case QV_METRIC_L2:
			return sparsevec_l2sq(x, y);
		case QV_METRIC_IP:
			return -sparsevec_ip(x, y);
		case QV_METRIC_COSINE:
			return sparsevec_cosine(x, y);
		case QV_METRIC_L1:
			return sparsevec_l1(x, y);
		default:
			UnknownMetric("sparsevec", metric);
			return 0;
	}
}

/* Stored elements are never zero. */
static bool
SparsevecIsZero(const void *value)
{
	return SparseViewOf(value).nnz == 0;
}

/* The size is bounded by SPARSEVEC_MAX_NNZ, which no value exceeds. */
const VectorTypeOps qv_sparsevec_ops = {
	.name = "sparsevec",
	.max_dims = SPARSEVEC_MAX_DIM,
	.dense_float = false,
	.dims = SparsevecDims,
	.to_float = NULL,
	.distance = SparsevecDistance,
	.value_size = ValueSize,
	.fixed_size = SparsevecFixedSize,
	.well_formed = SparsevecWellFormed,
	.different_dims = SparsevecDifferentDims,
	.is_zero = SparsevecIsZero
};

/* --- bit --- */

static int
BitDims(const void *value)
{
	return BitViewOf(value).dim;
}

static Size
BitFixedSize(int dims)
{
	return VARBITTOTALLEN(dims);
}

static bool
BitWellFormed(const void *value, Size size, int dims)
{
	return IsVarlena(value, size, BitFixedSize(dims)) &&
		size == BitFixedSize(dims) && BitDims(value) == dims;
}

static double
BitDistance(QvMetric metric, const void *a, const void *b)
{
	BitView		x = BitViewOf(a);
	BitView		y = BitViewOf(b);

	switch (metric)
	{
		case QV_METRIC_HAMMING:
			return bit_hamming(x, y);
		case QV_METRIC_JACCARD:
			return bit_jaccard(x, y);
		default:
			UnknownMetric("bit", metric);
			return 0;
	}
}

static bool
BitIsZero(const void *value)
{
	BitView		v = BitViewOf(value);

	for (int i = 0; i < v.bytes; i++)
	{
		if (v.x[i] != 0)
			return false;
	}
	return true;
}

static void
BitToFloat(const void *value, float *out)
{
	VarBit	   *bits = (VarBit *) value;

	for (int i = 0; i < VARBITLEN(bits); i++)
		out[i] = (VARBITS(bits)[i / BITS_PER_BYTE] >> (BITS_PER_BYTE - 1 - i % BITS_PER_BYTE)) & 1;
}

static void *
BitFromFloat(const float *x, int dims)
{
	VarBit	   *bits = palloc0(VARBITTOTALLEN(dims));

	SET_VARSIZE(bits, VARBITTOTALLEN(dims));
	VARBITLEN(bits) = dims;
	for (int i = 0; i < dims; i++)
		if (x[i] > 0.5f)
			VARBITS(bits)[i / BITS_PER_BYTE] |= 1 << (BITS_PER_BYTE - 1 - i % BITS_PER_BYTE);
	return bits;
}

const VectorTypeOps qv_bit_ops = {
	.name = "bit",
	.max_dims = BIT_MAX_INDEX_DIM,
	.dense_float = false,
	.dims = BitDims,
	.to_float = BitToFloat,
	.from_float = BitFromFloat,
	.distance = BitDistance,
	.value_size = ValueSize,
	.fixed_size = BitFixedSize,
	.well_formed = BitWellFormed,
	.different_dims = QvDifferentBitLengths,
	.is_zero = BitIsZero
};
