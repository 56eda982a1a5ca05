/*
 * quant.h
 *		Random rotation, RaBitQ codes, and what a query needs of both.
 *
 * A vector of dim coordinates is padded with zeros to "pdim", the next multiple of
 * QV_DIM_ALIGN.  It is then centered (optional) and rotated.  Codes are made of the
 * rotated vector. src/quant/README.md has a table of the symbols.
 *
 * Nothing here allocates or raises.  Callers pass memory, whose size the ...Size
 * functions and the comments give.  No server header is included.
 */
#ifndef QV_QUANT_H
#define QV_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

/* The largest padded dimension.  Codes are exact integers up to here. */
#define QV_MAX_PDIM 32768

#define QV_DIM_ALIGN 16
#define QvPaddedDim(dim) \
	(((size_t) (dim) + QV_DIM_ALIGN - 1) / QV_DIM_ALIGN * QV_DIM_ALIGN)

/* ---- rotate.c: FHT-Kac rotation, orthogonal, O(D log D) ---- */

#define QV_ROTATION_ROUNDS 4

/*
 * signs holds QV_ROTATION_ROUNDS * pdim / 8 bytes, derived from the seed.  The seed is in
 * the metapage, and alone determines the rotation, on every machine and kernel level, up
 * to float rounding.
 */
typedef struct QvRotation
{
	size_t		dim;			/* coordinates of the input */
	size_t		pdim;			/* coordinates of the output */
	const uint8_t *signs;
} QvRotation;

extern size_t QvRotationSignBytes(size_t dim);
extern void QvRotationInit(QvRotation *rot, size_t dim, uint64_t seed,
						   uint8_t *signs);

/* out[pdim] = R * pad(in[dim]); in and out may be the same array of pdim. */
extern void QvRotate(const QvRotation *rot, const float *in, float *out);

/* ---- rabitq_encode.c ---- */

/*
 * Factors of an extended RaBitQ code of x, of 8, 4 or 2 bits per coordinate:
 * decode(code)[i] = scale * (code[i] - QvCodeOffset(bits)).
 */
typedef struct QvCodeFactors
{
	float		norm2;			/* |x|^2, of x itself */
	float		scale;			/* least squares: <x,y> / <y,y> */
	float		residual;		/* |x - decode(code)|, rounded up */
} QvCodeFactors;

#define QvCodeOffset(bits) ((float) (1 << ((bits) - 1)) - 0.5f)
#define QvCodeBytes(pdim, bits) ((size_t) (pdim) * (bits) / 8)

/*
 * Makes a code with one byte per coordinate, whatever the bits.  QvPackCode() packs it.
 * A zero vector gets scale 0. x must be finite.
 */
extern void QvEncode(const float *x, size_t pdim, int bits, uint8_t *code,
					 QvCodeFactors *factors);
extern void QvPackCode(const uint8_t *code, size_t pdim, int bits,
					   uint8_t *packed);

/*
 * Makes the one-bit code of x over its first nbits coordinates, a multiple of 16: bit i =
 * (x[i] >= 0). bits gets nbits / 8 bytes.
 *
 * Returns the factor f = |x|^2 / sum_{i<nbits} 0.5 |x[i]|, or 0 for a zero vector. f *
 * <bits - 0.5, q[0..nbits)> estimates <x, q> without bias.
 */
extern float QvEncodeBits(const float *x, size_t pdim, size_t nbits,
						  uint8_t *bits);

/* ---- pack.c: the FastScan batch layout ---- */

#define QvBatchBytes(nbits) ((size_t) (nbits) * 4)	/* 32 codes of nbits */

/* Writes code number slot (0 to 31) of a batch.  Other slots are unchanged. */
extern void QvPackSlot(uint8_t *batch, size_t nbits, int slot,
					   const uint8_t *bits);

/* Reads code number slot of a batch. */
extern void QvUnpackSlot(const uint8_t *batch, size_t nbits, int slot,
						 uint8_t *bits);

/* Packs n <= 32 codes, which are bits_stride bytes apart, and zeroes the other slots. */
extern void QvPackBatch(uint8_t *batch, size_t nbits, const uint8_t *bits,
						size_t bits_stride, int n);

/*
 * Two-bit code y of the residual r = decode(code) - p, where decode(code)[i] is as above.  n is a
 * multiple of 16.  y[i] is -1.5, -0.5, 0.5 or 1.5, whichever is nearest to r[i] / step.  Writes bit
 * i = lower and bit n + i = upper bit of y[i] + 1.5 to the n / 4 bytes of bits.  Returns the sums
 * yr = <y, r> and yp = <y, p>.
 */
extern void QvResidualTwoBits(const uint8_t *code, float scale, float offset, const float *p, size_t n,
							  float step, uint8_t *bits, float *yr, float *yp);

/* ---- query.c: what a query prepares once ---- */

typedef struct QvQuery
{
	size_t		pdim;
	size_t		nbits;			/* bits of a code that lut covers */
	const float *x;				/* the rotated query, pdim; then what further
								 * bits count */
	float		norm2;			/* |x|^2 */
	float		sum;			/* sum of the 16-bit query's values * scale16 */
	int32_t		sum16;			/* the same sum before scaling, exact */
	float		scale16;		/* x[i] = scale16 * (256 * hi[i] + lo[i]) +
								 * err */
	float		err16;			/* |x - its 16-bit form|, rounded up */
	const int8_t *hi;			/* pdim */
	const int8_t *lo;			/* pdim */
	const uint8_t *lut;			/* nbits * 4 bytes */
	float		lut_scale;
	float		lut_bias;		/* <bits - 0.5, x[0..nbits)> = scale*sum+bias */
} QvQuery;

extern size_t QvQuerySize(size_t pdim, size_t nbits);

/*
 * Prepares a query. mem holds QvQuerySize() bytes, aligned to 64 bytes, and gets a copy
 * of x[pdim]. nbits may be 0 when no FastScan will be done.  Of 2 pdim bits the second half
 * counts twice: the codes are those of QvResidualTwoBits().
 */
extern void QvQueryInit(QvQuery *q, void *mem, const float *x, size_t pdim,
						size_t nbits);

/*
 * Returns the bias for a FastScan over only the first nbits <= q->nbits coordinates.  The
 * table's scale is shared.
 */
extern float QvQueryLutBias(const QvQuery *q, size_t nbits);

/* ---- rabitq_estimate.c ---- */

/*
 * Returns <decode(code), x> for an unpacked code, of one byte per coordinate.  The
 * factors must belong to the code.  The error against <vector, x> is at most residual *
 * |x| + |decode| * err16.  That is certain by Cauchy-Schwarz.
 */
extern float QvCodeIp(const QvQuery *q, const uint8_t *code, int bits,
					  float scale);

/*
 * Returns <decode(a), decode(b)> of two unpacked codes. suma and sumb are their byte
 * sums.  Inline, because a build calls it thousands of times for each node.
 */
static inline float
QvCodePairIp(const uint8_t *a, float scale_a, int32_t suma,
			 const uint8_t *b, float scale_b, int32_t sumb,
			 size_t pdim, int bits)
{
	double		offset = (double) QvCodeOffset(bits);
	double		exact = qv_kernels.ip_u8u8(a, b, pdim) -
		offset * ((double) suma + sumb) + offset * offset * (double) pdim;

	return (float) (exact * scale_a * scale_b);
}

#endif							/* QV_QUANT_H */
