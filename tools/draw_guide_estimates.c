/*
 * draw_guide_estimates.c
 *		What codes say of distances, for a picture: reads rows of numbers, each a vector
 *		and the center it is coded against, after the query and the dimensions; writes
 *		the true distance, that by the 1-bit code and that by the 8-bit code.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernels.h"
#include "quant/quant.h"

#define MAX_DIMS 4096

static bool
read_vector(float *v, size_t dims)
{
	for (size_t i = 0; i < dims; i++)
		if (scanf("%f", &v[i]) != 1)
			return false;
	return true;
}

static double
dot(const float *a, const float *b, size_t n)
{
	double		sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double) a[i] * b[i];
	return sum;
}

int
main(void)
{
	static float query[MAX_DIMS],
				row[MAX_DIMS],
				center[MAX_DIMS];
	static uint8_t signs[QV_ROTATION_ROUNDS * MAX_DIMS / 8],
				bits[MAX_DIMS / 8],
				code[MAX_DIMS];
	QvRotation	rotation;
	size_t		dims,
				pdim;

	QvKernelsInit();
	if (scanf("%zu", &dims) != 1 || dims == 0 || dims > MAX_DIMS - QV_DIM_ALIGN || !read_vector(query, dims))
	{
		fprintf(stderr, "dimensions, the query, and rows with their centers are wanted\n");
		return 1;
	}
	pdim = QvPaddedDim(dims);
	QvRotationInit(&rotation, dims, 1, signs);
	while (read_vector(row, dims) && read_vector(center, dims))
	{
		float		x[MAX_DIMS],
					q[MAX_DIMS];
		QvCodeFactors factors;
		double		by_bits = 0,
					by_bytes = 0,
					lengths;
		float		factor;

		for (size_t i = 0; i < dims; i++)
		{
			x[i] = row[i] - center[i];
			q[i] = query[i] - center[i];
		}
		lengths = dot(x, x, dims) + dot(q, q, dims);
		printf("%.6f", sqrt(fmax(0, lengths - 2 * dot(x, q, dims))));
		QvRotate(&rotation, x, x);
		QvRotate(&rotation, q, q);
		factor = QvEncodeBits(x, pdim, pdim, bits);
		QvEncode(x, pdim, 8, code, &factors);
		for (size_t i = 0; i < pdim; i++)
		{
			by_bits += q[i] * ((bits[i / 8] >> i % 8 & 1) - 0.5);
			by_bytes += q[i] * (double) factors.scale * (code[i] - QvCodeOffset(8));
		}
		printf(" %.6f %.6f\n", sqrt(fmax(0, lengths - 2 * factor * by_bits)),
			   sqrt(fmax(0, lengths - 2 * by_bytes)));
	}
	return 0;
}
