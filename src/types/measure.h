/*
 * measure.h
 *		The distances of two values of one type and equal dimensions.  The SQL
 *		functions (distance.c) and the index tables (ops.c) use them.
 *
 * Every type has the functions <type>_<metric>(a, b) on its views.  Sums are float32, as
 * in pgvector, and overflow to infinity.
 */
#ifndef QV_MEASURE_H
#define QV_MEASURE_H

#include "types/values.h"

#include <float.h>
#include <math.h>

#include "kernels/kernels.h"

/* NaN if one of the vectors is zero. */
static inline double
CosineDistance(double ab, double aa, double bb)
{
	double		similarity = ab / sqrt(aa * bb);

	/* rounding can move it out of range; NaN stays NaN */
	if (similarity > 1)
		similarity = 1;
	else if (similarity < -1)
		similarity = -1;
	return 1 - similarity;
}

/*
 * The angle of unit vectors as a share of pi.  This is the distance of spherical k-means,
 * which needs the triangle inequality.
 */
static inline double
SphericalDistance(double ip)
{
	if (ip > 1)
		ip = 1;
	else if (ip < -1)
		ip = -1;
	return acos(ip) / M_PI;
}

/* measure.c */
extern double vector_cosine_double(DenseView a, DenseView b);
extern double halfvec_cosine_double(DenseView a, DenseView b);

extern double sparsevec_l2sq(SparseView a, SparseView b);
extern double sparsevec_ip(SparseView a, SparseView b);
extern double sparsevec_l1(SparseView a, SparseView b);
extern double sparsevec_cosine(SparseView a, SparseView b);

/*
 * vector and halfvec.  The squares of very short vectors leave float32, so their cosine
 * is computed again in double.  It is therefore NaN for zero vectors only.
 */
#define QV_DENSE_MEASURES(type, suffix) \
static inline double \
type##_l2sq(DenseView a, DenseView b) \
{ \
	return qv_kernels.l2sq_##suffix(a.x, b.x, a.dim); \
} \
static inline double \
type##_ip(DenseView a, DenseView b) \
{ \
	return qv_kernels.ip_##suffix(a.x, b.x, a.dim); \
} \
static inline double \
type##_l1(DenseView a, DenseView b) \
{ \
	return qv_kernels.l1_##suffix(a.x, b.x, a.dim); \
} \
static inline double \
type##_cosine(DenseView a, DenseView b) \
{ \
	float		ab, \
				aa, \
				bb; \
	\
	qv_kernels.cosine_##suffix(a.x, b.x, a.dim, &ab, &aa, &bb); \
	if (unlikely(aa < FLT_MIN || bb < FLT_MIN)) \
		return type##_cosine_double(a, b); \
	return CosineDistance(ab, aa, bb); \
}

QV_DENSE_MEASURES(vector, f32)
QV_DENSE_MEASURES(halfvec, f16)

static inline double
bit_hamming(BitView a, BitView b)
{
	return (double) qv_kernels.hamming(a.x, b.x, a.bytes);
}

/* 1 for two empty sets, as in pgvector. */
static inline double
bit_jaccard(BitView a, BitView b)
{
	uint64		both;
	uint64		either;

	qv_kernels.jaccard(a.x, b.x, a.bytes, &both, &either);
	return both == 0 ? 1.0 : 1.0 - (double) both / (double) either;
}

#endif							/* QV_MEASURE_H */
