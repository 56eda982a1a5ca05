/*
 * compare.h
 *		Comparison functions for qsort().
 */
#ifndef QV_COMPARE_H
#define QV_COMPARE_H

#include <stdint.h>

static inline int
CompareUint32(const void *a, const void *b)
{
	uint32_t	x = *(const uint32_t *) a;
	uint32_t	y = *(const uint32_t *) b;

	return (x > y) - (x < y);
}

static inline int
CompareFloats(const void *a, const void *b)
{
	float		x = *(const float *) a;
	float		y = *(const float *) b;

	return (x > y) - (x < y);
}

#endif							/* QV_COMPARE_H */
