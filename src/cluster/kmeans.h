/*
 * kmeans.h
 *		Lloyd's k-means over float32 rows, seeded in the manner of k-means++.
 *
 * The result is deterministic for a seed and a kernel level.  Nothing allocates: the
 * caller passes a workspace.  The callback interrupt (may be NULL) is called every 120
 * rows of an assignment, and every 1,024 rows of an average.  It may leave by longjmp, so
 * no resource is held across it.  No server header is included.
 */
#ifndef QV_KMEANS_H
#define QV_KMEANS_H

#include <stddef.h>
#include <stdint.h>

typedef struct QvKmeansParams
{
	const float *rows;			/* n x dim, row major, stride dim */
	size_t		n;
	size_t		dim;
	size_t		k;				/* 1 <= k; fewer come out if n < k */
	int			iterations;		/* Lloyd rounds at most */
	uint64_t	seed;
	int			spherical;		/* scale centroids to unit length each round */
	void		(*interrupt) (void *arg);
	void	   *interrupt_arg;
} QvKmeansParams;

/* Workspace bytes for QvKmeans(). */
extern size_t QvKmeansWorkspace(size_t n, size_t dim, size_t k);

/*
 * Makes up to k x dim floats of centroids.  Returns the number of centroids: min(k, n).
 * Empty clusters are refilled from the largest. assign (n entries, may be NULL) gets each
 * row's final centroid.
 */
extern size_t QvKmeans(const QvKmeansParams *p, float *centroids,
					   uint32_t *assign, void *workspace);

#endif							/* QV_KMEANS_H */
