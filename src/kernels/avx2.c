/*
 * avx2.c
 *		Kernels for AVX2 with FMA and F16C.
 *
 * Tails of floats are masked loads; tails of bytes and halves are copied to a
 * zero-filled buffer first, since AVX2 has no masked load for them.
 */
#include "kernels/levels.h"

#ifdef QV_X86

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma,f16c")))
#define AVX2_INLINE AVX2 static inline __attribute__((always_inline))

/* The first n of eight 32-bit lanes, n from 0 to 8; more count as 8. */
AVX2 static inline __m256i
lanes(size_t n)
{
	static const int32_t table[16] = {-1, -1, -1, -1, -1, -1, -1, -1};

	return _mm256_loadu_si256((const __m256i *) (table + 8 - (n < 8 ? n : 8)));
}

AVX2 static inline __m256
load_f32(const float *p)
{
	return _mm256_loadu_ps(p);
}

AVX2 static inline __m256
tail_f32(const float *p, size_t n)
{
	return _mm256_maskload_ps(p, lanes(n));
}

AVX2 static inline __m256
load_f16(const uint16_t *p)
{
	return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) p));
}

AVX2 static inline __m256
tail_f16(const uint16_t *p, size_t n)
{
	uint16_t	copy[8] = {0};

	memcpy(copy, p, n * sizeof(copy[0]));
	return load_f16(copy);
}

AVX2 static inline __m256i
load_bytes(const void *p)
{
	return _mm256_loadu_si256(p);
}

/* The last n < 32 bytes. */
AVX2 static inline __m256i
tail_bytes(const void *p, size_t n)
{
	uint8_t		copy[32] = {0};

	memcpy(copy, p, n);
	return load_bytes(copy);
}

AVX2 static inline __m256
abs_f32(__m256 v)
{
	return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
}

AVX2 static inline float
sum_f32(__m256 v)
{
	__m128		s = _mm_add_ps(_mm256_castps256_ps128(v),
							   _mm256_extractf128_ps(v, 1));

	s = _mm_add_ps(s, _mm_movehl_ps(s, s));
	return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

AVX2 static inline int32_t
sum_i32(__m256i v)
{
	__m128i		s = _mm_add_epi32(_mm256_castsi256_si128(v),
								  _mm256_extracti128_si256(v, 1));

	s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
	s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
	return _mm_cvtsi128_si32(s);
}

AVX2 static inline uint64_t
sum_u64(__m256i v)
{
	__m128i		s = _mm_add_epi64(_mm256_castsi256_si128(v),
								  _mm256_extracti128_si256(v, 1));

	s = _mm_add_epi64(s, _mm_unpackhi_epi64(s, s));
	return (uint64_t) _mm_cvtsi128_si64(s);
}

AVX2 static inline __m256
step_l2sq(__m256 s, __m256 x, __m256 y)
{
	__m256		d = _mm256_sub_ps(x, y);

	return _mm256_fmadd_ps(d, d, s);
}

AVX2 static inline __m256
step_ip(__m256 s, __m256 x, __m256 y)
{
	return _mm256_fmadd_ps(x, y, s);
}

AVX2 static inline __m256
step_l1(__m256 s, __m256 x, __m256 y)
{
	return _mm256_add_ps(s, abs_f32(_mm256_sub_ps(x, y)));
}

#define PAIR_REDUCTION(name, step, type, ctype) \
AVX2 static float \
name(const ctype *a, const ctype *b, size_t n) \
{ \
	__m256		s0 = _mm256_setzero_ps(); \
	__m256		s1 = s0; \
	__m256		s2 = s0; \
	__m256		s3 = s0; \
	size_t		i; \
\
	for (i = 0; i + 32 <= n; i += 32) \
	{ \
		s0 = step(s0, load_##type(a + i), load_##type(b + i)); \
		s1 = step(s1, load_##type(a + i + 8), load_##type(b + i + 8)); \
		s2 = step(s2, load_##type(a + i + 16), load_##type(b + i + 16)); \
		s3 = step(s3, load_##type(a + i + 24), load_##type(b + i + 24)); \
	} \
	for (; i + 8 <= n; i += 8) \
		s0 = step(s0, load_##type(a + i), load_##type(b + i)); \
	if (i < n) \
		s1 = step(s1, tail_##type(a + i, n - i), tail_##type(b + i, n - i)); \
	return sum_f32(_mm256_add_ps(_mm256_add_ps(s0, s1), \
								 _mm256_add_ps(s2, s3))); \
}

PAIR_REDUCTION(qv_l2sq_f32_avx2, step_l2sq, f32, float)
PAIR_REDUCTION(qv_ip_f32_avx2, step_ip, f32, float)
PAIR_REDUCTION(qv_l1_f32_avx2, step_l1, f32, float)
PAIR_REDUCTION(qv_l2sq_f16_avx2, step_l2sq, f16, uint16_t)
PAIR_REDUCTION(qv_ip_f16_avx2, step_ip, f16, uint16_t)
PAIR_REDUCTION(qv_l1_f16_avx2, step_l1, f16, uint16_t)

#define COSINE_STEP(j, x, y) \
do { \
	__m256		vx = x; \
	__m256		vy = y; \
\
	ab##j = _mm256_fmadd_ps(vx, vy, ab##j); \
	aa##j = _mm256_fmadd_ps(vx, vx, aa##j); \
	bb##j = _mm256_fmadd_ps(vy, vy, bb##j); \
} while (0)

#define COSINE(name, type, ctype) \
AVX2 static void \
name(const ctype *a, const ctype *b, size_t n, \
	 float *ab, float *aa, float *bb) \
{ \
	__m256		ab0 = _mm256_setzero_ps(); \
	__m256		ab1 = ab0; \
	__m256		aa0 = ab0; \
	__m256		aa1 = ab0; \
	__m256		bb0 = ab0; \
	__m256		bb1 = ab0; \
	size_t		i; \
\
	for (i = 0; i + 16 <= n; i += 16) \
	{ \
		COSINE_STEP(0, load_##type(a + i), load_##type(b + i)); \
		COSINE_STEP(1, load_##type(a + i + 8), load_##type(b + i + 8)); \
	} \
	if (i + 8 <= n) \
	{ \
		COSINE_STEP(0, load_##type(a + i), load_##type(b + i)); \
		i += 8; \
	} \
	if (i < n) \
		COSINE_STEP(1, tail_##type(a + i, n - i), tail_##type(b + i, n - i)); \
	*ab = sum_f32(_mm256_add_ps(ab0, ab1)); \
	*aa = sum_f32(_mm256_add_ps(aa0, aa1)); \
	*bb = sum_f32(_mm256_add_ps(bb0, bb1)); \
}

COSINE(qv_cosine_f32_avx2, f32, float)
COSINE(qv_cosine_f16_avx2, f16, uint16_t)

AVX2 static void
qv_f16_to_f32_avx2(const uint16_t *src, float *dst, size_t n)
{
	size_t		i;

	for (i = 0; i + 8 <= n; i += 8)
		_mm256_storeu_ps(dst + i, load_f16(src + i));
	if (i < n)
		_mm256_maskstore_ps(dst + i, lanes(n - i), tail_f16(src + i, n - i));
}

AVX2 static inline __m128i
to_f16(__m256 v)
{
	return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

AVX2 static void
qv_f32_to_f16_avx2(const float *src, uint16_t *dst, size_t n)
{
	size_t		i;

	for (i = 0; i + 8 <= n; i += 8)
		_mm_storeu_si128((__m128i *) (dst + i), to_f16(load_f32(src + i)));
	if (i < n)
	{
		uint16_t	copy[8];

		_mm_storeu_si128((__m128i *) copy, to_f16(tail_f32(src + i, n - i)));
		memcpy(dst + i, copy, (n - i) * sizeof(copy[0]));
	}
}

/* ---- bit strings ---- */

/* Set bits of each group of eight bytes. */
AVX2 static inline __m256i
popcount(__m256i v)
{
	const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3,
										   1, 2, 2, 3, 2, 3, 3, 4,
										   0, 1, 1, 2, 1, 2, 2, 3,
										   1, 2, 2, 3, 2, 3, 3, 4);
	const __m256i nibble = _mm256_set1_epi8(15);
	__m256i		low = _mm256_and_si256(v, nibble);
	__m256i		high = _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble);

	return _mm256_sad_epu8(_mm256_add_epi8(_mm256_shuffle_epi8(table, low),
										   _mm256_shuffle_epi8(table, high)),
						   _mm256_setzero_si256());
}

AVX2 static uint64_t
qv_hamming_avx2(const uint8_t *a, const uint8_t *b, size_t n)
{
	__m256i		s = _mm256_setzero_si256();
	size_t		i;

	for (i = 0; i + 32 <= n; i += 32)
		s = _mm256_add_epi64(s, popcount(_mm256_xor_si256(load_bytes(a + i),
														  load_bytes(b + i))));
	if (i < n)
		s = _mm256_add_epi64(s, popcount(_mm256_xor_si256(tail_bytes(a + i, n - i),
														  tail_bytes(b + i, n - i))));
	return sum_u64(s);
}

#define JACCARD_STEP(x, y) \
do { \
	__m256i		vx = x; \
	__m256i		vy = y; \
\
	s_and = _mm256_add_epi64(s_and, popcount(_mm256_and_si256(vx, vy))); \
	s_or = _mm256_add_epi64(s_or, popcount(_mm256_or_si256(vx, vy))); \
} while (0)

AVX2 static void
qv_jaccard_avx2(const uint8_t *a, const uint8_t *b, size_t n,
				uint64_t *both, uint64_t *either)
{
	__m256i		s_and = _mm256_setzero_si256();
	__m256i		s_or = s_and;
	size_t		i;

	for (i = 0; i + 32 <= n; i += 32)
		JACCARD_STEP(load_bytes(a + i), load_bytes(b + i));
	if (i < n)
		JACCARD_STEP(tail_bytes(a + i, n - i), tail_bytes(b + i, n - i));
	*both = sum_u64(s_and);
	*either = sum_u64(s_or);
}

/* ---- 8-bit codes ---- */

AVX2 static int32_t
qv_sum_u8_avx2(const uint8_t *a, size_t n)
{
	const __m256i zero = _mm256_setzero_si256();
	__m256i		s = zero;
	size_t		i;

	for (i = 0; i + 32 <= n; i += 32)
		s = _mm256_add_epi64(s, _mm256_sad_epu8(load_bytes(a + i), zero));
	if (i < n)
		s = _mm256_add_epi64(s, _mm256_sad_epu8(tail_bytes(a + i, n - i), zero));
	return (int32_t) sum_u64(s);
}

/*
 * Bytes are widened to 16 bits before they are multiplied, because the instruction that
 * multiplies bytes saturates its sums of two products.  Even and odd bytes are separated
 * by masks and shifts, which more ports execute than the widening moves.
 */
#define EVEN_U8(v) _mm256_and_si256(v, _mm256_set1_epi16(255))
#define ODD_U8(v) _mm256_srli_epi16(v, 8)
#define EVEN_S8(v) _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8)
#define ODD_S8(v) _mm256_srai_epi16(v, 8)

#define U8U8_STEP(x, y) \
do { \
	__m256i		vx = x; \
	__m256i		vy = y; \
\
	s0 = _mm256_add_epi32(s0, _mm256_madd_epi16(EVEN_U8(vx), EVEN_U8(vy))); \
	s1 = _mm256_add_epi32(s1, _mm256_madd_epi16(ODD_U8(vx), ODD_U8(vy))); \
} while (0)

AVX2 static int32_t
qv_ip_u8u8_avx2(const uint8_t *a, const uint8_t *b, size_t n)
{
	__m256i		s0 = _mm256_setzero_si256();
	__m256i		s1 = s0;
	size_t		i;

	for (i = 0; i + 32 <= n; i += 32)
		U8U8_STEP(load_bytes(a + i), load_bytes(b + i));
	if (i < n)
		U8U8_STEP(tail_bytes(a + i, n - i), tail_bytes(b + i, n - i));
	return sum_i32(_mm256_add_epi32(s0, s1));
}

#define U8S16_STEP(c, h, l) \
do { \
	__m256i		vc = c; \
	__m256i		vh = h; \
	__m256i		vl = l; \
	__m256i		c0 = EVEN_U8(vc); \
	__m256i		c1 = ODD_U8(vc); \
\
	h0 = _mm256_add_epi32(h0, _mm256_madd_epi16(c0, EVEN_S8(vh))); \
	h1 = _mm256_add_epi32(h1, _mm256_madd_epi16(c1, ODD_S8(vh))); \
	l0 = _mm256_add_epi32(l0, _mm256_madd_epi16(c0, EVEN_S8(vl))); \
	l1 = _mm256_add_epi32(l1, _mm256_madd_epi16(c1, ODD_S8(vl))); \
} while (0)

AVX2 static int64_t
qv_ip_u8s16_avx2(const uint8_t *code, const int8_t *hi, const int8_t *lo,
				 size_t n)
{
	__m256i		h0 = _mm256_setzero_si256();
	__m256i		h1 = h0;
	__m256i		l0 = h0;
	__m256i		l1 = h0;
	size_t		i;

	for (i = 0; i + 32 <= n; i += 32)
		U8S16_STEP(load_bytes(code + i), load_bytes(hi + i), load_bytes(lo + i));
	if (i < n)
		U8S16_STEP(tail_bytes(code + i, n - i), tail_bytes(hi + i, n - i),
				   tail_bytes(lo + i, n - i));
	return (int64_t) sum_i32(_mm256_add_epi32(h0, h1)) * 256 +
		sum_i32(_mm256_add_epi32(l0, l1));
}

/* As in avx512.c, sixteen elements at a time. */
AVX2 static void
qv_unpack_bits_avx2(const uint8_t *packed, int bits, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i += 16)
	{
		__m128i		v;

		if (bits == 4)
		{
			v = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *) (packed + i / 2)));
			v = _mm_or_si128(v, _mm_slli_epi16(v, 4));
			v = _mm_and_si128(v, _mm_set1_epi8(15));
		}
		else
		{
			int32_t		four;

			memcpy(&four, packed + i / 4, sizeof(four));
			v = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(four));
			v = _mm_or_si128(v, _mm_slli_epi32(v, 6));
			v = _mm_or_si128(v, _mm_slli_epi32(v, 12));
			v = _mm_and_si128(v, _mm_set1_epi8(3));
		}
		_mm_storeu_si128((__m128i *) (out + i), v);
	}
}

/* ---- FastScan ---- */

/* Nibble groups of four whose sums over all four fit 16 bits. */
#define SCAN_GROUPS 64

#define SCAN_STEP(at) \
do { \
	__m256i		codes = load_bytes(batch + (at)); \
	__m256i		table = load_bytes(lut + (at)); \
	__m256i		v0 = _mm256_shuffle_epi8(table, _mm256_and_si256(codes, nibble)); \
	__m256i		v1 = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(codes, 4), nibble)); \
\
	words0 = _mm256_add_epi16(words0, v0); \
	high0 = _mm256_add_epi16(high0, _mm256_srli_epi16(v0, 8)); \
	words1 = _mm256_add_epi16(words1, v1); \
	high1 = _mm256_add_epi16(high1, _mm256_srli_epi16(v1, 8)); \
} while (0)

AVX2 static inline __m128i
add_halves(__m256i v)
{
	return _mm_add_epi16(_mm256_castsi256_si128(v),
						 _mm256_extracti128_si256(v, 1));
}

/*
 * Returns the sums of at most SCAN_GROUPS groups, as 16-bit numbers of codes 0 to 31.
 * avx512_scan.h explains the method.
 */
AVX2 static inline void
scan_groups(const uint8_t *batch, const uint8_t *lut, size_t groups,
			__m128i sums[4])
{
	const __m256i nibble = _mm256_set1_epi8(15);
	__m256i		words0 = _mm256_setzero_si256();	/* codes 0-15 */
	__m256i		words1 = words0;	/* codes 16-31 */
	__m256i		high0 = words0;
	__m256i		high1 = words0;
	__m128i		low;
	__m128i		high;

	for (size_t g = 0; g < groups; g++)
	{
		SCAN_STEP(g * 64);
		SCAN_STEP(g * 64 + 32);
	}
	high = add_halves(high0);
	low = _mm_sub_epi16(add_halves(words0), _mm_slli_epi16(high, 8));
	sums[0] = _mm_unpacklo_epi16(low, high);
	sums[1] = _mm_unpackhi_epi16(low, high);
	high = add_halves(high1);
	low = _mm_sub_epi16(add_halves(words1), _mm_slli_epi16(high, 8));
	sums[2] = _mm_unpacklo_epi16(low, high);
	sums[3] = _mm_unpackhi_epi16(low, high);
}

AVX2 static inline void
scan_batch(const uint8_t *batch, const uint8_t *lut, size_t nibbles,
		   __m256i sums[4])
{
	size_t		groups = nibbles / 4;
	size_t		part = groups < SCAN_GROUPS ? groups : SCAN_GROUPS;
	__m128i		s[4];

	scan_groups(batch, lut, part, s);
	for (int i = 0; i < 4; i++)
		sums[i] = _mm256_cvtepu16_epi32(s[i]);
	for (size_t done = part; done < groups; done += part)
	{
		part = groups - done;
		if (part > SCAN_GROUPS)
			part = SCAN_GROUPS;
		scan_groups(batch + done * 64, lut + done * 64, part, s);
		for (int i = 0; i < 4; i++)
			sums[i] = _mm256_add_epi32(sums[i], _mm256_cvtepu16_epi32(s[i]));
	}
}

AVX2 static void
qv_fastscan_avx2(const uint8_t *batch, const uint8_t *lut, size_t nibbles,
				 uint32_t out[QV_BATCH])
{
	__m256i		sums[4];

	scan_batch(batch, lut, nibbles, sums);
	for (int i = 0; i < 4; i++)
		_mm256_storeu_si256((__m256i *) (out + 8 * i), sums[i]);
}

/*
 * Transposes 16 x 16 bytes in each half of 16 registers.  Row r of the first eight is
 * interleaved with row r of the others, four times.  Each time moves the highest bit of
 * the row's number to the end of the column's.
 */
AVX2 static inline void
transpose_bytes(__m256i x[16])
{
	__m256i		y[16];

#pragma GCC unroll 2
	for (int round = 0; round < 2; round++)
	{
#pragma GCC unroll 8
		for (int r = 0; r < 8; r++)
		{
			y[2 * r] = _mm256_unpacklo_epi8(x[r], x[r + 8]);
			y[2 * r + 1] = _mm256_unpackhi_epi8(x[r], x[r + 8]);
		}
#pragma GCC unroll 8
		for (int r = 0; r < 8; r++)
		{
			x[2 * r] = _mm256_unpacklo_epi8(y[r], y[r + 8]);
			x[2 * r + 1] = _mm256_unpackhi_epi8(y[r], y[r + 8]);
		}
	}
}

/*
 * Stores 32 bytes of a batch, made from one byte of codes 0 to 15 and of codes 16 to 31.
 */
AVX2 static inline void
store_nibbles(uint8_t *batch, __m256i bytes)
{
	const __m256i nibble = _mm256_set1_epi8(15);
	__m256i		low = _mm256_and_si256(bytes, nibble);
	__m256i		high = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble);
	__m256i		first = _mm256_permute2x128_si256(low, high, 0x20);
	__m256i		second = _mm256_permute2x128_si256(low, high, 0x31);

	_mm256_storeu_si256((__m256i *) batch,
						_mm256_or_si256(first, _mm256_slli_epi16(second, 4)));
}

/*
 * Packs n <= 16 bytes of each code.  Nothing past the codes may be read, so the last 16
 * codes are read up to their end and shifted down.
 */
AVX2 static inline void
pack_columns(const uint8_t *codes, size_t stride, size_t n, uint8_t *batch)
{
	static const uint8_t shifts[32] = {
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
		128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128
	};
	const __m128i down = _mm_loadu_si128((const __m128i *) (shifts + 16 - n));
	const uint8_t *others = codes + 16 * stride + n - 16;
	__m256i		x[16];

#pragma GCC unroll 16
	for (size_t r = 0; r < 16; r++)
	{
		__m128i		first = _mm_loadu_si128((const __m128i *) (codes + r * stride));
		__m128i		second = _mm_loadu_si128((const __m128i *) (others + r * stride));

		if (n < 16)
			second = _mm_shuffle_epi8(second, down);
		x[r] = _mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1);
	}
	transpose_bytes(x);
	if (n == 16)
	{
#pragma GCC unroll 16
		for (size_t c = 0; c < 16; c++)
			store_nibbles(batch + c * QV_BATCH, x[c]);
	}
	else
		for (size_t c = 0; c < n; c++)
			store_nibbles(batch + c * QV_BATCH, x[c]);
}

AVX2 static void
qv_fastscan_pack_avx2(const uint8_t *codes, size_t stride, size_t nbytes,
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

AVX2 static uint32_t
qv_fastscan_estimate_avx2(const uint8_t *batch, const uint8_t *lut,
						  size_t nibbles, const QvEstimateParams *p,
						  float threshold, float out[QV_BATCH])
{
	const __m256 limit = _mm256_set1_ps(threshold);
	const __m128i infinity = _mm_set1_epi16(F16_INFINITY);
	__m256i		sums[4];
	uint32_t	mask = 0;

	scan_batch(batch, lut, nibbles, sums);
	for (int i = 0; i < 4; i++)
	{
		__m128i		halves = _mm_loadu_si128((const __m128i *) (p->a + 8 * i));
		__m128i		dead = _mm_cmpeq_epi16(halves, infinity);
		__m256		a = _mm256_cvtph_ps(halves);
		__m256		b = load_f16(p->b + 8 * i);
		__m256		ip = _mm256_fmadd_ps(_mm256_set1_ps(p->lut_scale),
										 _mm256_cvtepi32_ps(sums[i]),
										 _mm256_set1_ps(p->lut_bias));
		__m256		e = _mm256_fmadd_ps(_mm256_set1_ps(p->a_scale), a,
										_mm256_set1_ps(p->base));
		int			below;

		e = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_set1_ps(p->b_scale), b), ip, e);
		_mm256_storeu_ps(out + 8 * i, e);
		below = _mm256_movemask_ps(_mm256_cmp_ps(e, limit, _CMP_LT_OQ));
		below &= ~_mm_movemask_epi8(_mm_packs_epi16(dead, dead));
		mask |= (uint32_t) (below & 0xff) << 8 * i;
	}
	return mask;
}

/* ---- codes and floats ---- */

AVX2 static inline __m256
code_to_f32(const uint8_t *code)
{
	__m128i		v = _mm_loadl_epi64((const __m128i *) code);

	return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(v));
}

AVX2 static void
qv_residual_bits_avx2(const uint8_t *code, float scale, float offset,
					  const float *p, size_t n, uint8_t *bits,
					  float *sum_abs, float *yp)
{
	const __m256 vscale = _mm256_set1_ps(scale);
	const __m256 voffset = _mm256_set1_ps(offset);
	__m256		s_abs = _mm256_setzero_ps();
	__m256		s_all = s_abs;
	__m256		s_set = s_abs;

	for (size_t i = 0; i < n; i += 8)
	{
		__m256		x = load_f32(p + i);
		__m256		r = _mm256_fmsub_ps(vscale,
										_mm256_sub_ps(code_to_f32(code + i), voffset), x);
		__m256		set = _mm256_cmp_ps(r, _mm256_setzero_ps(), _CMP_GE_OQ);

		s_abs = _mm256_add_ps(s_abs, abs_f32(r));
		s_all = _mm256_add_ps(s_all, x);
		s_set = _mm256_add_ps(s_set, _mm256_and_ps(set, x));
		bits[i / 8] = (uint8_t) _mm256_movemask_ps(set);
	}
	*sum_abs = sum_f32(s_abs);
	*yp = sum_f32(_mm256_fnmadd_ps(_mm256_set1_ps(0.5f), s_all, s_set));
}

AVX2 static void
qv_decode_u8_avx2(const uint8_t *code, float scale, float offset,
				  float *dst, size_t n)
{
	const __m256 vscale = _mm256_set1_ps(scale);
	const __m256 voffset = _mm256_set1_ps(offset);
	size_t		i;

	for (i = 0; i + 8 <= n; i += 8)
		_mm256_storeu_ps(dst + i, _mm256_mul_ps(vscale, _mm256_sub_ps(code_to_f32(code + i), voffset)));
	if (i < n)
	{
		uint8_t		copy[8] = {0};

		memcpy(copy, code + i, n - i);
		_mm256_maskstore_ps(dst + i, lanes(n - i),
							_mm256_mul_ps(vscale, _mm256_sub_ps(code_to_f32(copy), voffset)));
	}
}

/* Eight codes less half, as integers.  Adds to the sums. */
#define QUANTIZE_STEP(q, v, valid) \
do { \
	__m256		x_ = v; \
	__m256		y_ = _mm256_floor_ps(_mm256_mul_ps(x_, vt)); \
\
	y_ = _mm256_max_ps(_mm256_min_ps(y_, max), min); \
	q = _mm256_cvttps_epi32(y_); \
	y_ = _mm256_and_ps(_mm256_add_ps(y_, _mm256_set1_ps(0.5f)), valid); \
	s_xy = _mm256_fmadd_ps(x_, y_, s_xy); \
	s_yy = _mm256_fmadd_ps(y_, y_, s_yy); \
} while (0)

AVX2 static void
qv_quantize_u8_avx2(const float *x, size_t n, float t, float half,
					uint8_t *code, float *xy, float *yy)
{
	const __m256 vt = _mm256_set1_ps(t);
	const __m256 min = _mm256_set1_ps(-half);
	const __m256 max = _mm256_set1_ps(half - 1);
	const __m256 all = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
	const __m256i offset = _mm256_set1_epi8((char) (int) half);

	/* undoes the interleaving by 128-bit lanes of two rounds of packing */
	const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
	__m256		s_xy = _mm256_setzero_ps();
	__m256		s_yy = s_xy;
	size_t		i;

	for (i = 0; i + 32 <= n; i += 32)
	{
		__m256i		q0;
		__m256i		q1;
		__m256i		q2;
		__m256i		q3;

		QUANTIZE_STEP(q0, load_f32(x + i), all);
		QUANTIZE_STEP(q1, load_f32(x + i + 8), all);
		QUANTIZE_STEP(q2, load_f32(x + i + 16), all);
		QUANTIZE_STEP(q3, load_f32(x + i + 24), all);
		q0 = _mm256_packs_epi16(_mm256_packs_epi32(q0, q1),
								_mm256_packs_epi32(q2, q3));
		q0 = _mm256_permutevar8x32_epi32(q0, order);
		_mm256_storeu_si256((__m256i *) (code + i), _mm256_add_epi8(q0, offset));
	}
	for (; i < n; i += 8)
	{
		size_t		m = n - i < 8 ? n - i : 8;
		uint8_t		copy[32];
		__m256i		q;

		QUANTIZE_STEP(q, tail_f32(x + i, m), _mm256_castsi256_ps(lanes(m)));
		q = _mm256_packs_epi16(_mm256_packs_epi32(q, q), q);
		q = _mm256_permutevar8x32_epi32(q, order);
		_mm256_storeu_si256((__m256i *) copy, _mm256_add_epi8(q, offset));
		memcpy(code + i, copy, m);
	}
	*xy = sum_f32(s_xy);
	*yy = sum_f32(s_yy);
}

AVX2 static double
qv_norm2_f64_avx2(const float *x, size_t n)
{
	__m256d		s[8];
	double		lanes[8];
	size_t		i;

#pragma GCC unroll 8
	for (int h = 0; h < 8; h++)
		s[h] = _mm256_setzero_pd();
	/* each block of eight is two halves */
	for (i = 0; i + 32 <= n; i += 32)
	{
#pragma GCC unroll 8
		for (int h = 0; h < 8; h++)
		{
			__m256d		v = _mm256_cvtps_pd(_mm_loadu_ps(x + i + 4 * h));

			s[h] = _mm256_fmadd_pd(v, v, s[h]);
		}
	}
#pragma GCC unroll 3
	for (int b = 0; b < 3; b++)
		if (i + 8 <= n)
		{
#pragma GCC unroll 2
			for (int h = 0; h < 2; h++)
			{
				__m256d		v = _mm256_cvtps_pd(_mm_loadu_ps(x + i + 4 * h));

				s[2 * b + h] = _mm256_fmadd_pd(v, v, s[2 * b + h]);
			}
			i += 8;
		}
#pragma GCC unroll 2
	for (int h = 0; h < 2; h++)
		_mm256_storeu_pd(lanes + 4 * h,
						 _mm256_add_pd(_mm256_add_pd(s[h], s[2 + h]),
									   _mm256_add_pd(s[4 + h], s[6 + h])));
	return qv_norm2_end(lanes, x, i, n);
}

AVX2 static void
qv_divide_f32_avx2(const float *x, double by, float *dst, size_t n)
{
	__m256d		divisor = _mm256_set1_pd(by);
	size_t		i;

	for (i = 0; i + 4 <= n; i += 4)
	{
		__m256d		v = _mm256_cvtps_pd(_mm_loadu_ps(x + i));

		_mm_storeu_ps(dst + i, _mm256_cvtpd_ps(_mm256_div_pd(v, divisor)));
	}
	for (; i < n; i++)
		qv_store_f32(dst, i, (float) (qv_load_f32(x, i) / by));
}

/* The bits of a byte of the type bit are in descending order, mask bits not. */
AVX2 static void
qv_positive_bits_f32_avx2(const float *x, size_t n, uint8_t *bits)
{
	const __m256i order = _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0);

	for (size_t i = 0; i < n; i += 8)
	{
		__m256		v = n - i >= 8 ? load_f32(x + i) : tail_f32(x + i, n - i);

		v = _mm256_permutevar8x32_ps(v, order);
		bits[i / 8] = (uint8_t)
			_mm256_movemask_ps(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_GT_OQ));
	}
}

/* Eight halves as all ones or zero, in descending order. */
AVX2 static inline __m128i
positive_f16(__m128i v)
{
	const __m128i order = _mm_setr_epi8(14, 15, 12, 13, 10, 11, 8, 9,
										6, 7, 4, 5, 2, 3, 0, 1);

	v = _mm_shuffle_epi8(v, order);
	return _mm_andnot_si128(_mm_cmpgt_epi16(v, _mm_set1_epi16(F16_INFINITY)),
							_mm_cmpgt_epi16(v, _mm_setzero_si128()));
}

AVX2 static void
qv_positive_bits_f16_avx2(const uint16_t *x, size_t n, uint8_t *bits)
{
	size_t		i;

	for (i = 0; i + 16 <= n; i += 16)
	{
		__m128i		v0 = positive_f16(_mm_loadu_si128((const __m128i *) (x + i)));
		__m128i		v1 = positive_f16(_mm_loadu_si128((const __m128i *) (x + i + 8)));

		qv_store_u16(bits, i / 16, (uint16_t)
					 _mm_movemask_epi8(_mm_packs_epi16(v0, v1)));
	}
	for (; i < n; i += 8)
	{
		uint16_t	copy[8] = {0};
		__m128i		v;

		memcpy(copy, x + i, (n - i < 8 ? n - i : 8) * sizeof(copy[0]));
		v = positive_f16(_mm_loadu_si128((const __m128i *) copy));
		bits[i / 8] = (uint8_t) _mm_movemask_epi8(_mm_packs_epi16(v, v));
	}
}

AVX2 static float
qv_norm2_f32_avx2(const float *x, size_t n)
{
	return qv_ip_f32_avx2(x, x, n);
}

AVX2 static float
qv_maxabs_f32_avx2(const float *x, size_t n)
{
	__m256		max = _mm256_setzero_ps();
	__m128		m;
	size_t		i;

	for (i = 0; i + 8 <= n; i += 8)
		max = _mm256_max_ps(max, abs_f32(load_f32(x + i)));
	if (i < n)
		max = _mm256_max_ps(max, abs_f32(tail_f32(x + i, n - i)));
	m = _mm_max_ps(_mm256_castps256_ps128(max), _mm256_extractf128_ps(max, 1));
	m = _mm_max_ps(m, _mm_movehl_ps(m, m));
	return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

AVX2 static float
qv_sign_bits_f32_avx2(const float *x, size_t n, uint8_t *bits)
{
	__m256		sum = _mm256_setzero_ps();

	for (size_t i = 0; i < n; i += 8)
	{
		__m256		v = load_f32(x + i);

		sum = _mm256_add_ps(sum, abs_f32(v));
		bits[i / 8] = (uint8_t)
			_mm256_movemask_ps(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_GE_OQ));
	}
	return sum_f32(sum);
}

AVX2 static float
qv_ip_bits_f32_avx2(const uint8_t *bits, const float *x, size_t n)
{
	const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
	__m256		sum = _mm256_setzero_ps();

	for (size_t i = 0; i < n; i += 8)
	{
		__m256i		set = _mm256_and_si256(_mm256_set1_epi32(bits[i / 8]), each);
		__m256i		mask = _mm256_cmpeq_epi32(set, each);

		sum = _mm256_add_ps(sum, _mm256_and_ps(load_f32(x + i), _mm256_castsi256_ps(mask)));
	}
	return sum_f32(sum);
}

/* Sums those of 32 signed bytes whose bit is set, in pairs. */
AVX2 static inline __m256i
sum_set_bytes(uint32_t bits, __m256i x)
{
	const __m256i each = _mm256_set1_epi64x((int64_t) UINT64_C(0x8040201008040201));
	const __m256i spread = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
	__m256i		set = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32((int32_t) bits), spread), each);

	return _mm256_maddubs_epi16(_mm256_set1_epi8(1), _mm256_and_si256(x, _mm256_cmpeq_epi8(set, each)));
}

/* The sums of some codes: together, since each of them waits for memory. */
AVX2_INLINE void
ip_bits_s8_some(const uint8_t *const *bits, const int some, const int8_t *x, size_t n, int32_t *sums)
{
	__m256i		total[4] = {0};

	/* sums of 256 bytes fit in 16 bits */
	for (size_t i = 0; i < n;)
	{
		size_t		end = n - i < 4096 ? n : i + 4096;
		__m256i		sum[4] = {0};

		for (; i + 32 <= end; i += 32)
		{
			__m256i		v = _mm256_loadu_si256((const __m256i *) (x + i));

			for (int c = 0; c < some; c++)
			{
				uint32_t	set;

				memcpy(&set, bits[c] + i / 8, sizeof(set));
				sum[c] = _mm256_add_epi16(sum[c], sum_set_bytes(set, v));
			}
		}
		if (i < end)
		{
			__m256i		last = _mm256_inserti128_si256(_mm256_setzero_si256(),
													   _mm_loadu_si128((const __m128i *) (x + i)), 0);

			for (int c = 0; c < some; c++)
				sum[c] = _mm256_add_epi16(sum[c], sum_set_bytes(qv_load_u16(bits[c], i / 16), last));
			i += 16;
		}
		for (int c = 0; c < some; c++)
			total[c] = _mm256_add_epi32(total[c], _mm256_madd_epi16(sum[c], _mm256_set1_epi16(1)));
	}
	for (int c = 0; c < some; c++)
		sums[c] = sum_i32(total[c]);
}

AVX2 static void
qv_ip_bits_s8_avx2(const uint8_t *const *bits, size_t count, const int8_t *x, size_t n, int32_t *sums)
{
	size_t		c = 0;

	for (; c + 4 <= count; c += 4)
		ip_bits_s8_some(bits + c, 4, x, n, sums + c);
	for (; c < count; c++)
		ip_bits_s8_some(bits + c, 1, x, n, sums + c);
}

AVX2 static void
qv_split_s16_avx2(const float *x, size_t n, float inv, float scale,
				  int8_t *hi, int8_t *lo, int32_t *sum, float *err2)
{
	const __m256 vinv = _mm256_set1_ps(inv);
	const __m256 vscale = _mm256_set1_ps(scale);
	const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
	__m256i		total = _mm256_setzero_si256();
	__m256		errors = _mm256_setzero_ps();

	for (size_t i = 0; i < n; i += 8)
	{
		size_t		m = n - i < 8 ? n - i : 8;
		int8_t		copy[32];
		__m256		v = tail_f32(x + i, m);
		__m256i		q = _mm256_cvtps_epi32(_mm256_mul_ps(v, vinv));
		__m256i		h = _mm256_srai_epi32(_mm256_add_epi32(q, _mm256_set1_epi32(128)), 8);
		__m256i		l = _mm256_sub_epi32(q, _mm256_slli_epi32(h, 8));
		__m256		e = _mm256_fnmadd_ps(vscale, _mm256_cvtepi32_ps(q), v);
		__m256i		packed = _mm256_packs_epi32(h, l);

		/* bytes 0-7 are h, bytes 8-15 are l */
		packed = _mm256_packs_epi16(packed, packed);
		packed = _mm256_permutevar8x32_epi32(packed, order);
		_mm256_storeu_si256((__m256i *) copy, packed);
		memcpy(hi + i, copy, m);
		memcpy(lo + i, copy + 8, m);
		total = _mm256_add_epi32(total, q);
		errors = _mm256_fmadd_ps(e, e, errors);
	}
	*sum = sum_i32(total);
	*err2 = sum_f32(errors);
}

/* As in avx512.c.  Entries 8 to 15 are entries 0 to 7 plus the fourth x. */
AVX2 static void
qv_lut_f32_avx2(const float *x, size_t nibbles, float inv, uint8_t *lut)
{
	const __m256 bit0 = _mm256_castsi256_ps(_mm256_setr_epi32(0, -1, 0, -1, 0, -1, 0, -1));
	const __m256 bit1 = _mm256_castsi256_ps(_mm256_setr_epi32(0, 0, -1, -1, 0, 0, -1, -1));
	const __m256 bit2 = _mm256_castsi256_ps(_mm256_setr_epi32(0, 0, 0, 0, -1, -1, -1, -1));
	const __m256 vinv = _mm256_set1_ps(inv);

	for (size_t t = 0; t < nibbles; t++)
	{
		__m128		v = _mm_loadu_ps(x + 4 * t);
		__m128		c = _mm_max_ps(_mm_sub_ps(_mm_setzero_ps(), v), _mm_setzero_ps());
		__m256		low;
		__m256		high;
		__m256i		q;

		c = _mm_add_ps(c, _mm_shuffle_ps(c, c, 0xb1));
		c = _mm_add_ps(c, _mm_shuffle_ps(c, c, 0x4e));
		low = _mm256_broadcastss_ps(c);
		low = _mm256_add_ps(low, _mm256_and_ps(bit0, _mm256_broadcastss_ps(v)));
		low = _mm256_add_ps(low, _mm256_and_ps(bit1, _mm256_broadcastss_ps(_mm_shuffle_ps(v, v, 0x55))));
		low = _mm256_add_ps(low, _mm256_and_ps(bit2, _mm256_broadcastss_ps(_mm_shuffle_ps(v, v, 0xaa))));
		high = _mm256_add_ps(low, _mm256_broadcastss_ps(_mm_shuffle_ps(v, v, 0xff)));
		q = _mm256_packus_epi32(_mm256_cvtps_epi32(_mm256_mul_ps(low, vinv)),
								_mm256_cvtps_epi32(_mm256_mul_ps(high, vinv)));
		q = _mm256_permute4x64_epi64(q, 0xd8);
		_mm_storeu_si128((__m128i *) (lut + 16 * t),
						 _mm_packus_epi16(_mm256_castsi256_si128(q),
										  _mm256_extracti128_si256(q, 1)));
	}
}

/* ---- Hadamard transform ---- */

/* The transform of eight values within a register: h = 1, 2, 4. */
AVX2 static inline __m256
fht8(__m256 v)
{
	const __m256 sign1 = _mm256_setr_ps(0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f);
	const __m256 sign2 = _mm256_setr_ps(0.0f, 0.0f, -0.0f, -0.0f, 0.0f, 0.0f, -0.0f, -0.0f);
	const __m256 sign4 = _mm256_setr_ps(0.0f, 0.0f, 0.0f, 0.0f, -0.0f, -0.0f, -0.0f, -0.0f);

	v = _mm256_add_ps(_mm256_permute_ps(v, 0xb1), _mm256_xor_ps(v, sign1));
	v = _mm256_add_ps(_mm256_permute_ps(v, 0x4e), _mm256_xor_ps(v, sign2));
	return _mm256_add_ps(_mm256_permute2f128_ps(v, v, 1), _mm256_xor_ps(v, sign4));
}

#define BUTTERFLY(p, q) \
do { \
	__m256		sum_ = _mm256_add_ps(p, q); \
\
	q = _mm256_sub_ps(p, q); \
	p = sum_; \
} while (0)

/* The transform of 64 values in eight registers, scaled. */
AVX2 static void
fht64(float *x, __m256 scale)
{
#define LOAD(i) __m256 r##i = fht8(_mm256_mul_ps(load_f32(x + 8 * i), scale))
#define STORE(i) _mm256_storeu_ps(x + 8 * i, r##i)
	LOAD(0);
	LOAD(1);
	LOAD(2);
	LOAD(3);
	LOAD(4);
	LOAD(5);
	LOAD(6);
	LOAD(7);

	BUTTERFLY(r0, r1);
	BUTTERFLY(r2, r3);
	BUTTERFLY(r4, r5);
	BUTTERFLY(r6, r7);

	BUTTERFLY(r0, r2);
	BUTTERFLY(r1, r3);
	BUTTERFLY(r4, r6);
	BUTTERFLY(r5, r7);

	BUTTERFLY(r0, r4);
	BUTTERFLY(r1, r5);
	BUTTERFLY(r2, r6);
	BUTTERFLY(r3, r7);

	STORE(0);
	STORE(1);
	STORE(2);
	STORE(3);
	STORE(4);
	STORE(5);
	STORE(6);
	STORE(7);
#undef LOAD
#undef STORE
}

/* One pass over x: pairs h apart, and then pairs 2h apart. */
AVX2 static void
fht_pass4(float *x, size_t n, size_t h)
{
	for (size_t i = 0; i < n; i += 4 * h)
	{
		for (size_t j = i; j < i + h; j += 8)
		{
			__m256		r0 = load_f32(x + j);
			__m256		r1 = load_f32(x + j + h);
			__m256		r2 = load_f32(x + j + 2 * h);
			__m256		r3 = load_f32(x + j + 3 * h);

			BUTTERFLY(r0, r1);
			BUTTERFLY(r2, r3);
			BUTTERFLY(r0, r2);
			BUTTERFLY(r1, r3);
			_mm256_storeu_ps(x + j, r0);
			_mm256_storeu_ps(x + j + h, r1);
			_mm256_storeu_ps(x + j + 2 * h, r2);
			_mm256_storeu_ps(x + j + 3 * h, r3);
		}
	}
}

AVX2 static void
fht_pass2(float *x, size_t n, size_t h)
{
	for (size_t i = 0; i < n; i += 2 * h)
	{
		for (size_t j = i; j < i + h; j += 8)
		{
			__m256		r0 = load_f32(x + j);
			__m256		r1 = load_f32(x + j + h);

			BUTTERFLY(r0, r1);
			_mm256_storeu_ps(x + j, r0);
			_mm256_storeu_ps(x + j + h, r1);
		}
	}
}

AVX2 static void
qv_fht_f32_avx2(float *x, size_t n)
{
	__m256		scale = _mm256_set1_ps(1.0f / sqrtf((float) n));
	size_t		h;

	if (n < 8)
	{
		qv_fht_plain(x, n);
		return;
	}
	if (n >= 64)
	{
		for (size_t i = 0; i < n; i += 64)
			fht64(x + i, scale);
		h = 64;
	}
	else
	{
		for (size_t i = 0; i < n; i += 8)
			_mm256_storeu_ps(x + i, fht8(_mm256_mul_ps(load_f32(x + i), scale)));
		h = 8;
	}
	for (; 4 * h <= n; h *= 4)
		fht_pass4(x, n, h);
	if (h < n)
		fht_pass2(x, n, h);
}

AVX2 static void
qv_flip_signs_f32_avx2(float *x, const uint8_t *signs, size_t n)
{
	const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);

	for (size_t i = 0; i < n; i += 8)
	{
		size_t		m = n - i < 8 ? n - i : 8;
		__m256i		byte = _mm256_set1_epi32(signs[i / 8]);
		__m256i		set = _mm256_cmpeq_epi32(_mm256_and_si256(byte, bit), bit);
		__m256		flip = _mm256_castsi256_ps(_mm256_slli_epi32(set, 31));

		if (m == 8)
			_mm256_storeu_ps(x + i, _mm256_xor_ps(load_f32(x + i), flip));
		else
			_mm256_maskstore_ps(x + i, lanes(m),
								_mm256_xor_ps(tail_f32(x + i, m), flip));
	}
}

AVX2 static void
qv_mix_f32_avx2(float *a, float *b, size_t n, float scale)
{
	const __m256 s = _mm256_set1_ps(scale);
	size_t		i;

	for (i = 0; i + 8 <= n; i += 8)
	{
		__m256		x = load_f32(a + i);
		__m256		y = load_f32(b + i);

		_mm256_storeu_ps(a + i, _mm256_mul_ps(_mm256_add_ps(x, y), s));
		_mm256_storeu_ps(b + i, _mm256_mul_ps(_mm256_sub_ps(x, y), s));
	}
	if (i < n)
	{
		__m256		x = tail_f32(a + i, n - i);
		__m256		y = tail_f32(b + i, n - i);

		_mm256_maskstore_ps(a + i, lanes(n - i), _mm256_mul_ps(_mm256_add_ps(x, y), s));
		_mm256_maskstore_ps(b + i, lanes(n - i), _mm256_mul_ps(_mm256_sub_ps(x, y), s));
	}
}

/* ---- blocks and centroids ---- */

AVX2 static void
qv_add_f32_avx2(float *dst, const float *src, size_t n)
{
	size_t		i;

	for (i = 0; i + 8 <= n; i += 8)
		_mm256_storeu_ps(dst + i, _mm256_add_ps(load_f32(dst + i), load_f32(src + i)));
	if (i < n)
		_mm256_maskstore_ps(dst + i, lanes(n - i),
							_mm256_add_ps(tail_f32(dst + i, n - i),
										  tail_f32(src + i, n - i)));
}

AVX2 static size_t
qv_argmin_diff_f32_avx2(const float *a, const float *b, size_t n, float *min)
{
	const __m256i step = _mm256_set1_epi32(8);
	__m256i		index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	__m256		best = _mm256_set1_ps(INFINITY);
	__m256i		best_index = _mm256_setzero_si256();
	float		values[8];
	uint32_t	indexes[8];
	float		least = INFINITY;
	size_t		first = 0;

	for (size_t i = 0; i < n; i += 8)
	{
		__m256i		m = lanes(n - i);
		__m256		d = _mm256_sub_ps(_mm256_maskload_ps(a + i, m),
									  _mm256_maskload_ps(b + i, m));
		__m256		less = _mm256_and_ps(_mm256_cmp_ps(d, best, _CMP_LT_OQ),
										 _mm256_castsi256_ps(m));

		best = _mm256_blendv_ps(best, d, less);
		best_index = _mm256_blendv_epi8(best_index, index, _mm256_castps_si256(less));
		index = _mm256_add_epi32(index, step);
	}
	_mm256_storeu_ps(values, best);
	_mm256_storeu_si256((__m256i *) indexes, best_index);
	for (int lane = 0; lane < 8; lane++)
	{
		if (values[lane] < least ||
			(values[lane] == least && least < INFINITY && indexes[lane] < first))
		{
			least = values[lane];
			first = indexes[lane];
		}
	}
	*min = least;
	return first;
}

/* As in avx512.c.  The 4 x 3 accumulators and the operands fill 16 registers. */
#define TILE_ROWS 4
#define TILE_COLS 3

/* Coordinates per pass, so that TILE_ROWS rows fit the first-level cache. */
#define TILE_DIM 1024

static inline void
tile_store(float *out, size_t i, float v, bool add)
{
	qv_store_f32(out, i, add ? qv_load_f32(out, i) + v : v);
}

#define TILE_STORE(i) \
do { \
	float		v_[3] = {sum_f32(s##i##0), sum_f32(s##i##1), sum_f32(s##i##2)}; \
\
	for (size_t c = 0; c < cols; c++) \
		tile_store(out, i * ldo + c, v_[c], add); \
} while (0)

#define TILE_ZERO(i) \
	__m256		s##i##0 = _mm256_setzero_ps(); \
	__m256		s##i##1 = s##i##0; \
	__m256		s##i##2 = s##i##0

#define TILE_ROW(i, load_a) \
do { \
	__m256		v_ = load_a; \
\
	s##i##0 = _mm256_fmadd_ps(v_, w0, s##i##0); \
	s##i##1 = _mm256_fmadd_ps(v_, w1, s##i##1); \
	s##i##2 = _mm256_fmadd_ps(v_, w2, s##i##2); \
} while (0)

AVX2 static void
tile_4x3(const float *a, size_t lda, const float *const *b, size_t dim,
		 float *out, size_t ldo, size_t cols, bool add)
{
	const float *b0 = b[0];
	const float *b1 = b[1];
	const float *b2 = b[2];
	size_t		d;

	TILE_ZERO(0);
	TILE_ZERO(1);
	TILE_ZERO(2);
	TILE_ZERO(3);

	for (d = 0; d + 8 <= dim; d += 8)
	{
		__m256		w0 = load_f32(b0 + d);
		__m256		w1 = load_f32(b1 + d);
		__m256		w2 = load_f32(b2 + d);

		TILE_ROW(0, load_f32(a + d));
		TILE_ROW(1, load_f32(a + lda + d));
		TILE_ROW(2, load_f32(a + 2 * lda + d));
		TILE_ROW(3, load_f32(a + 3 * lda + d));
	}
	if (d < dim)
	{
		__m256		w0 = tail_f32(b0 + d, dim - d);
		__m256		w1 = tail_f32(b1 + d, dim - d);
		__m256		w2 = tail_f32(b2 + d, dim - d);

		TILE_ROW(0, tail_f32(a + d, dim - d));
		TILE_ROW(1, tail_f32(a + lda + d, dim - d));
		TILE_ROW(2, tail_f32(a + 2 * lda + d, dim - d));
		TILE_ROW(3, tail_f32(a + 3 * lda + d, dim - d));
	}
	TILE_STORE(0);
	TILE_STORE(1);
	TILE_STORE(2);
	TILE_STORE(3);
}

AVX2 static void
qv_ip_f32_block_avx2(const float *a, size_t na, size_t lda,
					 const float *b, size_t nb, size_t ldb,
					 size_t dim, float *out, size_t ldo)
{
	size_t		d = 0;

	do
	{
		size_t		part = dim - d < TILE_DIM ? dim - d : TILE_DIM;
		size_t		i;

		for (i = 0; i + TILE_ROWS <= na; i += TILE_ROWS)
		{
			for (size_t j = 0; j < nb; j += TILE_COLS)
			{
				const float *cols[TILE_COLS];

				/* columns behind the last repeat it and are not stored */
				for (size_t c = 0; c < TILE_COLS; c++)
					cols[c] = b + (j + c < nb ? j + c : nb - 1) * ldb + d;
				tile_4x3(a + i * lda + d, lda, cols, part, out + i * ldo + j,
						 ldo, nb - j < TILE_COLS ? nb - j : TILE_COLS, d > 0);
			}
		}
		for (; i < na; i++)
		{
			for (size_t j = 0; j < nb; j++)
				tile_store(out, i * ldo + j,
						   qv_ip_f32_avx2(a + i * lda + d, b + j * ldb + d, part),
						   d > 0);
		}
		d += TILE_DIM;
	} while (d < dim);
}

/*
 * Sparse vectors, as in avx512.c with eight indices at once.  Where the metric counts
 * elements that only one vector has, those of the shorter one are added up in rest, one
 * by one and without a branch.
 */
#define SPARSE(name, step, all) \
AVX2 static float \
name(const QvSparse *a, const QvSparse *b) \
{ \
	const QvSparse *l = a->n >= b->n ? a : b; \
	const QvSparse *s = a->n >= b->n ? b : a; \
	__m256		zero = _mm256_setzero_ps(); \
	__m256		sum = zero; \
	__m256		rest = zero; \
	size_t		j = 0; \
\
	for (size_t i = 0; i < l->n && (all || j < s->n); i += 8) \
	{ \
		size_t		n = l->n - i < 8 ? l->n - i : 8; \
		__m256i		m = lanes(n); \
		__m256i		index = _mm256_maskload_epi32(l->indices + i, m); \
		__m256		y = zero; \
		int32_t		last = qv_load_i32(l->indices, i + n - 1); \
\
		for (; j < s->n; j++) \
		{ \
			int32_t		p = qv_load_i32(s->indices, j); \
			__m256		v = _mm256_set1_ps(qv_load_f32(s->values, j)); \
			__m256		hit; \
\
			if (p > last) \
				break; \
			hit = _mm256_castsi256_ps(_mm256_and_si256(m, \
							_mm256_cmpeq_epi32(index, _mm256_set1_epi32(p)))); \
			y = _mm256_blendv_ps(y, v, hit); \
			if (all) \
			{ \
				__m256i		miss = _mm256_set1_epi32(-(_mm256_movemask_ps(hit) == 0)); \
\
				rest = step(rest, _mm256_and_ps(v, _mm256_castsi256_ps(miss)), zero); \
			} \
		} \
		sum = step(sum, _mm256_maskload_ps(l->values + i, m), y); \
	} \
	if (all) \
	{ \
		/* every lane of rest has the same sum, and the first is used */ \
		rest = _mm256_and_ps(rest, _mm256_castsi256_ps(lanes(1))); \
		for (; j < s->n; j += 8) \
			rest = step(rest, tail_f32(s->values + j, s->n - j), zero); \
	} \
	return sum_f32(_mm256_add_ps(sum, rest)); \
}

SPARSE(qv_l2sq_sparse_avx2, step_l2sq, true)
SPARSE(qv_ip_sparse_avx2, step_ip, false)
SPARSE(qv_l1_sparse_avx2, step_l1, true)

/* memset() of some kilobytes takes several times as long. */
AVX2 static inline void
zero_bytes(void *dst, size_t n)
{
	char	   *p = dst;

	for (; n >= 32; n -= 32, p += 32)
		_mm256_storeu_si256((__m256i *) p, _mm256_setzero_si256());
	memset(p, 0, n);
}

#define STORE_VALUES(to, values) _mm256_storeu_ps(to, values)
#define STORE_HALVES(to, values) _mm_storeu_si128((__m128i *) (to), to_f16(values))

/* Elements that are scattered one by one were checked and converted eight at a time. */
#define SCATTER(name, type, store_elem, store_vector) \
AVX2 static bool \
name(const QvSparse *v, float limit, type *dst, size_t dim) \
{ \
	__m256i		last = _mm256_set1_epi32((int) dim - 1); \
	__m256		bound = _mm256_set1_ps(limit); \
\
	zero_bytes(dst, dim * sizeof(type)); \
	for (size_t i = 0; i < v->n; i += 8) \
	{ \
		size_t		count = v->n - i < 8 ? v->n - i : 8; \
		__m256i		m = lanes(count); \
		__m256i		indices = _mm256_maskload_epi32(v->indices + i, m); \
		__m256		values = _mm256_maskload_ps(v->values + i, m); \
		__m256i		good = _mm256_cmpeq_epi32(_mm256_max_epu32(indices, last), last); \
		type		elems[8]; \
\
		good = _mm256_and_si256(good, _mm256_castps_si256( \
			_mm256_cmp_ps(abs_f32(values), bound, _CMP_LT_OQ))); \
		if (dim == 0 || _mm256_movemask_epi8(good) != -1) \
			return false; \
		store_vector(elems, values); \
		for (size_t j = 0; j < count; j++) \
			store_elem(dst, (uint32_t) qv_load_i32(v->indices, i + j), elems[j]); \
	} \
	return true; \
}

SCATTER(qv_scatter_f32_avx2, float, qv_store_f32, STORE_VALUES)
SCATTER(qv_scatter_f16_avx2, uint16_t, qv_store_u16, STORE_HALVES)

void
QvFillAvx2(QvKernels *table)
{
	table->level = "avx2";
	table->l2sq_f32 = qv_l2sq_f32_avx2;
	table->ip_f32 = qv_ip_f32_avx2;
	table->l1_f32 = qv_l1_f32_avx2;
	table->cosine_f32 = qv_cosine_f32_avx2;
	table->l2sq_f16 = qv_l2sq_f16_avx2;
	table->ip_f16 = qv_ip_f16_avx2;
	table->l1_f16 = qv_l1_f16_avx2;
	table->cosine_f16 = qv_cosine_f16_avx2;
	table->f16_to_f32 = qv_f16_to_f32_avx2;
	table->f32_to_f16 = qv_f32_to_f16_avx2;
	table->hamming = qv_hamming_avx2;
	table->jaccard = qv_jaccard_avx2;
	table->ip_u8u8 = qv_ip_u8u8_avx2;
	table->sum_u8 = qv_sum_u8_avx2;
	table->ip_u8s16 = qv_ip_u8s16_avx2;
	table->unpack_bits = qv_unpack_bits_avx2;
	table->fastscan = qv_fastscan_avx2;
	table->fastscan_pack = qv_fastscan_pack_avx2;
	table->fastscan_estimate = qv_fastscan_estimate_avx2;
	table->residual_bits = qv_residual_bits_avx2;
	table->decode_u8 = qv_decode_u8_avx2;
	table->quantize_u8 = qv_quantize_u8_avx2;
	table->norm2_f64 = qv_norm2_f64_avx2;
	table->divide_f32 = qv_divide_f32_avx2;
	table->positive_bits_f32 = qv_positive_bits_f32_avx2;
	table->positive_bits_f16 = qv_positive_bits_f16_avx2;
	table->norm2_f32 = qv_norm2_f32_avx2;
	table->maxabs_f32 = qv_maxabs_f32_avx2;
	table->fht_f32 = qv_fht_f32_avx2;
	table->flip_signs_f32 = qv_flip_signs_f32_avx2;
	table->ip_f32_block = qv_ip_f32_block_avx2;
	table->sign_bits_f32 = qv_sign_bits_f32_avx2;
	table->ip_bits_f32 = qv_ip_bits_f32_avx2;
	table->ip_bits_s8 = qv_ip_bits_s8_avx2;
	table->split_s16 = qv_split_s16_avx2;
	table->lut_f32 = qv_lut_f32_avx2;
	table->mix_f32 = qv_mix_f32_avx2;
	table->add_f32 = qv_add_f32_avx2;
	table->argmin_diff_f32 = qv_argmin_diff_f32_avx2;
	table->l2sq_sparse = qv_l2sq_sparse_avx2;
	table->ip_sparse = qv_ip_sparse_avx2;
	table->l1_sparse = qv_l1_sparse_avx2;
	table->scatter_f32 = qv_scatter_f32_avx2;
	table->scatter_f16 = qv_scatter_f16_avx2;
}

#endif							/* QV_X86 */
