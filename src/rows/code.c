/*
 * code.c
 *		The one-bit code of a row's entry; see code.h.
 */
#include "postgres.h"

#include "rows/code.h"

/* Standard deviations that a bound is from its estimate. */
#define CERTAIN_SIGMAS 5.0

/* The share of the product of two lengths that an inner product of random directions takes. */
static double
certainty_of(const QvSpace *space)
{
	return Min(1, CERTAIN_SIGMAS / sqrt(space->dims));
}

void
QvRowEncode(const QvSpace *space, const float *x, float residual, QvRowEntry entry)
{
	double		certainty = certainty_of(space);
	uint32		pdim = space->pdim;
	double		norm2 = qv_kernels.norm2_f32(x, pdim);
	float		factor = QvEncodeBits(x, pdim, pdim, entry->bits);
	double		length = sqrt(pdim) / 2;	/* of what the bits stand for */
	double		error = sqrt(Max(0, (double) factor * factor * length * length - norm2));
	double		spread = certainty < 1 ? certainty * hypot(error, residual) : error + residual;

	entry->factor = QvHalfBelow(factor);
	/* what that leaves of the factor is in the code's own direction */
	spread += (factor - QvHalfToFloat(entry->factor)) * length;

	/*
	 * the stored code is short along x itself, and the query may be near x:
	 * src/quant/README.md
	 */
	if (norm2 > 0)
		spread += Min(1, residual / sqrt(norm2)) * residual;
	if (QvIsShortened(space->kind, norm2))
		spread = INFINITY;

	/*
	 * The norm is of what the index stores: the row may be nearer to the
	 * mean, by what an error in a random direction takes.
	 */
	if (space->kind == QV_SPACE_L2)
		norm2 = Max(0, norm2 - 2 * certainty * sqrt(norm2) * residual);
	entry->norm2 = QvHalfBelow(norm2);
	entry->spread = QvHalfAbove(spread);
}

void
QvRowQueryInit(QvRowQuery *query, const QvSpace *space, const QvSpaceQuery *base)
{
	const QvQuery *q = &base->q;
	double		certainty = certainty_of(space);
	double		error2 = 0;
	int64		sum = 0;

	query->base = base;
	query->scale = 256 * q->scale16;
	for (size_t i = 0; i < q->pdim; i++)
	{
		double		error = q->x[i] - query->scale * q->hi[i];

		error2 += error * error;
		sum += q->hi[i];
	}
	query->half_sum = sum / 2.0;
	query->weight = base->kind == QV_SPACE_L2 ? 2 : 1;

	/*
	 * What the bytes leave of the query, and what its 16-bit form does, which
	 * finer codes are compared with, both for a code of length 1/2
	 * sqrt(pdim).
	 */
	query->rounding = certainty * (sqrt(error2) + q->err16) * sqrt(q->pdim) / 2;
	if (QvIsShortened(base->kind, q->norm2))
		query->rounding = INFINITY;
}
