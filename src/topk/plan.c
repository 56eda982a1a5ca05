/*
 * plan.c
 *		Planning the top-k scan; see src/topk/README.md, "Planner".
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "am/handler.h"
#include "am/methods.h"
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
#include "topk/ways.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/spccache.h"
#include "utils/syscache.h"

/* pg_operator.dat; the server has no name for it. */
#define FLOAT8_LESS_EQUAL_OPERATOR 673

/* Average bytes of a value that is a pointer to where it is stored, or a little more. */
#define MAX_TOAST_POINTER 24

/* Pages of a row's value that is stored elsewhere: of the index, and of the values. */
#define TOAST_PAGES 2

static bool topk_scan = true;
int			topk_way = TOPK_WAYS;

static const struct config_enum_entry topk_ways[] = {
	{"auto", TOPK_WAYS, false},
	{"index", TOPK_WALK, false},
	{"row_pages", TOPK_CODES, false},
	{"other_indexes", TOPK_SET, false},
	{"table", TOPK_TABLE, false},
	{NULL, 0, false}
};
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

/*
 * Is there a distance by that operator in an expression?  What stands in a placeholder is found
 * too.
 */
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
 * Are the rows of this relation all that the query wants of it, in this order?  Then how far they
 * are is of interest to the scan only, unless that is returned.
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

/* ---- costs ---- */

/* Is a value of the column stored elsewhere, as far as is known? */
static bool
is_out_of_line(RangeTblEntry *rte, AttrNumber attribute)
{
	int32		width = attribute > 0 ? get_attavgwidth(rte->relid, attribute) : 0;
	Oid			type,
				collation;
	int32		typmod;

	if (width <= 0 || width > MAX_TOAST_POINTER)
		return false;
	get_atttypetypmodcoll(rte->relid, attribute, &type, &typmod, &collation);
	return typmod > MAX_TOAST_POINTER;
}

/* Costs of one of each thing that a search counts. */
static void
get_units(RelOptInfo *rel, RangeTblEntry *rte, const IndexOptInfo *index, int dims, QvUnits *units)
{
	QvUnitsOf	of = {
		.index_tablespace = index->reltablespace,
		.table_tablespace = rel->reltablespace,
		.index_pages = index->pages,
		.table_pages = rel->pages,
		.table_rows = rel->tuples,
		.dims = dims,
		.test = cpu_tuple_cost + rel->baserestrictcost.per_tuple,
		.value_pages = is_out_of_line(rte, index->indexkeys[0]) ? TOAST_PAGES : 0
	};

	QvGetUnits(&of, units);
}

/* What a path of bitmaps costs, if only that share of its indexes' pages is read from disk. */
static Cost
collect_cost(Path *path, double misses)
{
	List	   *children = IsA(path, BitmapAndPath) ? ((BitmapAndPath *) path)->bitmapquals :
		IsA(path, BitmapOrPath) ? ((BitmapOrPath *) path)->bitmapquals : NIL;
	Cost		cost = 0;
	ListCell   *lc;

	if (IsA(path, IndexPath))
	{
		IndexPath  *scan = (IndexPath *) path;
		double		random;

		/* as genericcostestimate() counts pages */
		get_tablespace_page_costs(scan->indexinfo->reltablespace, &random, NULL);
		return Max(0, scan->indextotalcost -
				   ceil(scan->indexselectivity * scan->indexinfo->pages) * random * (1 - misses));
	}
	foreach(lc, children)
	{
		cost += collect_cost(lfirst(lc), misses);
	}
	return cost;
}

/* What is known of a path's ways when it is planned. */
static void
get_known(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte, const IndexOptInfo *index,
		  double passing, BitmapHeapPath *bitmap, Relation relation, const QvSettings *settings,
		  TopkKnown *known)
{
	Cost		collect = 0;
	Selectivity selectivity = 0;

	memset(known, 0, sizeof(*known));
	known->index = relation;
	known->engine = KnnMethodOf(relation)->engine;
	known->settings = settings;
	get_units(rel, rte, index, KnnDimensions(relation), &known->units);
	known->rows = clamp_row_est(index->tuples);
	known->passing = Min(known->rows, clamp_row_est(passing));
	known->row_pages = known->engine->row_pages(relation);
	if (bitmap)
	{
		cost_bitmap_tree_node(bitmap->bitmapqual, &collect, &selectivity);
		known->has_set = true;
		known->bitmap = bitmap->path.total_cost;
		known->members = clamp_row_est(selectivity * rel->tuples);
		known->collect = collect_cost(bitmap->bitmapqual, QvMissShare(rel->pages + index->pages));
	}
}

/*
 * Cost a path by its cheapest way.  The planner takes a share of what all rows cost beyond the
 * first ones; where it is known how many are wanted, that share is to be right.
 */
static void
cost_path(Path *path, const TopkKnown *known, double wanted)
{
	double		rows = Max(1, path->rows);
	double		start = QV_START_OPERATORS * cpu_operator_cost + QvDisabledCost(enable_indexscan);
	double		first = TopkLeastCost(known, Min(rows, TOPK_FIRST_ROWS));
	double		all = TopkLeastCost(known, rows);

	if (wanted > 0 && wanted < rows)
		all = first + (TopkLeastCost(known, Max(wanted, Min(rows, TOPK_FIRST_ROWS))) - first) * rows / wanted;
	path->startup_cost = start + first + path->pathtarget->cost.startup;
	path->total_cost = path->startup_cost + Max(0, all - first) + path->pathtarget->cost.per_tuple * rows;
}

/* ---- the path ---- */

/* Take the place of a plain scan of the same index in the same order. */
static Path *
make_path(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte, IndexPath *plain,
		  Expr *order, Expr *query, BitmapHeapPath *bitmap)
{
	CustomPath *path = makeNode(CustomPath);
	const IndexOptInfo *index = plain->indexinfo;
	RestrictInfo *within;
	TopkResult	result = result_of((OpExpr *) order, index);
	Expr	   *radius = find_radius(root, rel, index, order, &within);
	List	   *filters = list_difference_ptr(index->indrestrictinfo, list_make1(within));
	Relation	relation = index_open(index->indexoid, NoLock);
	double		pass = rel->rows;
	QvSettings	settings;
	TopkKnown	known;
	List	   *private;
	double		numbers[TOPK_PRIVATE_FIELDS - TOPK_PRIVATE_INDEXED];

	path->path = plain->path;
	path->path.type = T_CustomPath;
	path->path.pathtype = T_CustomScan;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->methods = &topk_path_methods;
	if (bitmap)
		path->custom_paths = list_make1(bitmap);

	/*
	 * the rows within the radius are the nearest: it has no part in how many
	 * are met
	 */
	if (within && within->norm_selec > 0)
		pass /= within->norm_selec;
	KnnSettingsOf(relation, &settings);
	get_known(root, rel, rte, index, pass, bitmap, relation, &settings, &known);
	known.filtered = filters != NIL;
	cost_path(&path->path, &known, wanted_rows(root));
	index_close(relation, NoLock);

	private = list_make5(makeInteger(TOPK_PLAN_VERSION),
						 makeInteger((int) index->indexoid),
						 makeInteger((int) wanted_rows(root)),
						 makeBoolean(!is_whole_query(root, rel)),
						 makeBoolean(orders_only(root, rel, order)));
	private = lappend(private, makeBoolean(known.filtered));
	private = lappend(private, makeInteger(result));
	private = lappend(private, makeBoolean(root->qual_security_level > 0));
	numbers[0] = known.rows / Max(1, rel->tuples);
	numbers[TOPK_PRIVATE_PASSING - TOPK_PRIVATE_INDEXED] = known.passing / known.rows;
	numbers[TOPK_PRIVATE_MEMBERS - TOPK_PRIVATE_INDEXED] = known.members / known.rows;
	numbers[TOPK_PRIVATE_COLLECT - TOPK_PRIVATE_INDEXED] = known.collect / Max(1, known.members);
	memcpy(&numbers[TOPK_PRIVATE_UNITS - TOPK_PRIVATE_INDEXED], &known.units, sizeof(known.units));

	/*
	 * as floats with an exponent: without one, a worker would read some as
	 * integers
	 */
	for (int i = 0; i < lengthof(numbers); i++)
		private = lappend(private, makeFloat(psprintf("%.9e", numbers[i])));
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

/* Rows may be tested more than once, which conditions of these would tell. */
static bool
has_volatile_conditions(const RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->baserestrictinfo)
	{
		if (contain_volatile_functions((Node *) lfirst_node(RestrictInfo, lc)->clause))
			return true;
	}
	return false;
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
		has_volatile_conditions(rel))
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
	DefineCustomEnumVariable("quiver.topk_way",
							 "For tests: the way by which the top-k scan finds rows.",
							 "A way that a query has not is not taken.",
							 &topk_way, TOPK_WAYS, topk_ways,
							 PGC_USERSET, GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL, NULL, NULL, NULL);
	DefineCustomBoolVariable("quiver.topk_scan",
							 "Whether the planner may use the top-k scan.",
							 "The scan knows LIMIT and WHERE; off, queries use plain index scans.",
							 &topk_scan, true,
							 PGC_USERSET, 0, NULL, NULL, NULL);
}
