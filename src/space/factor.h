/*
 * factor.h
 *		Factors of one-bit codes as pages have them: float16, relative to a scale.
 */
#ifndef QV_SPACE_FACTOR_H
#define QV_SPACE_FACTOR_H

#include "postgres.h"

#include "kernels/kernels.h"

/*
 * Infinity: the a factor of an empty place of a batch.  The estimate of the place is
 * beyond every limit.
 */
#define QV_EMPTY_FACTOR 0x7C00

static inline uint16
QvFactorPack(float value)
{
	uint16_t	half;

	qv_kernels.f32_to_f16(&value, &half, 1);
	return half;
}

static inline float
QvFactorUnpack(uint16 half)
{
	float		value;
	uint16_t	in = half;

	qv_kernels.f16_to_f32(&in, &value, 1);
	return value;
}

static inline bool
QvFactorIsFinite(uint16 half)
{
	return (half & 0x7C00) != 0x7C00;
}

#endif							/* QV_SPACE_FACTOR_H */
