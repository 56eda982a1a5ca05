/*
 * build.h
 *		Building an index of posting lists: what its parts share.
 *
 *	1. centroids.c: a sample of the table, clustered, or a table of centroids
 *	   (centroid_table.c) gives the lists;
 *	2. build.c: every row is coded for its nearest list and sorted by it;
 *	3. the lists are written one after the other.
 *
 * Workers take part in clustering and in 2: build_parallel.c.
 */
#ifndef QV_IVF_BUILD_H
#define QV_IVF_BUILD_H

#include "ivf/ivf.h"
#include "ivf/pages.h"
#include "port/atomics.h"
#include "storage/shm_toc.h"
#include "utils/tuplesort.h"

/* Phases for pg_stat_progress_create_index, after PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE. */
#define IVF_PHASE_SAMPLE 2
#define IVF_PHASE_CLUSTER 3
#define IVF_PHASE_ASSIGN 4
#define IVF_PHASE_WRITE 5
#define IVF_PHASE_MEASURE 6

/* The centroids of a new index. */
typedef struct IvfCentroids
{
	float	   *mean;			/* pdim, rotated; NULL in a plain index */
	char	   *entries;		/* of the directory, entry_size bytes each */
	uint32		lists;
	uint32		tops;
	double		rows;			/* of the table, roughly */
} IvfCentroids;

/*
 * Find the centroids for the rows of a table.  meta is complete but for what
 * is made here.
 */
extern void IvfMakeCentroids(Relation heap, Relation index, IndexInfo *info,
							 const QvOpclassInfo *opclass, const IvfOptions *options,
							 const IvfMetaData *meta, int workers,
							 IvfCentroids *centroids);

/*
 * Read the centroids of options->centroids: as unit vectors where rows go by
 * their angle, and rotated.
 */
extern float *IvfReadCentroids(Relation index, const QvOpclassInfo *opclass,
							   const IvfOptions *options, const IvfMetaData *meta,
							   const QvRotation *rotation, uint32 *lists);

/* ---- clustering a sample, together with workers ---- */

typedef struct IvfCluster IvfCluster;

typedef struct IvfClusterData
{
	float	   *rows;			/* the sample: target x dim, the caller fills it */
	size_t		n;				/* rows left of it after IvfClusterRun() */
	float	   *centroids;		/* k x dim, after IvfClusterRun() */
	uint32	   *parent;			/* of each centroid, below tops */
	uint32		tops;
} IvfClusterData;

/* How many rows of a sample there is memory for, wanted at most. */
extern size_t IvfClusterRows(size_t wanted, size_t dim, size_t k, Size memory);

/*
 * Get memory for a sample of target rows and k centroids, and ready for
 * clustering.  The server is in parallel mode from here to IvfClusterEnd()
 * when there are workers.  They and the leader use memory bytes in all.
 */
extern IvfCluster *IvfClusterBegin(size_t target, size_t dim, size_t k, int iterations,
								   uint64 seed, bool spherical, int workers, Size memory);
extern IvfClusterData *IvfClusterGet(IvfCluster *cluster);

/* Cluster the first n rows, n > 0; returns the number of centroids. */
extern uint32 IvfClusterRun(IvfCluster *cluster, size_t n);
extern void IvfClusterEnd(IvfCluster *cluster);

extern PGDLLEXPORT void IvfParallelClusterMain(dsm_segment *seg, shm_toc *toc);

/* ---- rows on their way to the sort ---- */

typedef struct IvfLoad
{
	IvfHandle  *handle;
	Tuplesortstate *sort;
	TupleTableSlot *slot;
	MemoryContext row_context;
	float	   *value;			/* pdim */
	float	   *rotated;		/* pdim */
	float	   *scratch;		/* 3 * pdim */
	struct IvfSorted *sorted;	/* a row as it is sorted */
	int64		rows;			/* indexed */
	pg_atomic_uint64 *progress; /* rows of all participants, or NULL */
	bool		reports;		/* shows them as progress */
} IvfLoad;

/* The sort, of at most memory kilobytes; coordinate may be NULL. */
extern Tuplesortstate *IvfBeginSort(int memory, SortCoordinate coordinate);

/* Kilobytes for the sort of one of so many participants. */
extern int	IvfSortMemory(const IvfHandle *handle, int participants);

extern void IvfLoadInit(IvfLoad *load, IvfHandle *handle, Tuplesortstate *sort);
extern void IvfLoadEnd(IvfLoad *load);
extern void IvfLoadRow(Relation index, ItemPointer tid, Datum *values, bool *isnull,
					   bool alive, void *state);

/* ---- ... in parallel ---- */

typedef struct IvfParallel IvfParallel;

/*
 * Launch workers that scan the table and sort its rows: its pages must be
 * complete but for the lists.  NULL when there are none.  The server is in
 * parallel mode until IvfParallelEnd().
 */
extern IvfParallel *IvfParallelBegin(Relation heap, Relation index,
									 const IndexInfo *info, int workers);

/* Take part, wait for them, and return all rows, sorted. */
extern Tuplesortstate *IvfParallelLoad(IvfParallel *parallel, Relation heap,
									   Relation index, IndexInfo *info,
									   IvfHandle *handle, double *heap_tuples,
									   double *index_tuples);
extern void IvfParallelEnd(IvfParallel *parallel);

#endif							/* QV_IVF_BUILD_H */
