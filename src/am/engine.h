/*
 * engine.h
 *		What the access methods need of an engine: one table of functions for graphs
 *		(graph_engine.c), one for posting lists (ivf_engine.c).
 *
 * Callers say which index, and what its settings are (options.h).
 */
#ifndef QV_AM_ENGINE_H
#define QV_AM_ENGINE_H

#include "postgres.h"

#include "access/genam.h"
#include "am/goal.h"
#include "am/options.h"
#include "nodes/execnodes.h"
#include "space/options.h"
#include "space/scan.h"
#include "types/type_ops.h"
#include "utils/rel.h"

/* The rules that settings alone make, but for max_tuples, limited, first_rows and round_rows. */
static inline void
KnnSetRules(const KnnSettings *settings, KnnScanRules *rules)
{
	rules->iterative = settings->iterative_scan != ITERATIVE_SCAN_OFF;
	rules->strict = settings->iterative_scan == ITERATIVE_SCAN_STRICT;
	rules->relaxed = settings->iterative_scan == ITERATIVE_SCAN_RELAXED;
	rules->restart = false;
}

typedef struct KnnEngine
{
	/* ---- building and changing; a build's phases by name ---- */

	IndexBuildResult *(*build) (Relation heap, Relation index, IndexInfo *info,
								const QvOpclassInfo *opclass,
								const QvIndexOptions *options);
	void		(*build_empty) (Relation index, const QvOpclassInfo *opclass,
								const QvIndexOptions *options);
	char	   *(*phase_name) (int64 phase);

	/* value is detoasted */
	void		(*insert) (Relation index, const QvOpclassInfo *opclass, const void *value,
						   ItemPointer tid, Relation heap);
	IndexBulkDeleteResult *(*bulk_delete) (IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
										   IndexBulkDeleteCallback callback,
										   void *callback_state,
										   const QvOpclassInfo *opclass);
	IndexBulkDeleteResult *(*vacuum_cleanup) (IndexVacuumInfo *info,
											  IndexBulkDeleteResult *stats,
											  const QvOpclassInfo *opclass);

	/* ---- searching ---- */

	/* tuples: of the index, as the planner takes it */
	void		(*estimate_cost) (Relation index, const KnnSettings *settings, double tuples,
								  QvSearchCost *cost);

	/*
	 * Called once, before the first start(), in a memory context that lives
	 * as long as the scan; so does opclass.
	 */
	QvScan	   *(*begin) (Relation index, const QvOpclassInfo *opclass);

	/*
	 * Start over for a query value (detoasted, lives until the next start;
	 * NULL: any order), by these settings, and fill in rules.
	 */
	void		(*start) (QvScan *scan, Relation index, const KnnSettings *settings,
						  const void *query, const KnnGoal *goal, KnnScanRules *rules);

	/*
	 * The nodes that a search reads whose last row wanted has that rank among
	 * all.  NULL: an engine that has no nodes.
	 */
	double		(*nodes) (Relation index, const KnnSettings *settings, double rank);

	/*
	 * And of an engine that has none: the rows that such a search looks at.
	 */
	double		(*rows) (Relation index, const KnnSettings *settings, double rank);

	/*
	 * What a search with goal->sweep takes, of a table of so many rows, as
	 * the planner has it.
	 */
	void		(*sweep) (Relation index, const KnnSettings *settings, double table_rows,
						  KnnSweep *sweep);

	/* All members were measured by their rows, which cost so much. */
	void		(*note_exact) (Relation index, double cost);
} KnnEngine;

extern const KnnEngine knn_graph_engine;	/* graph_engine.c */
extern const KnnEngine knn_ivf_engine;	/* ivf_engine.c */

#endif							/* QV_AM_ENGINE_H */
