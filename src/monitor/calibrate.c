/*
 * calibrate.c
 *		quiver_calibrate(): what effort each recall takes on the user's own queries.
 *
 * An index has measured on its rows what effort a share of missed rows takes.  Searches for the
 * user's queries run with these efforts, from the least on, and their recall is measured.  The
 * index keeps which of them gives which recall (src/monitor/README.md, "Calibration").
 */
#include "postgres.h"

#include <math.h>

#include "access/relation.h"
#include "access/xlog.h"
#include "am/methods.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "ivf/ivf.h"
#include "miscadmin.h"
#include "monitor/open_index.h"
#include "monitor/recall.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/tuplestore.h"

/* The nearest rows that count, as where an index measures on its rows. */
#define NEIGHBORS 10

#define MAX_QUERIES 10000

/* With fewer queries a recall is known to within 0.1 only. */
#define LEAST_QUERIES 20

/* Misses of rows that are tried: half, and then less by STEP, until almost nothing is missed. */
#define FIRST_MISSES 0.5
#define STEP 0.7
#define LAST_MISSES 1e-6
#define ENOUGH 0.9995
#define MAX_POINTS 60

/*
 * Queries unlike the rows may need far more candidates of a graph than rows, whose misses say no
 * more then.  They go on by this power, down to QV_CURVE_LEAST_MISSES.
 */
#define FURTHER 1.05

typedef enum CalibrateColumn
{
	CALIBRATE_RECALL,
	CALIBRATE_EFFORT,
	CALIBRATE_REACHED,
	CALIBRATE_COLUMNS
} CalibrateColumn;

/* Returns the candidates or lists of a search for a recall, by the curve that the index has. */
static int
effort_for(Relation index, double recall)
{
	QvSettings	settings;
	IvfProbed	probed;

	KnnSettingsOf(index, &settings);
	settings.ef_search = settings.probes = 0;
	settings.recall = recall;
	if (KnnMethodOf(index)->engine == &graph_engine)
		return GraphEfFor(index, &settings);
	IvfGetProbed(index, &settings, &probed);
	return (int) probed.probes;
}

/* Returns the candidates of the searches that are tried; 0: of lists, whose bounds differ, too. */
static int
candidates_tried(Relation index)
{
	QvSettings	settings;

	KnnSettingsOf(index, &settings);
	return KnnMethodOf(index)->engine == &graph_engine ? GraphEfFor(index, &settings) : 0;
}

/* Measures the recall with growing efforts, each once.  *n is how many. */
static void
measure_points(Relation index, QvRecall *recall, QvCurvePoint *points, int *n)
{
	int			before = 0,
				candidates;

	for (double misses = FIRST_MISSES; *n < MAX_POINTS && misses >= QV_CURVE_LEAST_MISSES;
		 misses = misses > LAST_MISSES ? misses * STEP : pow(misses, FURTHER))
	{
		QvCurvePoint *point = &points[(*n)++];

		knn_trial_misses = misses;
		candidates = candidates_tried(index);
		point->misses = misses;
		point->recall = candidates > 0 && candidates == before ? point[-1].recall :
			QvRecallMeasure(recall);
		before = candidates;
		ereport(DEBUG1,
				(errmsg_internal("searches of \"%s\" for recall %.6f of rows find %.4f for the queries",
								 RelationGetRelationName(index), 1 - misses, point->recall)));
		/* lists have all been read */
		if (point->recall >= ENOUGH || (candidates == 0 && misses < LAST_MISSES))
			break;
	}
}

static void
check_index(Relation index)
{
	QvSettings	settings;

	KnnSettingsOf(index, &settings);
	if (settings.fixed)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("searches of index \"%s\" have no recall to reach", RelationGetRelationName(index)),
				 errdetail("Their effort is hnsw.ef_search or ivfflat.probes."),
				 errhint("Use an index of access method quiver_graph or quiver_ivf.")));
}

/*
 * Does that, and leaves no trial behind.  What is measured is for all sessions, so settings of this
 * one that change what searches find are left out.
 */
static void
try_efforts(Relation index, QvRecall *recall, QvCurvePoint *points, int *n)
{
	int			level = NewGUCNestLevel();

	PG_TRY();
	{
		QvSetForNow("quiver.topk_scan", "on");
		QvSetForNow("quiver.iterative_scan", "strict_order");
		QvSetForNow("quiver.max_scan_tuples", CppAsString2(DEFAULT_MAX_SCAN_TUPLES));
		QvSetForNow("quiver.sketches", "auto");
		measure_points(index, recall, points, n);
	}
	PG_FINALLY();
	{
		knn_trial_misses = 0;
	}
	PG_END_TRY();
	AtEOXact_GUC(true, level);
}

/* Measures, and stores the curve in the index.  Returns the best recall. */
static double
calibrate(Relation index, int sample, const char *queries)
{
	QvRecall   *recall;
	QvCurvePoint points[MAX_POINTS];
	QvCurve		curve = {0};
	double		best = 0;
	int			nqueries,
				n = 0;

	SPI_connect();
	recall = QvRecallBegin(index, NEIGHBORS, sample, queries);
	nqueries = QvRecallQueries(recall);
	if (nqueries < LEAST_QUERIES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%d queries are too few to calibrate index \"%s\"", nqueries,
						RelationGetRelationName(index)),
				 errdetail("At least %d queries must have rows to find.", LEAST_QUERIES)));
	try_efforts(index, recall, points, &n);
	QvRecallEnd(recall);
	SPI_finish();
	for (int i = 0; i < n; i++)
		best = Max(best, points[i].recall);
	QvCurveSet(&curve, points, n, nqueries);
	KnnMethodOf(index)->engine->set_curve(index, &curve);
	return best;
}

/*
 * quiver_calibrate(index, queries, sample): measures what effort each recall takes for the
 * queries, a SELECT whose first column is of the index's type, and keeps it in the index.
 * Returns a row for each recall: recall, effort, whether the queries reached it.
 */
PG_FUNCTION_INFO_V1(quiver_calibrate);
Datum
quiver_calibrate(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Relation	index;
	int			sample;
	double		best;

	PreventCommandIfReadOnly("quiver_calibrate()");
	PreventCommandDuringRecovery("quiver_calibrate()");
	sample = PG_GETARG_INT32(2);
	if (sample < LEAST_QUERIES || sample > MAX_QUERIES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("sample must be between %d and %d", LEAST_QUERIES, MAX_QUERIES)));
	InitMaterializedSRF(fcinfo, 0);
	index = KnnOpenIndex(PG_GETARG_OID(0), RowExclusiveLock, KNN_RIGHT_OWNER);
	check_index(index);
	best = calibrate(index, sample, text_to_cstring(PG_GETARG_TEXT_PP(1)));
	for (int i = 0; i < QV_CURVE_POINTS; i++)
	{
		Datum		values[CALIBRATE_COLUMNS];
		bool		nulls[CALIBRATE_COLUMNS] = {0};

		values[CALIBRATE_RECALL] = Float8GetDatum(qv_curve_recalls[i]);
		values[CALIBRATE_EFFORT] = Int32GetDatum(effort_for(index, qv_curve_recalls[i]));
		values[CALIBRATE_REACHED] = BoolGetDatum(best >= qv_curve_recalls[i]);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	relation_close(index, NoLock);
	return (Datum) 0;
}
