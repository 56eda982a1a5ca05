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
#include "space/options.h"
#include "space/scan.h"
#include "space/tidset.h"
#include "storage/shm_toc.h"
#include "types/type_ops.h"

/* Most candidates of a search. */
#define GRAPH_MAX_EF 65535

/* build.c */
extern IndexBuildResult *GraphBuild(Relation heap, Relation index,
									IndexInfo *info,
									const QvOpclassInfo *opclass,
									const QvIndexOptions *options);
extern void GraphBuildEmpty(Relation index, const QvOpclassInfo *opclass,
							const QvIndexOptions *options);
extern char *GraphBuildPhaseName(int64 phase);

/* Does the work of a worker.  get_opclass is the access methods' own. */
extern void GraphParallelWork(shm_toc *toc,
							  void (*get_opclass) (Relation index, QvOpclassInfo *opclass));

/* insert.c: value is detoasted */
extern void GraphInsert(Relation index, const QvOpclassInfo *opclass,
						const void *value, ItemPointer tid, Relation heap);

/* scan.c */

/* What a scan is asked for, fixed when it starts over. */
typedef struct GraphScanParams
{
	int			ef;				/* what the user asked for */
	int			ef_rows;		/* for so many rows: of more the last ones are
								 * harder to find; 0: for any number */
	uint32		rank;			/* of the last row wanted: the first batch is
								 * for so many */
	uint32		expected_rank;	/* and later ones likely, whatever memory may
								 * be used */
	bool		follow;			/* go on as far as QvScan.rank tells */
	bool		iterative;		/* the search will be resumed */
	bool		strict;			/* and what comes too late is lost */
	Size		max_memory;		/* bytes it may use to go on */
	const QvTidSet *only;		/* propose rows of this set; NULL: any */
	bool		sweep;			/* by looking at every node, whatever ef says: */
	bool		known_only;		/* by those known to have them, or not at all */
} GraphScanParams;

extern QvScan *GraphScanBegin(Relation index, const QvOpclassInfo *opclass);

/* How many candidates a search takes whose last row wanted has that rank among all. */
extern uint32 GraphEfForRank(const GraphScanParams *params, double rank);

/* Start over for a query of the column's dimensions (NULL: any order). */
extern void GraphScanStart(QvScan *scan, const void *value, const GraphScanParams *params);

/* Nodes that a sweep keeps when it may use so much memory. */
extern uint32 GraphSweepKept(Size max_memory);

/* vacuum.c */
extern IndexBulkDeleteResult *GraphBulkDelete(IndexVacuumInfo *info,
											  IndexBulkDeleteResult *stats,
											  IndexBulkDeleteCallback callback,
											  void *callback_state,
											  const QvOpclassInfo *opclass);
extern IndexBulkDeleteResult *GraphVacuumCleanup(IndexVacuumInfo *info,
												 IndexBulkDeleteResult *stats,
												 const QvOpclassInfo *opclass);

/*
 * recall.c: the ef that finds such a share of the nearest, as the index has measured, or
 * by a rule of thumb.
 */
extern int	GraphEfFor(Relation index, double recall);

/* The nodes that a search for so many candidates reads, about. */
extern double GraphNodesFor(Relation index, uint32 ef);

/* cost.c: what a search of the whole index costs, before LIMIT */
extern void GraphEstimateCost(Relation index, int ef, QvSearchCost *cost);

/* What a sweep of all nodes takes, and what this backend knows from others. */
typedef struct GraphSweepCost
{
	BlockNumber pages;			/* that it reads; 0: a graph of this form
								 * cannot be swept */
	Size		codes;			/* bytes of the codes of all nodes */
	double		known;			/* share of the rows of which it is known
								 * where they are; 0: there was none */
	bool		knows_codes;	/* and their codes are */
	double		spent;			/* else: what GraphNoteExact() was told */
} GraphSweepCost;

extern void GraphGetSweepCost(Relation index, GraphSweepCost *cost);

/* All rows of a set were read from the table, which cost so much, in the caller's units. */
extern void GraphNoteExact(Relation index, const QvOpclassInfo *opclass, double cost);

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
	int64		unreached;		/* nodes that no search can reach;
								 * GraphCheck() */
	QvRowsChecked rows;			/* set by GraphCheck() */
} GraphInfo;

/* Reads the whole index, and verifies its invariants.  VACUUM is kept out by the caller. */
extern void GraphCheck(Relation index, const QvOpclassInfo *opclass, GraphInfo *info);

/* Counts without verifying. */
extern void GraphGetInfo(Relation index, const QvOpclassInfo *opclass, GraphInfo *info);

/*
 * glance.c: estimates how many nodes are deleted, from at most "most" pages.  The same
 * pages are read each time.
 */
extern void GraphGlance(Relation index, BlockNumber most, double *deleted);

/*
 * estimate.c: the index that a build of "rows" rows makes.  Their values have value_size
 * bytes.  values[nvalues] are some of them, of the column's dimensions.
 */
typedef struct GraphEstimate
{
	double		table_rows;		/* rows of the table; set by the caller */
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
