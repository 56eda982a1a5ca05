/*
 * exec.c
 *		Executing the top-k scan; see src/topk/README.md, "Executor".
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "am/access_methods.h"
#include "am/opclass.h"
#include "am/row_reader.h"
#include "compat.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "pgstat.h"
#include "storage/predicate.h"
#include "topk/nearest.h"
#include "topk/topk.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/snapmgr.h"

/* Rows wanted at first when the query does not say. */
#define DEFAULT_ROWS 100

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
#define TRUSTED_PASS 8.0

/* Rows proposed before anything else is thought of. */
#define MIN_SWITCH 1000

/* How rows are found. */
typedef enum TopkStrategy
{
	TOPK_BY_ROW,				/* the index proposes, conditions are tested
								 * on the row */
	TOPK_EXACT					/* every row of the bitmap is measured */
} TopkStrategy;

typedef struct TopkCounters
{
	int64		rounds;
	int64		proposed;		/* heap TIDs */
	int64		fetched;		/* rows that are visible */
	int64		measured;
	int64		lossy_pages;
	bool		ran[TOPK_EXACT + 1];
} TopkCounters;

typedef struct TopkState
{
	CustomScanState css;

	/* of the plan */
	Relation	index;			/* and what follows: not when it is only
								 * explained */
	const KnnScanSource *source;
	QvOpclassInfo opclass;
	ExprState  *query;
	ExprState  *limit;
	ExprState  *offset;
	ExprState  *qual;			/* all conditions of the relation */
	PlanState  *child;			/* gives the bitmap; NULL: none */
	double		expected_fetches;
	double		expected_members;	/* known once there is a bitmap */

	/* of a search */
	MemoryContext context;		/* of the value and the engine */
	RowReader  *rows;
	QvScan	   *engine;
	KnnGoal		goal;
	KnnScanRules rules;
	const void *value;			/* searched for; NULL: any order */
	TIDBitmap  *bitmap;			/* kept from search to search while it is the
								 * same */
	TopkNearest nearest;
	TopkStrategy strategy;
	bool		started;
	bool		resumed;		/* the engine's first batch is over */
	int64		proposed;		/* by the engine, in this round */
	uint32		returned;		/* of the rows of this round */
	bool		any_returned;
	double		last_distance;	/* of the row returned last, in any round */
	ItemPointerData *ties;		/* returned at that distance */
	int			nties;
	int			max_ties;
	TopkCounters counters;
} TopkState;

#define PrivateField(scan, field) list_nth((scan)->custom_private, field)

/* ---- rows ---- */

/* Was the row returned, or should it have been, before the rows of this round? */
static bool
is_late(const TopkState *state, const TopkRow *row)
{
	if (!state->any_returned || row->distance > state->last_distance)
		return false;
	if (row->distance < state->last_distance)
		return true;
	for (int i = 0; i < state->nties; i++)
		if (ItemPointerEquals((ItemPointer) &state->ties[i], (ItemPointer) &row->tid))
			return true;
	return false;
}

/* Take note of a row that is returned. */
static void
note_returned(TopkState *state, const TopkRow *row)
{
	if (!state->any_returned || row->distance != state->last_distance)
		state->nties = 0;
	if (state->ties == NULL)
	{
		state->max_ties = 16;
		state->ties = MemoryContextAlloc(state->css.ss.ps.state->es_query_cxt,
										 state->max_ties * sizeof(ItemPointerData));
	}
	else if (state->nties == state->max_ties)
	{
		state->max_ties *= 2;
		state->ties = repalloc_huge(state->ties, state->max_ties * sizeof(ItemPointerData));
	}
	state->ties[state->nties++] = row->tid;
	state->last_distance = row->distance;
	state->any_returned = true;
}

/* Test a row that the index calls tid, measure it, and keep it if it is near enough. */
static void
take_row(TopkState *state, ItemPointer tid)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	TupleTableSlot *slot = state->rows->slot;
	HeapTuple  *place;
	TopkRow		row = {.tid = *tid};

	CHECK_FOR_INTERRUPTS();
	if (!RowFetch(state->rows, tid, state->css.ss.ps.state->es_snapshot))
		return;
	state->counters.fetched++;
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
	state->counters.measured++;
	/* in no index, or returned in an earlier round */
	if (!RowDistance(state->rows, state->value, &row.distance) ||
		is_late(state, &row))
		place = NULL;
	else
		place = TopkNearestOffer(&state->nearest, row.distance, tid);
	if (place && MemoryContextMemAllocated(state->nearest.context, false) < (Size) work_mem * 1024)
	{
		MemoryContext old = MemoryContextSwitchTo(state->nearest.context);

		*place = ExecCopySlotHeapTuple(slot);
		MemoryContextSwitchTo(old);
		if ((*place)->t_len > MAX_COPY)
		{
			heap_freetuple(*place);
			*place = NULL;
		}
	}
	ExecClearTuple(slot);
}

/* ---- strategies ---- */

static void
start_engine(TopkState *state)
{
	state->source->start(state->engine, state->value, &state->goal, &state->rules);
	state->resumed = false;
}

static int64
count_members(TIDBitmap *bitmap)
{
	QvBitmapIterator *iterator = QvBitmapBegin(bitmap);
	QvBitmapBlock block;
	OffsetNumber offsets[MaxHeapTuplesPerPage];
	int64		n = 0;

	while (QvBitmapNext(iterator, &block))
		n += QvBitmapIsLossy(&block) ? MaxHeapTuplesPerPage :
			QvBitmapOffsets(&block, offsets, MaxHeapTuplesPerPage);
	QvBitmapEnd(iterator);
	return n;
}

/* Have the bitmap, and say how many rows it has. */
static int64
get_bitmap(TopkState *state)
{
	if (state->bitmap == NULL)
	{
		Node	   *result = MultiExecProcNode(state->child);

		if (!IsA(result, TIDBitmap))
			elog(ERROR, "unrecognized result from subplan");
		state->bitmap = (TIDBitmap *) result;
		state->expected_members = count_members(state->bitmap);
	}
	return state->expected_members;
}

/* Measure every row of the bitmap. */
static void
measure_members(TopkState *state)
{
	QvBitmapIterator *iterator;
	QvBitmapBlock block;
	OffsetNumber offsets[MaxHeapTuplesPerPage];

	state->counters.ran[TOPK_EXACT] = true;
	(void) get_bitmap(state);
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

/*
 * Have more been proposed than measuring all rows of the bitmap would take?  Then that
 * costs no more than has been spent (renting against buying).
 */
static bool
wants_exact(TopkState *state)
{
	if (state->child == NULL || state->proposed < MIN_SWITCH ||
		state->proposed < state->expected_members)
		return false;
	/* now it is worth to know how many they really are */
	return state->proposed >= get_bitmap(state);
}

/*
 * Is the end of a batch the end of the round?  In strict order, what a resumed search
 * finds must not be nearer than what is returned.
 */
static bool
is_enough(const TopkState *state, double bound)
{
	if (state->nearest.count < state->nearest.wanted)
		return false;
	return !state->resumed || !state->rules.strict ||
		state->nearest.rows[0].distance <= QvScanDistance(state->engine, bound);
}

/* Go on after the end of a batch; false when nothing can come. */
static bool
search_on(TopkState *state)
{
	if (!state->rules.iterative || state->proposed >= state->rules.max_tuples)
		return false;
	if (!state->goal.filtered)
	{
		/* the engine was told that all rows would do: some were not visible */
		state->goal.filtered = true;
		state->proposed = 0;
		start_engine(state);
		return true;
	}
	state->resumed = true;
	return state->engine->ops->resume(state->engine);
}

/*
 * Let the engine propose rows, nearest first, until none to come can be among the k
 * nearest.  False when measuring the members of the bitmap takes less.
 */
static bool
search_by_row(TopkState *state)
{
	double		certainty;
	double		bound;

	state->counters.ran[TOPK_BY_ROW] = true;
	start_engine(state);
	certainty = QvCandidateCertainty(state->engine->dims);
	for (;;)
	{
		QvCandidate candidate;
		QvScanStep	step = state->engine->ops->next(state->engine, &candidate);

		CHECK_FOR_INTERRUPTS();
		if (step == QV_SCAN_END)
		{
			if (is_enough(state, candidate.distance))
				return true;
			if (wants_exact(state))
				return false;
			if (!search_on(state))
				return true;
			continue;
		}
		bound = QvScanDistance(state->engine,
							   candidate.distance - candidate.error * certainty);
		/* damaged factors give no number: the row itself will tell */
		if (state->nearest.count == state->nearest.wanted &&
			(state->value == NULL || bound >= state->nearest.rows[0].distance))
			return true;
		if (step == QV_SCAN_BOUND)
			continue;
		for (int i = 0; i < candidate.ntids; i++)
			take_row(state, &candidate.tids[i]);
		state->proposed += candidate.ntids;
		state->counters.proposed += candidate.ntids;
		if (wants_exact(state))
			return false;
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
	CustomScan *scan = (CustomScan *) state->css.ss.ps.plan;
	int64		rows = intVal(PrivateField(scan, TOPK_PRIVATE_ROWS));

	if (rows == 0)
	{
		rows = eval_int8(state, state->limit, -1);
		if (rows < 0)
			rows = DEFAULT_ROWS;
		rows = Min(rows, PG_INT32_MAX / 2) + Min(eval_int8(state, state->offset, 0), PG_INT32_MAX / 2);
	}
	return Max(1, rows);
}

/* So many rows fit into the memory of a scan. */
static uint32
most_rows(void)
{
	return Min(PG_INT32_MAX / 2, Max(64, (Size) work_mem * 1024 / (sizeof(TopkRow) + 256)));
}

static void
run_round(TopkState *state, uint32 wanted)
{
	double		pass = Max(1, state->expected_fetches) /
		Max(1, intVal(PrivateField((CustomScan *) state->css.ss.ps.plan, TOPK_PRIVATE_ROWS)));

	state->counters.rounds++;
	TopkNearestReset(&state->nearest, Min(wanted, most_rows()));
	state->proposed = 0;
	state->returned = 0;
	state->goal.rows = wanted;
	state->goal.proposals = Min(wanted * Min(pass, TRUSTED_PASS), PG_INT32_MAX);
	state->goal.filtered = state->qual != NULL;
	if (state->strategy == TOPK_BY_ROW && !search_by_row(state))
		state->strategy = TOPK_EXACT;
	if (state->strategy == TOPK_EXACT)
		measure_members(state);
	/* no page stays pinned */
	table_index_fetch_reset(state->rows->fetch);
	TopkNearestSort(&state->nearest);
}

/* Are the rows of the bitmap, or those expected in it, few enough to measure them all? */
static bool
are_few(const TopkState *state, uint32 wanted)
{
	bool		known = intVal(PrivateField((CustomScan *) state->css.ss.ps.plan, TOPK_PRIVATE_ROWS)) > 0;

	return state->expected_members <=
		Max(EXACT_ROWS, state->expected_fetches * (known ? 1 : wanted));
}

static void
start_search(TopkState *state)
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
	state->any_returned = false;
	wanted = wanted_rows(state);
	state->strategy = TOPK_BY_ROW;
	if (state->child && are_few(state, wanted))
	{
		/* the plan's guess may be wrong: now it is known */
		(void) get_bitmap(state);
		if (are_few(state, wanted))
		{
			state->strategy = TOPK_EXACT;
			/* the engine looks at the value's dimensions */
			state->goal.rows = state->goal.proposals = 1;
			state->goal.filtered = false;
			start_engine(state);
		}
	}
	run_round(state, wanted);
}

/* Show a row that was found in the scan's slot. */
static bool
show_row(TopkState *state, const TopkRow *row)
{
	ScanState  *ss = &state->css.ss;
	TupleTableSlot *slot = ss->ss_ScanTupleSlot;
	ItemPointerData tid = row->tid;

	if (row->tuple)
	{
		ExecForceStoreHeapTuple(row->tuple, slot, false);
		slot->tts_tid = row->tuple->t_self;
		slot->tts_tableOid = RelationGetRelid(ss->ss_currentRelation);
		return true;
	}
	if (!RowFetch(state->rows, &tid, ss->ps.state->es_snapshot))
		return false;
	ExecCopySlot(slot, state->rows->slot);
	slot->tts_tableOid = RelationGetRelid(ss->ss_currentRelation);
	ExecClearTuple(state->rows->slot);
	return true;
}

static TupleTableSlot *
topk_next(ScanState *ss)
{
	TopkState  *state = (TopkState *) ss;

	if (!state->started)
		start_search(state);
	for (;;)
	{
		while (state->returned < state->nearest.count)
		{
			const TopkRow *row = &state->nearest.rows[state->returned++];

			note_returned(state, row);
			if (show_row(state, row))
				return ss->ss_ScanTupleSlot;
		}
		if (state->nearest.count < state->nearest.wanted)
			return ExecClearTuple(ss->ss_ScanTupleSlot);
		run_round(state, Min((uint64) state->nearest.wanted * ROUND_GROWTH, PG_INT32_MAX));
	}
}

/* In an EvalPlanQual estate the node's own condition is tested by ExecScan(). */
static bool
topk_recheck(ScanState *ss, TupleTableSlot *slot)
{
	return true;
}

/* ---- the node ---- */

static TupleTableSlot *
topk_exec(CustomScanState *css)
{
	return ExecScan(&css->ss, topk_next, topk_recheck);
}

static void
topk_begin(CustomScanState *css, EState *estate, int eflags)
{
	TopkState  *state = (TopkState *) css;
	CustomScan *scan = (CustomScan *) css->ss.ps.plan;
	Relation	heap = css->ss.ss_currentRelation;
	Oid			index = (Oid) intVal(PrivateField(scan, TOPK_PRIVATE_INDEX));

	/* rows are the table's: the server has made all of this for virtual ones */
	ExecInitScanTupleSlot(estate, &css->ss, RelationGetDescr(heap), table_slot_callbacks(heap));
	ExecAssignScanProjectionInfo(&css->ss);
	state->qual = ExecInitQual(scan->scan.plan.qual, &css->ss.ps);
	css->ss.ps.qual = estate->es_epq_active ? state->qual : NULL;
	state->query = ExecInitExpr(list_nth(scan->custom_exprs, TOPK_EXPR_QUERY), &css->ss.ps);
	state->limit = ExecInitExpr(list_nth(scan->custom_exprs, TOPK_EXPR_LIMIT), &css->ss.ps);
	state->offset = ExecInitExpr(list_nth(scan->custom_exprs, TOPK_EXPR_OFFSET), &css->ss.ps);
	state->expected_fetches = floatVal(PrivateField(scan, TOPK_PRIVATE_FETCHES));
	state->expected_members = floatVal(PrivateField(scan, TOPK_PRIVATE_MEMBERS));
	if (scan->custom_plans != NIL)
	{
		state->child = ExecInitNode(linitial(scan->custom_plans), estate,
									eflags & ~(EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK));
		css->custom_ps = list_make1(state->child);
	}
	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	state->index = index_open(index, exec_rt_fetch(scan->scan.scanrelid, estate)->rellockmode);
	state->source = KnnAccessMethodOf(state->index->rd_indam->amcostestimate)->scans;
	QvGetOpclass(state->index, &state->opclass);
	state->context = AllocSetContextCreate(estate->es_query_cxt, "quiver top-k search",
										   ALLOCSET_SMALL_SIZES);
	state->nearest.context = AllocSetContextCreate(estate->es_query_cxt, "quiver top-k rows",
												   ALLOCSET_DEFAULT_SIZES);
}

static void
topk_rescan(CustomScanState *css)
{
	TopkState  *state = (TopkState *) css;

	ExecScanReScan(&css->ss);
	state->started = false;
	if (state->child == NULL)
		return;
	if (css->ss.ps.chgParam)
		UpdateChangedParamSet(state->child, css->ss.ps.chgParam);
	if (state->child->chgParam && state->bitmap)
	{
		tbm_free(state->bitmap);
		state->bitmap = NULL;
		state->expected_members =
			floatVal(PrivateField((CustomScan *) css->ss.ps.plan, TOPK_PRIVATE_MEMBERS));
	}
}

static void
topk_end(CustomScanState *css)
{
	TopkState  *state = (TopkState *) css;

	if (state->engine)
		state->engine->ops->end(state->engine);
	if (state->rows)
		RowReaderEnd(state->rows);
	if (state->bitmap)
		tbm_free(state->bitmap);
	if (state->child)
		ExecEndNode(state->child);
	if (state->index)
		index_close(state->index, NoLock);
}

/* ---- EXPLAIN ---- */

static void
explain_strategies(TopkState *state, ExplainState *es)
{
	static const char *const names[] = {"by row", "exact"};
	List	   *ran = NIL;

	for (int i = 0; i < lengthof(names); i++)
		if (state->counters.ran[i])
			ran = lappend(ran, (char *) names[i]);
	ExplainPropertyList("Strategies", ran, es);
}

static void
topk_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	TopkState  *state = (TopkState *) css;
	CustomScan *scan = (CustomScan *) css->ss.ps.plan;
	Oid			index = (Oid) intVal(PrivateField(scan, TOPK_PRIVATE_INDEX));
	int			rows = intVal(PrivateField(scan, TOPK_PRIVATE_ROWS));
	const char *hint = boolVal(PrivateField(scan, TOPK_PRIVATE_HINT)) ? " (hint)" : "";
	List	   *context = set_deparse_context_plan(es->deparse_cxt, &scan->scan.plan, ancestors);
	bool		prefix = list_length(es->rtable) > 1 || es->verbose;

	if (es->format == EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText("Search", psprintf("Index Scan using %s on %s",
											   quote_identifier(get_rel_name(index)),
											   quote_identifier(RelationGetRelationName(css->ss.ss_currentRelation))), es);
	else
		ExplainPropertyText("Index Name", get_rel_name(index), es);
	ExplainPropertyText("Order By",
						deparse_expression(list_nth(scan->custom_exprs, TOPK_EXPR_ORDER), context,
										   prefix, false), es);
	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyInteger("Top K", NULL, rows, es);
		ExplainPropertyBool("Hint", *hint != '\0', es);
	}
	else if (rows > 0)
		ExplainPropertyText("Top K", psprintf("%d%s", rows, hint), es);
	else
		ExplainPropertyText("Top K", "at run time", es);
	if (!es->analyze)
		return;
	explain_strategies(state, es);
	ExplainPropertyInteger("Rounds", NULL, state->counters.rounds, es);
	ExplainPropertyInteger("Rows Proposed", NULL, state->counters.proposed, es);
	ExplainPropertyInteger("Rows Fetched", NULL, state->counters.fetched, es);
	ExplainPropertyInteger("Rows Measured", NULL, state->counters.measured, es);
	if (state->counters.lossy_pages > 0 || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyInteger("Lossy Pages", NULL, state->counters.lossy_pages, es);
}

static const CustomExecMethods topk_exec_methods = {
	.CustomName = "Quiver Top-K Scan",
	.BeginCustomScan = topk_begin,
	.ExecCustomScan = topk_exec,
	.EndCustomScan = topk_end,
	.ReScanCustomScan = topk_rescan,
	.ExplainCustomScan = topk_explain
};

static Node *
topk_create(CustomScan *scan)
{
	TopkState  *state = (TopkState *) newNode(sizeof(TopkState), T_CustomScanState);

	/* a worker may have another version of the library than its leader */
	if (list_length(scan->custom_private) != TOPK_PRIVATE_FIELDS ||
		intVal(PrivateField(scan, TOPK_PRIVATE_VERSION)) != TOPK_PLAN_VERSION)
		elog(ERROR, "plan of the top-k scan is of another version of the library");
	state->css.methods = &topk_exec_methods;
	return (Node *) state;
}

const CustomScanMethods qv_topk_scan_methods = {
	.CustomName = "Quiver Top-K Scan",
	.CreateCustomScanState = topk_create
};
