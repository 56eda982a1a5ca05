/*
 * plan.c
 *		Planning the top-k scan; see src/topk/README.md, "Planner".
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "am/handler.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class_d.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type_d.h"
#include "compat.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "topk/topk.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* pg_operator.dat; the server has no name for it. */
#define FLOAT8_LESS_EQUAL_OPERATOR 673

/* Costs of a row's distance, in fetches of a row (src/topk/README.md, "Choice"). */
#define INLINE_COST 0.1
#define BYTE_COST 1e-4
#define OUT_OF_LINE_COST 4.0

/* A fetch of a row, about 0.6 us, in costs of a tuple, which a sequential scan takes 0.05 us for. */
#define FETCH_TUPLES 10

/* Average bytes of a value that is a pointer to where it is stored, or a little more. */
#define MAX_TOAST_POINTER 24

static bool topk_scan = true;
static set_rel_pathlist_hook_type previous_hook;

static Plan *topk_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path,
					   List *tlist, List *clauses, List *custom_plans);

static const CustomPathMethods topk_path_methods = {
	.CustomName = "Quiver Top-K Scan",
	.PlanCustomPath = topk_plan
};

/* ---- is it for us? ---- */

/* Does the relation have rows that the node can read by index? */
static bool
is_plain_table(RelOptInfo *rel, RangeTblEntry *rte)
{
	Relation	heap;
	bool		result;

	if (rte->rtekind != RTE_RELATION || rte->tablesample != NULL || IS_DUMMY_REL(rel) ||
		(rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW) ||
		!bms_is_empty(rel->lateral_relids))
		return false;
	heap = table_open(rte->relid, NoLock);
	result = heap->rd_tableam == GetHeapamTableAmRoutine();
	table_close(heap, NoLock);
	return result;
}

/*
 * The value that an index is searched for to give the order of a path key; NULL when it
 * cannot.  *expr gets the whole expression.
 */
static Expr *
match_order(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index, PathKey *key, Expr **expr)
{
	EquivalenceMember *member;

	if (key->pk_nulls_first || !QvPathKeyAscends(key) || key->pk_eclass->ec_has_volatile)
		return NULL;
	QvForeachMember(member, key->pk_eclass, rel->relids)
	{
		OpExpr	   *op = (OpExpr *) member->em_expr;

		if (!bms_equal(member->em_relids, rel->relids) || !is_opclause(op) ||
			list_length(op->args) != 2)
			continue;
		for (int side = 0; side < 2; side++)
		{
			Node	   *column = list_nth(op->args, side);
			Node	   *value = list_nth(op->args, 1 - side);
			Oid			operator = side == 0 ? op->opno : get_commutator(op->opno);

			if (OidIsValid(operator) && match_index_to_operand(column, 0, index) &&
				bms_is_empty(pull_varnos(root, value)) && !contain_volatile_functions(value) &&
				get_op_opfamily_sortfamily(operator, index->opfamily[0]) == key->pk_opfamily)
			{
				*expr = (Expr *) op;
				return (Expr *) value;
			}
		}
	}
	return NULL;
}

/* ---- the bitmap ---- */

/*
 * The best path by which other indexes answer the relation's conditions; NULL: none.  The
 * planner's own search, on a copy of the relation whose indexes give bitmaps only.
 */
static BitmapHeapPath *
make_bitmap(PlannerInfo *root, RelOptInfo *rel)
{
	RelOptInfo *copy;
	List	   *indexes = NIL;
	ListCell   *lc;

	if (rel->baserestrictinfo == NIL || !enable_bitmapscan)
		return NULL;
	copy = makeNode(RelOptInfo);
	memcpy(copy, rel, sizeof(RelOptInfo));
	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst(lc);
		IndexOptInfo *bitmap;

		if (!index->amhasgetbitmap || index->hypothetical)
			continue;
		bitmap = makeNode(IndexOptInfo);
		memcpy(bitmap, index, sizeof(IndexOptInfo));
		bitmap->rel = copy;
		bitmap->amhasgettuple = false;
		indexes = lappend(indexes, bitmap);
	}
	if (indexes == NIL)
		return NULL;
	copy->indexlist = indexes;
	copy->pathlist = copy->partial_pathlist = copy->joininfo = NIL;
	copy->has_eclass_joins = copy->consider_parallel = false;

	/*
	 * we fetch row by row: one more index that leaves fewer is worth more
	 * than to a scan of the bitmap
	 */
	copy->baserestrictcost.per_tuple += FETCH_TUPLES * cpu_tuple_cost;
	create_index_paths(root, copy);
	foreach(lc, copy->pathlist)
		if (IsA(lfirst(lc), BitmapHeapPath))
		return lfirst(lc);
	return NULL;
}

/* ---- paths ---- */

/* How many rows the query wants; 0: not known when it is planned. */
static double
wanted_rows(PlannerInfo *root)
{
	/* a sort by further keys looks at one row more */
	double		more = list_length(root->query_pathkeys) > 1 ? 1 : 0;

	return root->limit_tuples > 0 && root->limit_tuples <= PG_INT32_MAX - 1 ?
		root->limit_tuples + more : 0;
}

/* Are the rows of this relation, in their order, those of the query? */
static bool
is_whole_query(PlannerInfo *root, RelOptInfo *rel)
{
	return bms_equal(rel->relids, QvAllQueryRels(root)) && root->rowMarks == NIL &&
		list_length(root->query_pathkeys) == 1;
}

/* Is there a distance by that operator in an expression?  What stands in a placeholder is found too. */
static bool
has_distance(Node *node, void *order)
{
	Oid			operator = ((const OpExpr *) order)->opno;

	if (node == NULL)
		return false;
	if (IsA(node, OpExpr) &&
		(((OpExpr *) node)->opno == operator || ((OpExpr *) node)->opno == get_commutator(operator)))
		return true;
	return expression_tree_walker(node, has_distance, order);
}

/*
 * Are the rows of this relation all that the query wants of it, in this order?  Then how far they are
 * is of interest to the scan only, unless that is returned.
 */
static bool
orders_only(PlannerInfo *root, RelOptInfo *rel, const Expr *order)
{
	const Query *query = root->parse;
	ListCell   *lc;

	if (!is_whole_query(root, rel) || rel->reloptkind != RELOPT_BASEREL || query->commandType != CMD_SELECT ||
		query->limitCount == NULL || query->limitOption != LIMIT_OPTION_COUNT || query->hasAggs ||
		query->hasWindowFuncs || query->hasTargetSRFs || query->groupClause || query->groupingSets ||
		query->distinctClause || query->setOperations || query->havingQual ||
		root->placeholder_list != NIL)
		return false;
	foreach(lc, root->processed_tlist)
	{
		const TargetEntry *target = lfirst_node(TargetEntry, lc);

		if (!target->resjunk && has_distance((Node *) target->expr, (void *) order))
			return false;
	}
	return true;
}

static Expr *
limit_expr(Node *expr)
{
	if (expr == NULL || contain_volatile_functions(expr))
		return (Expr *) makeNullConst(INT8OID, -1, InvalidOid);
	return (Expr *) expr;
}

/*
 * What the operator's function makes of a distance: so that a row that is returned need
 * not be measured again.  Known of functions of the library that the access method is of.
 */
static TopkResult
result_of(const OpExpr *order, const IndexOptInfo *index)
{
	TopkResult	result = TOPK_RESULT_UNKNOWN;
	HeapTuple	function = SearchSysCache1(PROCOID, ObjectIdGetDatum(get_opcode(order->opno)));
	HeapTuple	am = SearchSysCache1(AMOID, ObjectIdGetDatum(index->relam));
	HeapTuple	handler = SearchSysCache1(PROCOID, ObjectIdGetDatum(((Form_pg_am) GETSTRUCT(am))->amhandler));
	bool		internal,
				isnull;
	Datum		library = SysCacheGetAttr(PROCOID, function, Anum_pg_proc_probin, &internal);
	Datum		ours = SysCacheGetAttr(PROCOID, handler, Anum_pg_proc_probin, &isnull);

	if (!internal && !isnull && strcmp(TextDatumGetCString(library), TextDatumGetCString(ours)) == 0)
	{
		char	   *symbol = TextDatumGetCString(SysCacheGetAttr(PROCOID, function,
																 Anum_pg_proc_prosrc, &isnull));
		int			before = strlen(symbol) - strlen("l2_distance");

		result = before >= 0 && strcmp(symbol + before, "l2_distance") == 0 ?
			TOPK_RESULT_ROOT : TOPK_RESULT_SAME;
	}
	ReleaseSysCache(function);
	ReleaseSysCache(am);
	ReleaseSysCache(handler);
	return result;
}

/*
 * The radius of the search: r of a condition "expr < r" or "<=" on the ORDER BY expression,
 * which *found gets.  The row is tested by it all the same.
 */
static Expr *
find_radius(PlannerInfo *root, RelOptInfo *rel, const IndexOptInfo *index, Expr *order,
			RestrictInfo **found)
{
	ListCell   *lc;

	*found = NULL;

	foreach(lc, rel->baserestrictinfo)
	{
		RestrictInfo *info = lfirst(lc);
		OpExpr	   *op = (OpExpr *) info->clause;

		if (!is_opclause(op) || list_length(op->args) != 2 ||
			!restriction_is_securely_promotable(info, rel))
			continue;
		for (int side = 0; side < 2; side++)
		{
			Oid			operator = side == 0 ? op->opno : get_commutator(op->opno);
			Node	   *value = list_nth(op->args, 1 - side);

			if ((operator == Float8LessOperator || operator == FLOAT8_LESS_EQUAL_OPERATOR) &&
				equal(list_nth(op->args, side), order) &&
				bms_is_empty(pull_varnos(root, value)) && !contain_volatile_functions(value))
			{
				/*
				 * another library's operator says nothing of distances in the
				 * index
				 */
				if (result_of((OpExpr *) order, index) == TOPK_RESULT_UNKNOWN)
					return NULL;
				*found = info;
				return (Expr *) value;
			}
		}
	}
	return NULL;
}

/*
 * Does a condition compare with a parameter, and not for equality?  Then how many rows pass is no
 * more than a default, such as a third.
 */
static bool
is_default_estimate(Node *node, void *context)
{
	Oid			operator = InvalidOid;

	if (node == NULL)
		return false;
	if (IsA(node, Param))
		return true;
	if (IsA(node, OpExpr))
		operator = ((OpExpr *) node)->opno;
	else if (IsA(node, ScalarArrayOpExpr))
		operator = ((ScalarArrayOpExpr *) node)->opno;
	if (OidIsValid(operator))
	{
		Oid			estimator = get_oprrest(operator);

		if (estimator == F_EQSEL || estimator == F_NEQSEL)
			return false;
	}
	return expression_tree_walker(node, is_default_estimate, context);
}

static bool
has_default_estimate(const List *conditions)
{
	ListCell   *lc;

	foreach(lc, conditions)
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, lc);

		if (!info->pseudoconstant && is_default_estimate((Node *) info->clause, NULL))
			return true;
	}
	return false;
}

/* Likewise, of the conditions that a bitmap's scans answer. */
static bool
has_default_members(const Path *path)
{
	const List *parts = IsA(path, BitmapAndPath) ? ((const BitmapAndPath *) path)->bitmapquals :
		IsA(path, BitmapOrPath) ? ((const BitmapOrPath *) path)->bitmapquals : NIL;
	const List *clauses = IsA(path, IndexPath) ? ((const IndexPath *) path)->indexclauses : NIL;
	ListCell   *lc;

	foreach(lc, parts)
	{
		if (has_default_members(lfirst(lc)))
			return true;
	}
	foreach(lc, clauses)
	{
		if (is_default_estimate((Node *) lfirst_node(IndexClause, lc)->rinfo->clause, NULL))
			return true;
	}
	return false;
}

/* What reading a row's value and measuring it costs, in fetches of the row. */
static double
measure_cost(RangeTblEntry *rte, AttrNumber attribute)
{
	int32		width = attribute > 0 ? get_attavgwidth(rte->relid, attribute) : 0;
	Oid			type;
	int32		typmod;
	Oid			collation;

	if (width <= 0)
		return INLINE_COST;
	get_atttypetypmodcoll(rte->relid, attribute, &type, &typmod, &collation);
	/* a pointer to what is stored elsewhere */
	if (width <= MAX_TOAST_POINTER && typmod > MAX_TOAST_POINTER)
		return OUT_OF_LINE_COST;
	return INLINE_COST + width * BYTE_COST;
}

/* Take the place of a plain scan of the same index in the same order. */
static Path *
make_path(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte, IndexPath *plain,
		  Expr *order, Expr *query, BitmapHeapPath *bitmap)
{
	CustomPath *path = makeNode(CustomPath);
	RestrictInfo *within;
	TopkResult	result = result_of((OpExpr *) order, plain->indexinfo);
	Expr	   *radius = find_radius(root, rel, plain->indexinfo, order, &within);
	List	   *filters = list_difference_ptr(plain->indexinfo->indrestrictinfo, list_make1(within));
	double		rows = clamp_row_est(plain->indexinfo->tuples);
	double		pass = rel->rows;
	double		numbers[TOPK_PRIVATE_FIELDS - TOPK_PRIVATE_RANK];
	List	   *private;
	Cost		cost;
	Selectivity selectivity = 0;

	path->path = plain->path;
	path->path.type = T_CustomPath;
	path->path.pathtype = T_CustomScan;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->methods = &topk_path_methods;
	if (bitmap)
	{
		cost_bitmap_tree_node(bitmap->bitmapqual, &cost, &selectivity);
		path->custom_paths = list_make1(bitmap);
	}
	private = list_make5(makeInteger(TOPK_PLAN_VERSION),
						 makeInteger((int) plain->indexinfo->indexoid),
						 makeInteger((int) wanted_rows(root)),
						 makeBoolean(!is_whole_query(root, rel)),
						 makeBoolean(orders_only(root, rel, order)));
	private = lappend(private, makeBoolean(filters != NIL));
	private = lappend(private, makeInteger(result));
	private = lappend(private, makeBoolean(root->qual_security_level > 0));
	private = lappend(private, makeBoolean(bitmap ? has_default_members(bitmap->bitmapqual) : has_default_estimate(filters)));

	/*
	 * the rows within the radius are the nearest: it has no part in how many
	 * are met
	 */
	if (within && within->norm_selec > 0)
		pass /= within->norm_selec;
	numbers[TOPK_PRIVATE_RANK - TOPK_PRIVATE_RANK] = rows / Min(rows, clamp_row_est(pass));
	numbers[TOPK_PRIVATE_TABLE - TOPK_PRIVATE_RANK] = rows;
	numbers[TOPK_PRIVATE_MEASURE - TOPK_PRIVATE_RANK] =
		measure_cost(rte, plain->indexinfo->indexkeys[0]);
	numbers[TOPK_PRIVATE_MEMBERS - TOPK_PRIVATE_RANK] = clamp_row_est(selectivity * rel->tuples);
	/* with a point: without one, a worker would read them as integers */
	for (int i = 0; i < lengthof(numbers); i++)
		private = lappend(private, makeFloat(psprintf("%.3f", numbers[i])));
	path->custom_private =
		list_make2(list_make5(order, query, limit_expr(root->parse->limitCount),
							  limit_expr(root->parse->limitOffset),
							  radius ? radius : (Expr *) makeNullConst(FLOAT8OID, -1, InvalidOid)),
				   private);
	path->path.parallel_safe &= is_parallel_safe(root, linitial(path->custom_private));
	return &path->path;
}

/* Could a plain scan of the index give that order, by the same value? */
static bool
is_plain_scan(Path *path, IndexOptInfo *index)
{
	return IsA(path, IndexPath) && ((IndexPath *) path)->indexinfo == index &&
		list_length(((IndexPath *) path)->indexorderbys) == 1 && path->param_info == NULL;
}

static void
topk_set_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	BitmapHeapPath *bitmap = NULL;
	bool		bitmap_made = false;
	ListCell   *lc;

	if (previous_hook)
		previous_hook(root, rel, rti, rte);
	if (!topk_scan || root->query_pathkeys == NIL || rel->indexlist == NIL ||
		root->limit_tuples > (double) work_mem * 1024 / TOPK_BYTES_PER_ROW)
		return;
	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst(lc);
		Expr	   *order,
				   *query;
		RestrictInfo *within;
		ListCell   *place;

		if ((amcostestimate_function) index->amcostestimate != KnnCostEstimate ||
			index->hypothetical || !is_plain_table(rel, rte))
			continue;
		query = match_order(root, rel, index, linitial(root->query_pathkeys), &order);
		if (query == NULL ||
			(root->parse->limitCount == NULL && find_radius(root, rel, index, order, &within) == NULL))
			continue;
		foreach(place, rel->pathlist)
		{
			if (!is_plain_scan(lfirst(place), index))
				continue;
			if (!bitmap_made)
				bitmap = make_bitmap(root, rel);
			bitmap_made = true;
			lfirst(place) = make_path(root, rel, rte, lfirst(place), order, query, bitmap);
		}
	}
}

static Plan *
topk_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path, List *tlist,
		  List *clauses, List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);

	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = extract_actual_clauses(clauses, false);
	scan->scan.scanrelid = rel->relid;
	scan->flags = best_path->flags;
	scan->custom_exprs = linitial(best_path->custom_private);
	scan->custom_private = lsecond(best_path->custom_private);
	scan->methods = &qv_topk_scan_methods;
	if (custom_plans != NIL)
	{
		Plan	   *plan = linitial(custom_plans);

		/* conditions that are constant stand in a node above it */
		if (IsA(plan, Result))
			plan = outerPlan(plan);
		if (IsA(plan, BitmapHeapScan))
			scan->custom_plans = list_make1(outerPlan(plan));
	}
	return &scan->scan.plan;
}

void
QvTopkInit(void)
{
	/* a library whose initialization failed half way is initialized again */
	if (GetCustomScanMethods(qv_topk_scan_methods.CustomName, true) == NULL)
		RegisterCustomScanMethods(&qv_topk_scan_methods);
	if (set_rel_pathlist_hook != topk_set_rel_pathlist)
	{
		previous_hook = set_rel_pathlist_hook;
		set_rel_pathlist_hook = topk_set_rel_pathlist;
	}
	DefineCustomBoolVariable("quiver.topk_scan",
							 "Whether the planner may use the top-k scan.",
							 "The scan knows LIMIT and WHERE; off, queries use plain index scans.",
							 &topk_scan, true,
							 PGC_USERSET, 0, NULL, NULL, NULL);
}
