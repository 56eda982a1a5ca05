/*
 * dimension.h
 *		The intrinsic dimension of rows: how many dimensions they have of their own,
 *		however many coordinates.
 */
#ifndef QV_DIMENSION_H
#define QV_DIMENSION_H

#include <stddef.h>

/*
 * Returns the intrinsic dimension of rows (n x dim, row major).  It is the median, over
 * some of the rows, of the maximum likelihood estimate by their nearest neighbors in a
 * sample of the others.  This is equation 8 of Levina and Bickel, "Maximum Likelihood
 * Estimation of Intrinsic Dimension", 2004.
 *
 * Rows without a neighbor at another place do not count.  The result is 0 if there are no
 * others.  It is infinity if there are fewer than 1,000 rows, because the nearest of few
 * rows are far away.
 *
 * Computes at most 200 x 2,000 distances.  The callback interrupt (may be NULL) is called
 * now and then, and may leave by longjmp.
 */
extern double QvIntrinsicDimension(const float *rows, size_t n, size_t dim,
								   void (*interrupt) (void *arg), void *arg);

#endif							/* QV_DIMENSION_H */
