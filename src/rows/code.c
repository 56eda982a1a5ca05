/*
 * code.c
 *		The one-bit code of a row's entry; see code.h.
 */
#include "postgres.h"

#include "rows/code.h"

void
QvRowEncode(const QvSpace *space, const QvRowVector *row, QvRowEntry entry)
{
	uint32		pdim = space->pdim;
	const float *x = row->x;
	double		norm2 = qv_kernels.norm2_f32(x, pdim);
	float		factor = QvEncodeBits(x, pdim, pdim, entry->bits);
	double		length = sqrt(pdim) / 2;	/* of what the bits stand for */
	double		error = sqrt(Max(0, (double) factor * factor * length * length - norm2));
	double		spread = hypot(error, row->residual);

	/*
	 * The stored code is short along the row, to which the residual is at
	 * right angles: src/quant/README.md.  A row that is near the query is not
	 * to seem farther by that.
	 */
	if (norm2 > 0)
		factor *= 1 + Min(1, row->residual * row->residual / norm2);
	entry->factor = QvHalfBelow(factor);
	/* what that leaves of the factor is in the code's own direction */
	spread = hypot(spread, (factor - QvHalfToFloat(entry->factor)) * length);
	if (QvIsShortened(space->kind, norm2))
		spread = INFINITY;

	/*
	 * the row is not nearer to the mean than what the index stores of it, for
	 * the same reason
	 */
	entry->norm2 = QvHalfBelow(space->kind == QV_SPACE_POWER ? row->norm2 : norm2);
	entry->spread = QvHalfAbove(spread);
}

void
QvRowQueryInit(QvRowQuery *query, const QvSpace *space, const QvSpaceQuery *base, double sigmas)
{
	const QvQuery *q = &base->q;

	/*
	 * share of the product of two lengths that a random inner product hardly
	 * exceeds
	 */
	double		certainty = Min(1, sigmas / sqrt(space->dims));
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
	query->weight = base->kind != QV_SPACE_IP ? 2 : 1;
	query->spread = certainty * base->norm;
	query->base_distance = base->kind != QV_SPACE_IP ? q->norm2 : 0;

	/*
	 * What the bytes leave of the query, and what its 16-bit form does, which
	 * finer codes are compared with, both for a code of length 1/2
	 * sqrt(pdim).
	 */
	query->rounding = certainty * (sqrt(error2) + q->err16) * sqrt(q->pdim) / 2;
	if (base->shortened)
		query->rounding = INFINITY;
}

void
QvRowLeast(const QvRowQuery *query, const QvRowEntryData *const *entries, uint32 n, float *least)
{
	const uint8 *bits[QV_ROW_BATCH];
	int32		sums[QV_ROW_BATCH]; /* of the query's bytes whose bits are set */
	float		factors[QV_ROW_BATCH];
	float		spreads[QV_ROW_BATCH];
	float		norms[QV_ROW_BATCH];
	bool		adds = query->base->kind != QV_SPACE_IP;

	if (n == 0)
		return;
	for (uint32 i = 0; i < n; i++)
	{
		bits[i] = entries[i]->bits;
		factors[i] = QvHalfToFloat(entries[i]->factor);
		spreads[i] = QvHalfToFloat(entries[i]->spread);
		norms[i] = adds ? QvHalfToFloat(entries[i]->norm2) : 0;
	}
	qv_kernels.ip_bits_s8(bits, n, query->base->q.hi, query->base->q.pdim, sums);
	for (uint32 i = 0; i < n; i++)
	{
		float		ip = factors[i] * (query->scale * (sums[i] - query->half_sum) + query->rounding) +
			spreads[i] * query->spread;
		float		distance = query->base_distance - query->weight * ip + norms[i];

		least[i] = isfinite(distance) ? distance : -INFINITY;
	}
}
