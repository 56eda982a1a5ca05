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

#define GroupsField(state, field) list_nth(((CustomScan *) (state)->css.ss.ps.plan)->custom_private, field)

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
	List	   *sort = GroupsField(state, TOPK_GROUPS_SORT);
	AttrNumber	column = linitial_oid(sort);
	Oid			operator = lsecond_oid(sort),
				collation = lthird_oid(sort);
	bool		nulls_first = lfourth_oid(sort);

	state->sorted = tuplesort_begin_heap(row->tts_tupleDescriptor, 1, &column, &operator, &collation,
										 &nulls_first, work_mem, NULL, TUPLESORT_NONE);
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
	TupleTableSlot *row;
	int			columns = slot->tts_tupleDescriptor->natts;

	if (!state->started)
	{
		state->started = true;
		row = next_group(state);
		if (row && linitial_oid(GroupsField(state, TOPK_GROUPS_SORT)) > 0 &&
			TopkReadsTable(child_of(state), NULL))
		{
			sort_groups(state, row);
			row = next_sorted(state);
		}
	}
	else
		row = state->sorted ? next_sorted(state) : next_group(state);
	ExecClearTuple(slot);
	if (row == NULL)
		return slot;
	slot_getallattrs(row);
	memcpy(slot->tts_values, row->tts_values, columns * sizeof(Datum));
	memcpy(slot->tts_isnull, row->tts_isnull, columns * sizeof(bool));
	return ExecStoreVirtualTuple(slot);
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
	PlanState  *child = ExecInitNode(linitial(scan->custom_plans), estate,
									 eflags & ~(EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK));
	TupleDesc	desc = ExecGetResultType(child);
	List	   *numbers = GroupsField(state, TOPK_GROUPS_COLUMNS);
	int			count = list_length(numbers);
	AttrNumber *columns = palloc(count * sizeof(AttrNumber));
	Oid		   *operators = palloc(count * sizeof(Oid)),
			   *collations = palloc(count * sizeof(Oid)),
			   *equal;
	FmgrInfo   *hash;

	css->custom_ps = list_make1(child);
	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	for (int i = 0; i < count; i++)
	{
		columns[i] = list_nth_int(numbers, i);
		operators[i] = list_nth_oid(GroupsField(state, TOPK_GROUPS_OPERATORS), i);
		collations[i] = list_nth_oid(GroupsField(state, TOPK_GROUPS_COLLATIONS), i);
	}
	execTuplesHashPrepare(count, operators, &equal, &hash);
	state->context = AllocSetContextCreate(estate->es_query_cxt, "quiver nearest groups", ALLOCSET_DEFAULT_SIZES);
	state->seen = QvBuildTupleHash(&css->ss.ps, desc, ExecGetResultSlotOps(child, NULL), count, columns,
								   equal, hash, collations, FIRST_GROUPS, estate->es_query_cxt, state->context,
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
	CustomScan *scan = (CustomScan *) css->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, &scan->scan.plan, ancestors);
	List	   *keys = NIL;
	ListCell   *lc;

	foreach(lc, GroupsField(state, TOPK_GROUPS_COLUMNS))
	{
		TargetEntry *target = list_nth(scan->custom_scan_tlist, lfirst_int(lc) - 1);

		keys = lappend(keys, deparse_expression((Node *) target->expr, context,
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

	if (list_length(scan->custom_private) != TOPK_GROUPS_FIELDS ||
		intVal(linitial(scan->custom_private)) != TOPK_PLAN_VERSION)
		elog(ERROR, "plan of nearest groups is of another version of the library");
	state->css.methods = &groups_exec_methods;
	return (Node *) state;
}

const CustomScanMethods qv_groups_scan_methods = {
	.CustomName = "Quiver Nearest Groups",
	.CreateCustomScanState = groups_create
};
