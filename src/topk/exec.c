/*
 * exec.c
 *		The node of a top-k scan; see src/topk/README.md, "Executor".
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/sysattr.h"
#include "access/tableam.h"
#include "am/opclass.h"
#include "compat.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "tcop/pquery.h"
#include "topk/form.h"
#include "topk/state.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/rel.h"

/* Let the projection find the row's distance as the query has it. */
static void
show_distance(TopkState *state, const QvStreamRow *row)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;

	if (state->distance == NULL)
		return;
	/* where rows need not be measured, only their order is wanted */
	econtext->caseValue_isNull = !row->measured || state->value == NULL;
	if (isfinite(row->distance))
		econtext->caseValue_datum = Float8GetDatum(TopkResultOf(state->planned.result, row->distance));
	else
	{
		/* NaN, and what is too far for a number */
		econtext->ecxt_scantuple = state->css.ss.ss_ScanTupleSlot;
		econtext->caseValue_datum =
			ExecEvalExprSwitchContext(state->distance, econtext, &econtext->caseValue_isNull);
	}
}

static TupleTableSlot *
topk_next(ScanState *ss)
{
	TopkState  *state = (TopkState *) ss;
	TupleTableSlot *slot = ss->ss_ScanTupleSlot;
	QvStreamRow row;

	if (!state->started)
		TopkStart(state);
	if (!TopkNext(state, &row))
		return ExecClearTuple(slot);
	ExecCopySlot(slot, row.filled ? state->filter->slot : state->rows->slot);
	slot->tts_tableOid = RelationGetRelid(ss->ss_currentRelation);

	/* of a row that was not fetched: the root of a chain of versions */
	slot->tts_tid = row.filled ? row.tid : state->rows->slot->tts_tid;
	show_distance(state, &row);
	return slot;
}

/* In an EvalPlanQual estate ExecScan() tests the conditions. */
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

/*
 * Build the projection.  Where its list has the distance, which needs the vector once more, it
 * takes the one that the search has found.
 */
static void
init_projection(TopkState *state, bool with_distance)
{
	ScanState  *ss = &state->css.ss;
	Node	   *distance = TopkPlanExpr(state, TOPK_EXPR_DISTANCE);
	Node	   *targets = TopkReplaceDistance((Node *) ss->ps.plan->targetlist, distance);

	ExecAssignScanProjectionInfo(ss);
	if (!with_distance || ss->ps.ps_ProjInfo == NULL || equal(targets, ss->ps.plan->targetlist))
		return;
	state->distance = ExecInitExpr((Expr *) distance, &ss->ps);
	ss->ps.ps_ProjInfo = ExecBuildProjectionInfo((List *) targets, ss->ps.ps_ExprContext,
												 ss->ps.ps_ResultTupleSlot, &ss->ps,
												 ss->ss_ScanTupleSlot->tts_tupleDescriptor);
}

/*
 * Can included columns stand for a row of the table?  They can if no other is wanted, nor tested.
 */
static bool
is_index_only(const TopkState *state, bool with_distance)
{
	const CustomScan *scan = TopkPlan(state);
	Node	   *distance = TopkPlanExpr(state, TOPK_EXPR_DISTANCE);
	QvIncluded *included = QvIncludedDescribe(state->index, 0);
	Bitmapset  *wanted = NULL;
	Node	   *targets = (Node *) scan->scan.plan.targetlist;

	/*
	 * WHERE CURRENT OF a query of a portal with a name needs the place of the
	 * row itself.  An index has that of its first version, which may have
	 * gone.
	 */
	if (ActivePortal != NULL && ActivePortal->name[0] != '\0')
		return false;
	if (included == NULL || scan->scan.plan.qual != NIL || outerPlan(scan) != NULL ||
		!state->planned.guesses)
		return false;
	pull_varattnos(with_distance ? TopkReplaceDistance(targets, distance) : targets, scan->scan.scanrelid, &wanted);
	for (int i = 0; i < included->count; i++)
		wanted = bms_del_member(wanted, included->columns[i].attribute - FirstLowInvalidHeapAttributeNumber);
	return bms_is_empty(wanted);
}

/*
 * Part the conditions at the first that near rows do not meet.  They are tested in their order: one
 * may guard the next, or hide rows from it.
 */
static void
init_conditions(TopkState *state, List *conditions)
{
	List	   *outside = TopkPlanExpr(state, TOPK_EXPR_OUTSIDE);
	PlanState  *parent = &state->css.ss.ps;
	int			at = 0;

	while (at < list_length(conditions) && !list_member(outside, list_nth(conditions, at)))
		at++;
	state->ahead = ExecInitQual(list_truncate(list_copy(conditions), at), parent);
	state->outside = ExecInitQual(list_truncate(list_copy_tail(conditions, at), 1), parent);
	state->after = ExecInitQual(list_copy_tail(conditions, at + 1), parent);
}

static void
topk_begin(CustomScanState *css, EState *estate, int eflags)
{
	TopkState  *state = (TopkState *) css;
	CustomScan *scan = (CustomScan *) css->ss.ps.plan;
	Relation	heap = css->ss.ss_currentRelation;
	List	   *filter = TopkPlanExpr(state, TOPK_EXPR_FILTER);
	List	   *conditions = list_concat_copy(filter, scan->scan.plan.qual);
	bool		with_distance = estate->es_epq_active == NULL &&
		state->planned.result != TOPK_RESULT_UNKNOWN;
	bool		index_only = false;

	if (!(eflags & EXEC_FLAG_EXPLAIN_ONLY))
	{
		state->index = index_open(state->planned.index, exec_rt_fetch(scan->scan.scanrelid, estate)->rellockmode);
		QvGetOpclass(state->index, &state->opclass);
		index_only = is_index_only(state, with_distance);
	}

	/*
	 * Rows are the table's: the server has made all of this for virtual ones.
	 * One that is not fetched has no values where the table must have some,
	 * which a tuple of the table cannot be.
	 */
	QvInitScanTupleSlot(estate, &css->ss, RelationGetDescr(heap),
						index_only ? &TTSOpsVirtual : table_slot_callbacks(heap));
	css->ss.ps.scanopsfixed = !index_only;
	init_projection(state, with_distance);
	css->ss.ps.qual = estate->es_epq_active ? ExecInitQual(conditions, &css->ss.ps) : NULL;
	init_conditions(state, conditions);
	state->query = ExecInitExpr(TopkPlanExpr(state, TOPK_EXPR_QUERY), &css->ss.ps);
	state->limit = ExecInitExpr(TopkPlanExpr(state, TOPK_EXPR_LIMIT), &css->ss.ps);
	/* they test distances that are not of a row */
	state->within = ExecInitQual((List *) TopkReplaceDistance(TopkPlanExpr(state, TOPK_EXPR_WITHIN),
															  TopkPlanExpr(state, TOPK_EXPR_DISTANCE)),
								 &css->ss.ps);
	outerPlanState(css) = ExecInitNode(outerPlan(scan), estate, eflags);
	state->context = AllocSetContextCreate(estate->es_query_cxt, "quiver top-k search",
										   ALLOCSET_SMALL_SIZES);
	TopkSetInit(&state->set, outerPlanState(css), heap);
	if (state->index && (filter != NIL || index_only))
	{
		state->filter = QvFilterCreate(&css->ss.ps, heap, state->index, filter);
		state->filter->wants_visible = index_only;
	}
}

static void
topk_rescan(CustomScanState *css)
{
	TopkState  *state = (TopkState *) css;
	PlanState  *child = state->set.child;

	ExecScanReScan(&css->ss);
	state->started = false;
	/* what the last search has learned is of another query */
	state->planned = TopkGetPlanned(TopkPlan(state));
	if (child && child->chgParam)
		TopkSetForget(&state->set);
}

static void
topk_end(CustomScanState *css)
{
	TopkState  *state = (TopkState *) css;

	TopkEnd(state);
	ExecEndNode(outerPlanState(css));
	if (state->index)
		index_close(state->index, NoLock);
}

static const CustomExecMethods topk_exec_methods = {
	.CustomName = "Quiver Top-K Scan",
	.BeginCustomScan = topk_begin,
	.ExecCustomScan = topk_exec,
	.EndCustomScan = topk_end,
	.ReScanCustomScan = topk_rescan,
	.ExplainCustomScan = TopkExplain
};

bool
TopkReadsTable(PlanState *plan, void *unused)
{
	if (plan == NULL)
		return false;
	if (IsA(plan, CustomScanState) && ((CustomScanState *) plan)->methods == &topk_exec_methods)
		return ((TopkState *) plan)->reads_table;
	return planstate_tree_walker(plan, TopkReadsTable, unused);
}

TopkPlanned
TopkGetPlanned(const CustomScan *scan)
{
	const Const *constant = linitial(scan->custom_private);
	TopkPlanned planned = {0};

	/* a worker may have another version of the library than its leader */
	if (IsA(constant, Const) && VARSIZE_ANY_EXHDR(DatumGetPointer(constant->constvalue)) == sizeof(planned))
		memcpy(&planned, VARDATA_ANY(DatumGetPointer(constant->constvalue)), sizeof(planned));
	if (planned.version != TOPK_PLAN_VERSION)
		elog(ERROR, "plan of the top-k scan is of another version of the library");
	return planned;
}

static Node *
topk_create(CustomScan *scan)
{
	TopkState  *state = (TopkState *) newNode(sizeof(TopkState), T_CustomScanState);

	state->planned = TopkGetPlanned(scan);
	state->css.methods = &topk_exec_methods;
	return (Node *) state;
}

const CustomScanMethods qv_topk_scan_methods = {
	.CustomName = "Quiver Top-K Scan",
	.CreateCustomScanState = topk_create
};
