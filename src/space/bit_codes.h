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

/* Of what an index stores of a row: a vector that is off by no more than its residual. */
typedef struct QvBitCode
{
	float		norm2;			/* |x|^2, of the row itself */
	float		factor;			/* QvEncodeBits() */
	float		spread;			/* of a query of length one: how far <x, q>
								 * may be above its estimate */
	uint8		bits[FLEXIBLE_ARRAY_MEMBER];	/* pdim */
} QvBitCode;

typedef struct QvBitCodes
{
	char	   *codes;			/* by number; NULL: there are none */
	char	   *memory;			/* that they are in */
	Size		stride;
	uint32		pdim;
	uint32		count;			/* of numbers that there is room for */
	QvSpaceKind kind;
	double		certainty;		/* share of errors that counts */
	float		longest;		/* |x| + residual of the rows, at most */
} QvBitCodes;

/* What so many codes take. */
extern Size QvBitCodesSize(uint32 pdim, Size codes);

/* Room for so many, in a context; none when there is no memory. */
extern void QvBitCodesInit(QvBitCodes *codes, QvSpaceKind kind, int dims, uint32 pdim, uint32 count,
						   MemoryContext context);

/* There are none any more. */
extern void QvBitCodesFree(QvBitCodes *codes);

/* Put x[pdim] (as stored: rotated, centered) under a number below count.  Nothing fails. */
extern void QvBitCodesPut(QvBitCodes *codes, uint32 number, const float *x, float norm2,
						  float residual);

static inline const QvBitCode *
QvBitCodeOf(const QvBitCodes *codes, uint32 number)
{
	return (const QvBitCode *) (codes->codes + (Size) number * codes->stride);
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

/* Codes that are read together, at most. */
#define QV_BITS_TOGETHER 12

/*
 * Search distances that the rows of n codes are hardly ever below; -INFINITY where nothing can be
 * said.
 */
extern void QvBitBounds(const QvBitQuery *query, const QvBitCode *const *codes, uint32 n, float *bounds);

#endif							/* QV_SPACE_BIT_CODES_H */
