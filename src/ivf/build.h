/*
 * build.h
 *		Building an index of posting lists: what its parts share.
 *
 *	1. centroids.c: a sample of the table, clustered, or a table of centroids,
 *	   gives the lists;
 *	2. build.c: every row is coded for its nearest list and sorted by it;
 *	3. the lists are written one after the other.
 */
#ifndef QV_IVF_BUILD_H
#define QV_IVF_BUILD_H

#include "ivf/ivf.h"
#include "ivf/pages.h"
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
							 const IvfMetaData *meta, IvfCentroids *centroids);

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
	double		rows;			/* indexed */
} IvfLoad;

/* The sort, of at most memory kilobytes; coordinate may be NULL. */
extern Tuplesortstate *IvfBeginSort(int memory, SortCoordinate coordinate);

extern void IvfLoadInit(IvfLoad *load, IvfHandle *handle, Tuplesortstate *sort);
extern void IvfLoadRow(Relation index, ItemPointer tid, Datum *values, bool *isnull,
					   bool alive, void *state);

/* Raise an error unless the value has the column's dimensions. */
extern void IvfCheckDims(const IvfMetaData *meta, const QvOpclassInfo *opclass,
						 const void *value);

/* Rows that cannot be compared are not indexed: zero vectors under cosine. */
extern bool IvfIsIndexed(const QvOpclassInfo *opclass, const void *value);

#endif							/* QV_IVF_BUILD_H */
