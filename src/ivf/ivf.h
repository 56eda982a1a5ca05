/*
 * ivf.h
 *		The facade of posting lists: what access methods call.
 *
 * src/ivf/README.md has the design, the locks, and which room has which README.
 */
#ifndef QV_IVF_H
#define QV_IVF_H

#include "postgres.h"

#include "access/genam.h"
#include "nodes/execnodes.h"
#include "rows/check.h"
#include "space/options.h"
#include "space/scan.h"
#include "space/tidset.h"
#include "storage/dsm.h"
#include "storage/shm_toc.h"
#include "types/type_ops.h"

/* build/build.c */
extern IndexBuildResult *IvfBuild(Relation heap, Relation index, IndexInfo *info,
								  const QvOpclassInfo *opclass,
								  const QvIndexOptions *options);
extern void IvfBuildEmpty(Relation index, const QvOpclassInfo *opclass,
						  const QvIndexOptions *options);
extern char *IvfBuildPhaseName(int64 phase);

/* build/load.c: what a worker of a build does */
extern void IvfParallelWork(dsm_segment *seg, shm_toc *toc,
							void (*get_opclass) (Relation index, QvOpclassInfo *opclass));

/* update/insert.c: adds a row whose value is detoasted */
extern void IvfInsert(Relation index, const QvOpclassInfo *opclass,
					  const void *value, ItemPointer tid, Relation heap);

/* scan.c */
typedef struct IvfScanParams
{
	uint32		rows;			/* wanted at first; 0: not known */
	uint32		first;			/* of these, enough if all will do; 0: not
								 * known */
	const QvTidSet *only;		/* propose rows of this set; NULL: any */
	BlockNumber cached_blocks;	/* pages of a larger index have to be read
								 * from disk: take sketches, where there are
								 * some */
	int			probes;			/* 0: by recall */
	double		recall;			/* wanted, when probes is 0 */
	bool		sweep;			/* with "only": all rows, by codes in memory
								 * where there are some, or all lists */
	bool		widen;			/* probe more lists as more rows are taken */
	bool		deep;			/* with "widen", more than "probes" at first */
	bool		iterative;		/* it may be resumed */
	int			max_probes;		/* 0: all lists */
	Size		max_memory;		/* bytes for candidates */
} IvfScanParams;

extern QvScan *IvfScanBegin(Relation index, const QvOpclassInfo *opclass);

/*
 * Start over for a query of the column's dimensions (NULL: any order).  With
 * "widen", more lists are read as more rows are taken, and the search is resumed with
 * as many lists again; else with as many as at first.
 */
extern void IvfScanStart(QvScan *scan, const void *value, const IvfScanParams *params);

/* See KnnScanRules.round_rows; after a start. */
extern uint32 IvfScanRoundRows(const QvScan *scan);

/* update/vacuum.c */
extern IndexBulkDeleteResult *IvfBulkDelete(IndexVacuumInfo *info,
											IndexBulkDeleteResult *stats,
											IndexBulkDeleteCallback callback,
											void *callback_state,
											const QvOpclassInfo *opclass);
extern IndexBulkDeleteResult *IvfVacuumCleanup(IndexVacuumInfo *info,
											   IndexBulkDeleteResult *stats,
											   const QvOpclassInfo *opclass);

/* cost.c: what a search costs before the first row comes */
typedef struct IvfCost
{
	QvSearchCost search;
	double		lists;			/* of the index */
	double		probes;			/* lists that a search reads */
} IvfCost;

/* tuples: of the index, as the planner takes it; 0: as of the last build or vacuum */
extern void IvfEstimateCost(Relation index, double tuples, int probes, double recall,
							IvfCost *cost);

/*
 * The rows of the lists that a search reads whose last row wanted has that rank among all, and what these
 * take beside.
 */
extern double IvfRowsForRank(Relation index, const IvfScanParams *params, double rank);

/* What a sweep takes (IvfScanParams.sweep), and what this backend knows from others. */
typedef struct IvfSweepCost
{
	BlockNumber pages;			/* of the index; 0: it cannot be swept */
	Size		codes;			/* bytes of what is kept of all rows, but for
								 * their heap TIDs */
	double		known;			/* share of the rows of which it is kept; 0:
								 * nothing is */
	double		spent;			/* for want of it, in rows looked at */
} IvfSweepCost;

/* table_rows: as the planner takes it */
extern void IvfGetSweepCost(Relation index, double table_rows, IvfSweepCost *cost);

/* All rows of a set were read from the table, instead of looking at so many rows. */
extern void IvfNoteExact(Relation index, const QvOpclassInfo *opclass, double rows);

/* check.c */
typedef struct IvfInfo
{
	int64		tuples;			/* live rows */
	int64		dead;			/* slots of dead rows */
	int64		free_pages;
	int64		lost_pages;		/* pages that nothing leads to */
	int			dims;
	int			bits;			/* of a row's code, per coordinate; 0: whole
								 * values */
	int			scan_bits;		/* coordinates in the one-bit codes */
	int			lists;
	int			probes;			/* that a search for the default recall reads */
	int64		smallest;		/* rows of the smallest list */
	int64		median;
	int64		largest;
	double		balance;		/* mean square of list sizes / square of the
								 * mean */
	QvRowsChecked rows;			/* set by IvfCheck() only */
} IvfInfo;

/*
 * Reads the whole index and verifies its invariants.  info may be NULL.  Takes IVF_MOVE_LOCK
 * and the lists' locks, one list at a time, but not on a standby.
 */
extern void IvfCheck(Relation index, const QvOpclassInfo *opclass, IvfInfo *info);

/* Counts without verifying. */
extern void IvfGetInfo(Relation index, const QvOpclassInfo *opclass, IvfInfo *info);

/* glance.c: what a number of pages, the same ones each time, say about all */
typedef struct IvfGlanced
{
	double		dead;			/* estimate of the slots of dead rows */
	double		lost_pages;		/* estimate of the pages that nothing leads to */
	bool		measured;		/* all probes are measured */
} IvfGlanced;

/* Reads at most "most" pages. */
extern void IvfGlance(Relation index, const QvOpclassInfo *opclass, BlockNumber most,
					  IvfGlanced *glanced);

/* estimate.c: what a build makes */
typedef struct IvfEstimate
{
	double		table_rows;		/* rows of the table; set by the caller */
	bool		coded;
	double		blocks;			/* of the index */
	double		lists;
	double		sampled;		/* rows that lists are made from */
	double		memory;			/* bytes of maintenance_work_mem for the
								 * sample */
} IvfEstimate;

/* Estimates what a build of an index of "rows" rows makes. */

extern void IvfEstimateBuild(const QvOpclassInfo *opclass, int dims, const QvIndexOptions *options,
							 double rows, IvfEstimate *estimate);

#endif							/* QV_IVF_H */
