/*
 * bit_codes.c
 *		One-bit codes of rows in memory; see bit_codes.h.
 */
#include "postgres.h"

#include "space/bit_codes.h"
#include "utils/memutils.h"

/*
 * A bound is so many standard deviations from its estimate.  One of the nearest rows is missed for that with a probability
 * of 2e-8, and a fourth fewer rows are measured than with the six of QvCandidateCertainty().
 */
#define CERTAIN_SIGMAS 5.5

/* Bytes that the CPU reads together. */
#define CACHE_LINE 64

/*
 * Bytes from one code to the next.  They begin where a line of the cache does, or fewer would be read in
 * vain, unless that takes more than a quarter as much memory again.
 */
static Size
code_stride(uint32 pdim)
{
	Size		size = TYPEALIGN(sizeof(float), offsetof(QvBitCode, bits) + pdim / 8);
	Size		lines = TYPEALIGN(CACHE_LINE, size);

	return lines <= size + size / 4 ? lines : size;
}

Size
QvBitCodesSize(uint32 pdim, Size codes)
{
	return codes * code_stride(pdim);
}

void
QvBitCodesInit(QvBitCodes *codes, QvSpaceKind kind, int dims, uint32 pdim, uint32 count,
			   MemoryContext context)
{
	memset(codes, 0, sizeof(*codes));
	codes->kind = kind;
	codes->certainty = Min(1, CERTAIN_SIGMAS / sqrt(dims));
	codes->pdim = pdim;
	codes->stride = code_stride(pdim);
	codes->memory = MemoryContextAllocExtended(context, QvBitCodesSize(pdim, count) + CACHE_LINE,
											   MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (codes->memory == NULL)
		return;
	codes->codes = (char *) TYPEALIGN(CACHE_LINE, codes->memory);
	codes->count = count;
}

void
QvBitCodesFree(QvBitCodes *codes)
{
	if (codes->memory)
		pfree(codes->memory);
	codes->memory = codes->codes = NULL;
	codes->count = 0;
}

void
QvBitCodesPut(QvBitCodes *codes, uint32 number, const float *x, float norm2, float residual)
{
	QvBitCode  *code = (QvBitCode *) (codes->codes + (Size) number * codes->stride);
	float		length2 = qv_kernels.norm2_f32(x, codes->pdim);

	code->norm2 = norm2;
	code->factor = QvEncodeBits(x, codes->pdim, codes->pdim, code->bits);

	/*
	 * what the bits stand for is as far from x as Pythagoras says, in a
	 * direction that is by chance; so is x from the row
	 */
	code->spread = codes->certainty *
		(sqrtf(Max(0, code->factor * code->factor * codes->pdim / 4 - length2)) + residual);
	/* as QvCandidateCertainty() */
	if (norm2 > 0)
		code->spread += Min(1, residual / sqrtf(norm2)) * residual;
	if (QvIsShortened(codes->kind, norm2))
		code->spread = INFINITY;
	else
		codes->longest = Max(codes->longest, sqrtf(Max(0, norm2)) + residual);
}

void
QvBitQueryInit(QvBitQuery *query, const QvBitCodes *codes, const QvSpaceQuery *base)
{
	const QvQuery *q = &base->q;
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
	query->rounding = codes->certainty * sqrt(error2) * sqrt(q->pdim) / 2;
	query->slack = query->weight * codes->certainty * codes->longest * q->err16;
	if (QvIsShortened(base->kind, q->norm2))
		query->slack = INFINITY;
}
