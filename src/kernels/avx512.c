/*
 * avx512.c
 *		Kernels for AVX-512 F, BW, DQ and VL, and for VNNI, VPOPCNTDQ and GFNI where
 *		the CPU has them.
 *
 * Tails are masked loads, which touch no memory behind the mask.
 */
#include "kernels/levels.h"

#ifdef QV_X86

#include <immintrin.h>

#define FEATURES "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl"
#define AVX512 __attribute__((target(FEATURES)))
#define AVX512_VNNI __attribute__((target(FEATURES ",avx512vnni")))
#define AVX512_GFNI __attribute__((target(FEATURES ",gfni")))
#define AVX512_POPCNT __attribute__((target(FEATURES ",avx512vpopcntdq")))

/* The low n bits, n from 0 to 64; more count as 64. */
static inline uint64_t
low_bits(size_t n)
{
	return n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

/* Bits for elements i * 64 to i * 64 + 63 of a tail of n. */
static inline __mmask64
tail64(size_t n, size_t i)
{
	return n > 64 * i ? low_bits(n - 64 * i) : 0;
}

AVX512 static inline __m512
load_f32(const float *p)
{
	return _mm512_loadu_ps(p);
}

AVX512 static inline __m512
mask_load_f32(__mmask16 m, const float *p)
{
	return _mm512_maskz_loadu_ps(m, p);
}

AVX512 static inline __m512
load_f16(const uint16_t *p)
{
	return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) p));
}

AVX512 static inline __m512
mask_load_f16(__mmask16 m, const uint16_t *p)
{
	return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, p));
}

AVX512 static inline __m512
step_l2sq(__m512 s, __m512 x, __m512 y)
{
	__m512		d = _mm512_sub_ps(x, y);

	return _mm512_fmadd_ps(d, d, s);
}

AVX512 static inline __m512
step_ip(__m512 s, __m512 x, __m512 y)
{
	return _mm512_fmadd_ps(x, y, s);
}

AVX512 static inline __m512
step_l1(__m512 s, __m512 x, __m512 y)
{
	return _mm512_add_ps(s, _mm512_abs_ps(_mm512_sub_ps(x, y)));
}

AVX512 static inline float
sum4(__m512 s0, __m512 s1, __m512 s2, __m512 s3)
{
	return _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(s0, s1),
											  _mm512_add_ps(s2, s3)));
}

/* One masked step of a tail: elements i + at to i + at + 15 of n - i. */
#define TAIL_STEP(s, step, type, at) \
do { \
	__mmask16	m = (__mmask16) (tail >> (at)); \
\
	s = step(s, mask_load_##type(m, a + i + (at)), \
			 mask_load_##type(m, b + i + (at))); \
} while (0)

#define PAIR_REDUCTION(name, step, type, ctype) \
AVX512 static float \
name(const ctype *a, const ctype *b, size_t n) \
{ \
	__m512		s0 = _mm512_setzero_ps(); \
	__m512		s1 = s0; \
	__m512		s2 = s0; \
	__m512		s3 = s0; \
	size_t		i; \
\
	for (i = 0; i + 64 <= n; i += 64) \
	{ \
		s0 = step(s0, load_##type(a + i), load_##type(b + i)); \
		s1 = step(s1, load_##type(a + i + 16), load_##type(b + i + 16)); \
		s2 = step(s2, load_##type(a + i + 32), load_##type(b + i + 32)); \
		s3 = step(s3, load_##type(a + i + 48), load_##type(b + i + 48)); \
	} \
	if (i < n) \
	{ \
		uint64_t	tail = low_bits(n - i); \
\
		TAIL_STEP(s0, step, type, 0); \
		TAIL_STEP(s1, step, type, 16); \
		TAIL_STEP(s2, step, type, 32); \
		TAIL_STEP(s3, step, type, 48); \
	} \
	return sum4(s0, s1, s2, s3); \
}

PAIR_REDUCTION(qv_l2sq_f32_avx512, step_l2sq, f32, float)
PAIR_REDUCTION(qv_ip_f32_avx512, step_ip, f32, float)
PAIR_REDUCTION(qv_l1_f32_avx512, step_l1, f32, float)
PAIR_REDUCTION(qv_l2sq_f16_avx512, step_l2sq, f16, uint16_t)
PAIR_REDUCTION(qv_ip_f16_avx512, step_ip, f16, uint16_t)
PAIR_REDUCTION(qv_l1_f16_avx512, step_l1, f16, uint16_t)

#define COSINE_STEP(j, x, y) \
do { \
	__m512		vx = x; \
	__m512		vy = y; \
\
	ab##j = _mm512_fmadd_ps(vx, vy, ab##j); \
	aa##j = _mm512_fmadd_ps(vx, vx, aa##j); \
	bb##j = _mm512_fmadd_ps(vy, vy, bb##j); \
} while (0)

#define COSINE(name, type, ctype) \
AVX512 static void \
name(const ctype *a, const ctype *b, size_t n, \
	 float *ab, float *aa, float *bb) \
{ \
	__m512		ab0 = _mm512_setzero_ps(); \
	__m512		ab1 = ab0; \
	__m512		aa0 = ab0; \
	__m512		aa1 = ab0; \
	__m512		bb0 = ab0; \
	__m512		bb1 = ab0; \
	size_t		i; \
\
	for (i = 0; i + 32 <= n; i += 32) \
	{ \
		COSINE_STEP(0, load_##type(a + i), load_##type(b + i)); \
		COSINE_STEP(1, load_##type(a + i + 16), load_##type(b + i + 16)); \
	} \
	if (i < n) \
	{ \
		uint64_t	tail = low_bits(n - i); \
		__mmask16	m0 = (__mmask16) tail; \
		__mmask16	m1 = (__mmask16) (tail >> 16); \
\
		COSINE_STEP(0, mask_load_##type(m0, a + i), \
					mask_load_##type(m0, b + i)); \
		COSINE_STEP(1, mask_load_##type(m1, a + i + 16), \
					mask_load_##type(m1, b + i + 16)); \
	} \
	*ab = _mm512_reduce_add_ps(_mm512_add_ps(ab0, ab1)); \
	*aa = _mm512_reduce_add_ps(_mm512_add_ps(aa0, aa1)); \
	*bb = _mm512_reduce_add_ps(_mm512_add_ps(bb0, bb1)); \
}

COSINE(qv_cosine_f32_avx512, f32, float)
COSINE(qv_cosine_f16_avx512, f16, uint16_t)

AVX512 static void
qv_f16_to_f32_avx512(const uint16_t *src, float *dst, size_t n)
{
	size_t		i;

	for (i = 0; i + 16 <= n; i += 16)
		_mm512_storeu_ps(dst + i, load_f16(src + i));
	if (i < n)
	{
		__mmask16	m = (__mmask16) low_bits(n - i);

		_mm512_mask_storeu_ps(dst + i, m, mask_load_f16(m, src + i));
	}
}

AVX512 static void
qv_f32_to_f16_avx512(const float *src, uint16_t *dst, size_t n)
{
	for (size_t i = 0; i < n; i += 16)
	{
		__mmask16	m = (__mmask16) low_bits(n - i);
		__m256i		h = _mm512_cvtps_ph(mask_load_f32(m, src + i),
										_MM_FROUND_TO_NEAREST_INT |
										_MM_FROUND_NO_EXC);

		_mm256_mask_storeu_epi16(dst + i, m, h);
	}
}

/* ---- bit strings ---- */

AVX512_POPCNT static uint64_t
qv_hamming_avx512(const uint8_t *a, const uint8_t *b, size_t n)
{
	__m512i		s0 = _mm512_setzero_si512();
	__m512i		s1 = s0;

	for (size_t i = 0; i < n; i += 128)
	{
		__mmask64	m0 = tail64(n - i, 0);
		__mmask64	m1 = tail64(n - i, 1);
		__m512i		x0 = _mm512_xor_si512(_mm512_maskz_loadu_epi8(m0, a + i),
										  _mm512_maskz_loadu_epi8(m0, b + i));
		__m512i		x1 = _mm512_xor_si512(_mm512_maskz_loadu_epi8(m1, a + i + 64),
										  _mm512_maskz_loadu_epi8(m1, b + i + 64));

		s0 = _mm512_add_epi64(s0, _mm512_popcnt_epi64(x0));
		s1 = _mm512_add_epi64(s1, _mm512_popcnt_epi64(x1));
	}
	return (uint64_t) _mm512_reduce_add_epi64(_mm512_add_epi64(s0, s1));
}

AVX512_POPCNT static void
qv_jaccard_avx512(const uint8_t *a, const uint8_t *b, size_t n,
				  uint64_t *both, uint64_t *either)
{
	__m512i		s_and = _mm512_setzero_si512();
	__m512i		s_or = s_and;

	for (size_t i = 0; i < n; i += 64)
	{
		__mmask64	m = tail64(n - i, 0);
		__m512i		x = _mm512_maskz_loadu_epi8(m, a + i);
		__m512i		y = _mm512_maskz_loadu_epi8(m, b + i);

		s_and = _mm512_add_epi64(s_and,
								 _mm512_popcnt_epi64(_mm512_and_si512(x, y)));
		s_or = _mm512_add_epi64(s_or,
								_mm512_popcnt_epi64(_mm512_or_si512(x, y)));
	}
	*both = (uint64_t) _mm512_reduce_add_epi64(s_and);
	*either = (uint64_t) _mm512_reduce_add_epi64(s_or);
}

/* ---- 8-bit codes ---- */

AVX512 static int32_t
qv_sum_u8_avx512(const uint8_t *a, size_t n)
{
	__m512i		zero = _mm512_setzero_si512();
	__m512i		s0 = zero;
	__m512i		s1 = zero;

	for (size_t i = 0; i < n; i += 128)
	{
		__mmask64	m0 = tail64(n - i, 0);
		__mmask64	m1 = tail64(n - i, 1);

		s0 = _mm512_add_epi64(s0, _mm512_sad_epu8(_mm512_maskz_loadu_epi8(m0, a + i), zero));
		s1 = _mm512_add_epi64(s1, _mm512_sad_epu8(_mm512_maskz_loadu_epi8(m1, a + i + 64), zero));
	}
	return (int32_t) _mm512_reduce_add_epi64(_mm512_add_epi64(s0, s1));
}

/*
 * The instruction multiplies unsigned by signed bytes.  It is given b less 128, and 128 *
 * sum(a) is added afterwards.
 */
#define U8U8_STEP(j, x, y) \
do { \
	__m512i		vx = x; \
	__m512i		vy = y; \
\
	s##j = _mm512_dpbusd_epi32(s##j, vx, _mm512_xor_si512(vy, flip)); \
	t##j = _mm512_dpbusd_epi32(t##j, vx, one); \
} while (0)

AVX512_VNNI static int32_t
qv_ip_u8u8_vnni_avx512(const uint8_t *a, const uint8_t *b, size_t n)
{
	const __m512i flip = _mm512_set1_epi8((char) 0x80);
	const __m512i one = _mm512_set1_epi8(1);
	__m512i		s0 = _mm512_setzero_si512();
	__m512i		s1 = s0;
	__m512i		t0 = s0;
	__m512i		t1 = s0;
	size_t		i;

	for (i = 0; i + 128 <= n; i += 128)
	{
		U8U8_STEP(0, _mm512_loadu_si512(a + i), _mm512_loadu_si512(b + i));
		U8U8_STEP(1, _mm512_loadu_si512(a + i + 64),
				  _mm512_loadu_si512(b + i + 64));
	}
	if (i < n)
	{
		__mmask64	m0 = tail64(n - i, 0);
		__mmask64	m1 = tail64(n - i, 1);

		U8U8_STEP(0, _mm512_maskz_loadu_epi8(m0, a + i),
				  _mm512_maskz_loadu_epi8(m0, b + i));
		U8U8_STEP(1, _mm512_maskz_loadu_epi8(m1, a + i + 64),
				  _mm512_maskz_loadu_epi8(m1, b + i + 64));
	}
	s0 = _mm512_add_epi32(s0, s1);
	t0 = _mm512_add_epi32(t0, t1);
	return _mm512_reduce_add_epi32(_mm512_add_epi32(s0, _mm512_slli_epi32(t0, 7)));
}

AVX512 static int32_t
qv_ip_u8u8_avx512(const uint8_t *a, const uint8_t *b, size_t n)
{
	__m512i		s0 = _mm512_setzero_si512();
	__m512i		s1 = s0;

	for (size_t i = 0; i < n; i += 64)
	{
		uint64_t	m = low_bits(n - i);
		__mmask32	m0 = (__mmask32) m;
		__mmask32	m1 = (__mmask32) (m >> 32);
		__m512i		a0 = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(m0, a + i));
		__m512i		a1 = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(m1, a + i + 32));
		__m512i		b0 = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(m0, b + i));
		__m512i		b1 = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(m1, b + i + 32));

		s0 = _mm512_add_epi32(s0, _mm512_madd_epi16(a0, b0));
		s1 = _mm512_add_epi32(s1, _mm512_madd_epi16(a1, b1));
	}
	return _mm512_reduce_add_epi32(_mm512_add_epi32(s0, s1));
}

AVX512 static inline int64_t
combine_s16(__m512i hi, __m512i lo)
{
	return (int64_t) _mm512_reduce_add_epi32(hi) * 256 +
		_mm512_reduce_add_epi32(lo);
}

AVX512_VNNI static int64_t
qv_ip_u8s16_vnni_avx512(const uint8_t *code, const int8_t *hi,
						const int8_t *lo, size_t n)
{
	__m512i		h0 = _mm512_setzero_si512();
	__m512i		h1 = h0;
	__m512i		l0 = h0;
	__m512i		l1 = h0;
	size_t		i;

	for (i = 0; i + 128 <= n; i += 128)
	{
		__m512i		c0 = _mm512_loadu_si512(code + i);
		__m512i		c1 = _mm512_loadu_si512(code + i + 64);

		h0 = _mm512_dpbusd_epi32(h0, c0, _mm512_loadu_si512(hi + i));
		l0 = _mm512_dpbusd_epi32(l0, c0, _mm512_loadu_si512(lo + i));
		h1 = _mm512_dpbusd_epi32(h1, c1, _mm512_loadu_si512(hi + i + 64));
		l1 = _mm512_dpbusd_epi32(l1, c1, _mm512_loadu_si512(lo + i + 64));
	}
	if (i < n)
	{
		__mmask64	m0 = tail64(n - i, 0);
		__mmask64	m1 = tail64(n - i, 1);
		__m512i		c0 = _mm512_maskz_loadu_epi8(m0, code + i);
		__m512i		c1 = _mm512_maskz_loadu_epi8(m1, code + i + 64);

		h0 = _mm512_dpbusd_epi32(h0, c0, _mm512_maskz_loadu_epi8(m0, hi + i));
		l0 = _mm512_dpbusd_epi32(l0, c0, _mm512_maskz_loadu_epi8(m0, lo + i));
		h1 = _mm512_dpbusd_epi32(h1, c1, _mm512_maskz_loadu_epi8(m1, hi + i + 64));
		l1 = _mm512_dpbusd_epi32(l1, c1, _mm512_maskz_loadu_epi8(m1, lo + i + 64));
	}
	return combine_s16(_mm512_add_epi32(h0, h1), _mm512_add_epi32(l0, l1));
}

AVX512 static int64_t
qv_ip_u8s16_avx512(const uint8_t *code, const int8_t *hi, const int8_t *lo,
				   size_t n)
{
	__m512i		h = _mm512_setzero_si512();
	__m512i		l = h;

	for (size_t i = 0; i < n; i += 32)
	{
		__mmask32	m = (__mmask32) low_bits(n - i);
		__m512i		c = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(m, code + i));
		__m512i		vh = _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(m, hi + i));
		__m512i		vl = _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(m, lo + i));

		h = _mm512_add_epi32(h, _mm512_madd_epi16(c, vh));
		l = _mm512_add_epi32(l, _mm512_madd_epi16(c, vl));
	}
	return combine_s16(h, l);
}

/*
 * Widens each packed byte to the width of its elements, shifts copies of it to where each
 * element belongs, and masks off the rest.
 */
AVX512 static void
qv_unpack_bits_avx512(const uint8_t *packed, int bits, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i += 64)
	{
		__mmask64	m = low_bits(n - i);
		__m512i		v;

		if (bits == 4)
		{
			__mmask32	mp = (__mmask32) low_bits((n - i) / 2);

			v = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(mp, packed + i / 2));
			v = _mm512_or_si512(v, _mm512_slli_epi16(v, 4));
			v = _mm512_and_si512(v, _mm512_set1_epi8(15));
		}
		else
		{
			__mmask16	mp = (__mmask16) low_bits((n - i) / 4);

			v = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mp, packed + i / 4));
			v = _mm512_or_si512(v, _mm512_slli_epi32(v, 6));
			v = _mm512_or_si512(v, _mm512_slli_epi32(v, 12));
			v = _mm512_and_si512(v, _mm512_set1_epi8(3));
		}
		_mm512_mask_storeu_epi8(out + i, m, v);
	}
}

/* ---- FastScan ---- */

/* Nibble groups of four whose sums over all four fit 16 bits. */
#define SCAN_GROUPS 64

#define SCAN_TARGET AVX512
#define SCAN_NAME(name) name##_avx512
#define SCAN_HIGH_NIBBLES(codes) \
	_mm512_and_si512(_mm512_srli_epi16(codes, 4), _mm512_set1_epi8(15))
#include "kernels/avx512_scan.h"

/*
 * GFNI takes the high nibble in one instruction, as a product of bit matrices.  That is
 * faster, because the number of instructions bounds the loop [M79].
 */
#define SCAN_TARGET AVX512_GFNI
#define SCAN_NAME(name) name##_gfni_avx512
#define SCAN_HIGH_NIBBLES(codes) \
	_mm512_gf2p8affine_epi64_epi8(codes, _mm512_set1_epi64(0x1020408000000000), 0)
#include "kernels/avx512_scan.h"

/* As in avx2.c: transpose 16 x 16 bytes in each quarter of 16 registers. */
AVX512 static inline void
transpose_bytes(__m512i x[16])
{
	__m512i		y[16];

#pragma GCC unroll 2
	for (int round = 0; round < 2; round++)
	{
#pragma GCC unroll 8
		for (int r = 0; r < 8; r++)
		{
			y[2 * r] = _mm512_unpacklo_epi8(x[r], x[r + 8]);
			y[2 * r + 1] = _mm512_unpackhi_epi8(x[r], x[r + 8]);
		}
#pragma GCC unroll 8
		for (int r = 0; r < 8; r++)
		{
			x[2 * r] = _mm512_unpacklo_epi8(y[r], y[r + 8]);
			x[2 * r + 1] = _mm512_unpackhi_epi8(y[r], y[r + 8]);
		}
	}
}

/*
 * Packs n <= 32 bytes of each code.  Bytes c and c + 16 of codes r and r + 16 become the
 * quarters of register r.  The transposition then makes the codes the bytes of register
 * c's.
 */
AVX512 static inline void
pack_columns(const uint8_t *codes, size_t stride, size_t n, uint8_t *batch)
{
	const __mmask32 used = (__mmask32) (UINT32_MAX >> (32 - n));
	const __m256i low = _mm256_set1_epi8(15);
	const uint8_t *others = codes + 16 * stride;
	__m512i		x[16];

#pragma GCC unroll 16
	for (size_t r = 0; r < 16; r++)
		x[r] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_maskz_loadu_epi8(used, codes + r * stride)),
								  _mm256_maskz_loadu_epi8(used, others + r * stride), 1);
	transpose_bytes(x);
#pragma GCC unroll 16
	for (size_t c = 0; c < 16; c++)
	{
		__m256i		first = _mm512_castsi512_si256(x[c]);
		__m256i		second = _mm512_extracti64x4_epi64(x[c], 1);

		/* low ? first : second, bit by bit */
		__m256i		even = _mm256_ternarylogic_epi32(low, first, _mm256_slli_epi16(second, 4), 0xca);
		__m256i		odd = _mm256_ternarylogic_epi32(low, _mm256_srli_epi16(first, 4), second, 0xca);
		uint8_t    *out = batch + c * QV_BATCH;

		if (c >= n)
			break;
		_mm_storeu_si128((__m128i *) out, _mm256_castsi256_si128(even));
		_mm_storeu_si128((__m128i *) (out + 16), _mm256_castsi256_si128(odd));
		if (c + 16 < n)
		{
			_mm_storeu_si128((__m128i *) (out + 16 * QV_BATCH), _mm256_extracti128_si256(even, 1));
			_mm_storeu_si128((__m128i *) (out + 16 * QV_BATCH + 16), _mm256_extracti128_si256(odd, 1));
		}
	}
}

AVX512 static void
qv_fastscan_pack_avx512(const uint8_t *codes, size_t stride, size_t nbytes,
						uint8_t *batch)
{
	size_t		i;

	for (i = 0; i + 32 <= nbytes; i += 32)
		pack_columns(codes + i, stride, 32, batch + i * QV_BATCH);
	if (i < nbytes)
		pack_columns(codes + i, stride, nbytes - i, batch + i * QV_BATCH);
}

/* ---- codes and floats ---- */

AVX512 static inline __m512
code_to_f32(__m128i code)
{
	return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(code));
}

AVX512 static void
qv_residual_bits_avx512(const uint8_t *code, float scale, float offset,
						const float *p, size_t n, uint8_t *bits,
						float *sum_abs, float *yp)
{
	const __m512 vscale = _mm512_set1_ps(scale);
	const __m512 voffset = _mm512_set1_ps(offset);
	__m512		s_abs = _mm512_setzero_ps();
	__m512		s_all = s_abs;
	__m512		s_set = s_abs;

	for (size_t i = 0; i < n; i += 16)
	{
		__m512		y = code_to_f32(_mm_loadu_si128((const __m128i *) (code + i)));
		__m512		x = _mm512_loadu_ps(p + i);
		__m512		r = _mm512_fmsub_ps(vscale, _mm512_sub_ps(y, voffset), x);
		__mmask16	set = _mm512_cmp_ps_mask(r, _mm512_setzero_ps(), _CMP_GE_OQ);

		s_abs = _mm512_add_ps(s_abs, _mm512_abs_ps(r));
		s_all = _mm512_add_ps(s_all, x);
		s_set = _mm512_mask_add_ps(s_set, set, s_set, x);
		qv_store_u16(bits, i / 16, (uint16_t) set);
	}
	*sum_abs = _mm512_reduce_add_ps(s_abs);
	*yp = _mm512_reduce_add_ps(_mm512_fnmadd_ps(_mm512_set1_ps(0.5f), s_all, s_set));
}

AVX512 static void
qv_decode_u8_avx512(const uint8_t *code, float scale, float offset,
					float *dst, size_t n)
{
	const __m512 vscale = _mm512_set1_ps(scale);
	const __m512 voffset = _mm512_set1_ps(offset);

	for (size_t i = 0; i < n; i += 16)
	{
		__mmask16	m = (__mmask16) low_bits(n - i);
		__m512		y = code_to_f32(_mm_maskz_loadu_epi8(m, code + i));

		_mm512_mask_storeu_ps(dst + i, m,
							  _mm512_mul_ps(vscale, _mm512_sub_ps(y, voffset)));
	}
}

/* Sixteen codes less half, as integers.  Adds to the sums where m is set. */
#define QUANTIZE_STEP(q, m, v) \
do { \
	__m512		x_ = v; \
	__m512		y_ = _mm512_mul_ps(x_, vt); \
\
	y_ = _mm512_max_ps(_mm512_min_ps(y_, max), min); \
	q = _mm512_cvt_roundps_epi32(y_, _MM_FROUND_TO_NEG_INF | \
								 _MM_FROUND_NO_EXC); \
	y_ = _mm512_add_ps(_mm512_cvtepi32_ps(q), _mm512_set1_ps(0.5f)); \
	s_xy = _mm512_mask3_fmadd_ps(x_, y_, s_xy, m); \
	s_yy = _mm512_mask3_fmadd_ps(y_, y_, s_yy, m); \
} while (0)

AVX512 static void
qv_quantize_u8_avx512(const float *x, size_t n, float t, float half,
					  uint8_t *code, float *xy, float *yy)
{
	const __m512 vt = _mm512_set1_ps(t);
	const __m512 min = _mm512_set1_ps(-half);
	const __m512 max = _mm512_set1_ps(half - 1);
	const __m512i offset = _mm512_set1_epi8((char) (int) half);

	/* undoes the interleaving by 128-bit lanes of two rounds of packing */
	const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2,
										   13, 9, 5, 1, 12, 8, 4, 0);
	__m512		s_xy = _mm512_setzero_ps();
	__m512		s_yy = s_xy;
	size_t		i;

	for (i = 0; i + 64 <= n; i += 64)
	{
		const __mmask16 all = 0xffff;
		__m512i		q0;
		__m512i		q1;
		__m512i		q2;
		__m512i		q3;

		QUANTIZE_STEP(q0, all, _mm512_loadu_ps(x + i));
		QUANTIZE_STEP(q1, all, _mm512_loadu_ps(x + i + 16));
		QUANTIZE_STEP(q2, all, _mm512_loadu_ps(x + i + 32));
		QUANTIZE_STEP(q3, all, _mm512_loadu_ps(x + i + 48));
		q0 = _mm512_packs_epi16(_mm512_packs_epi32(q0, q1),
								_mm512_packs_epi32(q2, q3));
		q0 = _mm512_permutexvar_epi32(order, q0);
		_mm512_storeu_si512(code + i, _mm512_add_epi8(q0, offset));
	}
	for (; i < n; i += 16)
	{
		__mmask16	m = (__mmask16) low_bits(n - i);
		__m512i		q;

		QUANTIZE_STEP(q, m, mask_load_f32(m, x + i));
		_mm_mask_storeu_epi8(code + i, m,
							 _mm_add_epi8(_mm512_cvtepi32_epi8(q),
										  _mm512_castsi512_si128(offset)));
	}
	*xy = _mm512_reduce_add_ps(s_xy);
	*yy = _mm512_reduce_add_ps(s_yy);
}

AVX512 static double
qv_norm2_f64_avx512(const float *x, size_t n)
{
	__m512d		s[4] = {_mm512_setzero_pd(), _mm512_setzero_pd(), _mm512_setzero_pd(),
	_mm512_setzero_pd()};
	double		lanes[8];
	size_t		i;

	for (i = 0; i + 32 <= n; i += 32)
	{
#pragma GCC unroll 4
		for (int b = 0; b < 4; b++)
		{
			__m512d		v = _mm512_cvtps_pd(_mm256_loadu_ps(x + i + 8 * b));

			s[b] = _mm512_fmadd_pd(v, v, s[b]);
		}
	}
#pragma GCC unroll 3
	for (int b = 0; b < 3; b++)
		if (i + 8 <= n)
		{
			__m512d		v = _mm512_cvtps_pd(_mm256_loadu_ps(x + i));

			s[b] = _mm512_fmadd_pd(v, v, s[b]);
			i += 8;
		}
	_mm512_storeu_pd(lanes, _mm512_add_pd(_mm512_add_pd(s[0], s[1]), _mm512_add_pd(s[2], s[3])));
	return qv_norm2_end(lanes, x, i, n);
}

AVX512 static void
qv_divide_f32_avx512(const float *x, double by, float *dst, size_t n)
{
	__m512d		divisor = _mm512_set1_pd(by);

	size_t		i;

	for (i = 0; i + 8 <= n; i += 8)
	{
		__m512d		v = _mm512_cvtps_pd(_mm256_loadu_ps(x + i));

		_mm256_storeu_ps(dst + i, _mm512_cvtpd_ps(_mm512_div_pd(v, divisor)));
	}
	if (i < n)
	{
		__mmask8	m = (__mmask8) low_bits(n - i);
		__m512d		v = _mm512_cvtps_pd(_mm256_maskz_loadu_ps(m, x + i));

		_mm256_mask_storeu_ps(dst + i, m, _mm512_cvtpd_ps(_mm512_div_pd(v, divisor)));
	}
}

/* The bits of a byte of the type bit are in descending order, mask bits not. */
AVX512 static void
qv_positive_bits_f32_avx512(const float *x, size_t n, uint8_t *bits)
{
	const __m512i order = _mm512_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0,
											15, 14, 13, 12, 11, 10, 9, 8);

	for (size_t i = 0; i < n; i += 16)
	{
		__m512		v = mask_load_f32((__mmask16) low_bits(n - i), x + i);
		uint16_t	set = (uint16_t)
			_mm512_cmp_ps_mask(_mm512_permutexvar_ps(order, v), _mm512_setzero_ps(),
							   _CMP_GT_OQ);

		bits[i / 8] = (uint8_t) set;
		if (n - i > 8)
			bits[i / 8 + 1] = (uint8_t) (set >> 8);
	}
}

AVX512 static void
qv_positive_bits_f16_avx512(const uint16_t *x, size_t n, uint8_t *bits)
{
	const __m512i order = _mm512_broadcast_i32x4(_mm_setr_epi8(14, 15, 12, 13, 10, 11, 8, 9,
															   6, 7, 4, 5, 2, 3, 0, 1));
	const __m512i infinity = _mm512_set1_epi16(F16_INFINITY);

	for (size_t i = 0; i < n; i += 32)
	{
		__m512i		v = _mm512_maskz_loadu_epi16((__mmask32) low_bits(n - i), x + i);
		__mmask32	set;

		v = _mm512_shuffle_epi8(v, order);
		set = _mm512_cmpgt_epi16_mask(v, _mm512_setzero_si512()) &
			_mm512_cmple_epi16_mask(v, infinity);

		if (n - i >= 32)
			qv_store_u32(bits, i / 32, set);
		else
		{
			for (size_t j = 0; j < n - i; j += 8)
				bits[(i + j) / 8] = (uint8_t) (set >> j);
		}
	}
}

AVX512 static float
qv_norm2_f32_avx512(const float *x, size_t n)
{
	return qv_ip_f32_avx512(x, x, n);
}

AVX512 static float
qv_maxabs_f32_avx512(const float *x, size_t n)
{
	__m512		max0 = _mm512_setzero_ps();
	__m512		max1 = max0;

	for (size_t i = 0; i < n; i += 32)
	{
		uint64_t	m = low_bits(n - i);
		__m512		v0 = mask_load_f32((__mmask16) m, x + i);
		__m512		v1 = mask_load_f32((__mmask16) (m >> 16), x + i + 16);

		max0 = _mm512_max_ps(max0, _mm512_abs_ps(v0));
		max1 = _mm512_max_ps(max1, _mm512_abs_ps(v1));
	}
	return _mm512_reduce_max_ps(_mm512_max_ps(max0, max1));
}

AVX512 static float
qv_sign_bits_f32_avx512(const float *x, size_t n, uint8_t *bits)
{
	__m512		sum = _mm512_setzero_ps();

	for (size_t i = 0; i < n; i += 16)
	{
		__m512		v = _mm512_loadu_ps(x + i);

		sum = _mm512_add_ps(sum, _mm512_abs_ps(v));
		qv_store_u16(bits, i / 16, (uint16_t)
					 _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_GE_OQ));
	}
	return _mm512_reduce_add_ps(sum);
}

AVX512 static float
qv_ip_bits_f32_avx512(const uint8_t *bits, const float *x, size_t n)
{
	__m512		sum0 = _mm512_setzero_ps();
	__m512		sum1 = _mm512_setzero_ps();
	size_t		i = 0;

	for (; i + 32 <= n; i += 32)
	{
		sum0 = _mm512_mask_add_ps(sum0, qv_load_u16(bits, i / 16), sum0,
								  _mm512_loadu_ps(x + i));
		sum1 = _mm512_mask_add_ps(sum1, qv_load_u16(bits, i / 16 + 1), sum1,
								  _mm512_loadu_ps(x + i + 16));
	}
	if (i < n)
		sum0 = _mm512_mask_add_ps(sum0, qv_load_u16(bits, i / 16), sum0,
								  _mm512_loadu_ps(x + i));
	return _mm512_reduce_add_ps(_mm512_add_ps(sum0, sum1));
}

/* The bits of x + i to x + i + 63 that are below n. */
AVX512 static inline __mmask64
set_bits64(const uint8_t *bits, size_t i, size_t n)
{
	uint64_t	set = 0;

	if (i + 64 <= n)
		memcpy(&set, bits + i / 8, sizeof(set));
	else
		for (size_t j = 0; i + j < n; j += 16)
			set |= (uint64_t) qv_load_u16(bits, (i + j) / 16) << j;
	return set;
}

AVX512 static inline int32_t
ip_bits_s8(const uint8_t *bits, const int8_t *x, size_t n)
{
	__m512i		sum = _mm512_setzero_si512();

	for (size_t i = 0; i < n; i += 64)
	{
		__m512i		v = _mm512_maskz_loadu_epi8(set_bits64(bits, i, n), x + i);

		sum = _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(_mm512_set1_epi8(1), v),
													  _mm512_set1_epi16(1)));
	}
	return _mm512_reduce_add_epi32(sum);
}

AVX512 static void
qv_ip_bits_s8_avx512(const uint8_t *const *bits, size_t count, const int8_t *x, size_t n, int32_t *sums)
{
	for (size_t c = 0; c < count; c++)
		sums[c] = ip_bits_s8(bits[c], x, n);
}

AVX512_VNNI static inline int32_t
ip_bits_s8_vnni(const uint8_t *bits, const int8_t *x, size_t n)
{
	const __m512i ones = _mm512_set1_epi8(1);
	__m512i		sum0 = _mm512_setzero_si512();
	__m512i		sum1 = sum0;
	size_t		i = 0;

	for (; i + 128 <= n; i += 128)
	{
		sum0 = _mm512_dpbusd_epi32(sum0, ones, _mm512_maskz_loadu_epi8(set_bits64(bits, i, n), x + i));
		sum1 = _mm512_dpbusd_epi32(sum1, ones, _mm512_maskz_loadu_epi8(set_bits64(bits, i + 64, n), x + i + 64));
	}
	for (; i < n; i += 64)
		sum0 = _mm512_dpbusd_epi32(sum0, ones, _mm512_maskz_loadu_epi8(set_bits64(bits, i, n), x + i));
	return _mm512_reduce_add_epi32(_mm512_add_epi32(sum0, sum1));
}

AVX512_VNNI static void
qv_ip_bits_s8_vnni_avx512(const uint8_t *const *bits, size_t count, const int8_t *x, size_t n,
						  int32_t *sums)
{
	for (size_t c = 0; c < count; c++)
		sums[c] = ip_bits_s8_vnni(bits[c], x, n);
}

AVX512 static void
qv_split_s16_avx512(const float *x, size_t n, float inv, float scale,
					int8_t *hi, int8_t *lo, int32_t *sum, float *err2)
{
	const __m512 vinv = _mm512_set1_ps(inv);
	const __m512 vscale = _mm512_set1_ps(scale);
	__m512i		total = _mm512_setzero_si512();
	__m512		errors = _mm512_setzero_ps();

	for (size_t i = 0; i < n; i += 16)
	{
		__mmask16	m = (__mmask16) low_bits(n - i);
		__m512		v = mask_load_f32(m, x + i);
		__m512i		q = _mm512_cvtps_epi32(_mm512_mul_ps(v, vinv));
		__m512i		h = _mm512_srai_epi32(_mm512_add_epi32(q, _mm512_set1_epi32(128)), 8);
		__m512i		l = _mm512_sub_epi32(q, _mm512_slli_epi32(h, 8));
		__m512		e = _mm512_fnmadd_ps(vscale, _mm512_cvtepi32_ps(q), v);

		_mm512_mask_cvtepi32_storeu_epi8(hi + i, m, h);
		_mm512_mask_cvtepi32_storeu_epi8(lo + i, m, l);
		total = _mm512_add_epi32(total, q);
		errors = _mm512_fmadd_ps(e, e, errors);
	}
	*sum = _mm512_reduce_add_epi32(total);
	*err2 = _mm512_reduce_add_ps(errors);
}

/* The sixteen entries of the nibble whose coordinates start at p. */
AVX512 static inline __m512i
lut_entries(const float *p, float clear, __m512 inv)
{
	__m512		v = _mm512_set1_ps(clear);

	v = _mm512_mask_add_ps(v, 0xaaaa, v, _mm512_set1_ps(p[0]));
	v = _mm512_mask_add_ps(v, 0xcccc, v, _mm512_set1_ps(p[1]));
	v = _mm512_mask_add_ps(v, 0xf0f0, v, _mm512_set1_ps(p[2]));
	v = _mm512_mask_add_ps(v, 0xff00, v, _mm512_set1_ps(p[3]));
	return _mm512_cvtps_epi32(_mm512_mul_ps(v, inv));
}

/*
 * Entry 0 of a nibble, with all bits clear, is the sum of max(-x, 0).  Each set bit then
 * adds its x.
 */
AVX512 static void
qv_lut_f32_avx512(const float *x, size_t nibbles, float inv, uint8_t *lut)
{
	const __m512 vinv = _mm512_set1_ps(inv);
	const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2,
										   13, 9, 5, 1, 12, 8, 4, 0);

	for (size_t t = 0; t < nibbles; t += 4)
	{
		size_t		m = nibbles - t < 4 ? nibbles - t : 4;
		float		values[16];
		float		clear[16];
		__m512		v = mask_load_f32((__mmask16) low_bits(4 * m), x + 4 * t);
		__m512		c = _mm512_max_ps(_mm512_sub_ps(_mm512_setzero_ps(), v),
									  _mm512_setzero_ps());
		__m512i		q;

		c = _mm512_add_ps(c, _mm512_permute_ps(c, 0xb1));
		c = _mm512_add_ps(c, _mm512_permute_ps(c, 0x4e));
		_mm512_storeu_ps(values, v);
		_mm512_storeu_ps(clear, c);
		q = _mm512_packus_epi16(_mm512_packus_epi32(lut_entries(values, clear[0], vinv),
													lut_entries(values + 4, clear[4], vinv)),
								_mm512_packus_epi32(lut_entries(values + 8, clear[8], vinv),
													lut_entries(values + 12, clear[12], vinv)));
		q = _mm512_permutexvar_epi32(order, q);
		_mm512_mask_storeu_epi8(lut + 16 * t, low_bits(16 * m), q);
	}
}

/* ---- Hadamard transform ---- */

/* The transform of sixteen values within a register: h = 1, 2, 4, 8. */
AVX512 static inline __m512
fht16(__m512 v)
{
	const __m512 sign1 = _mm512_castsi512_ps(_mm512_set1_epi64((long long) 0x8000000000000000));
	const __m512 sign2 = _mm512_castsi512_ps(_mm512_set4_epi32((int) 0x80000000, (int) 0x80000000, 0, 0));
	const __mmask16 lanes4 = 0xf0f0;
	const __mmask16 lanes8 = 0xff00;
	__m512		w;

	w = _mm512_permute_ps(v, 0xb1);
	v = _mm512_add_ps(w, _mm512_xor_ps(v, sign1));
	w = _mm512_permute_ps(v, 0x4e);
	v = _mm512_add_ps(w, _mm512_xor_ps(v, sign2));
	w = _mm512_shuffle_f32x4(v, v, _MM_SHUFFLE(2, 3, 0, 1));
	v = _mm512_mask_sub_ps(_mm512_add_ps(w, v), lanes4, w, v);
	w = _mm512_shuffle_f32x4(v, v, _MM_SHUFFLE(1, 0, 3, 2));
	return _mm512_mask_sub_ps(_mm512_add_ps(w, v), lanes8, w, v);
}

#define BUTTERFLY(p, q) \
do { \
	__m512		sum_ = _mm512_add_ps(p, q); \
\
	q = _mm512_sub_ps(p, q); \
	p = sum_; \
} while (0)

/* The transform of 256 values in sixteen registers, scaled. */
AVX512 static void
fht256(float *x, __m512 scale)
{
#define LOAD(i) __m512 r##i = fht16(_mm512_mul_ps(_mm512_loadu_ps(x + 16 * i), scale))
#define STORE(i) _mm512_storeu_ps(x + 16 * i, r##i)
	LOAD(0);
	LOAD(1);
	LOAD(2);
	LOAD(3);
	LOAD(4);
	LOAD(5);
	LOAD(6);
	LOAD(7);
	LOAD(8);
	LOAD(9);
	LOAD(10);
	LOAD(11);
	LOAD(12);
	LOAD(13);
	LOAD(14);
	LOAD(15);

	BUTTERFLY(r0, r1);
	BUTTERFLY(r2, r3);
	BUTTERFLY(r4, r5);
	BUTTERFLY(r6, r7);
	BUTTERFLY(r8, r9);
	BUTTERFLY(r10, r11);
	BUTTERFLY(r12, r13);
	BUTTERFLY(r14, r15);

	BUTTERFLY(r0, r2);
	BUTTERFLY(r1, r3);
	BUTTERFLY(r4, r6);
	BUTTERFLY(r5, r7);
	BUTTERFLY(r8, r10);
	BUTTERFLY(r9, r11);
	BUTTERFLY(r12, r14);
	BUTTERFLY(r13, r15);

	BUTTERFLY(r0, r4);
	BUTTERFLY(r1, r5);
	BUTTERFLY(r2, r6);
	BUTTERFLY(r3, r7);
	BUTTERFLY(r8, r12);
	BUTTERFLY(r9, r13);
	BUTTERFLY(r10, r14);
	BUTTERFLY(r11, r15);

	BUTTERFLY(r0, r8);
	BUTTERFLY(r1, r9);
	BUTTERFLY(r2, r10);
	BUTTERFLY(r3, r11);
	BUTTERFLY(r4, r12);
	BUTTERFLY(r5, r13);
	BUTTERFLY(r6, r14);
	BUTTERFLY(r7, r15);

	STORE(0);
	STORE(1);
	STORE(2);
	STORE(3);
	STORE(4);
	STORE(5);
	STORE(6);
	STORE(7);
	STORE(8);
	STORE(9);
	STORE(10);
	STORE(11);
	STORE(12);
	STORE(13);
	STORE(14);
	STORE(15);
#undef LOAD
#undef STORE
}

/* One pass over x: pairs h apart, and then pairs 2h apart. */
AVX512 static void
fht_pass4(float *x, size_t n, size_t h)
{
	for (size_t i = 0; i < n; i += 4 * h)
	{
		for (size_t j = i; j < i + h; j += 16)
		{
			__m512		r0 = _mm512_loadu_ps(x + j);
			__m512		r1 = _mm512_loadu_ps(x + j + h);
			__m512		r2 = _mm512_loadu_ps(x + j + 2 * h);
			__m512		r3 = _mm512_loadu_ps(x + j + 3 * h);

			BUTTERFLY(r0, r1);
			BUTTERFLY(r2, r3);
			BUTTERFLY(r0, r2);
			BUTTERFLY(r1, r3);
			_mm512_storeu_ps(x + j, r0);
			_mm512_storeu_ps(x + j + h, r1);
			_mm512_storeu_ps(x + j + 2 * h, r2);
			_mm512_storeu_ps(x + j + 3 * h, r3);
		}
	}
}

AVX512 static void
fht_pass2(float *x, size_t n, size_t h)
{
	for (size_t i = 0; i < n; i += 2 * h)
	{
		for (size_t j = i; j < i + h; j += 16)
		{
			__m512		r0 = _mm512_loadu_ps(x + j);
			__m512		r1 = _mm512_loadu_ps(x + j + h);

			BUTTERFLY(r0, r1);
			_mm512_storeu_ps(x + j, r0);
			_mm512_storeu_ps(x + j + h, r1);
		}
	}
}

AVX512 static void
qv_fht_f32_avx512(float *x, size_t n)
{
	__m512		scale = _mm512_set1_ps(1.0f / sqrtf((float) n));
	size_t		h;

	if (n < 16)
	{
		qv_fht_plain(x, n);
		return;
	}
	if (n >= 256)
	{
		for (size_t i = 0; i < n; i += 256)
			fht256(x + i, scale);
		h = 256;
	}
	else
	{
		for (size_t i = 0; i < n; i += 16)
			_mm512_storeu_ps(x + i, fht16(_mm512_mul_ps(_mm512_loadu_ps(x + i), scale)));
		h = 16;
	}
	for (; 4 * h <= n; h *= 4)
		fht_pass4(x, n, h);
	if (h < n)
		fht_pass2(x, n, h);
}

AVX512 static void
qv_flip_signs_f32_avx512(float *x, const uint8_t *signs, size_t n)
{
	const __m512 sign = _mm512_set1_ps(-0.0f);
	size_t		i;

	for (i = 0; i + 16 <= n; i += 16)
	{
		__mmask16	flip = qv_load_u16(signs, i / 16);
		__m512		v = _mm512_loadu_ps(x + i);

		_mm512_storeu_ps(x + i, _mm512_mask_xor_ps(v, flip, v, sign));
	}
	if (i < n)
	{
		__mmask16	m = (__mmask16) low_bits(n - i);
		unsigned	flip = signs[i / 8];
		__m512		v = mask_load_f32(m, x + i);

		if (n - i > 8)
			flip |= (unsigned) signs[i / 8 + 1] << 8;
		_mm512_mask_storeu_ps(x + i, m,
							  _mm512_mask_xor_ps(v, (__mmask16) flip, v, sign));
	}
}

AVX512 static void
qv_mix_f32_avx512(float *a, float *b, size_t n, float scale)
{
	const __m512 s = _mm512_set1_ps(scale);

	for (size_t i = 0; i < n; i += 16)
	{
		__mmask16	m = (__mmask16) low_bits(n - i);
		__m512		x = mask_load_f32(m, a + i);
		__m512		y = mask_load_f32(m, b + i);

		_mm512_mask_storeu_ps(a + i, m, _mm512_mul_ps(_mm512_add_ps(x, y), s));
		_mm512_mask_storeu_ps(b + i, m, _mm512_mul_ps(_mm512_sub_ps(x, y), s));
	}
}

/* ---- blocks and centroids ---- */

AVX512 static void
qv_add_f32_avx512(float *dst, const float *src, size_t n)
{
	size_t		i;

	for (i = 0; i + 16 <= n; i += 16)
		_mm512_storeu_ps(dst + i, _mm512_add_ps(_mm512_loadu_ps(dst + i),
												_mm512_loadu_ps(src + i)));
	if (i < n)
	{
		__mmask16	m = (__mmask16) low_bits(n - i);

		_mm512_mask_storeu_ps(dst + i, m,
							  _mm512_add_ps(mask_load_f32(m, dst + i),
											mask_load_f32(m, src + i)));
	}
}

AVX512 static size_t
qv_argmin_diff_f32_avx512(const float *a, const float *b, size_t n, float *min)
{
	const __m512i step = _mm512_set1_epi32(16);
	__m512i		index = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8,
										 7, 6, 5, 4, 3, 2, 1, 0);
	__m512		best = _mm512_set1_ps(INFINITY);
	__m512i		best_index = _mm512_set1_epi32(-1);
	__mmask16	least;
	uint32_t	first;

	for (size_t i = 0; i < n; i += 16)
	{
		__mmask16	m = (__mmask16) low_bits(n - i);
		__m512		d = _mm512_sub_ps(mask_load_f32(m, a + i),
									  mask_load_f32(m, b + i));

		m = _mm512_mask_cmp_ps_mask(m, d, best, _CMP_LT_OQ);
		best = _mm512_mask_mov_ps(best, m, d);
		best_index = _mm512_mask_mov_epi32(best_index, m, index);
		index = _mm512_add_epi32(index, step);
	}
	*min = _mm512_reduce_min_ps(best);
	least = _mm512_cmp_ps_mask(best, _mm512_set1_ps(*min), _CMP_EQ_OQ);
	first = _mm512_mask_reduce_min_epu32(least, best_index);
	return first == UINT32_MAX ? 0 : first;
}

/* The sums of four registers. */
AVX512 static inline __m128
sums_of_4(__m512 s0, __m512 s1, __m512 s2, __m512 s3)
{
	__m512		t0 = _mm512_add_ps(_mm512_unpacklo_ps(s0, s1),
								   _mm512_unpackhi_ps(s0, s1));
	__m512		t1 = _mm512_add_ps(_mm512_unpacklo_ps(s2, s3),
								   _mm512_unpackhi_ps(s2, s3));
	__m512		u = _mm512_add_ps(_mm512_shuffle_ps(t0, t1, 0x44),
								  _mm512_shuffle_ps(t0, t1, 0xee));
	__m256		v = _mm256_add_ps(_mm512_castps512_ps256(u),
								  _mm512_extractf32x8_ps(u, 1));

	return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}

/*
 * Rows of a tile.  The 6 x 4 accumulators leave registers for the operands, and ten loads
 * feed 24 multiplications.  The six rows of a stay in the first-level cache while those
 * of b pass.
 */
#define TILE_ROWS 6
#define TILE_COLS 4

/* Coordinates per pass, so that TILE_ROWS rows fit the first-level cache. */
#define TILE_DIM 1024

/* out[j] (+)= sums of row i, for the columns in mask */
#define TILE_STORE(i) \
do { \
	__m128		v_ = sums_of_4(s##i##0, s##i##1, s##i##2, s##i##3); \
\
	if (add) \
		v_ = _mm_add_ps(v_, _mm_maskz_loadu_ps(mask, out + i * ldo)); \
	_mm_mask_storeu_ps(out + i * ldo, mask, v_); \
} while (0)

#define TILE_ZERO(i) \
	__m512		s##i##0 = _mm512_setzero_ps(); \
	__m512		s##i##1 = s##i##0; \
	__m512		s##i##2 = s##i##0; \
	__m512		s##i##3 = s##i##0

#define TILE_ROW(i, load_a) \
do { \
	__m512		v_ = load_a; \
\
	s##i##0 = _mm512_fmadd_ps(v_, w0, s##i##0); \
	s##i##1 = _mm512_fmadd_ps(v_, w1, s##i##1); \
	s##i##2 = _mm512_fmadd_ps(v_, w2, s##i##2); \
	s##i##3 = _mm512_fmadd_ps(v_, w3, s##i##3); \
} while (0)

AVX512 static void
tile_6x4(const float *a, size_t lda, const float *const *b, size_t dim,
		 float *out, size_t ldo, __mmask8 mask, bool add)
{
	const float *b0 = b[0];
	const float *b1 = b[1];
	const float *b2 = b[2];
	const float *b3 = b[3];
	size_t		d;

	TILE_ZERO(0);
	TILE_ZERO(1);
	TILE_ZERO(2);
	TILE_ZERO(3);
	TILE_ZERO(4);
	TILE_ZERO(5);

	for (d = 0; d + 16 <= dim; d += 16)
	{
		__m512		w0 = _mm512_loadu_ps(b0 + d);
		__m512		w1 = _mm512_loadu_ps(b1 + d);
		__m512		w2 = _mm512_loadu_ps(b2 + d);
		__m512		w3 = _mm512_loadu_ps(b3 + d);

		TILE_ROW(0, _mm512_loadu_ps(a + d));
		TILE_ROW(1, _mm512_loadu_ps(a + lda + d));
		TILE_ROW(2, _mm512_loadu_ps(a + 2 * lda + d));
		TILE_ROW(3, _mm512_loadu_ps(a + 3 * lda + d));
		TILE_ROW(4, _mm512_loadu_ps(a + 4 * lda + d));
		TILE_ROW(5, _mm512_loadu_ps(a + 5 * lda + d));
	}
	if (d < dim)
	{
		__mmask16	m = (__mmask16) low_bits(dim - d);
		__m512		w0 = mask_load_f32(m, b0 + d);
		__m512		w1 = mask_load_f32(m, b1 + d);
		__m512		w2 = mask_load_f32(m, b2 + d);
		__m512		w3 = mask_load_f32(m, b3 + d);

		TILE_ROW(0, mask_load_f32(m, a + d));
		TILE_ROW(1, mask_load_f32(m, a + lda + d));
		TILE_ROW(2, mask_load_f32(m, a + 2 * lda + d));
		TILE_ROW(3, mask_load_f32(m, a + 3 * lda + d));
		TILE_ROW(4, mask_load_f32(m, a + 4 * lda + d));
		TILE_ROW(5, mask_load_f32(m, a + 5 * lda + d));
	}
	TILE_STORE(0);
	TILE_STORE(1);
	TILE_STORE(2);
	TILE_STORE(3);
	TILE_STORE(4);
	TILE_STORE(5);
}

AVX512 static void
tile_1x4(const float *a, const float *const *b, size_t dim,
		 float *out, __mmask8 mask, bool add)
{
	const float *b0 = b[0];
	const float *b1 = b[1];
	const float *b2 = b[2];
	const float *b3 = b[3];
	const size_t ldo = 0;

	TILE_ZERO(0);

	for (size_t d = 0; d < dim; d += 16)
	{
		__mmask16	m = (__mmask16) low_bits(dim - d);
		__m512		w0 = mask_load_f32(m, b0 + d);
		__m512		w1 = mask_load_f32(m, b1 + d);
		__m512		w2 = mask_load_f32(m, b2 + d);
		__m512		w3 = mask_load_f32(m, b3 + d);

		TILE_ROW(0, mask_load_f32(m, a + d));
	}
	TILE_STORE(0);
}

AVX512 static void
qv_ip_f32_block_avx512(const float *a, size_t na, size_t lda,
					   const float *b, size_t nb, size_t ldb,
					   size_t dim, float *out, size_t ldo)
{
	size_t		d = 0;

	do
	{
		size_t		part = dim - d < TILE_DIM ? dim - d : TILE_DIM;

		for (size_t i = 0; i < na;)
		{
			size_t		rows = na - i >= TILE_ROWS ? TILE_ROWS : 1;

			for (size_t j = 0; j < nb; j += TILE_COLS)
			{
				__mmask8	mask = (__mmask8) low_bits(nb - j);
				const float *cols[TILE_COLS];

				/* columns behind the last repeat it and are not stored */
				for (size_t c = 0; c < TILE_COLS; c++)
					cols[c] = b + (j + c < nb ? j + c : nb - 1) * ldb + d;
				if (rows == TILE_ROWS)
					tile_6x4(a + i * lda + d, lda, cols, part,
							 out + i * ldo + j, ldo, mask, d > 0);
				else
					tile_1x4(a + i * lda + d, cols, part,
							 out + i * ldo + j, mask, d > 0);
			}
			i += rows;
		}
		d += TILE_DIM;
	} while (d < dim);
}

/*
 * Sparse vectors.  Sixteen indices of the longer vector are compared at once with each
 * index of the shorter one that is not above them.  That leaves one unpredictable branch
 * in sixteen elements, where a merge has one in each.
 *
 * y is the shorter vector at the indices of the block.  Where the metric counts elements
 * that only one vector has, "found" has a bit for each of the last 64 elements of the
 * shorter vector.  The bit is set if the longer vector has the index, too.
 */
#define SPARSE_REST(step, v, elements) \
do { \
	uint64_t	el = elements; \
	__m512		zero = _mm512_setzero_ps(); \
\
	for (size_t k = 0; el != 0; k += 16, el >>= 16) \
		rest = step(rest, mask_load_f32((__mmask16) el, (v) + k), zero); \
} while (0)

#define SPARSE(name, step, all) \
AVX512 static float \
name(const QvSparse *a, const QvSparse *b) \
{ \
	const QvSparse *l = a->n >= b->n ? a : b; \
	const QvSparse *s = a->n >= b->n ? b : a; \
	__m512		sum = _mm512_setzero_ps(); \
	__m512		rest = sum; \
	uint64_t	found = 0; \
	size_t		j = 0; \
\
	for (size_t i = 0; i < l->n && (all || j < s->n); i += 16) \
	{ \
		size_t		n = l->n - i < 16 ? l->n - i : 16; \
		__mmask16	m = (__mmask16) low_bits(n); \
		__m512i		index = _mm512_maskz_loadu_epi32(m, l->indices + i); \
		__m512		y = _mm512_setzero_ps(); \
		int32_t		last = qv_load_i32(l->indices, i + n - 1); \
\
		for (; j < s->n; j++) \
		{ \
			int32_t		p = qv_load_i32(s->indices, j); \
			__mmask16	hit; \
\
			if (p > last) \
				break; \
			hit = _mm512_mask_cmpeq_epi32_mask(m, index, _mm512_set1_epi32(p)); \
			y = _mm512_mask_mov_ps(y, hit, \
								   _mm512_set1_ps(qv_load_f32(s->values, j))); \
			if (all) \
			{ \
				found |= (uint64_t) (hit != 0) << (j % 64); \
				if (j % 64 == 63) \
				{ \
					SPARSE_REST(step, s->values + j - 63, ~found); \
					found = 0; \
				} \
			} \
		} \
		sum = step(sum, mask_load_f32(m, l->values + i), y); \
	} \
	if (all) \
	{ \
		for (size_t i = j - j % 64; i < s->n; i += 64) \
		{ \
			SPARSE_REST(step, s->values + i, ~found & low_bits(s->n - i)); \
			found = 0; \
		} \
	} \
	return _mm512_reduce_add_ps(_mm512_add_ps(sum, rest)); \
}

SPARSE(qv_l2sq_sparse_avx512, step_l2sq, true)
SPARSE(qv_ip_sparse_avx512, step_ip, false)
SPARSE(qv_l1_sparse_avx512, step_l1, true)

/* memset() of some kilobytes takes several times as long. */
AVX512 static inline void
zero_bytes(void *dst, size_t n)
{
	char	   *p = dst;

	for (; n > 64; n -= 64, p += 64)
		_mm512_storeu_si512(p, _mm512_setzero_si512());
	_mm512_mask_storeu_epi8(p, low_bits(n), _mm512_setzero_si512());
}

#define STORE_VALUES(to, values) _mm512_storeu_ps(to, values)
#define STORE_HALVES(to, values) \
	_mm256_storeu_si256((__m256i *) (to), \
						_mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | \
										_MM_FROUND_NO_EXC))

/* Elements that are scattered one by one were checked and converted sixteen at a time. */
#define SCATTER(name, type, store_elem, store_vector) \
AVX512 static bool \
name(const QvSparse *v, float limit, type *dst, size_t dim) \
{ \
	__m512i		end = _mm512_set1_epi32((int) dim); \
	__m512		bound = _mm512_set1_ps(limit); \
\
	zero_bytes(dst, dim * sizeof(type)); \
	for (size_t i = 0; i < v->n; i += 16) \
	{ \
		size_t		count = v->n - i < 16 ? v->n - i : 16; \
		__mmask16	m = (__mmask16) low_bits(count); \
		__m512i		indices = _mm512_maskz_loadu_epi32(m, v->indices + i); \
		__m512		values = mask_load_f32(m, v->values + i); \
		type		elems[16]; \
\
		if (_mm512_mask_cmplt_epu32_mask(m, indices, end) != m || \
			_mm512_mask_cmp_ps_mask(m, _mm512_abs_ps(values), bound, _CMP_LT_OQ) != m) \
			return false; \
		store_vector(elems, values); \
		for (size_t j = 0; j < count; j++) \
			store_elem(dst, (uint32_t) qv_load_i32(v->indices, i + j), elems[j]); \
	} \
	return true; \
}

SCATTER(qv_scatter_f32_avx512, float, qv_store_f32, STORE_VALUES)
SCATTER(qv_scatter_f16_avx512, uint16_t, qv_store_u16, STORE_HALVES)

void
QvFillAvx512(QvKernels *table, const QvCpu *cpu)
{
	table->level = "avx512";
	table->l2sq_f32 = qv_l2sq_f32_avx512;
	table->ip_f32 = qv_ip_f32_avx512;
	table->l1_f32 = qv_l1_f32_avx512;
	table->cosine_f32 = qv_cosine_f32_avx512;
	table->l2sq_f16 = qv_l2sq_f16_avx512;
	table->ip_f16 = qv_ip_f16_avx512;
	table->l1_f16 = qv_l1_f16_avx512;
	table->cosine_f16 = qv_cosine_f16_avx512;
	table->f16_to_f32 = qv_f16_to_f32_avx512;
	table->f32_to_f16 = qv_f32_to_f16_avx512;
	table->sum_u8 = qv_sum_u8_avx512;
	table->ip_u8u8 = qv_ip_u8u8_avx512;
	table->ip_u8s16 = qv_ip_u8s16_avx512;
	table->unpack_bits = qv_unpack_bits_avx512;
	table->fastscan = qv_fastscan_avx512;
	table->fastscan_pack = qv_fastscan_pack_avx512;
	table->fastscan_estimate = qv_fastscan_estimate_avx512;
	table->residual_bits = qv_residual_bits_avx512;
	table->decode_u8 = qv_decode_u8_avx512;
	table->quantize_u8 = qv_quantize_u8_avx512;
	table->norm2_f64 = qv_norm2_f64_avx512;
	table->divide_f32 = qv_divide_f32_avx512;
	table->positive_bits_f32 = qv_positive_bits_f32_avx512;
	table->positive_bits_f16 = qv_positive_bits_f16_avx512;
	table->norm2_f32 = qv_norm2_f32_avx512;
	table->maxabs_f32 = qv_maxabs_f32_avx512;
	table->fht_f32 = qv_fht_f32_avx512;
	table->flip_signs_f32 = qv_flip_signs_f32_avx512;
	table->ip_f32_block = qv_ip_f32_block_avx512;
	table->sign_bits_f32 = qv_sign_bits_f32_avx512;
	table->ip_bits_f32 = qv_ip_bits_f32_avx512;
	table->ip_bits_s8 = qv_ip_bits_s8_avx512;
	table->split_s16 = qv_split_s16_avx512;
	table->lut_f32 = qv_lut_f32_avx512;
	table->mix_f32 = qv_mix_f32_avx512;
	table->add_f32 = qv_add_f32_avx512;
	table->argmin_diff_f32 = qv_argmin_diff_f32_avx512;
	table->l2sq_sparse = qv_l2sq_sparse_avx512;
	table->ip_sparse = qv_ip_sparse_avx512;
	table->l1_sparse = qv_l1_sparse_avx512;
	table->scatter_f32 = qv_scatter_f32_avx512;
	table->scatter_f16 = qv_scatter_f16_avx512;

	if (cpu->avx512vnni)
	{
		table->ip_u8u8 = qv_ip_u8u8_vnni_avx512;
		table->ip_u8s16 = qv_ip_u8s16_vnni_avx512;
		table->ip_bits_s8 = qv_ip_bits_s8_vnni_avx512;
	}
	if (cpu->gfni)
	{
		table->fastscan = qv_fastscan_gfni_avx512;
		table->fastscan_estimate = qv_fastscan_estimate_gfni_avx512;
	}
	if (cpu->avx512vpopcntdq)
	{
		table->hamming = qv_hamming_avx512;
		table->jaccard = qv_jaccard_avx512;
	}
}

#endif							/* QV_X86 */
