/*
 * scalar.c
 *		Every kernel in plain C.  It is the reference for the other levels, and runs
 *		where none of them can.
 *
 * Float sums use LANES independent accumulators, for accuracy as much as for speed: the
 * rounding error grows with the length of each chain.
 */
#include "kernels/levels.h"

#define LANES 8

#define ld(p, i) qv_load_f32(p, i)
#define ld16(p, i) qv_f16_to_f32(qv_load_u16(p, i))

static inline float
sum_lanes(const float *s)
{
	return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/*
 * A reduction over two arrays.  "load" reads one element.  "step" adds the pair x, y to
 * the accumulator s.
 */
#define PAIR_REDUCTION(name, type, load, step) \
static float \
name(const type *a, const type *b, size_t n) \
{ \
	float		lanes[LANES] = {0}; \
	size_t		i; \
\
	for (i = 0; i + LANES <= n; i += LANES) \
	{ \
		for (size_t j = 0; j < LANES; j++) \
		{ \
			float		x = load(a, i + j); \
			float		y = load(b, i + j); \
			float		s = lanes[j]; \
\
			step; \
			lanes[j] = s; \
		} \
	} \
	for (size_t j = 0; i < n; i++, j++) \
	{ \
		float		x = load(a, i); \
		float		y = load(b, i); \
		float		s = lanes[j]; \
\
		step; \
		lanes[j] = s; \
	} \
	return sum_lanes(lanes); \
}

PAIR_REDUCTION(qv_l2sq_f32_scalar, float, ld, s += (x - y) * (x - y))
PAIR_REDUCTION(qv_ip_f32_scalar, float, ld, s += x * y)
PAIR_REDUCTION(qv_l1_f32_scalar, float, ld, s += fabsf(x - y))
PAIR_REDUCTION(qv_l2sq_f16_scalar, uint16_t, ld16, s += (x - y) * (x - y))
PAIR_REDUCTION(qv_ip_f16_scalar, uint16_t, ld16, s += x * y)
PAIR_REDUCTION(qv_l1_f16_scalar, uint16_t, ld16, s += fabsf(x - y))

static void
qv_cosine_f32_scalar(const float *a, const float *b, size_t n,
					 float *ab, float *aa, float *bb)
{
	*ab = qv_ip_f32_scalar(a, b, n);
	*aa = qv_ip_f32_scalar(a, a, n);
	*bb = qv_ip_f32_scalar(b, b, n);
}

static void
qv_cosine_f16_scalar(const uint16_t *a, const uint16_t *b, size_t n,
					 float *ab, float *aa, float *bb)
{
	*ab = qv_ip_f16_scalar(a, b, n);
	*aa = qv_ip_f16_scalar(a, a, n);
	*bb = qv_ip_f16_scalar(b, b, n);
}

static void
qv_f16_to_f32_scalar(const uint16_t *src, float *dst, size_t n)
{
	for (size_t i = 0; i < n; i++)
		qv_store_f32(dst, i, qv_f16_to_f32(qv_load_u16(src, i)));
}

static void
qv_f32_to_f16_scalar(const float *src, uint16_t *dst, size_t n)
{
	for (size_t i = 0; i < n; i++)
		qv_store_u16(dst, i, qv_f32_to_f16(qv_load_f32(src, i)));
}

/* The builtin would call a library function that looks bytes up in a table. */
static inline uint64_t
popcount64(uint64_t v)
{
	v -= v >> 1 & UINT64_C(0x5555555555555555);
	v = (v & UINT64_C(0x3333333333333333)) +
		(v >> 2 & UINT64_C(0x3333333333333333));
	v = (v + (v >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return v * UINT64_C(0x0101010101010101) >> 56;
}

/* The last n % 8 bytes as a word, zero-filled. */
static inline uint64_t
load_tail(const uint8_t *p, size_t n)
{
	uint64_t	v = 0;

	memcpy(&v, p + n / 8 * 8, n % 8);
	return v;
}

static uint64_t
qv_hamming_scalar(const uint8_t *a, const uint8_t *b, size_t n)
{
	uint64_t	sum = 0;

	for (size_t i = 0; i < n / 8; i++)
		sum += popcount64(qv_load_u64(a, i) ^ qv_load_u64(b, i));
	if (n % 8 != 0)
		sum += popcount64(load_tail(a, n) ^ load_tail(b, n));
	return sum;
}

static void
qv_jaccard_scalar(const uint8_t *a, const uint8_t *b, size_t n,
				  uint64_t *both, uint64_t *either)
{
	uint64_t	sum_and = 0;
	uint64_t	sum_or = 0;

	for (size_t i = 0; i < n / 8; i++)
	{
		uint64_t	x = qv_load_u64(a, i);
		uint64_t	y = qv_load_u64(b, i);

		sum_and += popcount64(x & y);
		sum_or += popcount64(x | y);
	}
	if (n % 8 != 0)
	{
		sum_and += popcount64(load_tail(a, n) & load_tail(b, n));
		sum_or += popcount64(load_tail(a, n) | load_tail(b, n));
	}
	*both = sum_and;
	*either = sum_or;
}

static int32_t
qv_ip_u8u8_scalar(const uint8_t *a, const uint8_t *b, size_t n)
{
	int32_t		sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (int32_t) a[i] * b[i];
	return sum;
}

static int32_t
qv_sum_u8_scalar(const uint8_t *a, size_t n)
{
	int32_t		sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += a[i];
	return sum;
}

static int64_t
qv_ip_u8s16_scalar(const uint8_t *code, const int8_t *hi, const int8_t *lo,
				   size_t n)
{
	int32_t		sum_hi = 0;
	int32_t		sum_lo = 0;

	for (size_t i = 0; i < n; i++)
	{
		sum_hi += (int32_t) code[i] * hi[i];
		sum_lo += (int32_t) code[i] * lo[i];
	}
	return (int64_t) sum_hi * 256 + sum_lo;
}

static void
qv_unpack_bits_scalar(const uint8_t *packed, int bits, uint8_t *out, size_t n)
{
	if (bits == 4)
	{
		for (size_t i = 0; i < n / 2; i++)
		{
			out[2 * i] = packed[i] & 15;
			out[2 * i + 1] = packed[i] >> 4;
		}
	}
	else
	{
		for (size_t i = 0; i < n / 4; i++)
		{
			for (size_t j = 0; j < 4; j++)
				out[4 * i + j] = packed[i] >> 2 * j & 3;
		}
	}
}

static void
qv_fastscan_scalar(const uint8_t *batch, const uint8_t *lut, size_t nibbles,
				   uint32_t out[QV_BATCH])
{
	memset(out, 0, QV_BATCH * sizeof(out[0]));
	for (size_t t = 0; t < nibbles; t++, batch += 16, lut += 16)
	{
		for (size_t v = 0; v < 16; v++)
		{
			out[v] += lut[batch[v] & 15];
			out[v + 16] += lut[batch[v] >> 4];
		}
	}
}

static void
qv_fastscan_pack_scalar(const uint8_t *codes, size_t stride, size_t nbytes,
						uint8_t *batch)
{
	for (size_t i = 0; i < nbytes; i++, batch += QV_BATCH)
		for (size_t v = 0; v < 16; v++)
		{
			unsigned	first = codes[v * stride + i];
			unsigned	second = codes[(v + 16) * stride + i];

			batch[v] = (uint8_t) ((first & 0x0f) | (second & 0x0f) << 4);
			batch[v + 16] = (uint8_t) (first >> 4 | (second & 0xf0));
		}
}

static uint32_t
qv_fastscan_estimate_scalar(const uint8_t *batch, const uint8_t *lut,
							size_t nibbles, const QvEstimateParams *p,
							float threshold, float out[QV_BATCH])
{
	uint32_t	sums[QV_BATCH];
	uint32_t	mask = 0;

	qv_fastscan_scalar(batch, lut, nibbles, sums);
	for (size_t i = 0; i < QV_BATCH; i++)
	{
		float		a = ld16(p->a, i);
		float		b = ld16(p->b, i);
		float		ip = p->lut_scale * (float) sums[i] + p->lut_bias;
		float		estimate = p->base + p->a_scale * a + p->b_scale * b * ip;

		out[i] = estimate;
		if (estimate < threshold && a < INFINITY)
			mask |= UINT32_C(1) << i;
	}
	return mask;
}

static void
qv_residual_bits_scalar(const uint8_t *code, float scale, float offset,
						const float *p, size_t n, uint8_t *bits,
						float *sum_abs, float *yp)
{
	float		lanes_abs[LANES] = {0};
	float		lanes_yp[LANES] = {0};

	for (size_t i = 0; i < n; i += LANES)
	{
		unsigned	byte = 0;

		for (size_t j = 0; j < LANES; j++)
		{
			float		x = ld(p, i + j);
			float		r = scale * ((float) code[i + j] - offset) - x;
			bool		bit = r >= 0;

			lanes_abs[j] += fabsf(r);
			lanes_yp[j] += bit ? x : -x;
			byte |= (unsigned) bit << j;
		}
		bits[i / 8] = (uint8_t) byte;
	}
	*sum_abs = sum_lanes(lanes_abs);
	*yp = 0.5f * sum_lanes(lanes_yp);
}

static void
qv_decode_u8_scalar(const uint8_t *code, float scale, float offset,
					float *dst, size_t n)
{
	for (size_t i = 0; i < n; i++)
		qv_store_f32(dst, i, scale * ((float) code[i] - offset));
}

static void
qv_quantize_u8_scalar(const float *x, size_t n, float t, float half,
					  uint8_t *code, float *xy, float *yy)
{
	float		lanes_xy[LANES] = {0};
	float		lanes_yy[LANES] = {0};

	for (size_t i = 0; i < n; i++)
	{
		float		v = ld(x, i);
		float		f = floorf(v * t);
		float		y;

		f = f < -half ? -half : f;
		f = f > half - 1 ? half - 1 : f;
		y = f + 0.5f;
		code[i] = (uint8_t) (int) (f + half);
		lanes_xy[i % LANES] += v * y;
		lanes_yy[i % LANES] += y * y;
	}
	*xy = sum_lanes(lanes_xy);
	*yy = sum_lanes(lanes_yy);
}

static double
qv_norm2_f64_scalar(const float *x, size_t n)
{
	double		s[4][8] = {0};
	double		sum[8];
	size_t		i;

	for (i = 0; i + 8 <= n; i += 8)
	{
		for (size_t j = 0; j < 8; j++)
		{
			double		v = ld(x, i + j);

			s[i / 8 % 4][j] += v * v;
		}
	}
	for (size_t j = 0; j < 8; j++)
		sum[j] = (s[0][j] + s[1][j]) + (s[2][j] + s[3][j]);
	return qv_norm2_end(sum, x, i, n);
}

static void
qv_divide_f32_scalar(const float *x, double by, float *dst, size_t n)
{
	for (size_t i = 0; i < n; i++)
		qv_store_f32(dst, i, (float) (ld(x, i) / by));
}

#define POSITIVE_BITS(name, type, positive) \
static void \
name(const type *x, size_t n, uint8_t *bits) \
{ \
	for (size_t i = 0; i < n; i += 8) \
	{ \
		unsigned	byte = 0; \
\
		for (size_t j = 0; j < 8 && i + j < n; j++) \
			byte |= (unsigned) (positive) << (7 - j); \
		bits[i / 8] = (uint8_t) byte; \
	} \
}

POSITIVE_BITS(qv_positive_bits_f32_scalar, float, ld(x, i + j) > 0)
POSITIVE_BITS(qv_positive_bits_f16_scalar, uint16_t,
			  qv_f16_positive(qv_load_u16(x, i + j)))

static float
qv_norm2_f32_scalar(const float *x, size_t n)
{
	return qv_ip_f32_scalar(x, x, n);
}

static float
qv_maxabs_f32_scalar(const float *x, size_t n)
{
	float		max = 0;

	for (size_t i = 0; i < n; i++)
	{
		float		v = fabsf(ld(x, i));

		max = v > max ? v : max;
	}
	return max;
}

static void
qv_mix_f32_scalar(float *a, float *b, size_t n, float scale)
{
	qv_butterflies(a, b, n, scale);
}

static void
qv_fht_f32_scalar(float *x, size_t n)
{
	qv_fht_plain(x, n);
}

static void
qv_flip_signs_f32_scalar(float *x, const uint8_t *signs, size_t n)
{
	for (size_t i = 0; i < n; i++)
	{
		if (signs[i / 8] >> i % 8 & 1)
			qv_store_f32(x, i, -ld(x, i));
	}
}

static void
qv_ip_f32_block_scalar(const float *a, size_t na, size_t lda,
					   const float *b, size_t nb, size_t ldb,
					   size_t dim, float *out, size_t ldo)
{
	for (size_t i = 0; i < na; i++)
	{
		for (size_t j = 0; j < nb; j++)
			qv_store_f32(out, i * ldo + j,
						 qv_ip_f32_scalar(a + i * lda, b + j * ldb, dim));
	}
}

static float
qv_sign_bits_f32_scalar(const float *x, size_t n, uint8_t *bits)
{
	float		lanes[LANES] = {0};

	for (size_t i = 0; i < n; i += LANES)
	{
		unsigned	byte = 0;

		for (size_t j = 0; j < LANES; j++)
		{
			float		v = ld(x, i + j);

			lanes[j] += fabsf(v);
			byte |= (unsigned) (v >= 0) << j;
		}
		bits[i / 8] = (uint8_t) byte;
	}
	return sum_lanes(lanes);
}

static float
qv_ip_bits_f32_scalar(const uint8_t *bits, const float *x, size_t n)
{
	float		lanes[LANES] = {0};

	for (size_t i = 0; i < n; i += LANES)
		for (size_t j = 0; j < LANES; j++)
			lanes[j] += bits[i / 8] >> j & 1 ? ld(x, i + j) : 0;
	return sum_lanes(lanes);
}

static void
qv_ip_bits_s8_scalar(const uint8_t *const *bits, size_t count, const int8_t *x, size_t n, int32_t *sums)
{
	for (size_t c = 0; c < count; c++)
	{
		sums[c] = 0;
		for (size_t i = 0; i < n; i++)
			sums[c] += bits[c][i / 8] >> i % 8 & 1 ? x[i] : 0;
	}
}

static void
qv_split_s16_scalar(const float *x, size_t n, float inv, float scale,
					int8_t *hi, int8_t *lo, int32_t *sum, float *err2)
{
	float		lanes[LANES] = {0};
	int32_t		total = 0;

	for (size_t i = 0; i < n; i++)
	{
		float		v = rintf(ld(x, i) * inv);
		float		e = ld(x, i) - scale * v;
		int32_t		q = (int32_t) v;
		int32_t		h = (q + 128 + 32768) / 256 - 128;	/* floor */

		hi[i] = (int8_t) h;
		lo[i] = (int8_t) (q - 256 * h);
		total += q;
		lanes[i % LANES] += e * e;
	}
	*sum = total;
	*err2 = sum_lanes(lanes);
}

static void
qv_lut_f32_scalar(const float *x, size_t nibbles, float inv, uint8_t *lut)
{
	for (size_t t = 0; t < nibbles; t++)
	{
		float		set[4];
		float		clear[4];

		for (size_t j = 0; j < 4; j++)
		{
			float		v = ld(x, 4 * t + j) * inv;

			set[j] = v > 0 ? v : 0;
			clear[j] = v < 0 ? -v : 0;
		}
		for (size_t v = 0; v < 16; v++)
		{
			float		sum = ((v & 1 ? set : clear)[0] +
							   (v & 2 ? set : clear)[1]) +
				((v & 4 ? set : clear)[2] + (v & 8 ? set : clear)[3]);
			float		rounded = rintf(sum);

			lut[16 * t + v] = (uint8_t) (rounded < 255 ? rounded : 255);
		}
	}
}

static void
qv_add_f32_scalar(float *dst, const float *src, size_t n)
{
	for (size_t i = 0; i < n; i++)
		qv_store_f32(dst, i, ld(dst, i) + ld(src, i));
}

static size_t
qv_argmin_diff_f32_scalar(const float *a, const float *b, size_t n,
						  float *min)
{
	size_t		best = 0;
	float		best_value = INFINITY;

	for (size_t i = 0; i < n; i++)
	{
		float		d = ld(a, i) - ld(b, i);

		if (d < best_value)
		{
			best_value = d;
			best = i;
		}
	}
	*min = best_value;
	return best;
}

/* x or 0, without a branch: which index comes next cannot be predicted. */
static inline float
selected(float x, bool choice)
{
	uint32_t	bits;

	memcpy(&bits, &x, sizeof(bits));
	bits &= -(uint32_t) choice;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

/*
 * The sum of term(x, y) over the indices that a or b has.  A vector is zero at an index
 * that it lacks.
 */
#define SPARSE_SUM(name, term) \
static float \
name(const QvSparse *a, const QvSparse *b) \
{ \
	size_t		i = 0; \
	size_t		j = 0; \
	float		x; \
	float		y; \
	float		sum = 0; \
\
	while (i < a->n && j < b->n) \
	{ \
		int32_t		p = qv_load_i32(a->indices, i); \
		int32_t		q = qv_load_i32(b->indices, j); \
\
		x = selected(ld(a->values, i), p <= q); \
		y = selected(ld(b->values, j), q <= p); \
		i += (p <= q); \
		j += (q <= p); \
		sum += (term); \
	} \
	for (y = 0; i < a->n; i++) \
	{ \
		x = ld(a->values, i); \
		sum += (term); \
	} \
	for (x = 0; j < b->n; j++) \
	{ \
		y = ld(b->values, j); \
		sum += (term); \
	} \
	return sum; \
}

SPARSE_SUM(qv_l2sq_sparse_scalar, (x - y) * (x - y))
SPARSE_SUM(qv_l1_sparse_scalar, fabsf(x - y))

/* Only common indices count, so the end of the longer one is not read. */
static float
qv_ip_sparse_scalar(const QvSparse *a, const QvSparse *b)
{
	size_t		i = 0;
	size_t		j = 0;
	float		sum = 0;

	while (i < a->n && j < b->n)
	{
		int32_t		p = qv_load_i32(a->indices, i);
		int32_t		q = qv_load_i32(b->indices, j);

		if (p == q)
			sum += ld(a->values, i) * ld(b->values, j);
		i += (p <= q);
		j += (q <= p);
	}
	return sum;
}

#define SCATTER(name, type, store, convert) \
static bool \
name(const QvSparse *v, float limit, type *dst, size_t dim) \
{ \
	memset(dst, 0, dim * sizeof(type)); \
	for (size_t i = 0; i < v->n; i++) \
	{ \
		uint32_t	index = (uint32_t) qv_load_i32(v->indices, i); \
		float		x = ld(v->values, i); \
\
		if (index >= dim || !(fabsf(x) < limit)) \
			return false; \
		store(dst, index, convert(x)); \
	} \
	return true; \
}

SCATTER(qv_scatter_f32_scalar, float, qv_store_f32,)
SCATTER(qv_scatter_f16_scalar, uint16_t, qv_store_u16, qv_f32_to_f16)

#define SCALAR_TABLE \
{ \
	.level = "scalar", \
	.l2sq_f32 = qv_l2sq_f32_scalar, \
	.ip_f32 = qv_ip_f32_scalar, \
	.l1_f32 = qv_l1_f32_scalar, \
	.cosine_f32 = qv_cosine_f32_scalar, \
	.l2sq_f16 = qv_l2sq_f16_scalar, \
	.ip_f16 = qv_ip_f16_scalar, \
	.l1_f16 = qv_l1_f16_scalar, \
	.cosine_f16 = qv_cosine_f16_scalar, \
	.f16_to_f32 = qv_f16_to_f32_scalar, \
	.f32_to_f16 = qv_f32_to_f16_scalar, \
	.hamming = qv_hamming_scalar, \
	.jaccard = qv_jaccard_scalar, \
	.ip_u8u8 = qv_ip_u8u8_scalar, \
	.sum_u8 = qv_sum_u8_scalar, \
	.ip_u8s16 = qv_ip_u8s16_scalar, \
	.unpack_bits = qv_unpack_bits_scalar, \
	.fastscan = qv_fastscan_scalar, \
	.fastscan_pack = qv_fastscan_pack_scalar, \
	.fastscan_estimate = qv_fastscan_estimate_scalar, \
	.residual_bits = qv_residual_bits_scalar, \
	.decode_u8 = qv_decode_u8_scalar, \
	.quantize_u8 = qv_quantize_u8_scalar, \
	.norm2_f64 = qv_norm2_f64_scalar, \
	.divide_f32 = qv_divide_f32_scalar, \
	.positive_bits_f32 = qv_positive_bits_f32_scalar, \
	.positive_bits_f16 = qv_positive_bits_f16_scalar, \
	.norm2_f32 = qv_norm2_f32_scalar, \
	.maxabs_f32 = qv_maxabs_f32_scalar, \
	.fht_f32 = qv_fht_f32_scalar, \
	.flip_signs_f32 = qv_flip_signs_f32_scalar, \
	.ip_f32_block = qv_ip_f32_block_scalar, \
	.sign_bits_f32 = qv_sign_bits_f32_scalar, \
	.ip_bits_f32 = qv_ip_bits_f32_scalar, \
	.ip_bits_s8 = qv_ip_bits_s8_scalar, \
	.split_s16 = qv_split_s16_scalar, \
	.lut_f32 = qv_lut_f32_scalar, \
	.mix_f32 = qv_mix_f32_scalar, \
	.add_f32 = qv_add_f32_scalar, \
	.argmin_diff_f32 = qv_argmin_diff_f32_scalar, \
	.l2sq_sparse = qv_l2sq_sparse_scalar, \
	.ip_sparse = qv_ip_sparse_scalar, \
	.l1_sparse = qv_l1_sparse_scalar, \
	.scatter_f32 = qv_scatter_f32_scalar, \
	.scatter_f16 = qv_scatter_f16_scalar, \
}

QvKernels	qv_kernels = SCALAR_TABLE;

void
QvFillScalar(QvKernels *table)
{
	static const QvKernels scalar = SCALAR_TABLE;

	*table = scalar;
}
