/*
 * search.c
 *		Finding the rows of a top-k scan; see src/topk/README.md, "Executor".
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "access/htup_details.h"
#include "access/tableam.h"
#include "compat.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "topk/state.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Rows wanted at first when the query does not say. */
#define DEFAULT_ROWS 100

/*
 * So many rows decide at least how deep a graph is searched, and whether members are found
 * soon enough: then the first pages by LIMIT and OFFSET fit together.
 */
#define LEAST_PAGE 10

/* The next round wants so many times the rows of the last. */
#define ROUND_GROWTH 4

/* Tuples up to this size are kept until they are returned; others are fetched again. */
#define MAX_COPY 2048

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

/* Rows proposed before anything else is thought of. */
#define MIN_SWITCH 100

/* Of the cost of measuring all members, what a search may take to show how it goes. */
#define TRIAL_SHARE 0.1

/*
 * What things cost, in fetches of a row with the test of its conditions
 * (src/topk/README.md, "Choice"): a member of the bitmap and the set; a search of lists, for
 * each row nearer than the last one wanted; and what an engine counts.
 */
#define MEMBER_COST 0.2
#define RANK_COST 1.0
#define NODE_COST 2.0
#define RECORD_COST 0.4
#define TEST_COST 0.02
#define CODE_COST 0.02

/* A row of a list that is looked up, too. */
#define LOOK_COST (CODE_COST + TEST_COST)

/* A row of the table, when all are read in order. */
#define TABLE_ROW_COST 0.5

/* Of a sweep: a page of the index, a row looked up, and a member measured. */
#define SWEEP_PAGE_COST 0.12
#define SWEEP_ROW_COST 0.035
#define SWEEP_MEMBER_COST 0.2

/*
 * A member whose node is known from an earlier sweep; and how many times a search looking at
 * all may cost the first time, where it would cost less from then on.
 */
#define KNOWN_MEMBER_COST 0.5
#define LEARNING_COST 3.0

/* ---- rows ---- */

/* Was the row returned, or should it have been, before the rows of this round? */
static bool
is_late(const TopkState *state, const TopkRow *row)
{
	if (state->returned_before == 0 || row->distance > state->last_distance)
		return false;
	if (row->distance < state->last_distance)
		return true;
	return TopkTidsHas(state->ties, (ItemPointer) &row->tid);
}

/* Keep a copy of the row fetched while there is room. */
static HeapTuple
copy_row(TopkState *state)
{
	MemoryContext old;
	HeapTuple	tuple;
	bool		copied;

	if (MemoryContextMemAllocated(state->nearest.context, false) >= (Size) work_mem * 1024)
		return NULL;
	tuple = ExecFetchSlotHeapTuple(state->rows->slot, false, &copied);
	Assert(!copied);
	if (tuple->t_len > MAX_COPY)
		return NULL;
	old = MemoryContextSwitchTo(state->nearest.context);
	tuple = heap_copytuple(tuple);
	MemoryContextSwitchTo(old);
	return tuple;
}

/* Test a row that the index calls tid, measure it, and keep it if it is near enough. */
static void
take_row(TopkState *state, ItemPointer tid)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	TupleTableSlot *slot = state->rows->slot;
	TopkRow		row = {.tid = *tid};

	CHECK_FOR_INTERRUPTS();
	if (!RowFetch(state->rows, tid, state->css.ss.ps.state->es_snapshot))
		return;
	state->counters.fetched++;
	pgstat_count_heap_fetch(state->index);
	if (state->qual)
	{
		ResetExprContext(econtext);
		econtext->ecxt_scantuple = slot;
		if (!ExecQual(state->qual, econtext))
		{
			InstrCountFiltered1(&state->css.ss, 1);
			ExecClearTuple(slot);
			return;
		}
	}
	state->passed++;
	state->counters.measured++;
	/* in no index, or returned in an earlier round */
	if (RowDistance(state->rows, state->value, &row.distance) && !is_late(state, &row))
	{
		HeapTuple  *place = TopkNearestOffer(&state->nearest, row.distance, tid);

		if (place)
			*place = copy_row(state);
	}
	ExecClearTuple(slot);
}

/* ---- the bitmap ---- */

typedef struct BitmapSize
{
	int64		members;
	BlockNumber blocks;
	BlockNumber lossy;			/* of these, those whose rows are not known */
	OffsetNumber max_offset;
} BitmapSize;

static void
measure_bitmap(TIDBitmap *bitmap, BitmapSize *size)
{
	QvBitmapIterator *iterator = QvBitmapBegin(bitmap);
	QvBitmapBlock block;
	OffsetNumber offsets[MaxHeapTuplesPerPage];

	memset(size, 0, sizeof(*size));
	while (QvBitmapNext(iterator, &block))
	{
		bool		lossy = QvBitmapIsLossy(&block);
		int			n = lossy ? MaxHeapTuplesPerPage :
			QvBitmapOffsets(&block, offsets, MaxHeapTuplesPerPage);

		size->members += n;
		size->blocks++;
		size->lossy += lossy;
		/* offsets are in order */
		if (n > 0)
			size->max_offset = Max(size->max_offset, lossy ? n : offsets[n - 1]);
	}
	QvBitmapEnd(iterator);
}

/* What does a sweep take now?  What the backend knows changes from search to search. */
static void
ask_of_sweep(TopkState *state)
{
	state->sweep = (KnnSweep) {0};
	if (state->sweepable)
		state->source->sweep(state->index, &state->sweep);
}

/* Have the bitmap, and with it the number of its rows. */
static void
get_bitmap(TopkState *state)
{
	Node	   *result;
	BitmapSize	size;
	MemoryContext old;

	if (state->bitmap)
		return;
	result = MultiExecProcNode(state->child);
	if (!IsA(result, TIDBitmap))
		elog(ERROR, "unrecognized result from subplan");
	state->bitmap = (TIDBitmap *) result;
	measure_bitmap(state->bitmap, &size);
	/* the estimate was off by so much */
	state->rank_per_row *= state->expected_members / Max(1, size.members);
	state->expected_members = size.members;
	MemoryContextReset(state->set_context);
	old = MemoryContextSwitchTo(state->set_context);
	state->set = QvTidSetCreate(RelationGetNumberOfBlocks(state->css.ss.ss_currentRelation),
								size.blocks, size.max_offset, (Size) work_mem * 1024);
	MemoryContextSwitchTo(old);
	if (state->set)
	{
		QvBitmapIterator *iterator = QvBitmapBegin(state->bitmap);
		QvBitmapBlock block;
		OffsetNumber offsets[MaxHeapTuplesPerPage];

		while (QvBitmapNext(iterator, &block))
		{
			if (QvBitmapIsLossy(&block))
				QvTidSetAdd(state->set, block.blockno, NULL, 0);
			else
				QvTidSetAdd(state->set, block.blockno, offsets,
							QvBitmapOffsets(&block, offsets, MaxHeapTuplesPerPage));
		}
		QvBitmapEnd(iterator);
	}
	/* of rows that the set only seems to have too many would be proposed */
	state->sweepable = state->set && state->set->words > 0 && size.lossy == 0 && state->source->sweep;
	ask_of_sweep(state);
}

/* Measure every row of the bitmap. */
static void
measure_members(TopkState *state)
{
	QvBitmapIterator *iterator;
	QvBitmapBlock block;
	OffsetNumber offsets[MaxHeapTuplesPerPage];

	state->counters.ran[TOPK_EXACT] = true;
	get_bitmap(state);
	iterator = QvBitmapBegin(state->bitmap);
	while (QvBitmapNext(iterator, &block))
	{
		bool		lossy = QvBitmapIsLossy(&block);
		int			n = lossy ? MaxHeapTuplesPerPage :
			QvBitmapOffsets(&block, offsets, MaxHeapTuplesPerPage);

		state->counters.lossy_pages += lossy;
		for (int i = 0; i < n; i++)
		{
			ItemPointerData tid;

			/* of a lossy page: what is no start of a chain gives no row */
			ItemPointerSet(&tid, block.blockno, lossy ? FirstOffsetNumber + i : offsets[i]);
			take_row(state, &tid);
		}
	}
	QvBitmapEnd(iterator);
}

/* Lines of a page of the table. */
static OffsetNumber
page_lines(Relation table, BlockNumber block)
{
	Buffer		buf = ReadBuffer(table, block);
	OffsetNumber lines;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	lines = PageGetMaxOffsetNumber(BufferGetPage(buf));
	UnlockReleaseBuffer(buf);
	return lines;
}

/* Measure every row of the table that passes: no other index knows which do. */
static void
measure_table(TopkState *state)
{
	Relation	table = state->css.ss.ss_currentRelation;
	BlockNumber nblocks = RelationGetNumberOfBlocks(table);

	state->counters.ran[TOPK_EXACT] = true;
	for (BlockNumber block = 0; block < nblocks; block++)
	{
		OffsetNumber lines = page_lines(table, block);

		for (OffsetNumber line = FirstOffsetNumber; line <= lines; line++)
		{
			ItemPointerData tid;

			/* what is no start of a chain gives no row */
			ItemPointerSet(&tid, block, line);
			take_row(state, &tid);
		}
	}
}

/* ---- choice ---- */

/* Rows wanted in this round and returned before it: those are found again. */
static uint32
wanted_in_all(const TopkState *state)
{
	return Min(state->nearest.wanted + state->returned_before, PG_INT32_MAX);
}

/* What the ways to look at all rows of the bitmap cost. */
typedef struct AllCosts
{
	double		exact;			/* by reading them, and measuring those that
								 * pass */
	bool		can_sweep;
	double		sweep;			/* by the codes of all nodes, and reading
								 * those that may be nearest */
	double		known;			/* likewise, of those known to have them */
	double		learned;		/* and if all were known */
} AllCosts;

static void
cost_all(const TopkState *state, uint32 wanted, AllCosts *costs)
{
	const KnnSweep *sweep = &state->sweep;
	double		members = state->expected_members;
	double		passing = Max(Max(1, members / TRUSTED_PASS),
							  Min(members, state->table_rows / state->rank_per_row));
	double		fetched = wanted * (members / passing + state->measure_cost);

	costs->exact = members + passing * state->measure_cost;
	costs->can_sweep = sweep->pages > 0 && wanted <= sweep->kept && state->value;
	costs->sweep = sweep->pages * SWEEP_PAGE_COST + state->table_rows * SWEEP_ROW_COST +
		members * SWEEP_MEMBER_COST + fetched;
	costs->learned = fetched + members * KNOWN_MEMBER_COST;
	costs->known = fetched + members *
		(sweep->known * KNOWN_MEMBER_COST + (1 - sweep->known) * (1 + state->measure_cost));
}

/*
 * What it costs to look at all rows of the bitmap, when there is one, and the way to do it.
 *
 * The ways find the same rows, so what a backend has met may choose between them.  But not
 * between them and a search, which may find others: so it does not count in the cost.
 */
static double
all_cost(const TopkState *state, uint32 wanted, TopkStrategy *strategy)
{
	AllCosts	costs;
	bool		sweeps;

	cost_all(state, wanted, &costs);
	sweeps = costs.sweep < costs.exact ||
		(state->sweep.known > 0 ? costs.known < costs.exact :
		 state->sweep.learns && state->sweep.spent >= costs.sweep);
	*strategy = costs.can_sweep && sweeps ? TOPK_SWEEP : TOPK_EXACT;
	return costs.can_sweep ? Min(costs.sweep, costs.exact) : costs.exact;
}

/*
 * Is looking at all rows of the bitmap better than a search that is expected to cost so much?
 * Also where it would be if it were known where they are: it will be, and whether it is does
 * not count, as above.
 */
static bool
is_all_better(const TopkState *state, uint32 wanted, double search)
{
	TopkStrategy all;
	double		others = all_cost(state, wanted, &all);
	AllCosts	costs;

	if (others <= search)
		return true;
	cost_all(state, wanted, &costs);
	return costs.can_sweep && state->sweep.learns && others <= search * LEARNING_COST &&
		costs.learned <= search;
}

/* Is a sweep worth it only because it is known where the rows are? */
static bool
sweeps_known_only(const TopkState *state, uint32 wanted)
{
	AllCosts	costs;

	cost_all(state, wanted, &costs);
	return state->sweep.known > 0 && costs.exact <= costs.sweep;
}

/* Let the engine know what that has cost, where a sweep would have taught it something. */
static void
note_exact(const TopkState *state, uint32 wanted)
{
	AllCosts	costs;

	cost_all(state, wanted, &costs);
	if (costs.can_sweep)
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
	return state->source->nodes == NULL ? rank * RANK_COST :
		state->source->nodes(state->index, rank) * NODE_COST + rank * TEST_COST;
}

/* The best of the ways with the bitmap that there is. */
static TopkStrategy
choose_with_bitmap(const TopkState *state, uint32 wanted)
{
	TopkStrategy all;
	double		others = all_cost(state, wanted, &all);

	if (state->expected_members <= EXACT_ROWS || state->set == NULL)
		return TOPK_EXACT;

	/*
	 * members may be near: a look costs little where the first batch is for a
	 * few rows
	 */
	if (state->source->nodes && deep_cost(state, wanted) <= others * TRIAL_SHARE)
		return TOPK_IN_INDEX;
	return is_all_better(state, wanted, deep_cost(state, expected_rank(state, wanted, CHANCE_SIGMAS))) ?
		all : TOPK_IN_INDEX;
}

/* Have the bitmap if it is likely worth it, and choose how to begin. */
static TopkStrategy
choose_first(TopkState *state, uint32 wanted)
{
	double		rank = expected_rank(state, wanted, CHANCE_SIGMAS);
	double		bitmap = state->expected_members * MEMBER_COST;
	TopkStrategy all;

	if (state->child == NULL)
		return TOPK_BY_ROW;
	if (state->bitmap == NULL && state->expected_members > EXACT_ROWS && rank <= bitmap &&
		deep_cost(state, rank) + rank <= all_cost(state, wanted, &all) + bitmap)
		return TOPK_BY_ROW;
	get_bitmap(state);
	return choose_with_bitmap(state, wanted);
}

/* Rows that the engine has looked at, whether or not they were members. */
static int64
rows_seen(const TopkState *state)
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
	double		others = all_cost(state, wanted_in_all(state), all);
	int64		members = state->engine->counters.members - state->before.members;
	double		shares = (double) Max(LEAST_PAGE, wanted_in_all(state)) / (members + 1);

	if (cost < others * TRIAL_SHARE)
		return false;
	if (state->source->nodes == NULL)
		return are_lists_dear(state, cost, shares, others);

	/*
	 * a graph's batches are short, and it takes more than their share for
	 * each rank
	 */
	return cost >= others ||
		(ended && is_all_better(state, wanted_in_all(state), deep_cost(state, rows_seen(state) * shares)));
}

/*
 * The rank among all rows that the last one wanted has, if it is found: as many passed of
 * those before.  Of rows within a distance, when bound is beyond it, it is their number.
 * Of a graph nodes count, since one may have many rows.
 */
static double
needed_rank(const TopkState *state, double bound)
{
	const QvScan *engine = state->engine;
	double		seen = engine->taken > 0 ? engine->taken : rows_seen(state);
	double		wanted = wanted_in_all(state);

	if (engine->follows)
		wanted = Max(LEAST_PAGE, wanted);
	return bound > state->limit_distance ? seen : seen / Max(1, state->passed) * wanted;
}

/*
 * Has the search been deep enough for rows up to that rank and distance?  Deep as for so
 * many, or for less, but all that is nearer is settled.
 */
static bool
is_deep(const TopkState *state, double rank, double distance)
{
	const QvScan *engine = state->engine;

	return rank <= engine->depth ||
		(engine->follows && rank <= engine->reach &&
		 distance <= QvScanDistance(engine, engine->settled));
}

/*
 * Tell the engine, which has proposed all that it had been told to expect, how many more
 * rows it will take, and how deep it has to go for them.
 */
static void
expect_more(TopkState *state, double bound)
{
	double		missing = state->nearest.wanted - Min(state->nearest.count, state->nearest.wanted - 1);

	if (state->nearest.count == state->nearest.wanted && state->value)
		state->engine->limit = nextafterf(QvScanSearchDistance(state->engine,
															   state->nearest.rows[0].distance),
										  INFINITY);
	state->engine->rank = needed_rank(state, bound);
	if (state->goal.filtered)
	{
		double		prior = Min(PRIOR_PASSED, PRIOR_ROWS / state->rank_per_row);

		state->engine->expected = Max(state->proposed, (missing + WINDOW_SIGMAS * sqrt(missing)) *
									  (state->proposed + prior * state->rank_per_row) /
									  (state->passed + prior));
	}
}

/* Has the search by row cost more than the bitmap would, or will it soon? */
static bool
wants_bitmap(TopkState *state)
{
	bool		known = state->bitmap != NULL;
	double		cost = search_cost(state) + state->engine->expected;

	if (cost < state->expected_members * MEMBER_COST)
		return false;
	get_bitmap(state);
	/* it may be much larger than it was expected to be */
	return known || cost >= state->expected_members * MEMBER_COST;
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
		(cost >= exact * TRIAL_SHARE && cost * wanted_in_all(state) / (state->passed + 1) > exact);
}

/*
 * Choose another strategy if it takes less than going on, which is to be done when a batch
 * has ended, or pauses; false when this one stays.
 */
static bool
switches(TopkState *state, bool ended)
{
	TopkStrategy all;

	if (rows_seen(state) < MIN_SWITCH)
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
		if (!wants_bitmap(state))
			return false;
		state->strategy = choose_with_bitmap(state, wanted_in_all(state));
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

/* ---- strategies by the engine ---- */

/*
 * Before a search for members costs much more, ask what it has found.  While it has
 * found too few, every row is looked up whose code is read.
 */
static void
set_pause(TopkState *state)
{
	TopkStrategy all;

	state->engine->pause = state->strategy != TOPK_IN_INDEX ? 0 : state->engine->counters.rows +
		(int64) (all_cost(state, wanted_in_all(state), &all) * TRIAL_SHARE / LOOK_COST) + 1;
}

static void
start_engine(TopkState *state)
{
	state->before = state->engine->counters;
	set_pause(state);
	state->engine->expected = 0;
	state->proposed = state->passed = 0;
	state->source->start(state->engine, state->index, state->value, &state->goal, &state->rules);
}

/* Begin the engine's search for so many rows. */
static void
start_search(TopkState *state, uint32 wanted)
{
	double		rank = expected_rank(state, wanted, CHANCE_SIGMAS);
	double		proposals = Min(expected_rank(state, wanted, WINDOW_SIGMAS), wanted * TRUSTED_PASS);

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
	start_engine(state);
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
	return is_deep(state, needed_rank(state, -INFINITY), farthest) ||
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
	if (!state->rules.iterative || rows_seen(state) >= most)
		return false;
	more = state->engine->ops->resume(state->engine);
	state->engine->expected = 0;
	return more;
}

/* Can none of the rows to come, not nearer than bound, be among those wanted? */
static bool
is_beyond(const TopkState *state, double bound)
{
	if (bound > state->limit_distance)
		return true;
	/* damaged factors give no number: the row itself will tell */
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
		is_deep(state, needed_rank(state, bound), bound);
}

/* At the end of a batch: is all that it could still find too far? */
static bool
is_out_of_reach(const TopkState *state)
{
	const QvScan *engine = state->engine;

	return (isfinite(state->counters.bound) && state->counters.bound > state->limit_distance) ||
		(engine->follows && QvScanDistance(engine, engine->settled) > state->limit_distance &&
		 is_deep(state, needed_rank(state, INFINITY), -INFINITY));
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
	start_search(state, wanted);
	for (;;)
	{
		QvCandidate candidate;
		bool		beyond = false;
		QvScanStep	step = state->engine->ops->next(state->engine, &candidate);

		CHECK_FOR_INTERRUPTS();
		if (step == QV_SCAN_PAUSE)
		{
			if (switches(state, true))
				return false;
			set_pause(state);
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
			for (int i = 0; i < candidate.ntids; i++)
				take_row(state, &candidate.tids[i]);
			state->proposed += candidate.ntids;
			state->counters.proposed += candidate.ntids;
		}
		else
			expect_more(state, -INFINITY);
		if (beyond)
			expect_more(state, state->counters.bound);
		if (switches(state, step != QV_SCAN_CANDIDATE || beyond))
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
			rows = DEFAULT_ROWS;
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

static void
run_round(TopkState *state, uint32 wanted)
{
	if (state->limit_distance == -INFINITY)
	{
		/* no row will do */
		TopkNearestReset(&state->nearest, 1);
		state->returned = 0;
		state->counters.last = state->counters.bound = INFINITY;
		return;
	}
	wanted = Min(wanted, most_rows());
	state->counters.rounds++;
	state->counters.bound = INFINITY;
	TopkNearestReset(&state->nearest, wanted);
	state->returned = 0;
	wanted = wanted_in_all(state);
	while (state->strategy != TOPK_EXACT && !search_by_engine(state, wanted))
		;
	if (state->strategy == TOPK_EXACT)
	{
		state->counters.bound = INFINITY;
		if (state->child)
		{
			measure_members(state);
			note_exact(state, wanted);
		}
		else
			measure_table(state);
	}
	/* no page stays pinned */
	RowReleasePages(state->rows);
	QvTestForOldSnapshot(state->css.ss.ps.state->es_snapshot, state->index);
	TopkNearestSort(&state->nearest);
	state->counters.last = state->nearest.count > 0 ?
		state->nearest.rows[state->nearest.count - 1].distance : INFINITY;
}

void
TopkNextRound(TopkState *state)
{
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
	state->started = true;
	state->returned_before = 0;
	state->last_distance = NAN;
	TopkTidsReset(&state->ties, estate->es_query_cxt);
	state->limit_distance = eval_radius(state);
	wanted = wanted_rows(state);
	ask_of_sweep(state);
	state->strategy = state->limit_distance == -INFINITY ? TOPK_BY_ROW :
		choose_first(state, wanted);
	if (state->strategy == TOPK_EXACT && state->value)
		check_dims(state);
	run_round(state, wanted);
}
