/*
 * graph.h
 *		The quantized graph as access methods see it.
 *
 * Design, page layout, locks and WAL: src/graph/README.md.
 */
#ifndef QV_GRAPH_H
#define QV_GRAPH_H

#include "postgres.h"

#include "access/genam.h"
#include "nodes/execnodes.h"
#include "space/candidate.h"
#include "types/type_ops.h"

typedef struct GraphOptions
{
	int			m;
	int			ef_construction;
} GraphOptions;

/* build.c */
extern IndexBuildResult *GraphBuild(Relation heap, Relation index,
									IndexInfo *info,
									const QvOpclassInfo *opclass,
									const GraphOptions *options);
extern void GraphBuildEmpty(Relation index, const QvOpclassInfo *opclass,
							const GraphOptions *options);
extern char *GraphBuildPhaseName(int64 phase);

/* insert.c: value is detoasted */
extern void GraphInsert(Relation index, const QvOpclassInfo *opclass,
						const void *value, ItemPointer tid);

/* scan.c */
typedef struct GraphScan GraphScan;

/* What a scan is asked for, fixed when it starts over. */
typedef struct GraphScanParams
{
	int			ef;				/* what the user asked for */
	bool		iterative;		/* GraphScanMore() will be used */
	bool		strict;			/* and what comes too late is lost */
	Size		max_memory;		/* bytes it may use to go on */
} GraphScanParams;

extern GraphScan *GraphScanBegin(Relation index, const QvOpclassInfo *opclass);

/* Start over for a query of the column's dimensions (NULL: any order). */
extern void GraphScanStart(GraphScan *scan, const void *value,
						   const GraphScanParams *params);

/*
 * The next candidate of the current batch: the one whose rows may be nearest.
 * Its distance is in search units: see GraphScanDistance().  False at the end of
 * the batch.
 * candidate->tids is valid until the next call.
 */
extern bool GraphScanNext(GraphScan *scan, QvRowCandidate *candidate);

/* At the end of a batch: no row that is still to come is expected to be nearer. */
extern double GraphScanBound(const GraphScan *scan);

/*
 * Search on for another batch.  False when the graph is exhausted or the
 * memory allowed is used up.
 */
extern bool GraphScanMore(GraphScan *scan);

/* Distance in search units to distance in the units of VectorTypeOps. */
extern double GraphScanDistance(const GraphScan *scan, double distance);

extern int	GraphScanDims(const GraphScan *scan);

/* vacuum.c */
extern IndexBulkDeleteResult *GraphBulkDelete(IndexVacuumInfo *info,
											  IndexBulkDeleteResult *stats,
											  IndexBulkDeleteCallback callback,
											  void *callback_state,
											  const QvOpclassInfo *opclass);
extern IndexBulkDeleteResult *GraphVacuumCleanup(IndexVacuumInfo *info,
												 IndexBulkDeleteResult *stats);

/* cost.c: what a search of the whole index costs, before LIMIT */
typedef struct GraphCost
{
	double		pages;			/* touched before the first row comes */
	double		tuples;			/* candidates a search yields */
	double		evaluations;	/* distances computed or estimated */
} GraphCost;

extern void GraphEstimateCost(Relation index, int ef, GraphCost *cost);

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
	int			slots;
	int			code_bits;
	int			own_bits;
	int			nodes_per_page;
	int			entries;
} GraphInfo;

/* Read the whole index and verify its invariants; info may be NULL. */
extern void GraphCheck(Relation index, const QvOpclassInfo *opclass, GraphInfo *info);

/* Count without verifying. */
extern void GraphGetInfo(Relation index, const QvOpclassInfo *opclass, GraphInfo *info);

#endif							/* QV_GRAPH_H */
