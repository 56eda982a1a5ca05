/*
 * bit_codes.c
 *		One-bit codes of rows in memory; see bit_codes.h.
 */
#include "postgres.h"

#include <sys/mman.h>

#include "port/pg_bitutils.h"
#include "space/bit_codes.h"
#include "utils/memutils.h"

/*
 * A bound is so many standard deviations from its estimate.  One of the nearest rows is missed for that with a probability
 * of 3e-7, and little more than half of the rows are measured that the six of QvCandidateCertainty() would take (src/space/README.md, "Members").
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

/* Squared lengths below this have lost digits in float32. */
#define SMALLEST_LENGTH2 1e-30f

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

/* Where so many bytes of codes go, and the memory that these are in; NULL when there is none. */
static char *
room_for(Size size, MemoryContext context, char **memory)
{
	Size		align = size < LEAST_HUGE ? CACHE_LINE : HUGE_PAGE;
	char	   *room;

	*memory = MemoryContextAllocExtended(context, TYPEALIGN(align, size) + align, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (*memory == NULL)
		return NULL;
	room = (char *) TYPEALIGN(align, *memory);
#ifdef MADV_HUGEPAGE
	if (align == HUGE_PAGE)
		(void) madvise(room, TYPEALIGN(align, size), MADV_HUGEPAGE);
#endif
	return room;
}

void
QvBitCodesInit(QvBitCodes *codes, QvSpaceKind kind, int dims, uint32 pdim, uint32 count,
			   MemoryContext context)
{
	Size		size = QvBitCodesSize(pdim, count);

	memset(codes, 0, sizeof(*codes));
	codes->kind = kind;
	codes->certainty = Min(1, CERTAIN_SIGMAS / sqrt(dims));
	codes->pdim = pdim;
	codes->stride = code_stride(pdim);
	codes->scratch = MemoryContextAlloc(context, pdim * sizeof(float));
	codes->codes = room_for(size, context, &codes->memory);
	if (codes->codes == NULL)
		return;
	codes->fine = room_for(size, context, &codes->fine_memory);
	codes->count = count;
}

void
QvBitCodesFree(QvBitCodes *codes, bool in_use)
{
	codes->codes = codes->fine = NULL;
	codes->count = 0;
	if (in_use)
		return;
	QvBitCodesFreeFine(codes);
	if (codes->memory)
		pfree(codes->memory);
	codes->memory = NULL;
}

void
QvBitCodesFreeFine(QvBitCodes *codes)
{
	codes->fine = NULL;
	if (codes->fine_memory)
		pfree(codes->fine_memory);
	codes->fine_memory = NULL;
}

/*
 * How far the product of a query of length one with the row may be above its estimate by a code y, which is
 * that far from x, in a direction that is by chance; so is x from the row, in another.  Of few dimensions
 * nothing is left to chance.
 */
static float
spread_of(const QvBitCodes *codes, double error2, float norm2, float residual)
{
	double		error = sqrt(Max(0, error2));
	double		spread = codes->certainty < 1 ? codes->certainty * hypot(error, residual) : error + residual;

	/* as QvCandidateCertainty() */
	if (norm2 > 0)
		spread += Min(1, residual / sqrt(norm2)) * residual;
	return QvIsShortened(codes->kind, norm2) ? INFINITY : spread;
}

/*
 * The lower of two bits of each coordinate, of which code has the upper one: what they stand for is -3/2, -1/2,
 * 1/2 and 3/2 times the factor, and parted where that errs least for normal coordinates (Max, IRE
 * Transactions on Information Theory 1960).
 */
static void
put_fine(QvBitCodes *codes, QvBitCode *fine, const QvBitCode *code, const float *x, float length2, float residual)
{
	uint32		n = codes->pdim;
	float		part = 0.9957f * sqrtf(length2 / n);
	double		sum_abs = code->factor > 0 ? 2.0 * length2 / code->factor : 0;
	double		sum_apart;
	uint32		outer = 0;
	double		ip;

	for (uint32 i = 0; i < n; i++)
		codes->scratch[i] = x[i] - copysignf(part, x[i]);
	/* how far they are from where they are parted, together */
	sum_apart = qv_kernels.sign_bits_f32(codes->scratch, n, fine->bits);
	for (uint32 i = 0; i < n / 8; i++)
		outer += pg_number_of_ones[(uint8) ~(fine->bits[i] ^ code->bits[i])];
	/* <x, y> = half of the sum of |x|, and the sum of those beyond */
	ip = sum_abs / 2 + (sum_apart + sum_abs - part * ((double) n - 2.0 * outer)) / 2;
	fine->norm2 = code->norm2;
	fine->factor = ip > 0 ? length2 / ip : 0;
	/* where squares have left float32 these bits tell nothing */
	fine->spread = length2 > SMALLEST_LENGTH2 ?
		spread_of(codes, (double) fine->factor * fine->factor * (n / 4.0 + 2.0 * outer) - length2, code->norm2, residual) :
		INFINITY;
}

void
QvBitCodesPut(QvBitCodes *codes, uint32 number, const float *x, float norm2, float residual)
{
	Size		at = (Size) number * codes->stride;
	QvBitCode  *code = (QvBitCode *) (codes->codes + at);
	float		length2 = qv_kernels.norm2_f32(x, codes->pdim);

	code->norm2 = norm2;
	code->factor = QvEncodeBits(x, codes->pdim, codes->pdim, code->bits);
	code->spread = spread_of(codes, (double) code->factor * code->factor * codes->pdim / 4 - length2, norm2, residual);
	if (codes->fine)
		put_fine(codes, (QvBitCode *) (codes->fine + at), code, x, length2, residual);
	if (!QvIsShortened(codes->kind, norm2))
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

/* The bound for the product of what the bits stand for with the query's bytes, of which rounding may be missing. */
static inline float
bound_of(const QvBitQuery *query, const QvBitCode *code, float product, float rounding)
{
	bool		l2 = query->base->kind == QV_SPACE_L2;
	float		ip = code->factor * (query->scale * product + rounding) + code->spread * query->base->norm;
	float		bound = (l2 ? code->norm2 + query->base->q.norm2 : 0) - query->slack - query->weight * ip;

	return isfinite(bound) ? bound : -INFINITY;
}

void
QvBitBounds(const QvBitQuery *query, const QvBitCode *const *codes, uint32 n, int32 *sums, float *bounds)
{
	const QvQuery *q = &query->base->q;

	for (uint32 i = 0; i < n; i++)
		sums[i] = qv_kernels.ip_bits_s8(codes[i]->bits, q->hi, q->pdim);
	for (uint32 i = 0; i < n; i++)
		bounds[i] = bound_of(query, codes[i], sums[i] - query->half_sum, query->rounding);
}

float
QvFineBound(const QvBitQuery *query, const QvBitCode *fine, int32 sum)
{
	const QvQuery *q = &query->base->q;
	float		product = 2.0f * sum + qv_kernels.ip_bits_s8(fine->bits, q->hi, q->pdim) - 3 * query->half_sum;

	/*
	 * they stand for a vector that is up to three times as long as that of
	 * the upper ones
	 */
	return bound_of(query, fine, product, 3 * query->rounding);
}
