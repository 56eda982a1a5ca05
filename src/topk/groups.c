/*
 * groups.c
 *		The node of nearest groups; see groups.h.
 *
 * Of each group it returns the first row, and it leaves out the others.  Rows come in the order of
 * their distances.  The first row of a group is thus its nearest one, and groups are returned in
 * the order of their nearest rows.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "am/methods.h"
#include "catalog/pg_aggregate.h"
#include "compat.h"
#include "executor/executor.h"
#include "executor/nodeAgg.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "topk/groups.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"
#include "utils/syscache.h"
#include "utils/tuplesort.h"
#include "utils/typcache.h"

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

/*
 * CustomScan.custom_private has two lists of SortGroupClauses of CustomScan.custom_scan_tlist: the
 * columns that tell the group of a row; and the sort key, or NIL where groups are found in their
 * order.  The top-k scan below checks the version (TOPK_PLAN_VERSION).
 */
#define GroupsPlan(state) ((CustomScan *) (state)->css.ss.ps.plan)
#define GroupsClauses(state) ((List *) linitial(GroupsPlan(state)->custom_private))
#define GroupsSort(state) ((List *) lsecond(GroupsPlan(state)->custom_private))
#define GroupsColumns(state) (GroupsPlan(state)->custom_scan_tlist)

/* ---- executing ---- */

/* The next row that is the first of its group; NULL: there is none. */
static TupleTableSlot *
next_group(GroupsState *state)
{
	TupleTableSlot *row;
	bool		is_new;

	while (row = ExecProcNode(outerPlanState(state)), !TupIsNull(row))
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

/*
 * ExecScan() would not do: in an EvalPlanQual estate it may take a node that scans no relation for
 * a join that was done elsewhere.
 */
static TupleTableSlot *
groups_exec(CustomScanState *css)
{
	GroupsState *state = (GroupsState *) css;
	ProjectionInfo *projection = css->ss.ps.ps_ProjInfo;
	ExprContext *econtext = css->ss.ps.ps_ExprContext;
	TupleTableSlot *slot = css->ss.ss_ScanTupleSlot;
	TupleTableSlot *row;

	CHECK_FOR_INTERRUPTS();
	ResetExprContext(econtext);
	row = state->sorted ? next_sorted(state) : next_group(state);
	if (!state->started)
	{
		state->started = true;
		if (row && GroupsSort(state) != NIL && TopkReadsTable(outerPlanState(state), NULL))
		{
			sort_groups(state, row);
			row = next_sorted(state);
		}
	}
	if (row == NULL)
		return ExecClearTuple(projection ? projection->pi_state.resultslot : slot);
	ExecCopySlot(slot, row);
	if (projection == NULL)
		return slot;
	econtext->ecxt_scantuple = slot;
	return ExecProject(projection);
}

static void
groups_begin(CustomScanState *css, EState *estate, int eflags)
{
	GroupsState *state = (GroupsState *) css;
	PlanState  *child = ExecInitNode(outerPlan(css->ss.ps.plan), estate, eflags);
	TupleDesc	desc = ExecGetResultType(child);
	List	   *clauses = GroupsClauses(state);
	List	   *columns = GroupsColumns(state);
	int			count = list_length(clauses);
	Oid		   *equal;
	FmgrInfo   *hash;

	outerPlanState(css) = child;
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
	PlanState  *child = outerPlanState(css);

	ExecScanReScan(&css->ss);
	forget_groups(state);
	MemoryContextReset(state->context);
	ResetTupleHashTable(state->seen);
	if (child->chgParam == NULL)
		ExecReScan(child);
}

static void
groups_end(CustomScanState *css)
{
	GroupsState *state = (GroupsState *) css;

	forget_groups(state);
	ExecEndNode(outerPlanState(css));
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

static const CustomScanMethods groups_scan_methods = {
	.CustomName = "Quiver Nearest Groups",
	.CreateCustomScanState = groups_create
};

/* ---- aggregates ---- */

int
TopkTakesExtreme(const Aggref *aggregate)
{
	HeapTuple	tuple;
	Oid			operator;
	Oid			type;

	if (list_length(aggregate->args) != 1 || aggregate->aggfilter || aggregate->aggorder != NIL ||
		aggregate->aggkind != AGGKIND_NORMAL || aggregate->agglevelsup != 0)
		return 0;
	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate->aggfnoid));
	operator = HeapTupleIsValid(tuple) ? ((Form_pg_aggregate) GETSTRUCT(tuple))->aggsortop : InvalidOid;
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	type = exprType((Node *) linitial_node(TargetEntry, aggregate->args)->expr);
	return !OidIsValid(operator) || type != aggregate->aggtype ? 0 :
		get_op_opfamily_strategy(operator, lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf);
}

/* What a row has in place of an aggregate of its group: the argument. */
static Node *
replace_aggregates(Node *node, void *arg)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref))
		return TopkTakesExtreme((Aggref *) node) ?
			copyObject((Node *) linitial_node(TargetEntry, ((Aggref *) node)->args)->expr) : node;
	return expression_tree_mutator(node, replace_aggregates, arg);
}

/* Does the query ask for a few groups, in an order of its own? */
static bool
groups_by_aggregate(const PlannerInfo *root)
{
	const Query *query = root->parse;

	return query->hasAggs && query->groupClause != NIL && query->distinctClause == NIL &&
		KnnHasLimit(query) && query->sortClause != NIL && grouping_is_hashable(query->groupClause);
}

/*
 * Are rows of one subquery all that a query is made of?  Sublinks and WITH queries are planned
 * before it has its array of relations.
 */
static bool
asks_for_subquery(const PlannerInfo *root)
{
	const FromExpr *from = root && root->simple_rel_array ? root->parse->jointree : NULL;

	return from && list_length(from->fromlist) == 1 && IsA(linitial(from->fromlist), RangeTblRef) &&
		rt_fetch(linitial_node(RangeTblRef, from->fromlist)->rtindex, root->parse->rtable)->rtekind == RTE_SUBQUERY;
}

/*
 * Is the query a subquery of one that wants a few of its rows, in an order of its own?  Then its
 * own order is of use for the first row of each group only.
 */
static bool
is_distinct_on(const PlannerInfo *root)
{
	const Query *query = root->parse;
	const Query *outer = asks_for_subquery(root->parent_root) ? root->parent_root->parse : NULL;

	return query->hasDistinctOn && !query->hasAggs && query->groupClause == NIL && query->limitCount == NULL &&
		query->limitOffset == NULL && list_length(query->sortClause) == list_length(query->distinctClause) + 1 &&
		grouping_is_hashable(query->distinctClause) && outer && KnnHasLimit(outer) &&
		outer->sortClause != NIL;
}

bool
TopkGroupsKeepOrder(const PlannerInfo *root)
{
	const Query *query = root->parse;
	const Query *outer = root->parent_root->parse;
	SortGroupClause *distance = llast(query->sortClause);
	SortGroupClause *first = linitial(outer->sortClause);
	const Var  *key = (const Var *) get_sortgroupclause_expr(first, outer->targetList);

	/* these are of all groups */
	if (outer->hasWindowFuncs || outer->hasAggs || outer->groupClause != NIL || outer->distinctClause != NIL)
		return false;
	return IsA(key, Var) && key->varattno == get_sortgroupclause_tle(distance, query->targetList)->resno &&
		first->sortop == distance->sortop && first->nulls_first == distance->nulls_first &&
		!contain_nonstrict_functions(outer->jointree->quals);
}

const Query *
TopkGroupsLimited(const PlannerInfo *root)
{
	return root->parse->hasAggs ? root->parse : root->parent_root->parse;
}

PathKey *
TopkGroupsKey(PlannerInfo *root)
{
	const Query *query = root->parse;
	SortGroupClause *clause;
	TargetEntry *target;
	List	   *keys;

	if (query->commandType != CMD_SELECT || query->groupingSets != NIL || query->hasWindowFuncs ||
		query->hasTargetSRFs || query->setOperations || query->havingQual || root->rowMarks != NIL)
		return NULL;
	if (groups_by_aggregate(root))
		clause = linitial(query->sortClause);
	else if (is_distinct_on(root))
		clause = llast(query->sortClause);
	else
		return NULL;
	target = flatCopyTargetEntry(get_sortgroupclause_tle(clause, root->processed_tlist));
	if (query->hasAggs != contain_agg_clause((Node *) target->expr))
		return NULL;
	/* the same order, of what rows have in place of the aggregate */
	target->expr = (Expr *) replace_aggregates((Node *) target->expr, NULL);
	if (contain_agg_clause((Node *) target->expr))
		return NULL;
	keys = make_pathkeys_for_sortclauses(root, list_make1(clause), list_make1(target));
	return keys == NIL ? NULL : linitial(keys);
}

bool
TopkGroupsMatch(PlannerInfo *root, const IndexOptInfo *index, const TopkForm *key, int *order)
{
	List	   *aggregates = pull_var_clause((Node *) root->processed_tlist,
											 PVC_INCLUDE_AGGREGATES | PVC_INCLUDE_PLACEHOLDERS);
	bool		min = false,
				max = false;
	ListCell   *lc;

	if (!root->parse->hasAggs)
		return true;
	foreach(lc, aggregates)
	{
		Aggref	   *aggregate = lfirst(lc);
		int			extreme;
		TopkForm	form;

		if (IsA(aggregate, GroupingFunc))
			return false;
		if (!IsA(aggregate, Aggref))
			continue;
		extreme = TopkTakesExtreme(aggregate);
		if (extreme == 0 ||
			!TopkMatchForm(index, (Node *) linitial_node(TargetEntry, aggregate->args)->expr, &form) ||
			!TopkSameDistance((Node *) form.distance, (Node *) key->distance) ||
			form.fills_nulls || form.fills_nans ||
			extreme != (form.falls ? BTGreaterStrategyNumber : BTLessStrategyNumber))
			return false;
		if (form.falls)
			max = true;
		else
			min = true;
	}

	/*
	 * max() of a form is NaN if that of any row is, min() if those of all
	 * rows are
	 */
	if (key->may_be_nan && max && (min || !(*order & TOPK_ORDER_DESCENDS)))
		return false;
	if (!max)
		*order |= TOPK_ORDER_NANS_LAST;
	/* these leave NULLs out */
	*order &= ~TOPK_ORDER_NULLS_FIRST;
	return min || max;
}

/* ---- the path ---- */

static Plan *
groups_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path, List *tlist, List *clauses,
			List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);

	scan->scan.plan.targetlist = tlist;
	scan->flags = best_path->flags;
	outerPlan(scan) = linitial(custom_plans);
	scan->custom_scan_tlist = linitial(best_path->custom_private);
	scan->custom_private = lsecond(best_path->custom_private);
	scan->methods = &groups_scan_methods;
	return &scan->scan.plan;
}

static const CustomPathMethods groups_path_methods = {
	.CustomName = "Quiver Nearest Groups",
	.PlanCustomPath = groups_plan
};

/* The columns of a row that tell its group, which clauses say, and then what target needs. */
static List *
get_columns(PlannerInfo *root, List *clauses, const PathTarget *target)
{
	List	   *columns = NIL;
	List	   *exprs = target->exprs;
	ListCell   *lc;

	foreach(lc, clauses)
	{
		TargetEntry *column = flatCopyTargetEntry(get_sortgroupclause_tle(lfirst(lc), root->processed_tlist));

		columns = lappend(columns, column);
		column->resno = list_length(columns);
	}
	if (root->parse->hasAggs)
		exprs = pull_var_clause((Node *) list_difference(exprs, get_sortgrouplist_exprs(clauses, columns)),
								PVC_INCLUDE_AGGREGATES | PVC_INCLUDE_PLACEHOLDERS);
	return add_to_flat_tlist(columns, exprs);
}

/* A path of groups in the order of their nearest rows, from one of rows in that order: the key. */
static Path *
make_groups_path(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output, Path *rows, PathKey *key)
{
	const Query *query = root->parse;
	List	   *clauses = query->hasAggs ? query->groupClause : query->distinctClause;
	PathTarget *target = query->hasAggs ? output->reltarget : rows->pathtarget;
	CustomPath *path = makeNode(CustomPath);
	PathTarget *of_rows = create_empty_pathtarget();
	List	   *columns = get_columns(root, clauses, target);
	List	   *sort = NIL;
	ListCell   *lc;

	/* groups that come first may be found last: then they are sorted */
	if (query->hasAggs && (!QvPathKeyAscends(key) || key->pk_nulls_first))
	{
		SortGroupClause *clause = linitial(query->sortClause);
		Node	   *expr = get_sortgroupclause_expr(clause, root->processed_tlist);

		columns = add_to_flat_tlist(columns, list_make1(expr));
		tlist_member((Expr *) expr, columns)->ressortgroupref = clause->tleSortGroupRef;
		sort = list_make1(clause);
	}
	foreach(lc, columns)
	{
		Node	   *expr = (Node *) lfirst_node(TargetEntry, lc)->expr;

		add_column_to_pathtarget(of_rows, (Expr *) replace_aggregates(expr, NULL), 0);
	}
	set_pathtarget_cost_width(root, of_rows);
	rows = (Path *) create_projection_path(root, input, rows, of_rows);
	path->path.pathtype = T_CustomScan;
	path->path.parent = output;
	path->path.pathtarget = target;
	path->path.parallel_safe = output->consider_parallel && rows->parallel_safe;
	path->path.rows = ((Path *) linitial(output->pathlist))->rows;
	path->path.startup_cost = rows->startup_cost + target->cost.startup;
	path->path.total_cost = rows->total_cost + target->cost.startup + path->path.rows * target->cost.per_tuple +
		rows->rows * (cpu_tuple_cost + list_length(clauses) * cpu_operator_cost);
	path->path.pathkeys = query->hasAggs ? list_truncate(list_copy(root->sort_pathkeys), 1) : list_make1(key);
	QvCopyDisabled(&path->path, rows);
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->methods = &groups_path_methods;
	path->custom_paths = list_make1(rows);
	path->custom_private = list_make2(columns, list_make2(clauses, sort));
	return &path->path;
}

/* Do a path's rows come from a top-k scan, in its order?  A sort has NaN in another place. */
static bool
is_from_topk(const Path *path)
{
	switch (nodeTag(path))
	{
		case T_ProjectionPath:
			return is_from_topk(((const ProjectionPath *) path)->subpath);
		case T_NestPath:
			return is_from_topk(((const NestPath *) path)->jpath.outerjoinpath);
		case T_CustomPath:
			return strcmp(((const CustomPath *) path)->methods->CustomName, qv_topk_scan_methods.CustomName) == 0;
		default:
			return false;
	}
}

/* Add paths of nearest groups to a relation that groups rows, from paths of the rows. */
static void
add_groups_paths(PlannerInfo *root, PathKey *key, RelOptInfo *input, RelOptInfo *output)
{
	ListCell   *lc;

	foreach(lc, input->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (path->param_info == NULL && path->pathkeys != NIL && linitial(path->pathkeys) == key &&
			is_from_topk(path))
			add_path(output, make_groups_path(root, input, output, path, key));
	}
}

/*
 * The planner has sorted the rows of a subquery.  For a query that has an order of its own they
 * need not be.
 */
static void
add_unsorted_paths(PlannerInfo *root, RelOptInfo *output)
{
	RelOptInfo *groups = fetch_upper_rel(root, UPPERREL_DISTINCT, NULL);
	ListCell   *lc;

	foreach(lc, groups->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (IsA(path, CustomPath) && ((CustomPath *) path)->methods == &groups_path_methods)
			add_path(output, (Path *) create_projection_path(root, output, path,
															 root->upper_targets[UPPERREL_FINAL]));
	}
}

static create_upper_paths_hook_type previous_hook;

static void
groups_create_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input,
						  RelOptInfo *output, void *extra)
{
	PathKey    *key;

	if (previous_hook)
		previous_hook(root, stage, input, output, extra);
	/* plan.c has made the order of the groups that of the query's rows */
	if ((stage != UPPERREL_GROUP_AGG && stage != UPPERREL_DISTINCT && stage != UPPERREL_FINAL) ||
		output->pathlist == NIL || list_length(root->query_pathkeys) != 1 ||
		(key = TopkGroupsKey(root)) != linitial(root->query_pathkeys))
		return;
	if (stage == (root->parse->hasAggs ? UPPERREL_GROUP_AGG : UPPERREL_DISTINCT))
		add_groups_paths(root, key, input, output);
	else if (stage == UPPERREL_FINAL && !root->parse->hasAggs)
		add_unsorted_paths(root, output);
}

void
TopkGroupsInit(void)
{
	RegisterCustomScanMethods(&groups_scan_methods);
	previous_hook = create_upper_paths_hook;
	create_upper_paths_hook = groups_create_upper_paths;
}
