/*
 * graph.h
 *		The quantized graph as access methods see it.
 *
 * src/graph/README.md leads to design, page layout, locks and WAL.
 */
#ifndef QV_GRAPH_H
#define QV_GRAPH_H

#include "postgres.h"

#include "access/genam.h"
#include "nodes/execnodes.h"
#include "rows/check.h"
#include "query/options.h"
#include "query/scan.h"
#include "storage/shm_toc.h"
#include "types/type_ops.h"

/* Most candidates of a search. */
#define GRAPH_MAX_EF 65535

/* engine.c, and what it names */
extern const QvEngine graph_engine;
extern QvEngineBuild GraphBuild;
extern QvEngineBuildEmpty GraphBuildEmpty;
extern QvEnginePhaseName GraphBuildPhaseName;
extern QvEngineInsert GraphInsert;
extern QvEngineBulkDelete GraphBulkDelete;
extern QvEngineVacuumCleanup GraphVacuumCleanup;
extern QvEngineBegin GraphScanBegin;
extern QvEngineEstimateWork GraphEstimateWork;
extern QvEngineRowPages GraphRowPages;
extern QvEngineGetCurve GraphGetCurve;
extern QvEngineSetCurve GraphSetCurve;

/* build.c: does the work of a worker.  get_opclass is the access methods' own. */
extern void GraphParallelWork(dsm_segment *segment, shm_toc *toc,
							  void (*get_opclass) (Relation index, QvOpclassInfo *opclass));

/* estimate.c: raises an error for options that no graph can be built with. */
extern void GraphCheckOptions(const QvIndexOptions *options);

/* pool.c: returns the ef for a recall, calibrated or by a rule of thumb. */
extern int	GraphEfFor(Relation index, const QvSettings *settings);

/* check.c */
typedef struct GraphInfo
{
	int64		tuples;			/* heap TIDs */
	int64		nodes;
	int64		deleted;
	int64		free_slots;
	int64		edges;
	int			dims;
	int			m;
	int			ef_construction;
	int			max_degree;
	int			code_bits;
	int			own_bits;
	int			nodes_per_page;
	int			entries;

	/* set if the index is verified */
	int64		unreached;		/* nodes that no search can reach */
	QvRowsChecked rows;
} GraphInfo;

/*
 * Reads the whole index, and counts.  verify: verifies its invariants, too.  The caller keeps
 * VACUUM out then.  Raises ERRCODE_INDEX_CORRUPTED.
 */
extern void GraphCheck(Relation index, const QvOpclassInfo *opclass, bool verify, GraphInfo *info);

/* glance.c: what a number of pages, the same ones each time, say about all */
typedef struct GraphGlanced
{
	double		deleted;		/* estimate of the nodes that are deleted */
	bool		old_format;		/* REINDEX gives it row pages */
} GraphGlanced;

/* Reads at most "most" pages. */
extern void GraphGlance(Relation index, BlockNumber most, GraphGlanced *glanced);

/*
 * estimate.c: the index that a build of "rows" rows makes.  Their values have value_size
 * bytes.  values[nvalues] are some of them, of the column's dimensions.
 */
typedef struct GraphEstimate
{
	double		table_rows;		/* rows of the table; set by the caller, */
	Size		included;		/* and so are bytes of a row's included
								 * columns */
	bool		coded;
	int			pdim;			/* coordinates of a code, or 0 */
	double		blocks;
	double		memory;			/* bytes of maintenance_work_mem that the
								 * graph fits into */
} GraphEstimate;

extern void GraphEstimateBuild(const QvOpclassInfo *opclass, int dims,
							   const QvIndexOptions *options, double rows, double value_size,
							   void *const *values, int nvalues, GraphEstimate *estimate);

#endif							/* QV_GRAPH_H */
