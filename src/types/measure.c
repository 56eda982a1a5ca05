/*
 * measure.c
 *		The distances of measure.h that are not a kernel's.
 */
#include "types/measure.h"

#include "types/dense.h"

/* The cosine of vectors whose squared norms a float32 cannot hold. */
static double
CosineInDouble(const DenseType *type, DenseView a, DenseView b)
{
	const float *x = QvDenseFloats(type, a);
	const float *y = QvDenseFloats(type, b);
	double		ab = 0;

	for (int i = 0; i < a.dim; i++)
		ab += (double) x[i] * (double) y[i];

	return CosineDistance(ab, qv_kernels.norm2_f64(x, a.dim),
						  qv_kernels.norm2_f64(y, b.dim));
}

double
vector_cosine_double(DenseView a, DenseView b)
{
	return CosineInDouble(&qv_vector_type, a, b);
}

double
halfvec_cosine_double(DenseView a, DenseView b)
{
	return CosineInDouble(&qv_halfvec_type, a, b);
}

static inline QvSparse
KernelView(SparseView v)
{
	return (QvSparse) {(const int32_t *) v.indices, (const float *) v.values, v.nnz};
}

double
sparsevec_l2sq(SparseView a, SparseView b)
{
	QvSparse	x = KernelView(a);
	QvSparse	y = KernelView(b);

	return qv_kernels.l2sq_sparse(&x, &y);
}

double
sparsevec_l1(SparseView a, SparseView b)
{
	QvSparse	x = KernelView(a);
	QvSparse	y = KernelView(b);

	return qv_kernels.l1_sparse(&x, &y);
}

double
sparsevec_ip(SparseView a, SparseView b)
{
	QvSparse	x = KernelView(a);
	QvSparse	y = KernelView(b);

	return qv_kernels.ip_sparse(&x, &y);
}

/*
 * for up to this many elements a loop costs less than calling the kernel; any value is
 * correct
 */
#define FEW_ELEMENTS	8

static double
SparseSquares(SparseView v)
{
	float		sum = 0;

	if (v.nnz <= FEW_ELEMENTS)
	{
		for (int i = 0; i < v.nnz; i++)
			sum += v.values[i] * v.values[i];
	}
	else
		sum = qv_kernels.norm2_f32((const float *) v.values, v.nnz);

	/* too small for float32, as for dense vectors */
	if (sum < FLT_MIN)
	{
		double		exact = 0;

		for (int i = 0; i < v.nnz; i++)
			exact += (double) v.values[i] * (double) v.values[i];
		return exact;
	}
	return sum;
}

double
sparsevec_cosine(SparseView a, SparseView b)
{
	double		aa = SparseSquares(a);
	double		bb = SparseSquares(b);
	double		ab = sparsevec_ip(a, b);

	if (unlikely(aa < FLT_MIN || bb < FLT_MIN))
	{
		ab = 0;
		for (int i = 0, j = 0; i < a.nnz && j < b.nnz;)
		{
			int			p = a.indices[i];
			int			q = b.indices[j];

			if (p == q)
				ab += (double) a.values[i] * (double) b.values[j];
			i += (p <= q);
			j += (q <= p);
		}
	}
	return CosineDistance(ab, aa, bb);
}
