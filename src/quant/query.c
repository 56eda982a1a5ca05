/*
 * query.c
 *		What a query prepares once: its 16-bit form for QvCodeIp() and its
 *		look-up table for FastScan.
 */
#include "quant/quant.h"

#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

/* The largest 256 * hi + lo of two signed bytes is 32639. */
#define MAX_S16 32639.0f

/* As in rabitq_encode.c: float32 squares are trusted between these. */
#define SAFE_MIN 1e-10f
#define SAFE_MAX 1e15f

#define ALIGN64(size) (((size) + 63) / 64 * 64)

/* The copy of the query, with what is appended to it. */
static size_t
copy_size(size_t pdim, size_t nbits)
{
	return ALIGN64((pdim > nbits ? pdim : nbits) * sizeof(float));
}

size_t
QvQuerySize(size_t pdim, size_t nbits)
{
	return copy_size(pdim, nbits) + 2 * ALIGN64(pdim) +
		ALIGN64(nbits * 4);
}

/*
 * Returns sum |x[i]|. n is a multiple of 4.  Pieces of 64 are summed in float32; their
 * chains of four additions are exact to 3e-7.
 */
static double
sum_abs(const float *x, size_t n)
{
	double		sum = 0;

	while (n > 0)
	{
		size_t		m = n < 64 ? n : 64;
		float		s[16] = {0};

		for (size_t i = 0; i + 16 <= m; i += 16)
			for (int j = 0; j < 16; j++)
				s[j] += fabsf(x[i + j]);
		for (size_t i = m / 16 * 16; i < m; i++)
			s[0] += fabsf(x[i]);
		for (int j = 0; j < 16; j++)
			sum += (double) s[j];
		x += m;
		n -= m;
	}
	return sum;
}

static void
init_s16(QvQuery *q, float max, int8_t *hi, int8_t *lo)
{
	float		inv = MAX_S16 / max;
	float		err2;
	double		err;

	q->scale16 = max / MAX_S16;
	qv_kernels.split_s16(q->x, q->pdim, inv, q->scale16, hi, lo,
						 &q->sum16, &err2);
	q->sum = q->scale16 * (float) q->sum16;

	/*
	 * Adds what float32 may have lost: in the sum (at the very most 2000
	 * terms a chain), in each difference, and in the result of QvCodeIp().
	 * Outside the range where err2 can be trusted, no value is farther from
	 * its form than half a step.
	 */
	if (max >= SAFE_MIN && max <= SAFE_MAX)
		err = sqrt((double) err2) * (1 + 1e-4) +
			2.5e-7 * sqrt((double) q->norm2);
	else
		err = (0.51 * q->scale16 + 2.5e-7 * max) * sqrt((double) q->pdim);
	q->err16 = (float) (err * (1 + 1e-6));
}

static void
init_lut(QvQuery *q, uint8_t *lut)
{
	float		max = 0;

	for (size_t i = 0; i < q->nbits; i += 4)
	{
		const float *x = q->x + i;
		float		sum = (fabsf(x[0]) + fabsf(x[1])) +
			(fabsf(x[2]) + fabsf(x[3]));

		max = sum > max ? sum : max;
	}
	if (max < 1e-35f)			/* 255 / max would overflow */
	{
		memset(lut, 0, q->nbits * 4);
		q->lut_scale = 0;
	}
	else
	{
		q->lut_scale = max / 255.0f;
		qv_kernels.lut_f32(q->x, q->nbits / 4, 255.0f / max, lut);
	}
	q->lut_bias = QvQueryLutBias(q, q->nbits);
}

void
QvQueryInit(QvQuery *q, void *mem, const float *x, size_t pdim, size_t nbits)
{
	float	   *copy = mem;
	int8_t	   *hi = (int8_t *) mem + copy_size(pdim, nbits);
	int8_t	   *lo = hi + ALIGN64(pdim);
	uint8_t    *lut = (uint8_t *) lo + ALIGN64(pdim);
	float		max = qv_kernels.maxabs_f32(x, pdim);

	memcpy(copy, x, pdim * sizeof(float));
	for (size_t i = pdim; i < nbits; i++)
		copy[i] = 2 * copy[i - pdim];
	q->pdim = pdim;
	q->nbits = nbits;
	q->x = copy;
	q->norm2 = qv_kernels.norm2_f32(x, pdim);
	q->hi = hi;
	q->lo = lo;
	q->lut = lut;

	if (max < 1e-30f)			/* MAX_S16 / max would overflow */
	{
		memset(hi, 0, pdim);
		memset(lo, 0, pdim);
		q->sum = 0;
		q->sum16 = 0;
		q->scale16 = 0;
		q->err16 = max * sqrtf((float) pdim) * 1.00001f;
	}
	else
		init_s16(q, max, hi, lo);

	q->lut_scale = 0;
	q->lut_bias = 0;
	if (nbits > 0)
		init_lut(q, lut);
}

float
QvQueryLutBias(const QvQuery *q, size_t nbits)
{
	return (float) (-0.5 * sum_abs(q->x, nbits));
}
