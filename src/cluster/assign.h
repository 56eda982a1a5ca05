/*
 * assign.h
 *		Blocked assignment of rows to centroids.  Nothing allocates: the caller passes
 *		a workspace.
 */
#ifndef QV_ASSIGN_H
#define QV_ASSIGN_H

#include <stddef.h>
#include <stdint.h>

/*
 * Finds for each of n rows the nearest of k centroids by squared L2.  The workspace has
 * QvAssignWorkspace(k) bytes. dist (may be NULL) gets the squared distances.
 */
extern size_t QvAssignWorkspace(size_t k);
extern void QvAssign(const float *rows, size_t n, size_t dim,
					 const float *centroids, size_t k, uint32_t *assign,
					 float *dist, void *workspace);

/* ---- with interrupts, for k-means ---- */

/*
 * Rows and centroids of a tile: multiples, or nearly so, of the kernels' own tiles (6 x
 * 4, 4 x 3, 4 x 4).  At 768 dimensions a tile has 0.75 MB, which fits a second-level
 * cache.  A few other sizes were slower [M79].
 */
#define QV_ASSIGN_ROWS 120
#define QV_ASSIGN_CENTROIDS 128

#define QV_ALIGN64(size) (((size_t) (size) + 63) / 64 * 64)

typedef struct QvAssignJob
{
	const float *rows;
	size_t		n;
	size_t		dim;
	const float *centroids;
	size_t		k;
	uint32_t   *assign;
	float	   *dist;			/* may be NULL */
	void	   *workspace;		/* QvAssignWorkspace(k) bytes */
	void		(*interrupt) (void *arg);	/* may be NULL */
	void	   *interrupt_arg;
} QvAssignJob;

/* Returns how many entries of assign changed. */
extern size_t QvAssignRun(const QvAssignJob *job);

#endif							/* QV_ASSIGN_H */
