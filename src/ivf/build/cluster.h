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
	float	   *rows;			/* the sample: target x dim, filled in by the
								 * caller */
	size_t		n;				/* rows of it that IvfClusterRun() used */
	float	   *centroids;		/* k x dim, after IvfClusterRun() */
	uint32	   *parent;			/* group of each centroid, below tops */
	uint32		tops;			/* groups */
} IvfClusterData;

/* Returns how many rows of a sample there is memory for, at most wanted. */
extern size_t IvfClusterRows(size_t wanted, size_t dim, size_t k, Size memory);

/* Returns the bytes that clustering n rows needs. */
extern Size IvfClusterMemory(size_t n, size_t dim, size_t k);

typedef struct IvfClusterParams
{
	size_t		target;			/* most rows of the sample */
	size_t		dim;
	size_t		k;				/* centroids wanted */
	int			iterations;
	uint64		seed;
	bool		spherical;		/* all centroids have unit length */
	int			workers;		/* most workers, beside this process */
	Size		memory;			/* bytes that all participants use together */
} IvfClusterParams;

/*
 * Allocates memory for a sample of target rows and k centroids.  If there are workers, the
 * server is in parallel mode from here to IvfClusterEnd().
 */
extern IvfCluster *IvfClusterBegin(const IvfClusterParams *params);
extern IvfClusterData *IvfClusterGet(IvfCluster *cluster);

/* Clusters the first n rows, n > 0.  Returns the number of centroids. */
extern uint32 IvfClusterRun(IvfCluster *cluster, size_t n);
extern void IvfClusterEnd(IvfCluster *cluster);

extern PGDLLEXPORT void IvfParallelClusterMain(dsm_segment *seg, shm_toc *toc);

#endif							/* QV_IVF_BUILD_CLUSTER_H */
