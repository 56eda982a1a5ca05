/*
 * bit_codes.c
 *		One-bit codes of rows in memory; see bit_codes.h.
 */
#include "postgres.h"

#include <sys/mman.h>

#include "space/bit_codes.h"
#include "utils/memutils.h"

/*
 * A bound is so many standard deviations from its estimate.  One of the nearest rows is missed for that with a probability
 * of 2e-8, and a fourth fewer rows are measured than with the six of QvCandidateCertainty().
 */
#define CERTAIN_SIGMAS 5.0

/* Bytes that the CPU reads together. */
#define CACHE_LINE 64

/*
 * Codes are read at random: in pages of 4 KB the CPU looks up where each is, which takes as long as to
 * read it.  So they have large ones, from so many bytes on, where the system gives them.
 */
#define HUGE_PAGE ((Size) 2 * 1024 * 1024)
#define LEAST_HUGE (4 * HUGE_PAGE)

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
	Size		size;
	Size		align;

	memset(codes, 0, sizeof(*codes));
	codes->kind = kind;
	codes->certainty = Min(1, CERTAIN_SIGMAS / sqrt(dims));
	codes->pdim = pdim;
	codes->stride = code_stride(pdim);
	size = QvBitCodesSize(pdim, count);
	align = size < LEAST_HUGE ? CACHE_LINE : HUGE_PAGE;
	codes->memory = MemoryContextAllocExtended(context, TYPEALIGN(align, size) + align, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (codes->memory == NULL)
		return;
	codes->codes = (char *) TYPEALIGN(align, codes->memory);
#ifdef MADV_HUGEPAGE
	if (align == HUGE_PAGE)
		(void) madvise(codes->codes, TYPEALIGN(align, size), MADV_HUGEPAGE);
#endif
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
	 * direction that is by chance; so is x from the row, in another
	 */
	code->spread = codes->certainty *
		sqrtf(Max(0, code->factor * code->factor * codes->pdim / 4 - length2) + residual * residual);
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

void
QvBitBounds(const QvBitQuery *query, const QvBitCode *const *codes, uint32 n, float *bounds)
{
	const QvQuery *q = &query->base->q;
	bool		l2 = query->base->kind == QV_SPACE_L2;
	float		base = (l2 ? q->norm2 : 0) - query->slack;
	int32		sums[QV_BITS_TOGETHER];

	for (uint32 i = 0; i < n; i++)
		sums[i] = qv_kernels.ip_bits_s8(codes[i]->bits, q->hi, q->pdim);
	for (uint32 i = 0; i < n; i++)
	{
		const QvBitCode *code = codes[i];
		float		ip = code->factor * (query->scale * (sums[i] - query->half_sum) + query->rounding);
		float		bound = (l2 ? code->norm2 : 0) + base - query->weight * (ip + code->spread * query->base->norm);

		bounds[i] = isfinite(bound) ? bound : -INFINITY;
	}
}
