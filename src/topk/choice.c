/*
 * choice.c
 *		Choosing how a top-k scan finds its rows; see src/topk/README.md, "Choice".
 */
#include "postgres.h"

#include <math.h>

#include "topk/state.h"

/*
 * So many rows decide at least how deep a graph is searched, and whether members are found
 * soon enough: then the first pages by LIMIT and OFFSET fit together.
 */
#define LEAST_PAGE 10

/* So few rows are measured all, whatever the index would propose. */
#define EXACT_ROWS 200

/*
 * An estimate that fewer rows pass than one in so many is often none: a search that needs
 * more goes on.
 */
#define TRUSTED_PASS 20.0

/*
 * Standard deviations of the number of rows that pass which a search is prepared for, and
 * for which lists have records read: another window costs them less than rows that nobody takes.
 */
#define CHANCE_SIGMAS 2
#define WINDOW_SIGMAS 0.5

/*
 * How many pass is estimated from those met, and from what the planner expects as if it had
 * met so many that pass, but no more rows than so many.
 */
#define PRIOR_PASSED 4.0
#define PRIOR_ROWS 100.0

/*
 * Where it expects what is a default, for want of a parameter's value: likewise, and lists' first window is
 * for so many rows at most.
 */
#define UNSURE_PASSED 0.5
#define UNSURE_WINDOW 50

/*
 * Rows proposed before anything else is thought of; before the bitmap is: of which so many were
 * expected to pass, but at least so many, and no more than those.
 */
#define MIN_SWITCH 100
#define MIN_SWITCH_PASSING 4.0
#define MIN_SWITCH_TO_BITMAP 40

/* It is again with so many more of those proposed, or when a batch has ended. */
#define RECONSIDERED 8

/*
 * Of the cost of measuring all members, what a search may take to show how it goes; and one by row
 * to find out whether those that pass are near.
 */
#define TRIAL_SHARE 0.1
#define NEAR_SHARE 0.25

/*
 * What things cost, in fetches of a row with the test of its conditions
 * (src/topk/README.md, "Choice"): a member of the bitmap and the set; a search of lists, for
 * each row nearer than the last one wanted; and what an engine counts.
 */
#define BITMAP_ROW_COST 0.2
#define TOLD_ROW_COST 0.035
#define NODE_COST 2.0
#define RECORD_COST 0.4
#define TEST_COST 0.02

/* A row of a list that is looked at is looked up, and its code is scored. */
#define LOOK_COST KNN_LOOK_COST
#define CODE_COST (LOOK_COST - TEST_COST)

/* A row of the table, when all are read in order. */
#define TABLE_ROW_COST 0.5

/*
 * Of a sweep: a page of the index, a row looked up, and a member measured.  Of lists: a row looked at, of
 * all that there are.
 */
#define SWEEP_PAGE_COST 0.12
#define SWEEP_ROW_COST 0.035
#define SWEEP_MEMBER_COST 0.2
#define SWEEP_LOOK_COST (1.25 * LOOK_COST)

/*
 * A member whose node is known from an earlier sweep.  Or its code: then one in so many is measured,
 * and so many at least, and to have the codes of all rows takes so much for each.
 */
#define KNOWN_MEMBER_COST 0.5
#define CODED_MEMBER_COST 0.06
#define CODED_PER_MEASURED 16
#define LEAST_MEASURED 64
#define LEARNED_ROW_COST 0.6

/*
 * How many times a search looking at all may cost the first times, where it would cost so many times
 * less from then on.
 */
#define LEARNING_COST 6.0
#define LEARNED_GAIN 1.5

/* What is known takes a line for each row, and more: for each row, and for each block, at least. */
#define LINES_PER_ROW 1.5
#define LINES_PER_BLOCK 4.0

/* Rows wanted in this round and returned before it: those are found again. */
uint32
TopkWantedInAll(const TopkState *state)
{
	return Min(state->nearest.wanted + state->returned_before, PG_INT32_MAX);
}

/* What the ways to look at all rows of the bitmap cost. */
typedef struct AllCosts
{
	double		exact;			/* by reading them, and measuring those that
								 * pass */
	bool		can_sweep;
	bool		learns;			/* it makes known where they are */
	double		sweep;			/* by the codes of all rows, and reading those
								 * that may be nearest */
	double		first;			/* and the one that learns */
	bool		is_known;		/* where most of them are: */
	double		known;			/* likewise, of those known to have them */
	double		learned;		/* and if all were known */
} AllCosts;

/* A sweep of members of which it is known where they are, or their codes. */
static double
known_cost(double members, bool codes)
{
	return codes ? members * CODED_MEMBER_COST +
		Min(members, LEAST_MEASURED + members / CODED_PER_MEASURED) * KNOWN_MEMBER_COST :
		members * KNOWN_MEMBER_COST;
}

static void
cost_all(const TopkState *state, uint32 wanted, AllCosts *costs)
{
	const KnnSweep *sweep = &state->sweep;
	double		members = state->expected_members;
	double		passing = Max(Max(1, members / TRUSTED_PASS),
							  Min(members, state->table_rows / state->rank_per_row));
	double		fetched = wanted * (members / passing + state->measure_cost);
	double		lines = Max(LINES_PER_BLOCK * state->table_blocks, LINES_PER_ROW * state->table_rows);
	bool		codes = lines <= sweep->learns_codes && members <= sweep->waiting;

	costs->exact = members + passing * state->measure_cost;
	costs->can_sweep = sweep->pages > 0 && wanted <= sweep->kept && state->value;
	costs->sweep = fetched + (state->source->nodes ?
							  sweep->pages * SWEEP_PAGE_COST + state->table_rows * SWEEP_ROW_COST + members * SWEEP_MEMBER_COST :
							  state->table_rows * SWEEP_LOOK_COST);
	costs->learns = costs->can_sweep && lines <= sweep->learns;
	costs->first = costs->sweep + (codes ? state->table_rows * LEARNED_ROW_COST : 0);
	costs->learned = fetched + known_cost(members, codes);
	/* the others are fetched all, and there has to be room for them */
	costs->is_known = costs->can_sweep && sweep->known > 0 && (1 - sweep->known) * members <= sweep->kept / 2;
	costs->known = fetched + known_cost(sweep->known * members, codes && sweep->knows_codes) +
		(1 - sweep->known) * members * (1 + state->measure_cost);
}

/* Of those that do not depend on what the backend knows. */
static double
least_cost(const AllCosts *costs)
{
	return costs->can_sweep ? Min(costs->sweep, costs->exact) : costs->exact;
}

/*
 * What looking at all rows of the bitmap may cost, to be done instead of a search that costs as
 * much, and the way to do it.
 *
 * The ways find the same rows, so what a backend has met may choose between them.  But not
 * between them and a search, which may find others: so it does not count in the cost.  Instead it is
 * less where it will be once more is known, but not by more than may be asked of those who find out.
 */
static double
all_cost_in_time(const TopkState *state, uint32 wanted, TopkStrategy *strategy)
{
	AllCosts	costs;
	double		cost;
	bool		sweeps;

	cost_all(state, wanted, &costs);
	cost = least_cost(&costs);
	sweeps = costs.sweep < costs.exact || (costs.is_known && costs.known < costs.exact) ||
		(costs.learns && state->sweep.spent >= costs.first);
	*strategy = costs.can_sweep && sweeps ? TOPK_SWEEP : TOPK_EXACT;
	return costs.learns ? Min(cost, Max(costs.learned * LEARNED_GAIN, cost / LEARNING_COST)) : cost;
}

/* And once all is known that can be. */
static double
all_cost_at_best(const TopkState *state, uint32 wanted)
{
	AllCosts	costs;
	double		cost;

	cost_all(state, wanted, &costs);
	cost = least_cost(&costs);
	return costs.learns ? Min(cost, costs.learned) : cost;
}

/* Is a sweep worth it only because it is known where the rows are? */
static bool
sweeps_known_only(const TopkState *state, uint32 wanted)
{
	AllCosts	costs;

	cost_all(state, wanted, &costs);
	return costs.is_known && costs.known < costs.exact && costs.exact <= costs.sweep;
}

/* Let the engine know what that has cost, where a sweep would have taught it something. */
void
TopkNoteExact(const TopkState *state, uint32 wanted)
{
	AllCosts	costs;

	cost_all(state, wanted, &costs);
	if (costs.learns)
		state->source->note_exact(state->index, costs.exact);
}

/*
 * The rank of the last of so many rows that pass, if these lie like all rows: seldom
 * more, since chance may put so few of them among the nearest.
 */
static double
expected_rank(const TopkState *state, uint32 wanted, double sigmas)
{
	double		spread = state->rank_per_row > 1 ? sigmas * sqrt(wanted) : 0;

	return Min((wanted + spread) * state->rank_per_row, Max(state->table_rows, wanted));
}

/* What a search costs, but for rows fetched, whose last row wanted has that rank among all. */
static double
deep_cost(const TopkState *state, double rank)
{
	return state->source->nodes == NULL ? state->source->rows(state->index, &state->settings, rank) * LOOK_COST :
		state->source->nodes(state->index, &state->settings, rank) * NODE_COST + rank * TEST_COST;
}

/* What it takes to have the bitmap, or its rows. */
static double
bitmap_cost(const TopkState *state)
{
	return TopkHasBitmap(state) ? 0 :
		state->bitmap_rows * (state->tells_rows ? TOLD_ROW_COST : BITMAP_ROW_COST);
}

/*
 * The best of the ways with the bitmap that there is.  A search by row may have found that the
 * last row wanted has a rank of so much, if there was one.
 */
static TopkStrategy
choose_with_bitmap(const TopkState *state, uint32 wanted, double found_rank)
{
	TopkStrategy all;
	double		others = all_cost_in_time(state, wanted, &all);
	double		rank = Max(found_rank, expected_rank(state, wanted, CHANCE_SIGMAS));

	if (state->expected_members <= EXACT_ROWS || state->set == NULL)
		return TOPK_EXACT;

	/*
	 * members may be near: a look costs little where the first batch is for a
	 * few rows
	 */
	if (state->source->nodes && deep_cost(state, Max(wanted, found_rank)) <= others * TRIAL_SHARE)
		return TOPK_IN_INDEX;
	return others <= deep_cost(state, rank) ? all : TOPK_IN_INDEX;
}

/* Rows that a search by row proposes before the bitmap is thought of. */
static uint32
rows_before_bitmap(const TopkState *state)
{
	return state->unsure ? MIN_SWITCH_TO_BITMAP :
		Min(MIN_SWITCH, Max(MIN_SWITCH_TO_BITMAP, MIN_SWITCH_PASSING * state->rank_per_row));
}

/*
 * Rows that pass may be near, which nobody knows: is a search by row a small part of what is best else,
 * until that is found out?
 */
static bool
is_near_worth_a_look(const TopkState *state, uint32 wanted, double others)
{
	return deep_cost(state, wanted) + rows_before_bitmap(state) <= NEAR_SHARE * others;
}

/* Have the bitmap if it is likely worth it, and choose how to begin. */
TopkStrategy
TopkChooseFirst(TopkState *state, uint32 wanted)
{
	double		rank = expected_rank(state, wanted, CHANCE_SIGMAS);
	TopkStrategy all;

	/* whether the bitmap is small nobody knows: rows met by row will tell */
	if (state->child == NULL || (state->unsure && !TopkHasBitmap(state)))
		return TOPK_BY_ROW;
	if (!TopkHasBitmap(state) && state->expected_members > EXACT_ROWS)
	{
		double		bitmap = bitmap_cost(state);
		double		deep = deep_cost(state, rank);

		TopkExpectSweep(state);
		if (deep + rank <= bitmap + Min(deep, all_cost_in_time(state, wanted, &all)) ||
			is_near_worth_a_look(state, wanted, bitmap + all_cost_at_best(state, wanted)))
			return TOPK_BY_ROW;
	}
	TopkGetBitmap(state);
	return choose_with_bitmap(state, wanted, 0);
}

/* Rows that the engine has looked at, whether or not they were members. */
int64
TopkRowsSeen(const TopkState *state)
{
	return Max(state->proposed, state->engine->counters.tested - state->before.tested);
}

/* What the engine's search has cost so far. */
static double
search_cost(const TopkState *state)
{
	const QvScanCounters *now = &state->engine->counters;
	const QvScanCounters *then = &state->before;

	return (now->nodes - then->nodes) * NODE_COST + (now->records - then->records) * RECORD_COST +
		(now->tested - then->tested) * TEST_COST + (now->codes - then->codes) * CODE_COST +
		state->proposed;
}

/* Will a search of lists, which reads none twice but for another window, likely cost more? */
static bool
are_lists_dear(const TopkState *state, double cost, double shares, double others)
{
	double		all = state->table_rows * LOOK_COST;
	double		rest = all - (state->engine->counters.rows - state->before.rows) * LOOK_COST;

	return cost >= others + all ||
		Min(rest, cost >= others ? rest : cost * (shares - 1)) > others;
}

/*
 * Will the search for members likely cost more than looking at them all, and in which way?
 * When it has cost as much already (renting against buying), or when so few have been found
 * for a share of that that the rest would.
 */
static bool
is_dear(const TopkState *state, bool ended, TopkStrategy *all)
{
	double		cost = search_cost(state);
	double		others = all_cost_in_time(state, TopkWantedInAll(state), all);
	int64		members = state->engine->counters.members - state->before.members;
	double		shares = (double) Max(LEAST_PAGE, TopkWantedInAll(state)) / (members + 1);

	if (cost < others * TRIAL_SHARE)
		return false;
	if (state->source->nodes == NULL)
		return are_lists_dear(state, cost, shares, others);

	/*
	 * a graph's batches are short, and it takes more than their share for
	 * each rank
	 */
	return cost >= others ||
		(ended && others <= deep_cost(state, TopkRowsSeen(state) * shares));
}

/*
 * The rank among all rows that the last one wanted has, if it is found: as many passed of
 * those before.  Of rows within a distance, when bound is beyond it, it is their number.
 * Of a graph nodes count, since one may have many rows.
 */
double
TopkNeededRank(const TopkState *state, double bound)
{
	const QvScan *engine = state->engine;
	double		seen = engine->taken > 0 ? engine->taken : TopkRowsSeen(state);
	double		wanted = TopkWantedInAll(state);

	if (engine->follows)
		wanted = Max(LEAST_PAGE, wanted);
	return bound > state->limit_distance ? seen : seen / Max(1, state->passed) * wanted;
}

/*
 * Has the search been deep enough for rows up to that rank and distance?  Deep as for so
 * many, or for less, but all that is nearer is settled.
 */
bool
TopkIsDeep(const TopkState *state, double rank, double distance)
{
	const QvScan *engine = state->engine;

	return rank <= engine->depth ||
		(engine->follows && rank <= engine->reach &&
		 distance <= QvScanDistance(engine, engine->settled));
}

/*
 * So many more rows will have to be proposed, if as many pass as of those proposed, and of what
 * the planner expects of so many that pass.
 */
static double
proposals_after(const TopkState *state, double proposed, double prior)
{
	double		missing = state->nearest.wanted - Min(state->nearest.count, state->nearest.wanted - 1);

	return (missing + WINDOW_SIGMAS * sqrt(missing)) *
		(proposed + prior * state->rank_per_row) / (state->passed + prior);
}

static double
proposals_to_come(const TopkState *state, double prior)
{
	return proposals_after(state, state->proposed, prior);
}

/* What the planner expects counts as if so many had passed. */
static double
prior_passed(const TopkState *state)
{
	return Min(PRIOR_PASSED, PRIOR_ROWS / state->rank_per_row);
}

/* But where none of those met has, it is most likely wrong: then as if one had been met. */
static double
prior_met(const TopkState *state)
{
	return state->passed > 0 ? prior_passed(state) : 1 / state->rank_per_row;
}

/*
 * So many rows of a search by row have cost so much, and so many more will.  Is the bitmap likely
 * better, with what is best then?  Or has it cost as much (renting against buying)?  "gathered": the
 * lists that these take have been read, and nothing but rows is left to pay for.
 */
static bool
is_bitmap_better(TopkState *state, double proposed, double cost, double more, bool gathered)
{
	double		bitmap = bitmap_cost(state);
	double		deep = deep_cost(state, proposed + more);
	double		going_on = more * cost / proposed;
	double		others;
	TopkStrategy all;

	/* another window has all of its lists read, whichever were read before */
	if (state->source->nodes == NULL)
		going_on = more + (more == 0 || gathered ? 0 : deep);
	/* before that is asked for */
	if (cost < bitmap && going_on < bitmap)
		return false;
	TopkExpectSweep(state);
	others = bitmap + Min(all_cost_in_time(state, TopkWantedInAll(state), &all), deep);
	return going_on >= others || (cost >= others && !gathered);
}

/* Where the planner's estimate is a default, let those met by row tell how many pass, and are in the bitmap. */
static void
learn_share(TopkState *state)
{
	double		planned,
				rank;

	if (!state->unsure || state->strategy != TOPK_BY_ROW || TopkHasBitmap(state))
		return;
	planned = floatVal(TopkPlanField(TopkPlan(state), TOPK_PRIVATE_RANK));
	rank = (state->proposed + UNSURE_PASSED * planned) / (state->passed + UNSURE_PASSED);
	rank = Min(Max(1, rank), Max(1, state->table_rows));

	/*
	 * their product stays what it was, so that nothing learned is left when
	 * the bitmap is there
	 */
	state->expected_members *= state->rank_per_row / rank;
	state->bitmap_rows *= state->rank_per_row / rank;
	state->rank_per_row = rank;
}

/*
 * Tell the engine, which has proposed all that it had been told to expect, how many more
 * rows it will take, and how deep it has to go for them.
 */
void
TopkExpectMore(TopkState *state, double bound)
{
	uint32		enough = rows_before_bitmap(state);

	learn_share(state);
	if (state->nearest.count == state->nearest.wanted && state->value)
		state->engine->limit = nextafterf(QvScanSearchDistance(state->engine,
															   state->nearest.rows[0].distance),
										  INFINITY);
	state->engine->rank = TopkNeededRank(state, bound);
	state->asked_for_more = true;
	if (!state->goal.filtered)
		return;
	state->engine->expected =
		Max(state->proposed, proposals_to_come(state, prior_passed(state)));
	state->prepared = Max(state->prepared, state->proposed + state->engine->expected);
	/* would the bitmap be wanted if these did not pass either? */
	state->engine->sample = 0;
	if (state->source->nodes == NULL && state->strategy == TOPK_BY_ROW && state->child &&
		state->passed == 0 && state->proposed < enough &&
		is_bitmap_better(state, enough, Max(enough, search_cost(state)), proposals_after(state, enough, 1 / state->rank_per_row), false))
		state->engine->sample = enough - state->proposed;
}

/*
 * Is the bitmap better than going on by row?  Where none of those met has passed, what the planner
 * expects is most likely wrong.  The rows of lists' first window are paid for.
 */
static bool
wants_bitmap(TopkState *state, bool ended)
{
	bool		known = TopkHasBitmap(state);
	double		proposed = Max(1, state->proposed);
	double		more = state->source->nodes == NULL && !state->asked_for_more ? 0 :
		Max(state->engine->expected, proposals_to_come(state, prior_met(state)));
	bool		gathered = !ended && proposed + more <= state->prepared;

	if (!ended && state->proposed < state->reconsidered)
		return false;
	state->reconsidered = state->proposed + state->proposed / RECONSIDERED + 1;
	if (!is_bitmap_better(state, proposed, search_cost(state), more, gathered))
		return false;
	TopkGetBitmap(state);
	/* it may be much larger than it was expected to be */
	return known || is_bitmap_better(state, proposed, search_cost(state), more, gathered);
}

/*
 * Without another index: has the search by row cost more than reading the whole table
 * would, or will it likely?
 */
static bool
wants_table(const TopkState *state)
{
	double		cost = search_cost(state);
	double		exact = state->table_rows *
		(TABLE_ROW_COST + state->measure_cost * (state->passed + 1) / (state->proposed + 1));

	return cost >= exact ||
		(cost >= exact * TRIAL_SHARE && cost * TopkWantedInAll(state) / (state->passed + 1) > exact);
}

/*
 * Choose another strategy if it takes less than going on, which is to be done when a batch
 * has ended, or pauses; false when this one stays.
 */
bool
TopkSwitches(TopkState *state, bool ended)
{
	TopkStrategy all;

	learn_share(state);
	if (TopkRowsSeen(state) < (state->child && state->strategy == TOPK_BY_ROW ? rows_before_bitmap(state) : MIN_SWITCH))
		return false;
	if (state->child == NULL)
	{
		/*
		 * lists have paid for the rows of a window, wanted or not, before the
		 * first comes
		 */
		if (!state->goal.filtered || state->rules.limited ||
			(state->source->nodes == NULL && !ended) || !wants_table(state))
			return false;
		state->strategy = TOPK_EXACT;
		return true;
	}
	if (state->strategy == TOPK_BY_ROW)
	{
		if (!wants_bitmap(state, ended))
			return false;

		state->strategy = choose_with_bitmap(state, TopkWantedInAll(state),
											 state->proposed + proposals_to_come(state, prior_met(state)));
		return true;
	}

	/*
	 * a sweep has cost what it costs before the first row comes, and the
	 * window of a search of lists
	 */
	if (state->strategy == TOPK_SWEEP || (state->source->nodes == NULL && !ended))
		return false;
	if (!is_dear(state, ended, &all))
		return false;
	state->strategy = all;
	return true;
}

/* ---- what the engine is told ---- */

/*
 * Before a search for members costs much more, ask what it has found.  While it has
 * found too few, every row is looked up whose code is read.
 */
void
TopkSetPause(TopkState *state)
{
	TopkStrategy all;

	state->engine->pause = state->strategy != TOPK_IN_INDEX ? 0 : state->engine->counters.rows +
		(int64) (all_cost_in_time(state, TopkWantedInAll(state), &all) * TRIAL_SHARE / LOOK_COST) + 1;
}

void
TopkSetGoal(TopkState *state, uint32 wanted)
{
	double		rank = expected_rank(state, wanted, CHANCE_SIGMAS);
	double		proposals = Min(expected_rank(state, wanted, WINDOW_SIGMAS),
								state->unsure ? Max(wanted, UNSURE_WINDOW) : wanted * TRUSTED_PASS);

	state->goal.filtered = boolVal(TopkPlanField(TopkPlan(state), TOPK_PRIVATE_FILTERED));
	state->goal.rows = state->source->nodes && state->goal.filtered ? Max(LEAST_PAGE, wanted) : wanted;
	state->goal.only = NULL;
	state->goal.sweep = state->strategy == TOPK_SWEEP;
	state->goal.known_only = state->goal.sweep && sweeps_known_only(state, wanted);
	if (state->strategy == TOPK_IN_INDEX || state->strategy == TOPK_SWEEP)
	{
		/* conditions that the bitmap does not know of */
		double		more = rank * state->expected_members / Max(1, state->table_rows);

		state->goal.only = state->set;
		proposals = Max(wanted, Min(more, proposals));
	}
	state->goal.proposals = Min(proposals, PG_INT32_MAX);
	state->goal.rank = Min(Max(proposals, Min(rank, wanted * TRUSTED_PASS)), PG_INT32_MAX);
}
