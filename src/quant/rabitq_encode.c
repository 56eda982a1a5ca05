/*
 * rabitq_encode.c
 *		RaBitQ codes of a vector: see src/quant/README.md.
 */
#include "quant/quant.h"

#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

/*
 * Between these largest coordinates, float32 sums of squares neither overflow nor lose an
 * error bound to underflow.  Outside, sums are computed in double.
 */
#define SAFE_MIN 1e-10f
#define SAFE_MAX 1e15f

/*
 * The candidates for t (codes per unit) are half / max * (1 + step * k). k = 0 spans the
 * whole vector.  Later candidates clip its extremes for a finer grid.  The code with the
 * largest cosine to x is kept.
 *
 * The search stops after "patience" candidates in a row without a gain.  The cosine has
 * one broad peak, which for 8 bits and a rotated vector is nearly always at the start.
 */
typedef struct TSearch
{
	float		step;
	int			candidates;
	int			patience;
} TSearch;

static TSearch
t_search(int bits)
{
	switch (bits)
	{
		case 8:
			return (TSearch) {0.12f, 6, 1};
		case 4:
			return (TSearch) {0.08f, 30, 4};
		default:
			return (TSearch) {0.10f, 30, 6};
	}
}

/* Returns the least float that is not below v. */
static float
round_up(double v)
{
	float		f = (float) v;

	return f < v ? nextafterf(f, INFINITY) : f;
}

/*
 * Returns |x - decode(code)|, computed from the definition.
 *
 * Pieces of 256 keep the chains of the float32 accumulators at most 32 long.  Their error
 * (below 4e-6 of the sum) and the rounding of the decoded values (6e-8 of each) are
 * covered by what is added at the end.
 */
static float
residual_fast(const float *x, size_t n, const uint8_t *code, float scale,
			  float offset, double yy)
{
	float		decoded[256];
	double		sum = 0;

	for (size_t i = 0; i < n; i += 256)
	{
		size_t		m = n - i < 256 ? n - i : 256;

		qv_kernels.decode_u8(code + i, scale, offset, decoded, m);
		sum += (double) qv_kernels.l2sq_f32(x + i, decoded, m);
	}
	return round_up(sqrt(sum) * (1 + 1e-5) + 1.5e-7 * scale * sqrt(yy));
}

/* QvEncode() for a vector that is too large or too small for float32 squares. */
static void
encode_extreme(const float *x, size_t pdim, float half, float max,
			   uint8_t *code, QvCodeFactors *factors)
{
	double		t = (double) half / (double) max;
	double		norm2 = 0;
	double		xy = 0;
	double		yy = 0;
	double		residual2 = 0;

	for (size_t i = 0; i < pdim; i++)
	{
		double		v = x[i];
		double		f = floor(v * t);
		double		y;

		f = f < -half ? -half : f > half - 1 ? half - 1 : f;
		y = f + 0.5;
		code[i] = (uint8_t) (int) (f + half);
		norm2 += v * v;
		xy += v * y;
		yy += y * y;
	}
	factors->norm2 = (float) norm2;
	factors->scale = (float) (xy / yy);
	for (size_t i = 0; i < pdim; i++)
	{
		double		d = x[i] - (double) factors->scale *
			((double) code[i] - (half - 0.5));

		residual2 += d * d;
	}
	factors->residual = round_up(sqrt(residual2) * (1 + 1e-5));
}

void
QvEncode(const float *x, size_t pdim, int bits, uint8_t *code,
		 QvCodeFactors *factors)
{
	float		half = (float) (1 << (bits - 1));
	float		offset = QvCodeOffset(bits);
	float		max = qv_kernels.maxabs_f32(x, pdim);
	TSearch		search = t_search(bits);
	float		best_t = 0;
	float		best_xy = 0;
	float		best_yy = 1;
	float		best = -1;
	float		t = 0;
	int			losses = 0;

	if (max == 0)
	{
		memset(code, (int) half, pdim);
		memset(factors, 0, sizeof(*factors));
		return;
	}
	if (max < SAFE_MIN || max > SAFE_MAX)
	{
		encode_extreme(x, pdim, half, max, code, factors);
		return;
	}

	for (int k = 0; k < search.candidates && losses < search.patience; k++)
	{
		float		xy;
		float		yy;
		float		cosine2;

		t = half / max * (1.0f + search.step * (float) k);
		qv_kernels.quantize_u8(x, pdim, t, half, code, &xy, &yy);
		cosine2 = xy * xy / yy;
		if (cosine2 > best)
		{
			best = cosine2;
			best_t = t;
			best_xy = xy;
			best_yy = yy;
			losses = 0;
		}
		else
			losses++;
	}
	if (t != best_t)
		qv_kernels.quantize_u8(x, pdim, best_t, half, code,
							   &best_xy, &best_yy);

	factors->norm2 = qv_kernels.norm2_f32(x, pdim);
	factors->scale = best_xy / best_yy;
	factors->residual = residual_fast(x, pdim, code, factors->scale, offset,
									  (double) best_yy);
}

float
QvEncodeBits(const float *x, size_t pdim, size_t nbits, uint8_t *bits)
{
	double		sum_abs = (double) qv_kernels.sign_bits_f32(x, nbits, bits);
	double		norm2 = (double) qv_kernels.norm2_f32(x, pdim);

	if (norm2 < 1e-20 || norm2 > 1e30)
	{
		/* squares may have left float32's range */
		norm2 = 0;
		sum_abs = 0;
		for (size_t i = 0; i < pdim; i++)
			norm2 += (double) x[i] * (double) x[i];
		for (size_t i = 0; i < nbits; i++)
			sum_abs += fabs((double) x[i]);
	}
	return sum_abs > 0 ? (float) (norm2 / (0.5 * sum_abs)) : 0;
}

#define LANES 8

void
QvResidualTwoBits(const uint8_t *code, float scale, float offset, const float *p, size_t n,
				  float step, uint8_t *bits, float *yr, float *yp)
{
	float		sums_r[LANES] = {0};
	float		sums_p[LANES] = {0};
	float		of_r = 0;
	float		of_p = 0;

	for (size_t i = 0; i < n; i += LANES)
	{
		int			upper[LANES];
		int			lower[LANES];
		unsigned	bytes[2] = {0, 0};

		for (size_t j = 0; j < LANES; j++)
		{
			float		r = scale * ((float) code[i + j] - offset) - p[i + j];
			float		y;

			upper[j] = r >= 0;
			lower[j] = (fabsf(r) > step) == (r >= 0);
			y = (float) (2 * upper[j] + lower[j]) - 1.5f;
			sums_r[j] += y * r;
			sums_p[j] += y * p[i + j];
		}
		for (size_t j = 0; j < LANES; j++)
		{
			bytes[0] |= (unsigned) lower[j] << j;
			bytes[1] |= (unsigned) upper[j] << j;
		}
		bits[i / 8] = (uint8_t) bytes[0];
		bits[(n + i) / 8] = (uint8_t) bytes[1];
	}
	for (size_t j = 0; j < LANES; j++)
	{
		of_r += sums_r[j];
		of_p += sums_p[j];
	}
	*yr = of_r;
	*yp = of_p;
}
