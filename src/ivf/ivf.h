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
#include "query/options.h"
#include "query/scan.h"
#include "storage/dsm.h"
#include "storage/shm_toc.h"
#include "types/type_ops.h"

/* engine.c, and what it names */
extern const QvEngine ivf_engine;
extern QvEngineBuild IvfBuild;
extern QvEngineBuildEmpty IvfBuildEmpty;
extern QvEnginePhaseName IvfBuildPhaseName;
extern QvEngineInsert IvfInsert;
extern QvEngineBulkDelete IvfBulkDelete;
extern QvEngineVacuumCleanup IvfVacuumCleanup;
extern QvEngineBegin IvfScanBegin;
extern QvEngineEstimateWork IvfEstimateWork;
extern QvEngineRowPages IvfRowPages;
extern QvEngineGetCurve IvfGetCurve;
extern QvEngineSetCurve IvfSetCurve;

/* build/load.c: what a worker of a build does */
extern void IvfParallelWork(dsm_segment *seg, shm_toc *toc,
							void (*get_opclass) (Relation index, QvOpclassInfo *opclass));

/* cost.c: the lists of an index, and how many of them a search for a few rows reads. */
typedef struct IvfProbed
{
	double		lists;
	double		probes;
} IvfProbed;

extern void IvfGetProbed(Relation index, const QvSettings *settings, IvfProbed *probed);

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
	QvRowsChecked rows;			/* set if the index is verified */
} IvfInfo;

/*
 * Reads the whole index, and counts.  verify: verifies its invariants, too.  It takes
 * IVF_MOVE_LOCK and the lists' locks then, one list at a time, but not on a standby.  Raises
 * ERRCODE_INDEX_CORRUPTED.
 */
extern void IvfCheck(Relation index, const QvOpclassInfo *opclass, bool verify, IvfInfo *info);

/* glance.c: what a number of pages, the same ones each time, say about all */
typedef struct IvfGlanced
{
	double		dead;			/* estimate of the slots of dead rows */
	double		lost_pages;		/* estimate of the pages that nothing leads to */
	bool		measured;		/* all probes are measured, and not overdue */
	bool		old_format;		/* REINDEX gives it row pages */
	bool		sketches;		/* it has them */
} IvfGlanced;

/* Reads at most "most" pages.  table_rows: rows of the table, about. */
extern void IvfGlance(Relation index, const QvOpclassInfo *opclass, BlockNumber most,
					  double table_rows, IvfGlanced *glanced);

/* estimate.c: what a build makes */
typedef struct IvfEstimate
{
	double		table_rows;		/* rows of the table; set by the caller, */
	Size		included;		/* and so are bytes of a row's included
								 * columns */
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
