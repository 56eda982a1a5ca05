/*
 * groups.c
 *		Planning nearest groups; see groups.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_aggregate.h"
#include "compat.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "topk/groups.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

static create_upper_paths_hook_type previous_hook;

static Plan *groups_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path, List *tlist,
						 List *clauses, List *custom_plans);

static const CustomPathMethods groups_path_methods = {
	.CustomName = "Quiver Nearest Groups",
	.PlanCustomPath = groups_plan
};

/* ---- aggregates ---- */

/* min() is BTLessStrategyNumber, max() BTGreaterStrategyNumber, and any other aggregate is 0. */
static int
takes_extreme(const Aggref *aggregate)
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
		return takes_extreme((Aggref *) node) ?
			copyObject((Node *) linitial_node(TargetEntry, ((Aggref *) node)->args)->expr) : node;
	return expression_tree_mutator(node, replace_aggregates, arg);
}

static bool
has_aggregate(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	return IsA(node, Aggref) || expression_tree_walker(node, has_aggregate, arg);
}

PathKey *
TopkGroupsKey(PlannerInfo *root)
{
	const Query *query = root->parse;
	SortGroupClause *clause;
	TargetEntry *target;
	List	   *keys;

	if (query->commandType != CMD_SELECT || !query->hasAggs || query->groupClause == NIL ||
		query->groupingSets != NIL || query->hasWindowFuncs || query->hasTargetSRFs ||
		query->distinctClause != NIL || query->setOperations || query->havingQual ||
		query->limitCount == NULL || query->sortClause == NIL || root->rowMarks != NIL ||
		!grouping_is_hashable(query->groupClause))
		return NULL;
	target = get_sortgroupclause_tle(linitial(query->sortClause), root->processed_tlist);
	if (!has_aggregate((Node *) target->expr, NULL))
		return NULL;
	/* the same order, of what rows have in place of the aggregate */
	clause = copyObject(linitial_node(SortGroupClause, query->sortClause));
	target = flatCopyTargetEntry(target);
	target->expr = (Expr *) replace_aggregates((Node *) target->expr, NULL);
	if (has_aggregate((Node *) target->expr, NULL))
		return NULL;
	keys = make_pathkeys_for_sortclauses(root, list_make1(clause), list_make1(target));
	return keys == NIL ? NULL : linitial(keys);
}

bool
TopkGroupsMatch(PlannerInfo *root, const IndexOptInfo *index, const TopkForm *key, bool ascends,
				bool *nans_last)
{
	List	   *aggregates = pull_var_clause((Node *) root->processed_tlist,
											 PVC_INCLUDE_AGGREGATES | PVC_INCLUDE_PLACEHOLDERS);
	bool		min = false,
				max = false;
	ListCell   *lc;

	foreach(lc, aggregates)
	{
		Aggref	   *aggregate = lfirst(lc);
		int			extreme;
		TopkForm	form;

		if (!IsA(aggregate, Aggref))
			continue;
		extreme = takes_extreme(aggregate);
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
	if (key->may_be_nan && max && (min || ascends))
		return false;
	*nans_last = !max;
	return min || max;
}

/* ---- the path ---- */

/* The columns of a row that tell its group, and then the others that the query needs. */
static List *
get_columns(PlannerInfo *root, const PathTarget *target, List **groups)
{
	List	   *columns = NIL;
	ListCell   *lc;

	*groups = NIL;
	foreach(lc, root->parse->groupClause)
	{
		Expr	   *expr = (Expr *) get_sortgroupclause_expr(lfirst(lc), root->processed_tlist);

		columns = list_append_unique(columns, expr);
	}
	*groups = list_copy(columns);
	return list_concat_unique(columns,
							  pull_var_clause((Node *) target->exprs,
											  PVC_INCLUDE_AGGREGATES | PVC_INCLUDE_PLACEHOLDERS));
}

/* A path of groups in the order of their nearest rows, from one of rows in that order. */
static void
add_groups_path(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output, Path *rows, bool ascends)
{
	CustomPath *path = makeNode(CustomPath);
	PathTarget *target = create_empty_pathtarget();
	List	   *groups,
			   *columns = get_columns(root, output->reltarget, &groups),
			   *numbers = NIL,
			   *operators = NIL,
			   *collations = NIL,
			   *targets = NIL;
	ListCell   *lc;
	Path	   *other = linitial(output->pathlist);
	int			nan = 0;

	foreach(lc, columns)
	{
		Node	   *column = lfirst(lc);

		add_column_to_pathtarget(target, (Expr *) replace_aggregates(column, NULL), 0);
		targets = lappend(targets, makeTargetEntry((Expr *) column, list_length(targets) + 1, NULL, false));
		if (!ascends && IsA(column, Aggref) && takes_extreme((Aggref *) column) == BTLessStrategyNumber)
			nan = list_length(targets);
	}
	set_pathtarget_cost_width(root, target);
	foreach(lc, root->parse->groupClause)
	{
		SortGroupClause *clause = lfirst(lc);
		Expr	   *expr = (Expr *) get_sortgroupclause_expr(clause, root->processed_tlist);

		for (int i = 0; i < list_length(groups); i++)
			if (equal(list_nth(groups, i), expr))
				numbers = lappend_int(numbers, i + 1);
		operators = lappend_oid(operators, clause->eqop);
		collations = lappend_oid(collations, exprCollation((Node *) expr));
	}
	rows = (Path *) create_projection_path(root, input, rows, target);
	path->path.pathtype = T_CustomScan;
	path->path.parent = output;
	path->path.pathtarget = output->reltarget;
	path->path.parallel_safe = output->consider_parallel && rows->parallel_safe;
	path->path.rows = other->rows;
	path->path.startup_cost = rows->startup_cost;
	path->path.total_cost = rows->total_cost + rows->rows * (cpu_tuple_cost + list_length(numbers) * cpu_operator_cost);
	path->path.pathkeys = list_length(root->sort_pathkeys) == 1 ? root->sort_pathkeys :
		list_make1(linitial(root->sort_pathkeys));
	QvCopyDisabled(&path->path, rows);
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->methods = &groups_path_methods;
	path->custom_paths = list_make1(rows);
	path->custom_private = list_make2(targets,
									  list_make5(makeInteger(TOPK_PLAN_VERSION), numbers, operators, collations,
												 makeInteger(nan)));
	add_path(output, &path->path);
}

static Plan *
groups_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path, List *tlist, List *clauses,
			List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);

	scan->scan.plan.targetlist = tlist;
	scan->flags = best_path->flags;
	scan->custom_plans = custom_plans;
	scan->custom_scan_tlist = linitial(best_path->custom_private);
	scan->custom_private = lsecond(best_path->custom_private);
	scan->methods = &qv_groups_scan_methods;
	return &scan->scan.plan;
}

static void
groups_create_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input,
						  RelOptInfo *output, void *extra)
{
	PathKey    *key;
	List	   *rows;
	ListCell   *lc;

	if (previous_hook)
		previous_hook(root, stage, input, output, extra);
	if (stage != UPPERREL_GROUP_AGG || output->pathlist == NIL || root->query_pathkeys == NIL ||
		root->query_pathkeys == root->group_pathkeys)
		return;
	/* plan.c has made it the order that rows are wanted in */
	key = TopkGroupsKey(root);
	if (key == NULL || linitial(root->query_pathkeys) != key)
		return;
	rows = list_copy(input->pathlist);
	foreach(lc, rows)
	{
		Path	   *path = lfirst(lc);

		if (path->param_info == NULL && path->pathkeys != NIL && linitial(path->pathkeys) == key)
			add_groups_path(root, input, output, path, QvPathKeyAscends(key));
	}
}

void
TopkGroupsInit(void)
{
	if (GetCustomScanMethods(qv_groups_scan_methods.CustomName, true) == NULL)
		RegisterCustomScanMethods(&qv_groups_scan_methods);
	if (create_upper_paths_hook != groups_create_upper_paths)
	{
		previous_hook = create_upper_paths_hook;
		create_upper_paths_hook = groups_create_upper_paths;
	}
}
