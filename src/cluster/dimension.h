/*
 * dimension.h
 *		How many dimensions rows have of their own, however many coordinates.
 */
#ifndef QV_DIMENSION_H
#define QV_DIMENSION_H

#include <stddef.h>

/*
 * The intrinsic dimension of rows (n x dim, row major): the median over some of
 * them of the maximum likelihood estimate by their nearest neighbors in a sample
 * of the others (Levina and Bickel, "Maximum Likelihood Estimation of Intrinsic
 * Dimension", 2004, equation 8).  Rows without a neighbor at another place do not
 * count; 0 when there are no others, infinity when there are fewer than 1,000 rows, of which the nearest are far.
 *
 * Reads 200 x 2,000 distances at most.  interrupt (may be NULL) is called now and
 * then and may leave by longjmp.
 */
extern double QvIntrinsicDimension(const float *rows, size_t n, size_t dim,
								   void (*interrupt) (void *arg), void *arg);

#endif							/* QV_DIMENSION_H */
