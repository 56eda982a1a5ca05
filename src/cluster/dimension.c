/*
 * dimension.c
 *		The intrinsic dimension of a sample: see dimension.h.
 */
#include "cluster/dimension.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/kernels.h"

/*
 * The number of rows whose neighbors are found, of neighbors, and of rows among which
 * they are found.
 */
#define QUERIES 200
#define NEAREST 20
#define SAMPLE 2000
#define LEAST_SAMPLE 1000

/* Squared distances below this share of the farthest neighbor's are set to that share. */
#define LEAST 1e-12f

/* Puts a squared distance among the nearest so far, in order.  Returns their number. */
static int
keep_nearest(float *nearest, int n, float distance)
{
	int			at = n;

	if (n == NEAREST)
	{
		if (!(distance < nearest[n - 1]))
			return n;
		at = --n;
	}
	for (; at > 0 && nearest[at - 1] > distance; at--)
		nearest[at] = nearest[at - 1];
	nearest[at] = distance;
	return n + 1;
}

/*
 * Returns the dimension by the ascending squared distances of the nearest rows, or 0 if
 * all are at the same place.
 */
static double
dimension_at(const float *nearest)
{
	float		farthest = nearest[NEAREST - 1];
	double		sum = 0;

	if (!(farthest > 0))
		return 0;
	for (int i = 0; i < NEAREST - 1; i++)
		sum += 0.5 * log((double) farthest / fmaxf(nearest[i], LEAST * farthest));
	return sum > 0 ? (NEAREST - 1) / sum : INFINITY;
}

static int
compare_doubles(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

double
QvIntrinsicDimension(const float *rows, size_t n, size_t dim,
					 void (*interrupt) (void *arg), void *arg)
{
	size_t		sample = n < SAMPLE ? n : SAMPLE;
	size_t		queries = sample < QUERIES ? sample : QUERIES;
	double		found[QUERIES];
	int			nfound = 0;

	if (sample < LEAST_SAMPLE)
		return INFINITY;
	for (size_t q = 0; q < queries; q++)
	{
		size_t		self = q * sample / queries;
		float		nearest[NEAREST];
		int			kept = 0;

		if (interrupt)
			interrupt(arg);
		for (size_t i = 0; i < sample; i++)
			if (i != self)
				kept = keep_nearest(nearest, kept,
									qv_kernels.l2sq_f32(rows + self * n / sample * dim,
														rows + i * n / sample * dim, dim));
		found[nfound] = dimension_at(nearest);
		if (found[nfound] > 0)
			nfound++;
	}
	if (nfound == 0)
		return 0;
	qsort(found, nfound, sizeof(double), compare_doubles);
	return found[nfound / 2];
}
