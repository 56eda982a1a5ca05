/*
 * neon.c
 *		Kernels for the vector unit that every 64-bit Arm CPU has.
 *
 * Tails are finished in plain C.  Kernels that are called once for a query, not once for
 * a vector, are inherited from scalar.c.
 */
#include "kernels/levels.h"

#ifdef QV_NEON

#include <arm_neon.h>

/* Loads bytes, because such loads promise no alignment. */
static inline float32x4_t
load_f32(const float *p)
{
	return vreinterpretq_f32_u8(vld1q_u8((const uint8_t *) p));
}

static inline void
store_f32(float *p, float32x4_t v)
{
	vst1q_u8((uint8_t *) p, vreinterpretq_u8_f32(v));
}

static inline float32x4_t
load_f16(const uint16_t *p)
{
	return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8((const uint8_t *) p)));
}

static inline float
one_f32(const float *p)
{
	return qv_load_f32(p, 0);
}

static inline float
one_f16(const uint16_t *p)
{
	return qv_f16_to_f32(qv_load_u16(p, 0));
}

static inline float32x4_t
step_l2sq(float32x4_t s, float32x4_t x, float32x4_t y)
{
	float32x4_t d = vsubq_f32(x, y);

	return vfmaq_f32(s, d, d);
}

static inline float32x4_t
step_ip(float32x4_t s, float32x4_t x, float32x4_t y)
{
	return vfmaq_f32(s, x, y);
}

static inline float32x4_t
step_l1(float32x4_t s, float32x4_t x, float32x4_t y)
{
	return vaddq_f32(s, vabdq_f32(x, y));
}

static inline float
term_l2sq(float x, float y)
{
	return (x - y) * (x - y);
}

static inline float
term_ip(float x, float y)
{
	return x * y;
}

static inline float
term_l1(float x, float y)
{
	return fabsf(x - y);
}

#define PAIR_REDUCTION(name, op, type, ctype) \
static float \
name(const ctype *a, const ctype *b, size_t n) \
{ \
	float32x4_t s0 = vdupq_n_f32(0); \
	float32x4_t s1 = s0; \
	float32x4_t s2 = s0; \
	float32x4_t s3 = s0; \
	float		sum; \
	size_t		i; \
\
	for (i = 0; i + 16 <= n; i += 16) \
	{ \
		s0 = step_##op(s0, load_##type(a + i), load_##type(b + i)); \
		s1 = step_##op(s1, load_##type(a + i + 4), load_##type(b + i + 4)); \
		s2 = step_##op(s2, load_##type(a + i + 8), load_##type(b + i + 8)); \
		s3 = step_##op(s3, load_##type(a + i + 12), load_##type(b + i + 12)); \
	} \
	for (; i + 4 <= n; i += 4) \
		s0 = step_##op(s0, load_##type(a + i), load_##type(b + i)); \
	sum = vaddvq_f32(vaddq_f32(vaddq_f32(s0, s1), vaddq_f32(s2, s3))); \
	for (; i < n; i++) \
		sum += term_##op(one_##type(a + i), one_##type(b + i)); \
	return sum; \
}

PAIR_REDUCTION(qv_l2sq_f32_neon, l2sq, f32, float)
PAIR_REDUCTION(qv_ip_f32_neon, ip, f32, float)
PAIR_REDUCTION(qv_l1_f32_neon, l1, f32, float)
PAIR_REDUCTION(qv_l2sq_f16_neon, l2sq, f16, uint16_t)
PAIR_REDUCTION(qv_ip_f16_neon, ip, f16, uint16_t)
PAIR_REDUCTION(qv_l1_f16_neon, l1, f16, uint16_t)

#define COSINE_STEP(j, x, y) \
do { \
	float32x4_t vx = x; \
	float32x4_t vy = y; \
\
	ab##j = vfmaq_f32(ab##j, vx, vy); \
	aa##j = vfmaq_f32(aa##j, vx, vx); \
	bb##j = vfmaq_f32(bb##j, vy, vy); \
} while (0)

#define COSINE(name, type, ctype) \
static void \
name(const ctype *a, const ctype *b, size_t n, \
	 float *ab, float *aa, float *bb) \
{ \
	float32x4_t ab0 = vdupq_n_f32(0); \
	float32x4_t ab1 = ab0; \
	float32x4_t aa0 = ab0; \
	float32x4_t aa1 = ab0; \
	float32x4_t bb0 = ab0; \
	float32x4_t bb1 = ab0; \
	size_t		i; \
\
	for (i = 0; i + 8 <= n; i += 8) \
	{ \
		COSINE_STEP(0, load_##type(a + i), load_##type(b + i)); \
		COSINE_STEP(1, load_##type(a + i + 4), load_##type(b + i + 4)); \
	} \
	*ab = vaddvq_f32(vaddq_f32(ab0, ab1)); \
	*aa = vaddvq_f32(vaddq_f32(aa0, aa1)); \
	*bb = vaddvq_f32(vaddq_f32(bb0, bb1)); \
	for (; i < n; i++) \
	{ \
		float		x = one_##type(a + i); \
		float		y = one_##type(b + i); \
\
		*ab += x * y; \
		*aa += x * x; \
		*bb += y * y; \
	} \
}

COSINE(qv_cosine_f32_neon, f32, float)
COSINE(qv_cosine_f16_neon, f16, uint16_t)

static void
qv_f16_to_f32_neon(const uint16_t *src, float *dst, size_t n)
{
	size_t		i;

	for (i = 0; i + 4 <= n; i += 4)
		store_f32(dst + i, load_f16(src + i));
	for (; i < n; i++)
		qv_store_f32(dst, i, one_f16(src + i));
}

static void
qv_f32_to_f16_neon(const float *src, uint16_t *dst, size_t n)
{
	size_t		i;

	for (i = 0; i + 4 <= n; i += 4)
		vst1_u8((uint8_t *) (dst + i),
				vreinterpret_u8_f16(vcvt_f16_f32(load_f32(src + i))));
	for (; i < n; i++)
		qv_store_u16(dst, i, qv_f32_to_f16(one_f32(src + i)));
}

/* ---- bit strings ---- */

/* acc plus the set bits of v, in two sums */
static inline uint64x2_t
add_bits(uint64x2_t acc, uint8x16_t v)
{
	return vpadalq_u32(acc, vpaddlq_u16(vpaddlq_u8(vcntq_u8(v))));
}

static inline uint64_t
byte_bits(unsigned v)
{
	return vaddv_u8(vcnt_u8(vcreate_u8(v & 0xff)));
}

static uint64_t
qv_hamming_neon(const uint8_t *a, const uint8_t *b, size_t n)
{
	uint64x2_t	s = vdupq_n_u64(0);
	uint64_t	sum;
	size_t		i;

	for (i = 0; i + 16 <= n; i += 16)
		s = add_bits(s, veorq_u8(vld1q_u8(a + i), vld1q_u8(b + i)));
	sum = vaddvq_u64(s);
	for (; i < n; i++)
		sum += byte_bits(a[i] ^ b[i]);
	return sum;
}

static void
qv_jaccard_neon(const uint8_t *a, const uint8_t *b, size_t n,
				uint64_t *both, uint64_t *either)
{
	uint64x2_t	s_and = vdupq_n_u64(0);
	uint64x2_t	s_or = s_and;
	size_t		i;

	for (i = 0; i + 16 <= n; i += 16)
	{
		uint8x16_t	x = vld1q_u8(a + i);
		uint8x16_t	y = vld1q_u8(b + i);

		s_and = add_bits(s_and, vandq_u8(x, y));
		s_or = add_bits(s_or, vorrq_u8(x, y));
	}
	*both = vaddvq_u64(s_and);
	*either = vaddvq_u64(s_or);
	for (; i < n; i++)
	{
		*both += byte_bits(a[i] & b[i]);
		*either += byte_bits(a[i] | b[i]);
	}
}

/* ---- 8-bit codes ---- */

static int32_t
qv_sum_u8_neon(const uint8_t *a, size_t n)
{
	uint32x4_t	s = vdupq_n_u32(0);
	uint32_t	sum;
	size_t		i;

	for (i = 0; i + 16 <= n; i += 16)
		s = vpadalq_u16(s, vpaddlq_u8(vld1q_u8(a + i)));
	sum = vaddvq_u32(s);
	for (; i < n; i++)
		sum += a[i];
	return (int32_t) sum;
}

static int32_t
qv_ip_u8u8_neon(const uint8_t *a, const uint8_t *b, size_t n)
{
	uint32x4_t	s0 = vdupq_n_u32(0);
	uint32x4_t	s1 = s0;
	uint32_t	sum;
	size_t		i;

	for (i = 0; i + 16 <= n; i += 16)
	{
		uint8x16_t	x = vld1q_u8(a + i);
		uint8x16_t	y = vld1q_u8(b + i);

		s0 = vpadalq_u16(s0, vmull_u8(vget_low_u8(x), vget_low_u8(y)));
		s1 = vpadalq_u16(s1, vmull_high_u8(x, y));
	}
	sum = vaddvq_u32(vaddq_u32(s0, s1));
	for (; i < n; i++)
		sum += (uint32_t) a[i] * b[i];
	return (int32_t) sum;
}

/* acc + sum of c * v over eight elements */
static inline int32x4_t
add_products(int32x4_t acc, int16x8_t c, int8x8_t v)
{
	int16x8_t	w = vmovl_s8(v);

	acc = vmlal_s16(acc, vget_low_s16(c), vget_low_s16(w));
	return vmlal_high_s16(acc, c, w);
}

static int64_t
qv_ip_u8s16_neon(const uint8_t *code, const int8_t *hi, const int8_t *lo,
				 size_t n)
{
	int32x4_t	h = vdupq_n_s32(0);
	int32x4_t	l = h;
	int64_t		sum;
	size_t		i;

	for (i = 0; i + 8 <= n; i += 8)
	{
		int16x8_t	c = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(code + i)));

		h = add_products(h, c, vld1_s8(hi + i));
		l = add_products(l, c, vld1_s8(lo + i));
	}
	sum = (int64_t) vaddvq_s32(h) * 256 + vaddvq_s32(l);
	for (; i < n; i++)
		sum += (int64_t) code[i] * (256 * hi[i] + lo[i]);
	return sum;
}

/* ---- FastScan ---- */

/* Nibbles whose sum fits 16 bits. */
#define SCAN_NIBBLES 256

/* Sums as four groups of eight codes. */
static inline void
scan_nibbles(const uint8_t *batch, const uint8_t *lut, size_t nibbles,
			 uint16x8_t sums[4])
{
	const uint8x16_t nibble = vdupq_n_u8(15);
	uint16x8_t	s0 = vdupq_n_u16(0);
	uint16x8_t	s1 = s0;
	uint16x8_t	s2 = s0;
	uint16x8_t	s3 = s0;

	for (size_t t = 0; t < nibbles; t++)
	{
		uint8x16_t	codes = vld1q_u8(batch + 16 * t);
		uint8x16_t	table = vld1q_u8(lut + 16 * t);
		uint8x16_t	v0 = vqtbl1q_u8(table, vandq_u8(codes, nibble));
		uint8x16_t	v1 = vqtbl1q_u8(table, vshrq_n_u8(codes, 4));

		s0 = vaddw_u8(s0, vget_low_u8(v0));
		s1 = vaddw_high_u8(s1, v0);
		s2 = vaddw_u8(s2, vget_low_u8(v1));
		s3 = vaddw_high_u8(s3, v1);
	}
	sums[0] = s0;
	sums[1] = s1;
	sums[2] = s2;
	sums[3] = s3;
}

static inline void
scan_batch(const uint8_t *batch, const uint8_t *lut, size_t nibbles,
		   uint32x4_t sums[8])
{
#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		sums[i] = vdupq_n_u32(0);
	for (size_t done = 0; done < nibbles; done += SCAN_NIBBLES)
	{
		size_t		part = nibbles - done;
		uint16x8_t	s[4];

		if (part > SCAN_NIBBLES)
			part = SCAN_NIBBLES;
		scan_nibbles(batch + 16 * done, lut + 16 * done, part, s);
#pragma GCC unroll 8
		for (int i = 0; i < 4; i++)
		{
			sums[2 * i] = vaddw_u16(sums[2 * i], vget_low_u16(s[i]));
			sums[2 * i + 1] = vaddw_high_u16(sums[2 * i + 1], s[i]);
		}
	}
}

static void
qv_fastscan_neon(const uint8_t *batch, const uint8_t *lut, size_t nibbles,
				 uint32_t out[QV_BATCH])
{
	uint32x4_t	sums[8];

	scan_batch(batch, lut, nibbles, sums);
#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		vst1q_u8((uint8_t *) (out + 4 * i), vreinterpretq_u8_u32(sums[i]));
}

/* As in avx2.c: transpose 16 x 16 bytes. */
static inline void
transpose_bytes(uint8x16_t x[16])
{
	uint8x16_t	y[16];

#pragma GCC unroll 2
	for (int round = 0; round < 2; round++)
	{
#pragma GCC unroll 8
		for (int r = 0; r < 8; r++)
		{
			y[2 * r] = vzip1q_u8(x[r], x[r + 8]);
			y[2 * r + 1] = vzip2q_u8(x[r], x[r + 8]);
		}
#pragma GCC unroll 8
		for (int r = 0; r < 8; r++)
		{
			x[2 * r] = vzip1q_u8(y[r], y[r + 8]);
			x[2 * r + 1] = vzip2q_u8(y[r], y[r + 8]);
		}
	}
}

/*
 * Packs n <= 16 bytes of each code.  Nothing past the codes may be read, so the last 16
 * codes are read up to their end and shifted down.
 */
static inline void
pack_columns(const uint8_t *codes, size_t stride, size_t n, uint8_t *batch)
{
	static const uint8_t shifts[32] = {
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
		255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255
	};
	const uint8x16_t down = vld1q_u8(shifts + 16 - n);
	const uint8_t *others = codes + 16 * stride + n - 16;
	uint8x16_t	x[16];
	uint8x16_t	y[16];

#pragma GCC unroll 16
	for (size_t r = 0; r < 16; r++)
	{
		x[r] = vld1q_u8(codes + r * stride);
		y[r] = vld1q_u8(others + r * stride);
		if (n < 16)
			y[r] = vqtbl1q_u8(y[r], down);
	}
	transpose_bytes(x);
	transpose_bytes(y);
#pragma GCC unroll 16
	for (size_t c = 0; c < 16; c++)
	{
		if (c == n)
			break;
		/* shift and insert puts the nibbles of y above those of x */
		vst1q_u8(batch + c * QV_BATCH, vsliq_n_u8(x[c], y[c], 4));
		vst1q_u8(batch + c * QV_BATCH + 16, vsriq_n_u8(y[c], x[c], 4));
	}
}

static void
qv_fastscan_pack_neon(const uint8_t *codes, size_t stride, size_t nbytes,
					  uint8_t *batch)
{
	size_t		i;

	for (i = 0; i + 16 <= nbytes; i += 16)
		pack_columns(codes + i, stride, 16, batch + i * QV_BATCH);
	if (i == nbytes)
		return;
	if (nbytes > 16)
		pack_columns(codes + nbytes - 16, stride, 16, batch + (nbytes - 16) * QV_BATCH);
	else
		pack_columns(codes, stride, nbytes, batch);
}

static uint32_t
qv_fastscan_estimate_neon(const uint8_t *batch, const uint8_t *lut,
						  size_t nibbles, const QvEstimateParams *p,
						  float threshold, float out[QV_BATCH])
{
	static const uint32_t bit_values[4] = {1, 2, 4, 8};
	const uint32x4_t bit = vld1q_u32(bit_values);
	const float32x4_t limit = vdupq_n_f32(threshold);
	const float32x4_t infinity = vdupq_n_f32(INFINITY);
	uint32x4_t	sums[8];
	uint32_t	mask = 0;

	scan_batch(batch, lut, nibbles, sums);
#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
	{
		float32x4_t a = load_f16(p->a + 4 * i);
		float32x4_t b = load_f16(p->b + 4 * i);
		float32x4_t ip = vfmaq_f32(vdupq_n_f32(p->lut_bias),
								   vdupq_n_f32(p->lut_scale),
								   vcvtq_f32_u32(sums[i]));
		float32x4_t e = vfmaq_f32(vdupq_n_f32(p->base),
								  vdupq_n_f32(p->a_scale), a);
		uint32x4_t	below;

		e = vfmaq_f32(e, vmulq_f32(vdupq_n_f32(p->b_scale), b), ip);
		store_f32(out + 4 * i, e);
		below = vandq_u32(vcltq_f32(e, limit), vcltq_f32(a, infinity));
		mask |= vaddvq_u32(vandq_u32(below, bit)) << 4 * i;
	}
	return mask;
}

/* ---- codes and floats ---- */

/* Sixteen codes as floats. */
static inline void
codes_to_f32(const uint8_t *code, float32x4_t out[4])
{
	uint8x16_t	v = vld1q_u8(code);
	uint16x8_t	low = vmovl_u8(vget_low_u8(v));
	uint16x8_t	high = vmovl_high_u8(v);

	out[0] = vcvtq_f32_u32(vmovl_u16(vget_low_u16(low)));
	out[1] = vcvtq_f32_u32(vmovl_high_u16(low));
	out[2] = vcvtq_f32_u32(vmovl_u16(vget_low_u16(high)));
	out[3] = vcvtq_f32_u32(vmovl_high_u16(high));
}

/* Four comparison results as sixteen bits. */
static inline void
store_mask16(uint8_t *bits, const uint32x4_t set[4])
{
	static const uint8_t bit_values[16] = {
		1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128
	};
	uint16x8_t	low = vcombine_u16(vmovn_u32(set[0]), vmovn_u32(set[1]));
	uint16x8_t	high = vcombine_u16(vmovn_u32(set[2]), vmovn_u32(set[3]));
	uint8x16_t	all = vcombine_u8(vmovn_u16(low), vmovn_u16(high));

	all = vandq_u8(all, vld1q_u8(bit_values));
	bits[0] = vaddv_u8(vget_low_u8(all));
	bits[1] = vaddv_u8(vget_high_u8(all));
}

static void
qv_residual_bits_neon(const uint8_t *code, float scale, float offset,
					  const float *p, size_t n, uint8_t *bits,
					  float *sum_abs, float *yp)
{
	const float32x4_t vscale = vdupq_n_f32(scale);
	const float32x4_t voffset = vdupq_n_f32(offset);
	float32x4_t s_abs[2] = {vdupq_n_f32(0), vdupq_n_f32(0)};
	float32x4_t s_yp[2] = {vdupq_n_f32(0), vdupq_n_f32(0)};

	for (size_t i = 0; i < n; i += 16)
	{
		float32x4_t y[4];
		uint32x4_t	set[4];

		codes_to_f32(code + i, y);
#pragma GCC unroll 4
		for (int j = 0; j < 4; j++)
		{
			float32x4_t x = load_f32(p + i + 4 * j);
			float32x4_t r = vfmaq_f32(vnegq_f32(x), vscale, vsubq_f32(y[j], voffset));

			set[j] = vcgeq_f32(r, vdupq_n_f32(0));
			s_abs[j % 2] = vaddq_f32(s_abs[j % 2], vabsq_f32(r));
			s_yp[j % 2] = vaddq_f32(s_yp[j % 2],
									vbslq_f32(set[j], x, vnegq_f32(x)));
		}
		store_mask16(bits + i / 8, set);
	}
	*sum_abs = vaddvq_f32(vaddq_f32(s_abs[0], s_abs[1]));
	*yp = 0.5f * vaddvq_f32(vaddq_f32(s_yp[0], s_yp[1]));
}

static void
qv_decode_u8_neon(const uint8_t *code, float scale, float offset,
				  float *dst, size_t n)
{
	size_t		i;

	for (i = 0; i + 16 <= n; i += 16)
	{
		float32x4_t y[4];

		codes_to_f32(code + i, y);
#pragma GCC unroll 4
		for (int j = 0; j < 4; j++)
			store_f32(dst + i + 4 * j,
					  vmulq_n_f32(vsubq_f32(y[j], vdupq_n_f32(offset)), scale));
	}
	for (; i < n; i++)
		qv_store_f32(dst, i, scale * ((float) code[i] - offset));
}

static void
qv_quantize_u8_neon(const float *x, size_t n, float t, float half,
					uint8_t *code, float *xy, float *yy)
{
	const float32x4_t min = vdupq_n_f32(-half);
	const float32x4_t max = vdupq_n_f32(half - 1);
	float32x4_t s_xy[2] = {vdupq_n_f32(0), vdupq_n_f32(0)};
	float32x4_t s_yy[2] = {vdupq_n_f32(0), vdupq_n_f32(0)};
	size_t		i;

	for (i = 0; i + 8 <= n; i += 8)
	{
		uint16x4_t	q[2];

#pragma GCC unroll 4
		for (int j = 0; j < 2; j++)
		{
			float32x4_t v = load_f32(x + i + 4 * j);
			float32x4_t f = vrndmq_f32(vmulq_n_f32(v, t));
			float32x4_t y;

			f = vmaxq_f32(vminq_f32(f, max), min);
			y = vaddq_f32(f, vdupq_n_f32(0.5f));
			q[j] = vmovn_u32(vcvtq_u32_f32(vsubq_f32(f, min)));
			s_xy[j] = vfmaq_f32(s_xy[j], v, y);
			s_yy[j] = vfmaq_f32(s_yy[j], y, y);
		}
		vst1_u8(code + i, vmovn_u16(vcombine_u16(q[0], q[1])));
	}
	*xy = vaddvq_f32(vaddq_f32(s_xy[0], s_xy[1]));
	*yy = vaddvq_f32(vaddq_f32(s_yy[0], s_yy[1]));
	for (; i < n; i++)
	{
		float		v = one_f32(x + i);
		float		f = floorf(v * t);

		f = f > half - 1 ? half - 1 : f;
		f = f < -half ? -half : f;
		code[i] = (uint8_t) (int) (f + half);
		*xy += v * (f + 0.5f);
		*yy += (f + 0.5f) * (f + 0.5f);
	}
}

static double
qv_norm2_f64_neon(const float *x, size_t n)
{
	float64x2_t s[4][4];
	double		lanes[8];
	size_t		i = 0;

#pragma GCC unroll 4
	for (int b = 0; b < 4; b++)
#pragma GCC unroll 4
		for (int j = 0; j < 4; j++)
			s[b][j] = vdupq_n_f64(0);
	while (i + 8 <= n)
	{
#pragma GCC unroll 4
		for (int b = 0; b < 4; b++)
		{
			if (i + 8 > n)
				break;
#pragma GCC unroll 2
			for (int j = 0; j < 2; j++)
			{
				float32x4_t v = load_f32(x + i + 4 * j);
				float64x2_t low = vcvt_f64_f32(vget_low_f32(v));
				float64x2_t high = vcvt_high_f64_f32(v);

				s[b][2 * j] = vfmaq_f64(s[b][2 * j], low, low);
				s[b][2 * j + 1] = vfmaq_f64(s[b][2 * j + 1], high, high);
			}
			i += 8;
		}
	}
	for (int j = 0; j < 4; j++)
		vst1q_f64(lanes + 2 * j,
				  vaddq_f64(vaddq_f64(s[0][j], s[1][j]), vaddq_f64(s[2][j], s[3][j])));
	return qv_norm2_end(lanes, x, i, n);
}

static void
qv_divide_f32_neon(const float *x, double by, float *dst, size_t n)
{
	float64x2_t divisor = vdupq_n_f64(by);
	size_t		i;

	for (i = 0; i + 4 <= n; i += 4)
	{
		float32x4_t v = load_f32(x + i);
		float64x2_t low = vdivq_f64(vcvt_f64_f32(vget_low_f32(v)), divisor);
		float64x2_t high = vdivq_f64(vcvt_high_f64_f32(v), divisor);

		store_f32(dst + i, vcombine_f32(vcvt_f32_f64(low), vcvt_f32_f64(high)));
	}
	for (; i < n; i++)
		qv_store_f32(dst, i, (float) (qv_load_f32(x, i) / by));
}

/* One byte of the type bit, whose first bit is the high one. */
static inline uint8_t
bits_of_bytes(uint8x8_t set)
{
	static const uint8_t bit_values[8] = {128, 64, 32, 16, 8, 4, 2, 1};

	return vaddv_u8(vand_u8(set, vld1_u8(bit_values)));
}

static void
qv_positive_bits_f32_neon(const float *x, size_t n, uint8_t *bits)
{
	float		copy[8] = {0};

	for (size_t i = 0; i < n; i += 8)
	{
		const float *from = x + i;
		uint16x8_t	set;

		if (n - i < 8)
		{
			memcpy(copy, from, (n - i) * sizeof(float));
			from = copy;
		}
		set = vcombine_u16(vmovn_u32(vcgtq_f32(load_f32(from), vdupq_n_f32(0))),
						   vmovn_u32(vcgtq_f32(load_f32(from + 4), vdupq_n_f32(0))));
		bits[i / 8] = bits_of_bytes(vmovn_u16(set));
	}
}

static void
qv_positive_bits_f16_neon(const uint16_t *x, size_t n, uint8_t *bits)
{
	uint16_t	copy[8] = {0};

	for (size_t i = 0; i < n; i += 8)
	{
		const uint16_t *from = x + i;
		int16x8_t	v;

		if (n - i < 8)
		{
			memcpy(copy, from, (n - i) * sizeof(uint16_t));
			from = copy;
		}
		v = vreinterpretq_s16_u8(vld1q_u8((const uint8_t *) from));
		bits[i / 8] = bits_of_bytes(vmovn_u16(vandq_u16(vcgtq_s16(v, vdupq_n_s16(0)),
														vcleq_s16(v, vdupq_n_s16(F16_INFINITY)))));
	}
}

static float
qv_norm2_f32_neon(const float *x, size_t n)
{
	return qv_ip_f32_neon(x, x, n);
}

static float
qv_maxabs_f32_neon(const float *x, size_t n)
{
	float32x4_t max = vdupq_n_f32(0);
	float		result;
	size_t		i;

	for (i = 0; i + 4 <= n; i += 4)
		max = vmaxq_f32(max, vabsq_f32(load_f32(x + i)));
	result = vmaxvq_f32(max);
	for (; i < n; i++)
		result = fmaxf(result, fabsf(one_f32(x + i)));
	return result;
}

static float
qv_sign_bits_f32_neon(const float *x, size_t n, uint8_t *bits)
{
	float32x4_t sum[2] = {vdupq_n_f32(0), vdupq_n_f32(0)};

	for (size_t i = 0; i < n; i += 16)
	{
		uint32x4_t	set[4];

#pragma GCC unroll 4
		for (int j = 0; j < 4; j++)
		{
			float32x4_t v = load_f32(x + i + 4 * j);

			set[j] = vcgeq_f32(v, vdupq_n_f32(0));
			sum[j % 2] = vaddq_f32(sum[j % 2], vabsq_f32(v));
		}
		store_mask16(bits + i / 8, set);
	}
	return vaddvq_f32(vaddq_f32(sum[0], sum[1]));
}

static inline int32_t
ip_bits_s8(const uint8_t *bits, const int8_t *x, size_t n)
{
	const uint8x8_t each = vcreate_u8(UINT64_C(0x8040201008040201));
	int16x8_t	sums;
	int32x4_t	sum = vdupq_n_s32(0);

	for (size_t i = 0; i < n; i += 16)
	{
		uint8x16_t	set = vcombine_u8(vtst_u8(vdup_n_u8(bits[i / 8]), each),
									  vtst_u8(vdup_n_u8(bits[i / 8 + 1]), each));

		sums = vpaddlq_s8(vandq_s8(vld1q_s8(x + i), vreinterpretq_s8_u8(set)));
		sum = vpadalq_s16(sum, sums);
	}
	return vaddvq_s32(sum);
}

static void
qv_ip_bits_s8_neon(const uint8_t *const *bits, size_t count, const int8_t *x, size_t n, int32_t *sums)
{
	for (size_t c = 0; c < count; c++)
		sums[c] = ip_bits_s8(bits[c], x, n);
}

/* ---- vectors in place ---- */

static void
qv_mix_f32_neon(float *a, float *b, size_t n, float scale)
{
	size_t		i;

	for (i = 0; i + 4 <= n; i += 4)
	{
		float32x4_t x = load_f32(a + i);
		float32x4_t y = load_f32(b + i);

		store_f32(a + i, vmulq_n_f32(vaddq_f32(x, y), scale));
		store_f32(b + i, vmulq_n_f32(vsubq_f32(x, y), scale));
	}
	qv_butterflies(a + i, b + i, n - i, scale);
}

/* The transform of four values within a register: h = 1, 2. */
static inline float32x4_t
fht4(float32x4_t v)
{
	float32x4_t even = vtrn1q_f32(v, v);	/* 0 0 2 2 */
	float32x4_t odd = vtrn2q_f32(v, v); /* 1 1 3 3 */
	float32x4_t pairs = vtrn1q_f32(vaddq_f32(even, odd), vsubq_f32(even, odd));
	float32x4_t low = vcombine_f32(vget_low_f32(pairs), vget_low_f32(pairs));
	float32x4_t high = vcombine_f32(vget_high_f32(pairs), vget_high_f32(pairs));

	return vcombine_f32(vget_low_f32(vaddq_f32(low, high)),
						vget_low_f32(vsubq_f32(low, high)));
}

#define BUTTERFLY(p, q) \
do { \
	float32x4_t sum_ = vaddq_f32(p, q); \
\
	q = vsubq_f32(p, q); \
	p = sum_; \
} while (0)

static void
qv_fht_f32_neon(float *x, size_t n)
{
	const float scale = 1.0f / sqrtf((float) n);
	size_t		h = 4;

	if (n < 4)
	{
		qv_fht_plain(x, n);
		return;
	}
	for (size_t i = 0; i < n; i += 4)
		store_f32(x + i, fht4(vmulq_n_f32(load_f32(x + i), scale)));
	/* pairs h apart and then pairs 2h apart, in one pass */
	for (; 4 * h <= n; h *= 4)
	{
		for (size_t i = 0; i < n; i += 4 * h)
		{
			for (size_t j = i; j < i + h; j += 4)
			{
				float32x4_t r0 = load_f32(x + j);
				float32x4_t r1 = load_f32(x + j + h);
				float32x4_t r2 = load_f32(x + j + 2 * h);
				float32x4_t r3 = load_f32(x + j + 3 * h);

				BUTTERFLY(r0, r1);
				BUTTERFLY(r2, r3);
				BUTTERFLY(r0, r2);
				BUTTERFLY(r1, r3);
				store_f32(x + j, r0);
				store_f32(x + j + h, r1);
				store_f32(x + j + 2 * h, r2);
				store_f32(x + j + 3 * h, r3);
			}
		}
	}
	if (h < n)
		qv_mix_f32_neon(x, x + h, h, 1.0f);
}

static void
qv_flip_signs_f32_neon(float *x, const uint8_t *signs, size_t n)
{
	static const int32_t shift_values[8] = {31, 30, 29, 28, 27, 26, 25, 24};
	const int32x4_t shift0 = vld1q_s32(shift_values);
	const int32x4_t shift1 = vld1q_s32(shift_values + 4);
	const uint32x4_t sign = vdupq_n_u32(0x80000000);
	size_t		i;

	for (i = 0; i + 8 <= n; i += 8)
	{
		uint32x4_t	byte = vdupq_n_u32(signs[i / 8]);
		uint32x4_t	v0 = vreinterpretq_u32_f32(load_f32(x + i));
		uint32x4_t	v1 = vreinterpretq_u32_f32(load_f32(x + i + 4));

		v0 = veorq_u32(v0, vandq_u32(vshlq_u32(byte, shift0), sign));
		v1 = veorq_u32(v1, vandq_u32(vshlq_u32(byte, shift1), sign));
		store_f32(x + i, vreinterpretq_f32_u32(v0));
		store_f32(x + i + 4, vreinterpretq_f32_u32(v1));
	}
	for (; i < n; i++)
	{
		if (signs[i / 8] >> i % 8 & 1)
			qv_store_f32(x, i, -one_f32(x + i));
	}
}

/* ---- blocks and centroids ---- */

static void
qv_add_f32_neon(float *dst, const float *src, size_t n)
{
	size_t		i;

	for (i = 0; i + 4 <= n; i += 4)
		store_f32(dst + i, vaddq_f32(load_f32(dst + i), load_f32(src + i)));
	for (; i < n; i++)
		qv_store_f32(dst, i, one_f32(dst + i) + one_f32(src + i));
}

#define TILE 4

#define TILE_ZERO(i) \
	float32x4_t s##i##0 = vdupq_n_f32(0); \
	float32x4_t s##i##1 = s##i##0; \
	float32x4_t s##i##2 = s##i##0; \
	float32x4_t s##i##3 = s##i##0

#define TILE_ROW(i) \
do { \
	float32x4_t v_ = load_f32(a + i * lda + d); \
\
	s##i##0 = vfmaq_f32(s##i##0, v_, w0); \
	s##i##1 = vfmaq_f32(s##i##1, v_, w1); \
	s##i##2 = vfmaq_f32(s##i##2, v_, w2); \
	s##i##3 = vfmaq_f32(s##i##3, v_, w3); \
} while (0)

/* the sums of row i, four in one register */
#define TILE_SUMS(i) \
	vpaddq_f32(vpaddq_f32(s##i##0, s##i##1), vpaddq_f32(s##i##2, s##i##3))

static void
tile_4x4(const float *a, size_t lda, const float *b, size_t ldb, size_t dim,
		 float *out, size_t ldo)
{
	size_t		d;

	TILE_ZERO(0);
	TILE_ZERO(1);
	TILE_ZERO(2);
	TILE_ZERO(3);

	for (d = 0; d + 4 <= dim; d += 4)
	{
		float32x4_t w0 = load_f32(b + d);
		float32x4_t w1 = load_f32(b + ldb + d);
		float32x4_t w2 = load_f32(b + 2 * ldb + d);
		float32x4_t w3 = load_f32(b + 3 * ldb + d);

		TILE_ROW(0);
		TILE_ROW(1);
		TILE_ROW(2);
		TILE_ROW(3);
	}
	store_f32(out, TILE_SUMS(0));
	store_f32(out + ldo, TILE_SUMS(1));
	store_f32(out + 2 * ldo, TILE_SUMS(2));
	store_f32(out + 3 * ldo, TILE_SUMS(3));
	for (; d < dim; d++)
	{
		for (size_t i = 0; i < TILE; i++)
		{
			for (size_t j = 0; j < TILE; j++)
				qv_store_f32(out, i * ldo + j,
							 one_f32(out + i * ldo + j) +
							 one_f32(a + i * lda + d) * one_f32(b + j * ldb + d));
		}
	}
}

static void
qv_ip_f32_block_neon(const float *a, size_t na, size_t lda,
					 const float *b, size_t nb, size_t ldb,
					 size_t dim, float *out, size_t ldo)
{
	for (size_t i = 0; i < na; i += TILE)
	{
		for (size_t j = 0; j < nb; j += TILE)
		{
			if (i + TILE <= na && j + TILE <= nb)
			{
				tile_4x4(a + i * lda, lda, b + j * ldb, ldb, dim,
						 out + i * ldo + j, ldo);
				continue;
			}
			for (size_t r = i; r < na && r < i + TILE; r++)
			{
				for (size_t c = j; c < nb && c < j + TILE; c++)
					qv_store_f32(out, r * ldo + c,
								 qv_ip_f32_neon(a + r * lda, b + c * ldb, dim));
			}
		}
	}
}

void
QvFillNeon(QvKernels *table)
{
	table->level = "neon";
	table->l2sq_f32 = qv_l2sq_f32_neon;
	table->ip_f32 = qv_ip_f32_neon;
	table->l1_f32 = qv_l1_f32_neon;
	table->cosine_f32 = qv_cosine_f32_neon;
	table->l2sq_f16 = qv_l2sq_f16_neon;
	table->ip_f16 = qv_ip_f16_neon;
	table->l1_f16 = qv_l1_f16_neon;
	table->cosine_f16 = qv_cosine_f16_neon;
	table->f16_to_f32 = qv_f16_to_f32_neon;
	table->f32_to_f16 = qv_f32_to_f16_neon;
	table->hamming = qv_hamming_neon;
	table->jaccard = qv_jaccard_neon;
	table->ip_u8u8 = qv_ip_u8u8_neon;
	table->sum_u8 = qv_sum_u8_neon;
	table->ip_u8s16 = qv_ip_u8s16_neon;
	table->fastscan = qv_fastscan_neon;
	table->fastscan_pack = qv_fastscan_pack_neon;
	table->fastscan_estimate = qv_fastscan_estimate_neon;
	table->residual_bits = qv_residual_bits_neon;
	table->decode_u8 = qv_decode_u8_neon;
	table->quantize_u8 = qv_quantize_u8_neon;
	table->norm2_f64 = qv_norm2_f64_neon;
	table->divide_f32 = qv_divide_f32_neon;
	table->positive_bits_f32 = qv_positive_bits_f32_neon;
	table->positive_bits_f16 = qv_positive_bits_f16_neon;
	table->norm2_f32 = qv_norm2_f32_neon;
	table->maxabs_f32 = qv_maxabs_f32_neon;
	table->fht_f32 = qv_fht_f32_neon;
	table->flip_signs_f32 = qv_flip_signs_f32_neon;
	table->ip_f32_block = qv_ip_f32_block_neon;
	table->sign_bits_f32 = qv_sign_bits_f32_neon;
	table->ip_bits_s8 = qv_ip_bits_s8_neon;
	table->mix_f32 = qv_mix_f32_neon;
	table->add_f32 = qv_add_f32_neon;
}

#endif							/* QV_NEON */
