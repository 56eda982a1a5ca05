/*
 * search.c
 *		Finding the rows of a top-k scan: the ways, and when to change from one to another; see
 *		src/topk/README.md, "Choice".
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "compat.h"
#include "executor/executor.h"
#include "optimizer/optimizer.h"
#include "pages/meta.h"
#include "pgstat.h"
#include "query/members.h"
#include "query/table_scan.h"
#include "space/count.h"
#include "stats/stats.h"
#include "storage/predicate.h"
#include "topk/state.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/*
 * Statistics do not show whether rows that pass are near.  So a walk for the first few rows may be
 * tried for this share of what the cheapest way costs.
 */
#define LOOK_SHARE 0.25

/* The choice is considered again when the rows proposed have grown by this factor. */
#define CHOICE_GROWTH 1.25

/* ---- what is known ---- */

/*
 * The share of rows that pass, where some were tested.  What was expected counts as one row that
 * passed, of as many as it takes.
 */
static double
learn_share(double share, double tested, double passed)
{
	return Min(1, (passed + 1) / (tested + 1 / share));
}

/*
 * Rows that the way that runs has found.  Rows that are too near are found, and are not wanted, as
 * with OFFSET: as many of them as pass the other conditions.
 */
static double
found_by_way(const TopkState *state)
{
	double		passed = QvStreamGetCounters(state->stream)->passed - state->before.passed;

	return passed + state->skipped * (state->after ? learn_share(state->share, state->far_enough, passed) : 1);
}

/*
 * Rows that the way is to find in all, as far as the choice is concerned: some more than it, or a
 * way before it, has found.  (How many of these have been returned may depend on whether distances
 * are shown.)
 */
static double
wanted_rows(const TopkState *state)
{
	return Max(TOPK_FIRST_ROWS, CHOICE_GROWTH * Max(state->found, found_by_way(state)));
}

/* Rows that the way that runs has proposed. */
static int64
proposed_by_way(const TopkState *state)
{
	return QvStreamGetCounters(state->stream)->proposed - state->before.proposed;
}

/* What is known of the set: its members if they are there, else as many as are expected. */
static void
expect_members(TopkState *state, double expected)
{
	TopkKnown  *known = &state->known;
	double		found = state->set.nfound;

	if (known->is_there)
	{
		/* blocks may have fewer rows than lines */
		known->members = Min(state->set.rows->members, known->rows);
		known->collect = 0;
		known->passing = Min(known->passing, Max(1, known->members));
		return;
	}
	known->members = Max(found, expected);
	known->collect = state->planned.collect * (known->members - found);
}

/* Rows that were tested tell how many pass. */
static void
learn_passing(TopkState *state)
{
	TopkKnown  *known = &state->known;
	const QvFilter *filter = state->filter;
	double		share = state->share;
	double		of = known->rows;

	if (state->way != TOPK_WALK && state->way != TOPK_CODES)
		return;
	if (filter)
	{
		double		tested = filter->tested - state->tested_before;

		known->admitted = learn_share(state->admitted, tested,
									  tested - (state->engine->counters.removed - state->removed_before));
	}
	/* rows that an entry keeps out are not proposed */
	if (state->way == TOPK_CODES && known->has_filter)
	{
		share = Min(1, share / state->admitted);
		of = known->admitted * known->rows;
	}
	share = learn_share(share, proposed_by_way(state), found_by_way(state));
	known->passing = Max(1, share * of);
	/* the set has more or fewer members than expected by the same factor */
	expect_members(state, Min(known->rows, known->passing * state->planned.members / state->planned.passing));
}

/* What is known now: of the index, the table and the plan, and by the rows of the way that runs. */
static void
get_known(TopkState *state)
{
	TopkKnown  *known = &state->known;
	Relation	table = state->css.ss.ss_currentRelation;

	known->index = state->index;
	known->engine = KnnMethodOf(state->index)->engine;
	known->settings = &state->settings;
	known->sigmas = QvCurveSigmas(1 - state->settings.recall);
	known->units = state->planned.units;
	known->filtered = state->planned.filtered;
	/* as many as there are now: the plan may be old */
	known->table_rows = Max(1, QvEstimateRows(table));
	known->rows = Max(1, state->planned.indexed * known->table_rows);
	known->row_pages = known->engine->row_pages(state->index);
	known->table_pages = RelationGetNumberOfBlocks(table);
	/* an end that the user has set bounds what is read */
	known->has_table = TopkMostRows(&state->settings) >= known->table_rows && !TopkHasMostLists(&state->settings);
	known->passing = Max(1, state->share * known->rows);
	known->has_filter = state->filter && state->filter->nconditions > 0;
	known->admitted = state->admitted;
	known->has_set = state->set.child != NULL && state->set.state != TOPK_SET_FAILED;
	known->is_there = state->set.state == TOPK_SET_READY;
	expect_members(state, state->planned.members * known->rows);
	learn_passing(state);
}

/* ---- ways ---- */

static void
end_other(TopkState *state)
{
	if (state->other)
		state->other->ops->end(state->other);
	state->other = NULL;
}

/* The search by the engine, started for the value. */
static void
start_engine(TopkState *state)
{
	QvScanGoal	goal = {
		.value = state->value,
		.settings = &state->settings,
		.expected = state->known.filtered && !state->looks ?
			Min(TOPK_MOST_EXPECTED, TopkProposals(&state->known, TOPK_FIRST_ROWS)) : 0,
		.endless = true
	};

	state->engine->ops->start(state->engine, &goal);
}

/* The cheaper way to read the rows of a set: by their codes, or from the table. */
static bool
reads_codes(const TopkState *state)
{
	TopkKnown	by_row = state->known;

	by_row.row_pages = 0;
	return state->engine->rows &&
		TopkWayCost(&state->known, TOPK_SET, wanted_rows(state)) <
		TopkWayCost(&by_row, TOPK_SET, wanted_rows(state));
}

/* What all ways together have cost so far.  A dead row costs as much as one that is fetched. */
static double
spent(const TopkState *state)
{
	const QvUnits *units = &state->known.units;
	const QvStreamCounters *rows = QvStreamGetCounters(state->stream);

	return QvCountersCost(units, &state->engine->counters) + rows->proposed * cpu_operator_cost +
		QvRowsCost(units, rows->looked_up, state->known.table_pages) + rows->passed * units->value + state->collected +
		(state->filter ? state->filter->tested * units->filter : 0);
}

/* Have rows come by a way from now on, all of them. */
static void
begin_way(TopkState *state, TopkWay way)
{
	MemoryContext old = MemoryContextSwitchTo(state->context);
	Relation	table = state->css.ss.ss_currentRelation;
	const TopkKnown *known = &state->known;
	Size		memory = state->settings.memory / 2;
	const QvTidSet *members = way == TOPK_SET ? state->set.rows : NULL;
	double		proposals = TopkProposals(known, wanted_rows(state)) * known->admitted;

	end_other(state);
	/* what this way will show is added to what those before have shown */
	state->share = known->passing / known->rows;
	state->admitted = Max(1 / known->rows, known->admitted);
	state->found = Max(state->found, found_by_way(state));
	state->others_spent = spent(state) - state->collected;
	start_engine(state);
	if (state->filter)
	{
		QvFilterUse(state->filter, state->engine);
		state->tested_before = state->filter->tested;
		state->removed_before = state->engine->counters.removed;
	}
	state->reads_rows = false;
	if (way == TOPK_SET ? reads_codes(state) : way == TOPK_CODES && state->engine->rows)
		state->other = QvMembersBegin(state->engine, table, members, state->filter,
									  members ? proposals * members->members / known->rows : proposals, memory);
	else if (way != TOPK_WALK)
	{
		state->other = QvTableScanBegin(table, state->engine->table_hints,
										members && members->words > 0 ? members : NULL);
		state->reads_rows = true;
	}
	state->way = way;
	state->ran[way] = true;
	state->before = *QvStreamGetCounters(state->stream);
	state->skipped = state->far_enough = 0;
	state->next_choice = TOPK_FIRST_ROWS;
	state->next_cost = 0;
	state->by_way_before = -1;
	/* no other way comes after one that reads rows */
	QvStreamSetScan(state->stream, state->other ? state->other : state->engine,
					state->reads_rows && state->planned.order == TOPK_ORDER_NONE);
	MemoryContextSwitchTo(old);
}

/* QvStreamSource.again */
static void
begin_again(void *arg)
{
	TopkState  *state = arg;

	begin_way(state, state->way);
}

/* ---- the set ---- */

/* Are the members found too many, by now?  They are if a walk for the first rows costs less. */
static bool
is_enough(void *arg, double found)
{
	TopkState  *state = arg;
	TopkKnown	known = state->known;

	known.passing = Max(known.passing, Min(1, state->planned.passing / state->planned.members) * found);
	return found > state->known.members &&
		found * state->planned.collect > state->patience * TopkWayCost(&known, TOPK_WALK, wanted_rows(state));
}

/* Collect the set, as far as that is worth it. */
static void
collect_set(TopkState *state)
{
	double		before = state->set.nfound;
	double		now;

	TopkSetCollect(&state->set, topk_way == TOPK_WAYS ? is_enough : NULL, state);
	now = state->set.state == TOPK_SET_READY ? state->set.rows->members : state->set.nfound;
	state->collected += state->planned.collect * Max(0, now - before);
	if (state->set.state == TOPK_SET_PART)
	{
		double		more = Max(1, state->set.nfound / (state->planned.members * state->known.rows));

		/* more than were expected pass, too */
		state->planned.passing = Min(1, state->planned.passing * more);
		state->share = Min(1, state->share * more);
		state->planned.members = Max(state->planned.members, state->set.nfound / state->known.rows);
		state->patience *= 2;
	}
	get_known(state);
}

/* ---- the choice ---- */

/* Begin a way; where that is the set, once it has been collected the cheapest is begun. */
static void
take_way(TopkState *state, TopkWay way)
{
	double		cost;

	state->spent_before = spent(state);
	if (way == TOPK_SET && state->set.state != TOPK_SET_READY)
	{
		collect_set(state);
		/* the way that runs goes on until more of the set is worth it */
		if (state->set.state == TOPK_SET_PART && state->way != TOPK_WAYS)
			return;
		/* more is known than when it was begun */
		state->looks = false;

		/*
		 * with a set that is there rows need not be fetched to see whether
		 * they pass, and it may not know lines
		 */
		if (state->set.state == TOPK_SET_PART)
			way = TOPK_WALK;
		else if (topk_way == TOPK_WAYS || state->set.state != TOPK_SET_READY)
			way = TopkCheapest(&state->known, TOPK_WALK, wanted_rows(state), &cost);
	}
	begin_way(state, way);
}

static void
choose_first(TopkState *state)
{
	double		cost,
				look = TopkWayCost(&state->known, TOPK_WALK, TOPK_FIRST_ROWS);
	TopkKnown	near = state->known;
	TopkWay		best = TopkCheapest(&state->known, TOPK_CODES, wanted_rows(state), &cost);

	near.passing = near.rows;
	near.admitted = 1;
	state->looks = false;
	if (state->reads_table)
		best = TOPK_TABLE;
	else if (topk_way != TOPK_WAYS)
		best = isinf(TopkWayCost(&state->known, topk_way, INFINITY)) ? TOPK_WALK : topk_way;
	else if (look <= cost)
		best = TOPK_WALK;
	else if (TopkWayCost(&near, TOPK_WALK, TOPK_FIRST_ROWS) <= LOOK_SHARE * cost)
	{
		best = TOPK_WALK;
		state->looks = true;
	}
	take_way(state, best);
}

/*
 * Has the way proposed as many rows as the user has set?  A set has no such end, nor a table that
 * has fewer rows.
 */
static bool
has_proposed_most(const TopkState *state)
{
	return state->way != TOPK_SET && !state->reads_table && !(state->way == TOPK_TABLE && state->known.has_table) &&
		proposed_by_way(state) >= TopkMostRows(&state->settings);
}

/* Has the search come to the end that the user has set, by rows, or is it one by lists? */
static bool
is_at_end(const TopkState *state)
{
	return has_proposed_most(state) || (state->way == TOPK_WALK && TopkHasMostLists(&state->settings));
}

/*
 * QvStreamSource.early, and after the end: have the rows that a search by codes has left out come
 * by another way.  False: there is none yet, or none at all, or the user has set an end.
 */
static bool
take_rest(void *arg)
{
	TopkState  *state = arg;
	const TopkKnown *known = &state->known;
	TopkWay		way = TOPK_TABLE;

	if (is_at_end(state) || state->way == TOPK_TABLE ||
		(state->way == TOPK_SET && (state->reads_rows || QvTidSetIsExact(state->set.rows))))
		return false;

	/*
	 * the rows that a walk without conditions has found are near, and all
	 * other rows cost much more
	 */
	if (state->way == TOPK_WALK && !known->filtered && QvStreamHasWaiting(state->stream))
		return false;
	if (state->way != TOPK_SET)
	{
		TopkSetCollect(&state->set, NULL, NULL);
		get_known(state);
		if (known->is_there)
			way = TOPK_SET;
		else if (state->way == TOPK_WALK && isfinite(TopkWayCost(known, TOPK_CODES, known->rows)))
			way = TOPK_CODES;
	}
	state->spent_before = spent(state);
	begin_way(state, way);
	return true;
}

/*
 * What the way that runs costs for a number of rows that pass, of a number proposed.  A search of
 * the index has been paid for all rows that it is deep enough for.
 */
static double
cost_of_way(const TopkState *state, double passing, double proposed)
{
	const TopkKnown *known = &state->known;
	double		depth = Max(proposed, Min(state->engine->allowed, known->rows));

	return state->way != TOPK_WALK ? TopkWayCost(known, state->way, passing) :
		TopkWalkCost(known, depth, proposed, passing);
}

/*
 * What the way that runs will still cost: as much for each unit of what is expected of it as it
 * has cost so far.
 */
static double
still_costs(const TopkState *state)
{
	const TopkKnown *known = &state->known;
	double		proposed = proposed_by_way(state);
	double		wanted = wanted_rows(state);
	double		of = known->rows;

	if (state->way != TOPK_WALK && known->has_filter)
		of = Max(1, known->admitted * known->rows);
	return (spent(state) - state->collected - state->others_spent) *
		(cost_of_way(state, wanted, TopkProposals(known, wanted)) /
		 cost_of_way(state, proposed * known->passing / of, proposed) - 1);
}

/* QvStreamNext()'s pause: change the way if another costs less.  False at the user's end. */
static bool
choose(void *arg)
{
	TopkState  *state = arg;
	int64		by_way = proposed_by_way(state);
	bool		is_idle = by_way == state->by_way_before;
	double		so_far,
				to_come,
				cost;
	TopkWay		best;

	state->by_way_before = by_way;
	if (has_proposed_most(state))
		return false;
	if ((by_way < state->next_choice && !is_idle) || state->way >= TOPK_SET || topk_way != TOPK_WAYS ||
		TopkHasMostLists(&state->settings))
		return true;
	so_far = spent(state) - state->spent_before;
	if (by_way < state->next_choice && so_far < state->next_cost)
		return true;
	learn_passing(state);
	best = TopkCheapest(&state->known, state->way + 1, wanted_rows(state), &cost);
	state->next_choice = Max(TOPK_FIRST_ROWS, by_way * CHOICE_GROWTH);
	state->next_cost = Max(cost, so_far * CHOICE_GROWTH);
	if (isinf(cost))
		return true;
	/* nothing is known of it before some rows were proposed */
	to_come = by_way < TOPK_FIRST_ROWS ? so_far : still_costs(state);
	/* the next step will cost as much again, at least */
	if (state->looks && 2 * so_far < LOOK_SHARE * cost)
		return true;

	/*
	 * What is to come is uncertain, and what was paid is lost.  A way that is
	 * nearly at its end goes on, for a while.
	 */
	if (Max(so_far, to_come / 2) > cost && (to_come > LOOK_SHARE * cost || so_far > 2 * cost))
		take_way(state, best);
	return true;
}

/* ---- rows ---- */

/* QvStreamSource.admit */
static QvAdmission
admit_row(void *arg, const ItemPointerData *tid)
{
	TopkState  *state = arg;

	/* other indexes have told, where they were asked */
	if (state->set.state == TOPK_SET_READY && !QvTidSetHas(state->set.rows, tid))
		return QV_ROW_FAILS;
	/* a scan of the table has the row at hand; row pages have been asked */
	if (state->filter == NULL || state->reads_rows || (state->other && !state->filter->wants_visible))
		return QV_ROW_MAY_PASS;
	return QvFilterTestRow(state->filter, tid);
}

/* QvStreamSource.fill */
static bool
fill_row(void *arg, const ItemPointerData *tid)
{
	TopkState  *state = arg;

	/*
	 * fetching the row would have locked it; a change before that shows, as
	 * the page is not all visible any more
	 */
	PredicateLockPage(state->css.ss.ss_currentRelation, ItemPointerGetBlockNumberNoCheck(tid),
					  state->css.ss.ps.state->es_snapshot);
	return QvFilterFill(state->filter, tid);
}

/* QvStreamSource.test: count the rows that are too near, and the others */
static bool
test_row(void *arg)
{
	TopkState  *state = arg;
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;

	pgstat_count_heap_fetch(state->index);
	ResetExprContext(econtext);
	econtext->ecxt_scantuple = state->rows->slot;
	if (ExecQual(state->ahead, econtext))
	{
		bool		too_near = !ExecQual(state->outside, econtext);

		state->skipped += too_near;
		state->far_enough += !too_near;
		if (!too_near && ExecQual(state->after, econtext))
			return true;
	}
	InstrCountFiltered1(&state->css.ss, 1);
	return false;
}

/* Do rows of a distance meet the conditions on it? */
static bool
is_within(TopkState *state, double distance, bool isnull)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;

	econtext->caseValue_datum = Float8GetDatum(distance);
	econtext->caseValue_isNull = isnull;
	return ExecQual(state->within, econtext);
}

/* QvStreamSource.beyond: rows that are farther do not meet the conditions either */
static bool
is_beyond(void *arg, double bound)
{
	TopkState  *state = arg;

	if (!isfinite(bound))
		return bound > 0;
	/* the operator rounds in another way */
	bound -= fabs(bound) * 1e-6 + FLT_MIN;
	ResetExprContext(state->css.ss.ps.ps_ExprContext);
	return !is_within(state, TopkResultPossible(state->opclass.metric, state->planned.result, bound), false);
}

/* Has the query that asks for the first groups no LIMIT?  A search may lose some of them. */
static bool
wants_all_groups(TopkState *state)
{
	bool		isnull = false;

	if (state->limit)
		ExecEvalExprSwitchContext(state->limit, state->css.ss.ps.ps_ExprContext, &isnull);
	return isnull;
}

void
TopkStart(TopkState *state)
{
	EState	   *estate = state->css.ss.ps.state;
	QvStreamSource source = {0};
	MemoryContext old;
	Datum		value;
	bool		isnull;
	int			order = state->planned.order;
	bool		by_value;

	if (!IsMVCCSnapshot(estate->es_snapshot))
		elog(ERROR, "non-MVCC snapshots are not supported by the top-k scan");
	PredicateLockRelation(state->index, estate->es_snapshot);
	pgstat_count_index_scan(state->index);
	state->searches++;
	end_other(state);
	MemoryContextReset(state->context);
	old = MemoryContextSwitchTo(state->context);
	value = ExecEvalExpr(state->query, state->css.ss.ps.ps_ExprContext, &isnull);
	state->value = isnull ? NULL : PG_DETOAST_DATUM_COPY(value);
	MemoryContextSwitchTo(estate->es_query_cxt);
	if (state->engine == NULL)
	{
		state->engine = KnnMethodOf(state->index)->engine->begin(state->index, &state->opclass);
		state->rows = RowReaderBegin(state->css.ss.ss_currentRelation, state->index, &state->opclass);
		state->stream = QvStreamCreate();
	}
	MemoryContextSwitchTo(old);
	KnnSettingsOf(state->index, &state->settings);

	/*
	 * half of the memory is the engine's; rows that wait and another search
	 * have a fourth each
	 */
	state->settings.memory /= 2;
	source.rows = state->rows;
	source.snapshot = estate->es_snapshot;
	source.value = state->value;
	source.admit = admit_row;
	source.fill = fill_row;
	source.test = test_row;
	source.again = begin_again;
	source.early = take_rest;
	source.arg = state;
	source.late = order == TOPK_ORDER_NONE ? QV_LATE_NOW :
		(order & TOPK_ORDER_STRICT) ? QV_LATE_DROPPED :
		state->settings.iterative_scan == ITERATIVE_SCAN_RELAXED ? QV_LATE_NOW :
		(order & TOPK_ORDER_LATE_LAST) ? QV_LATE_LAST : QV_LATE_DROPPED;
	source.nulls_first = (order & TOPK_ORDER_NULLS_FIRST) != 0;
	source.nans_first = (order & (TOPK_ORDER_DESCENDS | TOPK_ORDER_NANS_LAST)) == TOPK_ORDER_DESCENDS;
	state->reads_table = wants_all_groups(state) || QvMetaMissing(state->index, state->planned.needs) != 0;
	/* with another index, all rows that it finds count */
	source.unindexed = state->set.child != NULL || state->reads_table;
	by_value = state->known.by_value = state->value && QvIsIndexed(&state->opclass, state->value);
	source.guess = state->planned.guesses && by_value;
	source.beyond = state->within && by_value ? is_beyond : NULL;
	state->way = TOPK_WAYS;
	state->collected = 0;
	source.max_bytes = state->settings.memory / 2;
	QvStreamStart(state->stream, &source);
	state->started = true;
	state->patience = 1;
	state->share = state->planned.passing;
	state->admitted = state->planned.admitted;
	state->found = 0;
	state->before = *QvStreamGetCounters(state->stream);
	state->skipped = state->far_enough = 0;
	state->last = INFINITY;
	get_known(state);
	/* then all distances are NULL, or NaN */
	if (state->within && !by_value && !is_within(state, NAN, state->value == NULL))
		return;
	choose_first(state);
}

/*
 * The search by the index, or by row pages, has proposed all rows that are in the index.  Is there
 * another way to find rows without a value, or zero under cosine, which come last?
 */
static bool
goes_on(TopkState *state)
{
	return state->known.filtered && state->set.child != NULL && !state->within &&
		(!state->planned.not_null || state->opclass.metric == QV_METRIC_COSINE) && take_rest(state);
}

bool
TopkNext(TopkState *state, QvStreamRow *row)
{
	bool		found;

	do
		found = QvStreamNext(state->stream, choose, row);
	while (!found && goes_on(state));
	if (found)
		state->last = row->distance;
	/* no page stays pinned */
	RowReleasePages(state->rows);
	if (state->filter)
		QvFilterRelease(state->filter);
	QvTestForOldSnapshot(state->css.ss.ps.state->es_snapshot, state->index);
	return found;
}

void
TopkEnd(TopkState *state)
{
	end_other(state);
	if (state->engine)
	{
		const QvStreamCounters *rows = QvStreamGetCounters(state->stream);

		pgstat_count_index_tuples(state->index, rows->proposed);
		QvStatsAdd(RelationGetRelid(state->index), state->searches, rows, &state->engine->counters);
		QvStreamEnd(state->stream);
		state->engine->ops->end(state->engine);
		RowReaderEnd(state->rows);
	}
	if (state->filter)
		QvFilterEnd(state->filter);
}
