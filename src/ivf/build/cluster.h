/*
 * cluster.h
 *		Clustering a sample, together with workers.
 */
#ifndef QV_IVF_BUILD_CLUSTER_H
#define QV_IVF_BUILD_CLUSTER_H

#include "postgres.h"

#include "storage/dsm.h"
#include "storage/shm_toc.h"

typedef struct IvfCluster IvfCluster;

typedef struct IvfClusterData
{
	float	   *rows;			/* the sample: target x dim, the caller fills
								 * it */
	size_t		n;				/* rows left of it after IvfClusterRun() */
	float	   *centroids;		/* k x dim, after IvfClusterRun() */
	uint32	   *parent;			/* of each centroid, below tops */
	uint32		tops;
} IvfClusterData;

/* How many rows of a sample there is memory for, wanted at most. */
extern size_t IvfClusterRows(size_t wanted, size_t dim, size_t k, Size memory);

/* The memory for n rows. */
extern Size IvfClusterMemory(size_t n, size_t dim, size_t k);

typedef struct IvfClusterParams
{
	size_t		target;			/* rows of the sample, at most */
	size_t		dim;
	size_t		k;
	int			iterations;
	uint64		seed;
	bool		spherical;		/* all centroids have unit length */
	int			workers;		/* beside this process, at most */
	Size		memory;			/* bytes that they and the leader use in all */
} IvfClusterParams;

/*
 * Get memory for a sample of target rows and k centroids, and ready for
 * clustering.  The server is in parallel mode from here to IvfClusterEnd()
 * when there are workers.
 */
extern IvfCluster *IvfClusterBegin(const IvfClusterParams *params);
extern IvfClusterData *IvfClusterGet(IvfCluster *cluster);

/* Cluster the first n rows, n > 0; returns the number of centroids. */
extern uint32 IvfClusterRun(IvfCluster *cluster, size_t n);
extern void IvfClusterEnd(IvfCluster *cluster);

extern PGDLLEXPORT void IvfParallelClusterMain(dsm_segment *seg, shm_toc *toc);

#endif							/* QV_IVF_BUILD_CLUSTER_H */
