/*
 * hierarchy.h
 *		k-means of two levels, in tasks that several processes can share: a few top
 *		clusters first, then k-means within each of them.
 *
 * One process makes the plan.  Every task 0 .. tops - 1 is then run once, by any process
 * and in any order.  One process finishes.  All of them pass equal params, but rows may
 * be mapped at different addresses.  The result depends only on the params, on tops and
 * on the kernel level.  Memory and interrupts are as in kmeans.h.
 */
#ifndef QV_HIERARCHY_H
#define QV_HIERARCHY_H

#include <stddef.h>
#include <stdint.h>

typedef struct QvHierarchyParams
{
	const float *rows;			/* n x dim, row major, stride dim */
	size_t		n;				/* below 2^32 */
	size_t		dim;
	size_t		k;				/* 1 <= k < 2^32 */
	int			iterations;		/* Lloyd rounds at most, on either level */
	uint64_t	seed;
	int			spherical;		/* all centroids have unit length */
	void		(*interrupt) (void *arg);	/* may be NULL */
	void	   *interrupt_arg;
} QvHierarchyParams;

/*
 * Returns the best number of top clusters for k centroids of n rows.  1 means that one
 * task does all, by QvKmeans().
 */
extern size_t QvHierarchyTops(size_t n, size_t k);

/*
 * Clusters a sample of the rows into top clusters, assigns every row to one, and divides
 * the centroids between them.  The plan has QvHierarchyPlanSize() bytes, aligned to 8.
 * It holds no pointer, and is read-only from here on.
 */
extern size_t QvHierarchyPlanSize(size_t n, size_t tops);
extern size_t QvHierarchyPlanWorkspace(const QvHierarchyParams *p,
									   size_t tops);
extern void QvHierarchyPlan(const QvHierarchyParams *p, size_t tops,
							void *plan, void *workspace);

/*
 * Clusters the rows of one top cluster. centroids (min(k, n) x dim) and parent (min(k,
 * n)) are the whole arrays.  A task writes only its own part of both, and its number to
 * parent.
 *
 * Returns the number of centroids that it made.  That is fewer than planned if there are
 * many equal rows, because no two centroids of a task are bitwise equal.
 *
 * workspace is aligned to 64.  Its size serves every task.
 */
extern size_t QvHierarchyTaskWorkspace(const QvHierarchyParams *p,
									   const void *plan);
extern size_t QvHierarchyTask(const QvHierarchyParams *p, const void *plan,
							  size_t task, float *centroids, uint32_t *parent,
							  void *workspace);

/*
 * Closes the gaps that tasks left in centroids and parent.  Returns the number of
 * centroids: at most min(k, n), at least 1 when n > 0.
 */
extern size_t QvHierarchyFinish(const QvHierarchyParams *p, const void *plan,
								float *centroids, uint32_t *parent);

#endif							/* QV_HIERARCHY_H */
