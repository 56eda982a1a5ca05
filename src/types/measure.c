/*
 * measure.c
 *		The distances of measure.h that are not a kernel's.
 */
#include "types/measure.h"

#include "types/dense.h"

/* The cosine of vectors whose squared norms a float32 cannot hold */
static double
CosineInDouble(const DenseType *type, DenseView a, DenseView b)
{
	const float *x = QvDenseFloats(type, a);
	const float *y = QvDenseFloats(type, b);
	double		ab = 0;

	for (int i = 0; i < a.dim; i++)
		ab += (double) x[i] * (double) y[i];

	return CosineDistance(ab, QvSquaredNorm(x, a.dim), QvSquaredNorm(y, b.dim));
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

/* x or 0, without a branch: which index comes next cannot be predicted. */
static inline float
Selected(float x, bool selected)
{
	uint32		bits;

	memcpy(&bits, &x, sizeof(bits));
	bits &= -(uint32) selected;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

/*
 * The sum of term(x, y) over the indices that a or b has, where the one that
 * lacks an index is zero there.
 */
#define SPARSE_SUM(a, b, x, y, term, sum) \
	do { \
		int			i = 0; \
		int			j = 0; \
		float		x, \
					y; \
		\
		while (i < (a).nnz && j < (b).nnz) \
		{ \
			int			p = (a).indices[i]; \
			int			q = (b).indices[j]; \
			\
			x = Selected((a).values[i], p <= q); \
			y = Selected((b).values[j], q <= p); \
			i += (p <= q); \
			j += (q <= p); \
			sum += (term); \
		} \
		for (y = 0; i < (a).nnz; i++) \
		{ \
			x = (a).values[i]; \
			sum += (term); \
		} \
		for (x = 0; j < (b).nnz; j++) \
		{ \
			y = (b).values[j]; \
			sum += (term); \
		} \
	} while (0)

double
sparsevec_l2sq(SparseView a, SparseView b)
{
	float		sum = 0;

	SPARSE_SUM(a, b, x, y, (x - y) * (x - y), sum);
	return sum;
}

double
sparsevec_l1(SparseView a, SparseView b)
{
	float		sum = 0;

	SPARSE_SUM(a, b, x, y, fabsf(x - y), sum);
	return sum;
}

/* Only common indices count, so the ends of the longer one are not read. */
double
sparsevec_ip(SparseView a, SparseView b)
{
	float		sum = 0;
	int			i = 0;
	int			j = 0;

	while (i < a.nnz && j < b.nnz)
	{
		int			p = a.indices[i];
		int			q = b.indices[j];

		if (p == q)
			sum += a.values[i] * b.values[j];
		i += (p <= q);
		j += (q <= p);
	}
	return sum;
}

static double
SparseSquares(SparseView v)
{
	float		sum = 0;

	for (int i = 0; i < v.nnz; i++)
		sum += v.values[i] * v.values[i];

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
