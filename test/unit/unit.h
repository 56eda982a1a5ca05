/*
 * unit.h
 *		A small runner for tests in plain C, and what they share: a random
 *		generator, buffers between inaccessible pages, reference arithmetic.
 */
#ifndef QV_UNIT_H
#define QV_UNIT_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

/* Run one test; "level" is added to its name and may be NULL. */
extern void UnitRun(const char *name, const char *level, void (*test) (void));

/* Record a failure of the running test; the first few are printed. */
extern void UnitFail(const char *file, int line, const char *format,...)
			__attribute__((format(printf, 3, 4)));

/*
 * How many seeds to try of n.  Sanitizers look at memory, which is the same for
 * each, and take ten times as long.
 */
#ifdef __SANITIZE_ADDRESS__
#define UNIT_SEEDS(n) (((n) + 2) / 3)
#else
#define UNIT_SEEDS(n) (n)
#endif

#define CHECK(condition, ...) \
do { \
	if (!(condition)) \
		UnitFail(__FILE__, __LINE__, __VA_ARGS__); \
} while (0)

/* ---- random data, the same on every machine ---- */

extern void UnitSeed(uint64_t seed);
extern uint64_t UnitRandom(void);
extern double UnitUniform(void);	/* [0, 1) */
extern float UnitNormal(void);
extern void UnitFillNormal(float *x, size_t n);
extern void UnitFillBytes(void *p, size_t n);

/* ---- guarded memory ---- */

/*
 * A buffer between two inaccessible pages.  UnitAtEnd() returns its last n
 * bytes, so that any access past them faults; UnitAtStart() its first n bytes
 * after "skew", so that addresses are odd and accesses before the page fault.
 */
typedef struct UnitBuffer
{
	uint8_t    *start;
	size_t		size;
} UnitBuffer;

extern UnitBuffer UnitBufferNew(size_t size);
extern void UnitBufferFree(UnitBuffer *buffer);
extern void *UnitAtEnd(const UnitBuffer *buffer, size_t n);
extern void *UnitAtStart(const UnitBuffer *buffer, size_t skew);

/* Unaligned access for the references. */
static inline float
at_f32(const void *p, size_t i)
{
	float		v;

	memcpy(&v, (const char *) p + i * sizeof(v), sizeof(v));
	return v;
}

static inline uint16_t
at_u16(const void *p, size_t i)
{
	uint16_t	v;

	memcpy(&v, (const char *) p + i * sizeof(v), sizeof(v));
	return v;
}

/* Independent of the library: by ldexp() and exact double arithmetic. */
extern double UnitHalfValue(uint16_t h);
extern uint16_t UnitHalfFromDouble(double v);

/* ---- suites ---- */

extern void SuiteContainers(void);
extern void SuiteKernels(void);
extern void SuiteQuant(void);
extern void SuiteCluster(void);

#endif							/* QV_UNIT_H */
