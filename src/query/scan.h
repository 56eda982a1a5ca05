/*
 * scan.h
 *		What an engine offers to the access methods and to the top-k scan.
 *
 * A search proposes rows one after the other, nearest first as far as it knows.  It goes as deep
 * into the index as the rows proposed so far call for, so nobody tells it how many are wanted: the
 * answer for k rows is the beginning of the answer for more.  The caller reads the rows, tests
 * them, and orders them by their exact distances (stream.h).
 */
#ifndef QV_QUERY_SCAN_H
#define QV_QUERY_SCAN_H

#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "nodes/execnodes.h"
#include "query/curve.h"
#include "query/options.h"
#include "rows/format.h"
#include "rows/included.h"
#include "space/query.h"
#include "storage/itemptr.h"

/* Distances are search distances: see QvScanDistance(). */
typedef struct QvCandidate
{
	float		distance;
	float		error;			/* its rows are hardly farther from "distance"
								 * than this; not finite: not known */
	double		bound;			/* neither its rows nor those to come are
								 * nearer; -INFINITY: nothing is known */
	bool		same_node;		/* more rows of the last candidate, equal to
								 * it but for rounding; the bound is then of
								 * others */
	int			ntids;			/* 0: it goes on, and has no row yet */
	ItemPointerData *tids;		/* valid until the next one */
} QvCandidate;

/* What measuring a row by what the index stores of it gives. */
typedef struct QvMeasured
{
	float		distance;
	float		error;			/* how far off that is, at most */
} QvMeasured;

/*
 * What a search has read, since it was begun.  Of a kind of index the counters of the other stay
 * zero.
 */
typedef struct QvScanCounters
{
	int64		pages;			/* of the index, visited */
	int64		nodes;			/* of a graph */
	int64		neighbors;		/* scored, from their nodes */
	int64		lists;			/* of posting lists */
	int64		codes;			/* one-bit codes, or whole values, scored */
	int64		records;		/* finer codes, or sketches */
	int64		entries;		/* of row pages, scored */
	int64		removed;		/* rows, by conditions on included columns */
} QvScanCounters;

typedef struct QvScan QvScan;

/* What a search is asked for; fixed when it starts. */
typedef struct QvScanGoal
{
	const void *value;			/* detoasted; lives until the next start;
								 * NULL, or never indexed: any order */
	const struct QvSettings *settings;
	double		expected;		/* rows that will likely be proposed for the
								 * first few that pass; 0: not known */
	bool		endless;		/* go on until all rows have been proposed;
								 * else the effort that the settings name is
								 * all */
} QvScanGoal;

/* Rows of the table that are read in the background together. */
#define QV_ROWS_AHEAD 16

/* The functions of a search. */
typedef struct QvScanOps
{
	/*
	 * Start over.  Raises an error for a value of other dimensions than the
	 * column's.
	 */
	void		(*start) (QvScan *scan, const QvScanGoal *goal);

	/*
	 * The next candidate; false when there is none.  A row may come twice.
	 * Answers Ctrl-C.  Where memory keeps a search from going deeper it ends,
	 * and scan->complete is false.
	 */
	bool		(*next) (QvScan *scan, QvCandidate *candidate);

	/*
	 * Rows that are likely to be proposed soon and whose pages of the table
	 * are worth reading in the background, each once.  Returns how many.  May
	 * be NULL.
	 */
	int			(*prefetch) (QvScan *scan, ItemPointerData tids[QV_ROWS_AHEAD]);

	/*
	 * Measure a row that row pages say to be in a place: false when it is not
	 * there.  Ask the CPU for n such places.  NULL: an engine without row
	 * pages.
	 */
	bool		(*measure) (QvScan *scan, const ItemPointerData *tid, QvRowPlace place,
							QvMeasured *measured);
	void		(*prefetch_places) (QvScan *scan, const QvRowPlace *places, uint32 n);

	/* The scan is over: free its memory. */
	void		(*end) (QvScan *scan);
} QvScanOps;

/* The first member of an engine's own struct. */
struct QvScan
{
	const QvScanOps *ops;
	MemoryContext context;		/* of an engine's search: reset by start() */
	QvScanCounters counters;

	/* set by start() */
	struct QvBufferHints *table_hints;	/* where pages of the table were
										 * found; may be NULL */
	const struct QvRows *rows;	/* row pages; NULL: there are none */
	const QvSpaceQuery *query;	/* of the value; NULL: plain, or any order */
	double		misses;			/* share of rows that codes may miss */
	double		certainty;		/* share of an error by measure() that counts */
	double		scale;			/* metric distance = scale * (search distance
								 * + offset) */
	double		offset;

	double		allowed;		/* rows that may be proposed before an
								 * engine's search goes deeper; INFINITY: it
								 * cannot */
	double		returns;		/* rows that may leave the stream before; 0:
								 * as many as are proposed */

	/* set when next() finds no more */
	bool		complete;		/* every row of the index was proposed */
};

/* The end() of engines. */
static inline void
QvScanEnd(QvScan *scan)
{
	MemoryContextDelete(scan->context);
	pfree(scan);
}

/* Sets the query of a search, whose distances are those of a space; NULL: those of the type. */
static inline void
QvScanSetQuery(QvScan *scan, const QvSpace *space, const QvSpaceQuery *query)
{
	scan->query = query;
	scan->scale = QvSpaceMetricScale(space) * (query ? query->scale : 1);
	scan->offset = query ? query->offset : 0;
}

/* A search distance in the units of VectorTypeOps.distance. */
static inline double
QvScanDistance(const QvScan *scan, double distance)
{
	return scan->scale * (distance + scan->offset);
}

/*
 * How much of a candidate's error counts.  The certain bound is the product of
 * two norms; after a random rotation the error is their inner product, which
 * exceeds 6 / sqrt(dimensions) of that with a probability below 1e-8.  Rows then
 * come in an order that is off by that much, no more.
 *
 * But a code e away from its row x is e^2 short along x itself (src/quant/README.md: its scale is
 * least squares), and the query may be near x: e / |x| of the product besides, 0.107 and 0.34 for 4
 * and 2 bits a coordinate.  Of 8 it is 0.008.
 */
static inline double
QvCandidateCertainty(int dims, int bits)
{
	return Min(1, 6 / sqrt(dims) + (bits == 4 ? 0.12 : bits == 2 ? 0.4 : 0));
}

/*
 * Set a candidate: rows of that distance by what the index stores of them, which is off by that
 * error at most.
 */
static inline void
QvSetCandidate(const QvScan *scan, QvCandidate *candidate, double bound, float distance,
			   float error, ItemPointer tids, int ntids)
{
	*candidate = (QvCandidate)
	{
		.distance = distance,
			.error = scan->query ?
				QvSpaceQueryError(scan->query, distance, error * scan->certainty) : INFINITY,
			.bound = bound,
			.ntids = ntids,
			.tids = tids
	};
}

/* What a search takes whose last row proposed has a rank; see cost.h for what that costs. */
typedef struct QvWork
{
	double		pages;			/* of the index, visited */
	double		codes;			/* one-bit codes, many of a page together */
	double		neighbors;		/* of a graph, scored */
	double		measures;		/* finer codes, or whole values */
} QvWork;

/* ---- functions of an engine: building and changing ---- */

/* *left_out gets the rows that are not indexed (pages/meta.h). */
typedef IndexBuildResult *QvEngineBuild(Relation heap, Relation index, IndexInfo *info,
										const QvOpclassInfo *opclass,
										const QvIndexOptions *options, int *left_out);
typedef void QvEngineBuildEmpty(Relation index, const QvOpclassInfo *opclass,
								const QvIndexOptions *options);

/* Returns the name of a phase of a build, or NULL. */
typedef char *QvEnginePhaseName(int64 phase);

/*
 * Adds a row.  value is detoasted, and is indexed.  CurrentMemoryContext is deleted after it, as
 * after bulk_delete.
 */
typedef void QvEngineInsert(Relation index, const QvOpclassInfo *opclass, const void *value,
							const QvIncludedRow *included, ItemPointer tid, Relation heap);
typedef void QvEngineBulkDelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
								IndexBulkDeleteCallback callback, void *callback_state,
								const QvOpclassInfo *opclass);
typedef IndexBulkDeleteResult *QvEngineVacuumCleanup(IndexVacuumInfo *info,
													 IndexBulkDeleteResult *stats,
													 const QvOpclassInfo *opclass);

/* ---- functions of an engine: searching ---- */

/*
 * Begins a search, in a memory context that lives as long as the scan; so does opclass.  It is
 * then start()ed as often as wanted.
 */
typedef QvScan *QvEngineBegin(Relation index, const QvOpclassInfo *opclass);

/*
 * Says what a search takes to propose that many rows.  tuples: of the index, as the planner takes
 * it.
 */
typedef void QvEngineEstimateWork(Relation index, const struct QvSettings *settings,
								  double tuples, double rank, QvWork *work);

/* Returns the number of row pages of an index; 0: it has none. */
typedef double QvEngineRowPages(Relation index);

/* Reads and writes the curve in the metapage.  Writing is one WAL record. */
typedef void QvEngineGetCurve(Relation index, QvCurve *curve);
typedef void QvEngineSetCurve(Relation index, const QvCurve *curve);

/* An engine. */
typedef struct QvEngine
{
	QvEngineBuild *build;
	QvEngineBuildEmpty *build_empty;
	QvEnginePhaseName *phase_name;
	QvEngineInsert *insert;
	QvEngineBulkDelete *bulk_delete;
	QvEngineVacuumCleanup *vacuum_cleanup;
	QvEngineBegin *begin;
	QvEngineEstimateWork *estimate_work;
	QvEngineRowPages *row_pages;
	QvEngineGetCurve *get_curve;
	QvEngineSetCurve *set_curve;
} QvEngine;

#endif							/* QV_QUERY_SCAN_H */
