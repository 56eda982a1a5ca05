/*
 * groups_exec.c
 *		The node of nearest groups: of each group it returns the first row, and it leaves out the
 *		others.
 *
 * Rows come in the order of their distances.  The first row of a group is thus its nearest one, and
 * groups are returned in the order of their nearest rows.
 */
#include "postgres.h"

#include "compat.h"
#include "executor/executor.h"
#include "executor/nodeAgg.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "topk/groups.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"
#include "utils/tuplesort.h"

/* Groups that the hash table has room for at first. */
#define FIRST_GROUPS 64

typedef struct GroupsState
{
	CustomScanState css;
	TupleHashTable seen;		/* groups returned */
	MemoryContext context;		/* of the rows in it */
	bool		started;

	Tuplesortstate *sorted;		/* all groups, where some come first that are
								 * found last */
	TupleTableSlot *slot;
} GroupsState;

#define GroupsPlan(state) ((CustomScan *) (state)->css.ss.ps.plan)
#define GroupsClauses(state) ((List *) linitial(GroupsPlan(state)->custom_private))
#define GroupsSort(state) ((List *) lsecond(GroupsPlan(state)->custom_private))
#define GroupsColumns(state) (GroupsPlan(state)->custom_scan_tlist)

static PlanState *
child_of(const GroupsState *state)
{
	return linitial(state->css.custom_ps);
}

/* The next row that is the first of its group; NULL: there is none. */
static TupleTableSlot *
next_group(GroupsState *state)
{
	TupleTableSlot *row;
	bool		is_new;

	while (row = ExecProcNode(child_of(state)), !TupIsNull(row))
	{
		CHECK_FOR_INTERRUPTS();
		LookupTupleHashEntry(state->seen, row, &is_new, NULL);
		ResetExprContext(state->css.ss.ps.ps_ExprContext);
		if (is_new)
			return row;
	}
	return NULL;
}

/* Find all groups, from the first one's row on, and sort them. */
static void
sort_groups(GroupsState *state, TupleTableSlot *row)
{
	SortGroupClause *clause = linitial(GroupsSort(state));
	TargetEntry *target = get_sortgroupclause_tle(clause, GroupsColumns(state));
	Oid			collation = exprCollation((Node *) target->expr);

	state->sorted = tuplesort_begin_heap(row->tts_tupleDescriptor, 1, &target->resno, &clause->sortop, &collation,
										 &clause->nulls_first, work_mem, NULL, TUPLESORT_NONE);
	for (; row; row = next_group(state))
		tuplesort_puttupleslot(state->sorted, row);
	tuplesort_performsort(state->sorted);
}

static TupleTableSlot *
next_sorted(GroupsState *state)
{
	return tuplesort_gettupleslot(state->sorted, true, false, state->slot, NULL) ? state->slot : NULL;
}

static TupleTableSlot *
groups_next(ScanState *ss)
{
	GroupsState *state = (GroupsState *) ss;
	TupleTableSlot *slot = ss->ss_ScanTupleSlot;
	TupleTableSlot *row = state->sorted ? next_sorted(state) : next_group(state);

	if (!state->started)
	{
		state->started = true;
		if (row && GroupsSort(state) != NIL && TopkReadsTable(child_of(state), NULL))
		{
			sort_groups(state, row);
			row = next_sorted(state);
		}
	}
	return row ? ExecCopySlot(slot, row) : ExecClearTuple(slot);
}

/*
 * ExecScan() would not do: in an EvalPlanQual estate it may take a node that scans no relation for
 * a join that was done elsewhere.
 */
static TupleTableSlot *
groups_exec(CustomScanState *css)
{
	ProjectionInfo *projection = css->ss.ps.ps_ProjInfo;
	ExprContext *econtext = css->ss.ps.ps_ExprContext;
	TupleTableSlot *slot;

	CHECK_FOR_INTERRUPTS();
	ResetExprContext(econtext);
	slot = groups_next(&css->ss);
	if (projection == NULL)
		return slot;
	if (TupIsNull(slot))
		return ExecClearTuple(projection->pi_state.resultslot);
	econtext->ecxt_scantuple = slot;
	return ExecProject(projection);
}

static void
groups_begin(CustomScanState *css, EState *estate, int eflags)
{
	GroupsState *state = (GroupsState *) css;
	CustomScan *scan = (CustomScan *) css->ss.ps.plan;
	PlanState  *child = ExecInitNode(linitial(scan->custom_plans), estate, eflags);
	TupleDesc	desc = ExecGetResultType(child);
	List	   *clauses = GroupsClauses(state);
	List	   *columns = GroupsColumns(state);
	int			count = list_length(clauses);
	Oid		   *equal;
	FmgrInfo   *hash;

	css->custom_ps = list_make1(child);
	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	execTuplesHashPrepare(count, extract_grouping_ops(clauses), &equal, &hash);
	state->context = AllocSetContextCreate(estate->es_query_cxt, "quiver nearest groups", ALLOCSET_DEFAULT_SIZES);
	state->seen = QvBuildTupleHash(&css->ss.ps, desc, ExecGetResultSlotOps(child, NULL), count,
								   extract_grouping_cols(clauses, columns), equal, hash,
								   extract_grouping_collations(clauses, columns), FIRST_GROUPS, estate->es_query_cxt, state->context,
								   css->ss.ps.ps_ExprContext->ecxt_per_tuple_memory);
	state->slot = ExecInitExtraTupleSlot(estate, desc, &TTSOpsMinimalTuple);
}

static void
forget_groups(GroupsState *state)
{
	if (state->sorted)
		tuplesort_end(state->sorted);
	state->sorted = NULL;
	state->started = false;
}

static void
groups_rescan(CustomScanState *css)
{
	GroupsState *state = (GroupsState *) css;
	PlanState  *child = child_of(state);

	ExecScanReScan(&css->ss);
	forget_groups(state);
	MemoryContextReset(state->context);
	ResetTupleHashTable(state->seen);
	if (css->ss.ps.chgParam)
		UpdateChangedParamSet(child, css->ss.ps.chgParam);
	if (child->chgParam == NULL)
		ExecReScan(child);
}

static void
groups_end(CustomScanState *css)
{
	GroupsState *state = (GroupsState *) css;

	forget_groups(state);
	ExecEndNode(child_of(state));
}

static void
groups_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	GroupsState *state = (GroupsState *) css;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, css->ss.ps.plan, ancestors);
	List	   *keys = NIL;
	ListCell   *lc;

	foreach(lc, get_sortgrouplist_exprs(GroupsClauses(state), GroupsColumns(state)))
	{
		keys = lappend(keys, deparse_expression(lfirst(lc), context,
												list_length(es->rtable) > 1 || es->verbose, false));
	}
	ExplainPropertyList("Group Key", keys, es);
}

static const CustomExecMethods groups_exec_methods = {
	.CustomName = "Quiver Nearest Groups",
	.BeginCustomScan = groups_begin,
	.ExecCustomScan = groups_exec,
	.EndCustomScan = groups_end,
	.ReScanCustomScan = groups_rescan,
	.ExplainCustomScan = groups_explain
};

static Node *
groups_create(CustomScan *scan)
{
	GroupsState *state = (GroupsState *) newNode(sizeof(GroupsState), T_CustomScanState);

	state->css.methods = &groups_exec_methods;
	return (Node *) state;
}

const CustomScanMethods qv_groups_scan_methods = {
	.CustomName = "Quiver Nearest Groups",
	.CreateCustomScanState = groups_create
};
