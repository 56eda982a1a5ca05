/*
 * kernels.h
 *		The arithmetic that every other layer is built from: distances, inner products
 *		of codes, FastScan and the fast Hadamard transform.  There is one table for
 *		each instruction-set level.
 *
 * A level fills the entries it improves on, and inherits the rest from the level below.
 * The scalar level is complete, and is the reference.  QvKernelsInit() chooses the level
 * once, from CPUID.  QvKernelsSetLevel() lowers it for tests.  The function of an entry
 * is named qv_<op>_<type>_<level>.
 *
 * Unless an entry says otherwise:
 *
 * - lengths count elements, and any length is allowed, 0 included;
 * - pointers need no alignment;
 * - nothing past the length is read or written;
 * - float sums are accumulated in float32 over several lanes, with a relative error of
 *   the order of 1e-6;
 * - the caller detects overflow to infinity.
 *
 * No server header is included here, and nothing allocates.
 */
#ifndef QV_KERNELS_H
#define QV_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Codes of a FastScan batch. */
#define QV_BATCH 32

/*
 * The parameters that turn the FastScan sums of a batch into estimates: see
 * fastscan_estimate.
 */
typedef struct QvEstimateParams
{
	const uint16_t *a;			/* [32] float16 additive factors */
	const uint16_t *b;			/* [32] float16 multiplicative factors */
	float		base;			/* the distance of the batch's reference point */
	float		a_scale;		/* multiplies a[] */
	float		b_scale;		/* multiplies b[] */
	float		lut_scale;		/* inner product of a code and the query: */
	float		lut_bias;		/* lut_scale * sum + lut_bias */
} QvEstimateParams;

/* The n non-zero elements of a long vector, in ascending order of their indices. */
typedef struct QvSparse
{
	const int32_t *indices;
	const float *values;
	size_t		n;
} QvSparse;

typedef struct QvKernels
{
	const char *level;			/* "scalar", "avx2", "avx512bw", "avx512",
								 * "neon" */

	/* float32: squared L2, inner product, L1, and the three sums of a cosine */
	float		(*l2sq_f32) (const float *a, const float *b, size_t n);
	float		(*ip_f32) (const float *a, const float *b, size_t n);
	float		(*l1_f32) (const float *a, const float *b, size_t n);
	void		(*cosine_f32) (const float *a, const float *b, size_t n,
							   float *ab, float *aa, float *bb);

	/* float16 (IEEE binary16 in uint16_t), accumulated in float32 */
	float		(*l2sq_f16) (const uint16_t *a, const uint16_t *b, size_t n);
	float		(*ip_f16) (const uint16_t *a, const uint16_t *b, size_t n);
	float		(*l1_f16) (const uint16_t *a, const uint16_t *b, size_t n);
	void		(*cosine_f16) (const uint16_t *a, const uint16_t *b, size_t n,
							   float *ab, float *aa, float *bb);

	/*
	 * conversions; f32_to_f16 rounds to nearest even, and overflows to
	 * infinity
	 */
	void		(*f16_to_f32) (const uint16_t *src, float *dst, size_t n);
	void		(*f32_to_f16) (const float *src, uint16_t *dst, size_t n);

	/*
	 * bit strings of n bytes: bits that differ; bits set in both, and in
	 * either
	 */
	uint64_t	(*hamming) (const uint8_t *a, const uint8_t *b, size_t n);
	void		(*jaccard) (const uint8_t *a, const uint8_t *b, size_t n,
							uint64_t *both, uint64_t *either);

	/*
	 * Unsigned 8-bit codes: the inner product of two codes, and the sum of
	 * one.  Exact for n <= 32768, since 255 * 255 * 32768 < 2^31.
	 */
	int32_t		(*ip_u8u8) (const uint8_t *a, const uint8_t *b, size_t n);
	int32_t		(*sum_u8) (const uint8_t *a, size_t n);

	/*
	 * Inner product of a code and a 16-bit query q = 256 * hi + lo, where hi
	 * and lo are signed bytes.  Exact for n <= 32768.
	 */
	int64_t		(*ip_u8s16) (const uint8_t *code, const int8_t *hi,
							 const int8_t *lo, size_t n);

	/*
	 * Expands packed codes of 4 or 2 bits to one byte each.  Element i is in
	 * byte i * bits / 8 at bit (i * bits) % 8, low bits first. n is a
	 * multiple of 16.
	 */
	void		(*unpack_bits) (const uint8_t *packed, int bits, uint8_t *out,
								size_t n);

	/*
	 * FastScan over one batch of 32 one-bit codes; src/quant/README.md,
	 * "FastScan layout", has the layout. nibbles = code bits / 4 is a
	 * multiple of 4, at most 8192. lut holds 16 bytes per nibble. out[i] is
	 * the sum of lut[nibble][value of code i] over the nibbles.  Exact.
	 */
	void		(*fastscan) (const uint8_t *batch, const uint8_t *lut,
							 size_t nibbles, uint32_t out[QV_BATCH]);

	/*
	 * Makes such a batch of 32 codes of nbytes each, a multiple of 2.  The
	 * codes start stride >= nbytes bytes apart.  Writes 32 * nbytes bytes.
	 */
	void		(*fastscan_pack) (const uint8_t *codes, size_t stride,
								  size_t nbytes, uint8_t *batch);

	/*-
	 * FastScan followed by the estimate
	 *   out[i] = base + a_scale * a[i]
	 *          + b_scale * b[i] * (lut_scale * sum[i] + lut_bias)
	 * Returns the mask of codes whose estimate is < threshold (never set for
	 * NaN, and a slot emptied with a[i] = +infinity never passes).
	 */
	uint32_t	(*fastscan_estimate) (const uint8_t *batch, const uint8_t *lut,
									  size_t nibbles, const QvEstimateParams *p,
									  float threshold, float out[QV_BATCH]);

	/*
	 * One-bit code of the residual r = decode(code) - p over its first n
	 * coordinates, where decode(code)[i] = scale * (code[i] - offset). n is a
	 * multiple of 16.  Writes bit i = (r[i] >= 0) to the n / 8 bytes of bits.
	 * Returns the sums sum_abs = sum |r[i]| and yp = sum (bit - 0.5) * p[i].
	 */
	void		(*residual_bits) (const uint8_t *code, float scale, float offset,
								  const float *p, size_t n, uint8_t *bits,
								  float *sum_abs, float *yp);

	/* dst[i] = scale * (code[i] - offset) */
	void		(*decode_u8) (const uint8_t *code, float scale, float offset,
							  float *dst, size_t n);

	/*
	 * Rounding of extended RaBitQ: code[i] = clamp(floor(x[i] * t), -half,
	 * half - 1) + half, and y = code - (half - 0.5).  Returns the sums xy =
	 * <x, y> and yy = <y, y>. half is 128, 8 or 2, for codes of 8, 4 and 2
	 * bits.
	 */
	void		(*quantize_u8) (const float *x, size_t n, float t, float half,
								uint8_t *code, float *xy, float *yy);

	/*
	 * Sum of squares in double, which squares of float32 elements neither
	 * overflow nor underflow.  The squares are exact, and the order of the
	 * additions is fixed: see qv_norm2_end() in levels.h.  The result is
	 * therefore equal at all levels, bit for bit.
	 */
	double		(*norm2_f64) (const float *x, size_t n);

	/* dst[i] = x[i] / by, in double, then rounded; dst may be x */
	void		(*divide_f32) (const float *x, double by, float *dst, size_t n);

	/*
	 * Bits of the type bit, high bit first: bit i = (x[i] > 0).  Writes all
	 * (n + 7) / 8 bytes.  Bits beyond the last element are zero.
	 */
	void		(*positive_bits_f32) (const float *x, size_t n, uint8_t *bits);
	void		(*positive_bits_f16) (const uint16_t *x, size_t n, uint8_t *bits);

	/* sum of squares, and largest absolute value */
	float		(*norm2_f32) (const float *x, size_t n);
	float		(*maxabs_f32) (const float *x, size_t n);

	/* In-place fast Hadamard transform scaled by 1/sqrt(n); n a power of two. */
	void		(*fht_f32) (float *x, size_t n);

	/* x[i] = -x[i] where bit i of signs (low bit first) is set */
	void		(*flip_signs_f32) (float *x, const uint8_t *signs, size_t n);

	/*
	 * Inner products of every row of a with every row of b, row major and
	 * register-blocked: out[i * ldo + j] = <a[i], b[j]>. lda, ldb and ldo are
	 * row strides in elements.
	 */
	void		(*ip_f32_block) (const float *a, size_t na, size_t lda,
								 const float *b, size_t nb, size_t ldb,
								 size_t dim, float *out, size_t ldo);

	/*
	 * One-bit code of x: writes bit i = (x[i] >= 0) to the n / 8 bytes of
	 * bits, and returns sum |x[i]|. n is a multiple of 16.
	 */
	float		(*sign_bits_f32) (const float *x, size_t n, uint8_t *bits);

	/*
	 * sum of the x[i] whose bit i of bits (low bit first) is set; n is a
	 * multiple of 16
	 */
	float		(*ip_bits_f32) (const uint8_t *bits, const float *x, size_t n);

	/*
	 * as ip_bits_f32, for signed bytes and each of count codes.  Exact for n
	 * <= 32768
	 */
	void		(*ip_bits_s8) (const uint8_t *const *bits, size_t count, const int8_t *x, size_t n,
							   int32_t *sums);

	/*
	 * 16-bit form of x: v = x[i] * inv rounded to the nearest integer, stored
	 * as 256 * hi + lo.  Returns the sums of v and of (x[i] - scale * v)^2.
	 * |x[i] * inv| must not exceed 32639; n is at most 32768.
	 */
	void		(*split_s16) (const float *x, size_t n, float inv, float scale,
							  int8_t *hi, int8_t *lo, int32_t *sum,
							  float *err2);

	/*
	 * FastScan look-up table of 4 * nibbles coordinates.  Entry v of a nibble
	 * is inv times a sum over the nibble's coordinates: max(x, 0) where v has
	 * the coordinate's bit, max(-x, 0) where it does not.  It is rounded to
	 * nearest, to at most 255.
	 */
	void		(*lut_f32) (const float *x, size_t nibbles, float inv,
							uint8_t *lut);

	/* a, b = scale * (a + b), scale * (a - b); a and b do not overlap */
	void		(*mix_f32) (float *a, float *b, size_t n, float scale);

	/* dst[i] += src[i] */
	void		(*add_f32) (float *dst, const float *src, size_t n);

	/*
	 * Returns the index of the smallest a[i] - b[i], the first of equals, and
	 * stores that difference.  A NaN never wins.  Without a candidate the
	 * index is 0 and the difference +infinity.
	 */
	size_t		(*argmin_diff_f32) (const float *a, const float *b, size_t n,
									float *min);

	/*
	 * Sparse vectors: squared L2, inner product and L1.  An element that only
	 * one of the vectors has is zero in the other.  If indices do not ascend,
	 * the result is some number.
	 */
	float		(*l2sq_sparse) (const QvSparse *a, const QvSparse *b);
	float		(*ip_sparse) (const QvSparse *a, const QvSparse *b);
	float		(*l1_sparse) (const QvSparse *a, const QvSparse *b);

	/*
	 * Writes the dim elements of a sparse vector, as float32 or rounded to
	 * float16.  Returns false, with anything in dst, if an index is not below
	 * dim or if a value's magnitude is not below limit.
	 */
	bool		(*scatter_f32) (const QvSparse *v, float limit, float *dst,
								size_t dim);
	bool		(*scatter_f16) (const QvSparse *v, float limit, uint16_t *dst,
								size_t dim);
} QvKernels;

/* The table in use.  It is the complete scalar table until QvKernelsInit() has run. */
extern QvKernels qv_kernels;

/*
 * Levels.  "avx512" is AVX-512 F/BW/DQ/VL, with VNNI, VPOPCNTDQ and GFNI where this CPU
 * has them.  "avx512bw" is the same without these three.  It is listed only where one of
 * them exists, so that tests can reach it.
 */

/* Chooses the best level that this CPU and its operating system support. */
extern void QvKernelsInit(void);

/*
 * Uses the level of that name, or the best one for "auto".  Returns false, and changes
 * nothing, if the name is unknown or this CPU cannot run it.
 */
extern bool QvKernelsSetLevel(const char *level);

/* The levels this CPU can run, best first, NULL-terminated. */
extern const char *const *QvKernelsAvailable(void);

#endif							/* QV_KERNELS_H */
