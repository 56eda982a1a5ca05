/*
 * search.c
 *		Finding the rows of a top-k scan; see src/topk/README.md, "Executor".
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "compat.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/predicate.h"
#include "topk/state.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Rows wanted at first when the query does not say. */
#define DEFAULT_ROWS 100

/* The next round wants so many times the rows of the last. */
#define ROUND_GROWTH 4

/* ---- by the engine ---- */

static void
start_engine(TopkState *state)
{
	state->before = state->engine->counters;
	TopkSetPause(state);
	state->engine->expected = 0;
	state->proposed = state->passed = state->reconsidered = 0;
	state->prepared = 0;
	state->asked_for_more = false;
	state->source->start(state->engine, state->index, &state->settings, state->value, &state->goal, &state->rules);
	RowReaderUseHints(state->rows, state->engine->table_hints);
}

/*
 * Is the end of a batch the end of the round?  The rows that passed tell at which rank
 * among all rows the last one wanted is: the search must have been as deep as one for so
 * many rows, or nothing that it could still find may be nearer.
 */
static bool
is_enough(const TopkState *state, double bound)
{
	double		farthest;

	/* it has looked at all rows */
	if (isinf(state->engine->depth))
		return true;
	if (state->nearest.count < state->nearest.wanted)
		return false;
	/* then any rows will do */
	if (state->value == NULL || (!state->goal.filtered && !state->goal.sweep))
		return true;
	farthest = state->nearest.rows[0].distance;
	return TopkIsDeep(state, TopkNeededRank(state, -INFINITY), farthest) ||
		(isfinite(bound) && farthest <= QvScanDistance(state->engine, bound));
}

/* Go on after the end of a batch; false when nothing can come. */
static bool
search_on(TopkState *state)
{
	int64		most = state->rules.max_tuples;
	bool		more;

	if (state->rules.restart)
	{
		/* the engine was told that all rows would do: some were not visible */
		state->goal.filtered = true;
		start_engine(state);
		return true;
	}

	/*
	 * as many as the first batch would have had, had it not been to follow
	 * what is met
	 */
	if (state->engine->follows && !state->rules.limited)
		most = Max(most, state->goal.rank);
	if (!state->rules.iterative || TopkRowsSeen(state) >= most)
		return false;
	more = state->engine->ops->resume(state->engine);
	state->engine->expected = 0;
	return more;
}

/* Can none of the rows to come, not nearer than bound, be among those wanted? */
static bool
is_beyond(const TopkState *state, double bound)
{
	/*
	 * nothing that was read is to come, which says nothing of what was not;
	 * damaged factors give no number: the row itself will tell
	 */
	if (!isfinite(bound))
		return false;
	if (bound > state->limit_distance)
		return true;
	return state->nearest.count == state->nearest.wanted &&
		(state->value == NULL || bound >= state->nearest.rows[0].distance);
}

/*
 * Rows to come, not nearer than bound, are beyond what is wanted.  Has the search been deep
 * enough to know?  One whose first batch is for a few rows only may have missed some.
 */
static bool
is_known(const TopkState *state, double bound)
{
	return !state->engine->follows || state->value == NULL ||
		TopkIsDeep(state, TopkNeededRank(state, bound), bound);
}

/* At the end of a batch: is all that it could still find too far? */
static bool
is_out_of_reach(const TopkState *state)
{
	const QvScan *engine = state->engine;

	return (isfinite(state->counters.bound) && state->counters.bound > state->limit_distance) ||
		(engine->follows && QvScanDistance(engine, engine->settled) > state->limit_distance &&
		 TopkIsDeep(state, TopkNeededRank(state, INFINITY), -INFINITY));
}

/*
 * The search may not go on, or has nothing left.  Were that too few rows, or not deep
 * enough, the members of the bitmap are measured: so many as are wanted are returned when
 * there are.
 */
static bool
gives_up(TopkState *state)
{
	if (state->child == NULL || !state->goal.filtered)
		return false;
	state->strategy = TOPK_EXACT;
	return true;
}

/*
 * Has the search proposed as many rows as the user lets it?  Its batches grow: where one
 * would go far beyond, it is left before its end.
 */
static bool
is_limit_reached(const TopkState *state)
{
	return state->rules.limited && state->rules.iterative && state->goal.filtered &&
		state->proposed >= Max(state->rules.max_tuples, state->goal.proposals);
}

/*
 * Let the engine propose rows, nearest first, until none to come can be among the k
 * nearest.  False when another strategy takes less.
 */
static bool
search_by_engine(TopkState *state, uint32 wanted)
{
	state->counters.ran[state->strategy] = true;
	TopkSetGoal(state, wanted);
	start_engine(state);
	for (;;)
	{
		QvCandidate candidate;
		bool		beyond = false;
		QvScanStep	step = state->engine->ops->next(state->engine, &candidate);

		CHECK_FOR_INTERRUPTS();
		if (step == QV_SCAN_PAUSE)
		{
			if (TopkSwitches(state, true))
				return false;
			TopkSetPause(state);
			continue;
		}
		state->counters.bound = QvScanDistance(state->engine, candidate.bound);
		if (step != QV_SCAN_END && is_beyond(state, state->counters.bound))
		{
			if (is_known(state, state->counters.bound))
				return true;
			/* it tells nothing more of how many pass */
			if (candidate.same_node)
				continue;
			beyond = true;
		}
		if (step == QV_SCAN_END && (is_enough(state, candidate.distance) || is_out_of_reach(state)))
			return true;
		if (step == QV_SCAN_CANDIDATE)
		{
			double		distance = QvScanDistance(state->engine, candidate.distance);
			double		error = state->engine->scale * candidate.error;

			for (int i = 0; i < candidate.ntids; i++)
				TopkTakeRow(state, &candidate.tids[i], distance, error);
			state->proposed += candidate.ntids;
			state->counters.proposed += candidate.ntids;
		}
		else
			TopkExpectMore(state, -INFINITY);
		if (beyond)
			TopkExpectMore(state, state->counters.bound);
		if (TopkSwitches(state, step != QV_SCAN_CANDIDATE || beyond))
			return false;
		if (is_limit_reached(state))
			return !gives_up(state);
		if ((step == QV_SCAN_END || beyond) && !search_on(state))
			return beyond || !gives_up(state);
	}
}

/* ---- rounds ---- */

static int64
eval_int8(TopkState *state, ExprState *expr, int64 otherwise)
{
	bool		isnull;
	Datum		value = ExecEvalExprSwitchContext(expr, state->css.ss.ps.ps_ExprContext, &isnull);

	return isnull ? otherwise : Max(0, DatumGetInt64(value));
}

/* How many rows are wanted first. */
static uint32
wanted_rows(TopkState *state)
{
	int64		rows = intVal(TopkPlanField(TopkPlan(state), TOPK_PRIVATE_ROWS));

	if (rows == 0)
	{
		rows = eval_int8(state, state->limit, -1);
		if (rows < 0)
		{
			rows = DEFAULT_ROWS;
			state->guesses = false;
		}
		rows = Min(rows, PG_INT32_MAX / 2) + Min(eval_int8(state, state->offset, 0), PG_INT32_MAX / 2);
	}
	return Max(1, rows);
}

/* The distance that the conditions allow at most, as the index measures it. */
static double
eval_radius(TopkState *state)
{
	bool		isnull;
	Datum		value = ExecEvalExprSwitchContext(state->radius, state->css.ss.ps.ps_ExprContext, &isnull);
	double		radius;

	if (TopkIsNull(list_nth(TopkPlan(state)->custom_exprs, TOPK_EXPR_RADIUS)))
		return INFINITY;
	/* then the condition is NULL for every row */
	if (isnull || state->value == NULL)
		return -INFINITY;
	radius = DatumGetFloat8(value);
	if (isnan(radius))
		return INFINITY;
	if (isinf(radius))
		return radius;
	if (intVal(TopkPlanField(TopkPlan(state), TOPK_PRIVATE_RESULT)) == TOPK_RESULT_ROOT)
		radius = radius < 0 ? radius : radius * radius;
	/* the operator rounds in another way */
	return radius + fabs(radius) * 1e-6 + FLT_MIN;
}

/* So many rows fit into the memory of a scan. */
static uint32
most_rows(void)
{
	return Min(PG_INT32_MAX / 2, Max(64, (Size) work_mem * 1024 / TOPK_BYTES_PER_ROW));
}

/* The rows found, in order. */
static void
sort_rows(TopkState *state)
{
	TopkNearest *nearest = &state->nearest;

	TopkNearestSort(nearest);
	if (state->may_guess)
	{
		/* EXPLAIN tells how far the last one is */
		if (state->css.ss.ps.instrument && nearest->count > 0)
			TopkNearestMeasure(nearest, nearest->count - 1, nearest->count);
	}
	else if (nearest->measure)
	{
		/* one was not where the index had it */
		TopkNearestMeasure(nearest, 0, nearest->count);
		TopkNearestSort(nearest);
	}
}

static void
run_round(TopkState *state, uint32 wanted)
{
	if (state->limit_distance == -INFINITY)
	{
		/* no row will do */
		TopkStartRows(state, 1);
		state->counters.last = state->counters.bound = INFINITY;
		return;
	}
	wanted = Min(wanted, most_rows());
	state->counters.rounds++;
	state->counters.bound = INFINITY;
	TopkStartRows(state, wanted);
	wanted = TopkWantedInAll(state);
	while (state->strategy != TOPK_EXACT && !search_by_engine(state, wanted))
		;
	if (state->strategy == TOPK_EXACT)
	{
		state->counters.bound = INFINITY;
		if (state->child)
		{
			TopkMeasureMembers(state);
			TopkNoteExact(state, wanted);
		}
		else
			TopkMeasureTable(state);
	}
	sort_rows(state);
	/* no page stays pinned */
	RowReleasePages(state->rows);
	QvTestForOldSnapshot(state->css.ss.ps.state->es_snapshot, state->index);
	state->counters.last = state->nearest.count > 0 ?
		state->nearest.rows[state->nearest.count - 1].distance : INFINITY;
}

/*
 * Take note of a row that is returned.  In relaxed order of all of them, while there is memory: rows of later
 * rounds that are nearer come late.
 */
void
TopkNoteReturned(TopkState *state, const TopkRow *row)
{
	if (state->rules.relaxed && !state->strict_now)
		state->strict_now = !TopkTidsFit(state->ties, (Size) work_mem * 1024 / 2);
	else if (!(row->distance <= state->last_distance))
		TopkTidsReset(&state->ties, state->css.ss.ps.state->es_query_cxt);
	(void) TopkTidsAdd(state->ties, (ItemPointer) &row->tid);
	/* the farthest, where late ones are nearer */
	if (!(row->distance <= state->last_distance))
		state->last_distance = row->distance;
}

/* How far rows that were returned are was not known in full: now it has to be. */
static void
measure_returned(TopkState *state)
{
	TopkNearestMeasure(&state->nearest, 0, state->nearest.count);
	RowReleasePages(state->rows);
	TopkTidsReset(&state->ties, state->css.ss.ps.state->es_query_cxt);
	state->last_distance = NAN;
	for (uint32 i = 0; i < state->returned; i++)
		TopkNoteReturned(state, &state->nearest.rows[i]);
}

void
TopkNextRound(TopkState *state)
{
	state->guesses = false;
	if (state->nearest.measure)
		measure_returned(state);
	state->returned_before += state->returned;
	run_round(state, Min((uint64) state->nearest.wanted * ROUND_GROWTH, PG_INT32_MAX));
}

/* The engines do this; without one, the index's column knows its dimensions. */
static void
check_dims(const TopkState *state)
{
	const VectorTypeOps *type = state->opclass.type;
	int32		dims = TupleDescAttr(RelationGetDescr(state->index), 0)->atttypmod;

	if (dims > 0 && type->dims(state->value) != dims)
		type->different_dims(dims, type->dims(state->value));
}

void
TopkStart(TopkState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	MemoryContext old;
	Datum		value;
	bool		isnull;
	uint32		wanted;

	if (!IsMVCCSnapshot(estate->es_snapshot))
		elog(ERROR, "non-MVCC snapshots are not supported by the top-k scan");
	PredicateLockRelation(state->index, estate->es_snapshot);
	pgstat_count_index_scan(state->index);
	state->counters.searches++;
	MemoryContextReset(state->context);
	old = MemoryContextSwitchTo(state->context);
	value = ExecEvalExpr(state->query, econtext, &isnull);
	state->value = isnull ? NULL : PG_DETOAST_DATUM_COPY(value);
	MemoryContextSwitchTo(estate->es_query_cxt);
	if (state->engine == NULL)
	{
		state->engine = state->source->begin(state->index, &state->opclass);
		state->rows = RowReaderBegin(state->css.ss.ss_currentRelation, state->index,
									 &state->opclass);
	}
	MemoryContextSwitchTo(old);
	KnnSettingsOf(state->index, &state->settings);
	state->started = true;
	state->guesses = boolVal(TopkPlanField(TopkPlan(state), TOPK_PRIVATE_GUESSES));
	state->returned_before = 0;
	state->last_distance = NAN;
	state->strict_now = false;
	state->rules.relaxed = false;
	TopkTidsReset(&state->ties, estate->es_query_cxt);
	state->limit_distance = eval_radius(state);
	wanted = wanted_rows(state);
	TopkAskOfSweep(state);
	state->strategy = state->limit_distance == -INFINITY ? TOPK_BY_ROW :
		TopkChooseFirst(state, wanted);
	if (state->strategy == TOPK_EXACT && state->value)
		check_dims(state);
	run_round(state, wanted);
}
