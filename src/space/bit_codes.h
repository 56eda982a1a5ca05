/*
 * bit_codes.h
 *		One-bit codes of the rows of an index, in the memory of a backend: how near a row may
 *		be, without reading a page for it (src/space/README.md, "Members").
 */
#ifndef QV_SPACE_BIT_CODES_H
#define QV_SPACE_BIT_CODES_H

#include <math.h>

#include "space/query.h"
#include "space/scan.h"

/*
 * Of what an index stores of a row, a vector x that is off by no more than its residual: the upper of two bits of
 * each coordinate, its sign, or the lower one, which together with the upper ones is a code of its own.
 */
typedef struct QvBitCode
{
	float		norm2;			/* |x|^2, of the row itself */
	float		factor;			/* x is about that times what the bits stand
								 * for */
	float		spread;			/* of a query of length one: how far <x, q>
								 * may be above its estimate */
	uint8		bits[FLEXIBLE_ARRAY_MEMBER];	/* pdim */
} QvBitCode;

typedef struct QvBitCodes
{
	char	   *codes;			/* by number; NULL: there are none */
	char	   *fine;			/* likewise, their lower bits; NULL: there is
								 * no memory for these */
	char	   *memory;			/* that codes are in, */
	char	   *fine_memory;	/* and lower bits */
	float	   *scratch;		/* [pdim] */
	Size		stride;
	uint32		pdim;
	uint32		count;			/* of numbers that there is room for */
	QvSpaceKind kind;
	double		certainty;		/* share of errors that counts */
	float		longest;		/* |x| + residual of the rows, at most */
} QvBitCodes;

/* What so many codes take, without lower bits. */
extern Size QvBitCodesSize(uint32 pdim, Size codes);

/* Room for so many, in a context; none, or no lower bits, when there is no memory. */
extern void QvBitCodesInit(QvBitCodes *codes, QvSpaceKind kind, int dims, uint32 pdim, uint32 count,
						   MemoryContext context);

/* There are none any more; in use: but their memory stays until that is called again, or their context goes. */
extern void QvBitCodesFree(QvBitCodes *codes, bool in_use);

/* There are no lower bits any more, whose memory others want. */
extern void QvBitCodesFreeFine(QvBitCodes *codes);

/* Put x[pdim] (as stored: rotated, centered) under a number below count.  Nothing fails. */
extern void QvBitCodesPut(QvBitCodes *codes, uint32 number, const float *x, float norm2,
						  float residual);

static inline const QvBitCode *
QvBitCodeOf(const QvBitCodes *codes, uint32 number)
{
	return (const QvBitCode *) (codes->codes + (Size) number * codes->stride);
}

static inline const QvBitCode *
QvFineCodeOf(const QvBitCodes *codes, uint32 number)
{
	return (const QvBitCode *) (codes->fine + (Size) number * codes->stride);
}

/* Ask the CPU for a code.  (For its second cache: the first waits for 24 lines at most.) */
static inline void
QvBitCodePrefetch(const QvBitCodes *codes, const QvBitCode *code)
{
	const char *at = (const char *) code;

	for (Size i = 0; i < codes->stride; i += 64)
		__builtin_prefetch(at + i, 0, 2);
	/* not where a line begins */
	if (codes->stride % 64 != 0)
		__builtin_prefetch(at + codes->stride - 1, 0, 2);
}

/* A query for them. */
typedef struct QvBitQuery
{
	const QvSpaceQuery *base;
	float		scale;			/* q is about scale times the bytes q.hi, */
	float		half_sum;		/* of which this is half of the sum */
	float		weight;			/* of an inner product in a distance */
	float		rounding;		/* how far that takes it, times the factor */
	float		slack;			/* and what the query's 16-bit form does */
} QvBitQuery;

extern void QvBitQueryInit(QvBitQuery *query, const QvBitCodes *codes, const QvSpaceQuery *base);

/* Codes that are measured together, at most. */
#define QV_BITS_TOGETHER 12

/*
 * Search distances that the rows of n codes are hardly ever below; -INFINITY where nothing can be
 * said.  sums: of the query's bytes whose bits are set.
 */
extern void QvBitBounds(const QvBitQuery *query, const QvBitCode *const *codes, uint32 n, int32 *sums, float *bounds);

/* The same by both bits, of which the upper ones have given that sum. */
extern float QvFineBound(const QvBitQuery *query, const QvBitCode *fine, int32 sum);

#endif							/* QV_SPACE_BIT_CODES_H */
