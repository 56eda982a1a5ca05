/*
 * ivf_am.h
 *		The index access method over posting lists, which ivfflat and quiver_ivf
 *		share.
 */
#ifndef QV_AM_IVF_AM_H
#define QV_AM_IVF_AM_H

#include "access/amapi.h"
#include "am/ivf_options.h"
#include "am/knn_scan.h"
#include "nodes/pathnodes.h"

/*
 * An access method on posting lists: its options and settings, and the
 * callbacks that have to name them.
 */
typedef struct IvfAm
{
	void		(*get_options) (const bytea *set, IvfOptions *options);
	IvfSettingsOf settings;		/* as they are now */
	ambuild_function build;
	ambuildempty_function buildempty;
	amoptions_function options;
	ambeginscan_function beginscan;
	amcostestimate_function costestimate;
} IvfAm;

extern IndexAmRoutine *IvfAmRoutine(const IvfAm *am, int support);

extern IndexBuildResult *IvfAmBuild(Relation heap, Relation index, IndexInfo *info,
									const IvfAm *am);

/* Where a worker of a build begins. */
extern PGDLLEXPORT void IvfParallelBuildMain(dsm_segment *seg, shm_toc *toc);

extern void IvfAmBuildEmpty(Relation index, const IvfAm *am);

/* KnnScanSource.start, by these settings. */
extern void IvfAmStartScan(QvScan *scan, const void *query, const IvfScanSettings *settings,
						   const KnnGoal *goal, KnnScanRules *rules);

/* KnnScanSource.rows, sweep and note_exact, likewise. */
extern double IvfAmRows(Relation index, const IvfScanSettings *settings, double rank);
extern void IvfAmSweep(Relation index, const IvfScanSettings *settings, double table_rows,
					   KnnSweep *sweep);
extern void IvfAmNoteExact(Relation index, double cost);

extern void IvfAmCostEstimate(PlannerInfo *root, IndexPath *path, double loop_count,
							  const IvfAm *am, Cost *startup, Cost *total,
							  Selectivity *selectivity, double *correlation,
							  double *pages);

/* Is this index one of ours on posting lists? */
extern bool IsIvfIndex(Relation index);

#endif							/* QV_AM_IVF_AM_H */
