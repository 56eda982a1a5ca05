/*
 * levels.h
 *		What the files of src/kernels share: CPU features, and the functions that fill
 *		a table.  Private to this folder.
 */
#ifndef QV_LEVELS_H
#define QV_LEVELS_H

#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#define QV_X86 1
#elif defined(__aarch64__) && defined(__ARM_NEON)
#define QV_NEON 1
#endif

/* Instruction sets both the CPU and the operating system support. */
typedef struct QvCpu
{
	bool		avx2;			/* and FMA and F16C */
	bool		avx512;			/* F, BW, DQ and VL */
	bool		avx512vnni;
	bool		avx512vpopcntdq;
	bool		gfni;			/* beside avx512 */
} QvCpu;

extern void QvCpuDetect(QvCpu *cpu);

/* Each overwrites the entries its level improves on. */
extern void QvFillScalar(QvKernels *table);
#ifdef QV_X86
extern void QvFillAvx2(QvKernels *table);
extern void QvFillAvx512(QvKernels *table, const QvCpu *cpu);
#endif
#ifdef QV_NEON
extern void QvFillNeon(QvKernels *table);
#endif

/*
 * Unaligned loads and stores.  Callers read vectors straight from pages, so
 * even a float may sit at any address.
 */
#define QV_DEFINE_ACCESS(suffix, type) \
static inline type \
qv_load_##suffix(const void *base, size_t i) \
{ \
	type		v; \
\
	memcpy(&v, (const char *) base + i * sizeof(type), sizeof(type)); \
	return v; \
} \
static inline void \
qv_store_##suffix(void *base, size_t i, type v) \
{ \
	memcpy((char *) base + i * sizeof(type), &v, sizeof(type)); \
}

QV_DEFINE_ACCESS(f32, float)
QV_DEFINE_ACCESS(i32, int32_t)
QV_DEFINE_ACCESS(u16, uint16_t)
QV_DEFINE_ACCESS(u32, uint32_t)
QV_DEFINE_ACCESS(u64, uint64_t)

/*
 * Emptied slots are recognized by these bits of their factor, not by a float comparison.
 * clang 14 splits that comparison into scalar ones, which are slower [M79].
 */
#define F16_INFINITY 0x7c00

/* Is the number neither zero, nor negative, nor NaN? */
static inline bool
qv_f16_positive(uint16_t h)
{
	return h != 0 && h <= F16_INFINITY;
}

/*
 * Conversions of one value.  They are equal bit for bit to the instructions of the SIMD
 * levels, NaN payloads included.
 */
static inline float
qv_f16_to_f32(uint16_t h)
{
	uint32_t	sign = (uint32_t) (h & 0x8000) << 16;
	uint32_t	exponent = (h >> 10) & 0x1f;
	uint32_t	mantissa = h & 0x3ff;
	uint32_t	bits;
	float		f;

	if (exponent == 31)
		bits = 0x7f800000 | mantissa << 13 | (mantissa ? 0x400000 : 0);
	else if (exponent != 0)
		bits = (exponent + 112) << 23 | mantissa << 13;
	else
	{
		f = (float) mantissa * 0x1p-24f;
		memcpy(&bits, &f, sizeof(bits));
	}
	bits |= sign;
	memcpy(&f, &bits, sizeof(f));
	return f;
}

static inline uint16_t
qv_f32_to_f16(float f)
{
	uint32_t	bits;
	uint32_t	sign;

	memcpy(&bits, &f, sizeof(bits));
	sign = bits >> 16 & 0x8000;
	bits &= 0x7fffffff;
	if (bits > 0x7f800000)
		return (uint16_t) (sign | 0x7e00 | (bits >> 13 & 0x3ff));
	if (bits >= 0x477ff000)		/* 65520, half way to the next power of two */
		return (uint16_t) (sign | 0x7c00);
	if (bits < 0x38800000)		/* below 2^-14: the result is subnormal */
	{
		float		half = 0.5f;	/* its last place is the smallest half */
		float		sum;
		uint32_t	sumbits;
		uint32_t	halfbits;

		memcpy(&sum, &bits, sizeof(sum));
		sum += half;
		memcpy(&sumbits, &sum, sizeof(sumbits));
		memcpy(&halfbits, &half, sizeof(halfbits));
		return (uint16_t) (sign | (sumbits - halfbits));
	}
	bits += 0xfff + (bits >> 13 & 1);
	return (uint16_t) (sign | (bits - 0x38000000) >> 13);
}

/*
 * Adds up the sums of norm2_f64.  Blocks of eight elements go to four sums s0 to s3 in
 * turn, so that additions need not wait for each other. sum[j] is (s0 + s1) + (s2 + s3)
 * for the elements i = j (mod 8) up to done. done is a multiple of eight.
 */
static inline double
qv_norm2_end(const double sum[8], const float *x, size_t done, size_t n)
{
	double		rest = 0;

	for (size_t i = done; i < n; i++)
	{
		double		v = qv_load_f32(x, i);

		rest += v * v;
	}
	return (sum[0] + sum[4]) + (sum[1] + sum[5]) +
		(sum[2] + sum[6]) + (sum[3] + sum[7]) + rest;
}

/* a, b = scale * (a + b), scale * (a - b) */
static inline void
qv_butterflies(float *a, float *b, size_t n, float scale)
{
	for (size_t i = 0; i < n; i++)
	{
		float		x = qv_load_f32(a, i);
		float		y = qv_load_f32(b, i);

		qv_store_f32(a, i, (x + y) * scale);
		qv_store_f32(b, i, (x - y) * scale);
	}
}

/* The transform in plain C; SIMD levels use it below their register width. */
static inline void
qv_fht_plain(float *x, size_t n)
{
	float		scale = 1.0f / sqrtf((float) n);

	for (size_t h = 1; h < n; h *= 2)
	{
		/* the scale rides on the last pass */
		float		s = 2 * h < n ? 1.0f : scale;

		for (size_t i = 0; i < n; i += 2 * h)
			qv_butterflies(x + i, x + i + h, h, s);
	}
}

#endif							/* QV_LEVELS_H */
