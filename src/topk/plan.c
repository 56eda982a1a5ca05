/*
 * plan.c
 *		Planning the top-k scan; see src/topk/README.md, "Planner".
 */
#include "postgres.h"

#include <float.h>

#include "access/detoast.h"
#include "access/table.h"
#include "access/tableam.h"
#include "am/handler.h"
#include "am/methods.h"
#include "catalog/pg_class_d.h"
#include "catalog/pg_type_d.h"
#include "compat.h"
#include "nodes/makefuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "pages/meta.h"
#include "query/filter.h"
#include "topk/form.h"
#include "topk/groups.h"
#include "topk/radius.h"
#include "topk/target.h"
#include "topk/topk.h"
#include "topk/ways.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/spccache.h"

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

/* Does the query read this relation, or the one that it is a part of, and no other? */
static bool
is_only_relation(PlannerInfo *root, const RelOptInfo *rel)
{
	return bms_equal(rel->top_parent_relids ? rel->top_parent_relids : rel->relids, QvAllQueryRels(root));
}

/* The clauses by which a relation joins the relations before it. */
static List *
join_clauses(PlannerInfo *root, RelOptInfo *joined, Relids before, RelOptInfo *other, SpecialJoinInfo *join)
{
	List	   *clauses = QvImpliedEqualities(root, joined->relids, before, other, join);
	ListCell   *lc;

	foreach(lc, other->joininfo)
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, lc);

		if (!QvIsClone(info) && bms_is_subset(info->required_relids, joined->relids))
			clauses = lappend(clauses, info);
	}
	return clauses;
}

/*
 * How many rows the joins of a query return, as the server estimates them; 0: not known.  Outer
 * joins and EXISTS are known if they join one other relation to what has this one.
 */
static double
joined_rows(PlannerInfo *root, RelOptInfo *rel)
{
	RelOptInfo *joined = makeNode(RelOptInfo);
	double		rows = rel->rows;
	ListCell   *lc;

	if (rel->reloptkind != RELOPT_BASEREL)
		return 0;
	joined->relids = bms_copy(rel->relids);
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		RelOptInfo *other = root->simple_rel_array[i];
		Relids		before = bms_copy(joined->relids);
		SpecialJoinInfo *join = NULL;
		Path		outer = {.parent = makeNode(RelOptInfo), .rows = rows};
		Path		inner = {.parent = other};

		foreach(lc, root->join_info_list)
		{
			SpecialJoinInfo *special = lfirst(lc);

			if (special->jointype == JOIN_FULL || bms_is_member(rel->relid, special->syn_righthand) ||
				bms_membership(special->syn_righthand) != BMS_SINGLETON)
				return 0;
			if (bms_is_member(i, special->syn_righthand))
				join = special;
		}
		if (other == NULL || other == rel || other->reloptkind != RELOPT_BASEREL)
			continue;
		inner.rows = other->rows;
		outer.parent->relids = before;
		joined->relids = bms_add_member(joined->relids, i);
		if (join == NULL)
		{
			join = makeNode(SpecialJoinInfo);
			join->min_lefthand = join->syn_lefthand = before;
			join->min_righthand = join->syn_righthand = other->relids;
			join->jointype = JOIN_INNER;
		}
		else
			joined->relids = QvAddOuterJoin(joined->relids, join);
		joined->rows = DBL_MAX;
		rows = get_parameterized_joinrel_size(root, joined, &outer, &inner, join,
											  join_clauses(root, joined, before, other, join));
	}
	return rows;
}

/* How many rows the query wants of a relation; 0: not known. */
static double
wanted_of(PlannerInfo *root, RelOptInfo *rel)
{
	double		wanted = wanted_rows(root);
	double		rows;

	if (wanted == 0 || is_only_relation(root, rel))
		return wanted;
	rows = joined_rows(root, rel);
	return rows > 0 ? Max(1, wanted * rel->rows / rows) : 0;
}

/* Are the rows of this relation, in their order, those of the query? */
static bool
is_whole_query(PlannerInfo *root, RelOptInfo *rel)
{
	return bms_equal(rel->relids, QvAllQueryRels(root)) && root->rowMarks == NIL &&
		root->parse->groupClause == NIL && root->parse->distinctClause == NIL && list_length(root->query_pathkeys) == 1;
}

/* Does a query take the first rows in an order, and look at them only one by one? */
static bool
takes_first_rows(const Query *query)
{
	return query->commandType == CMD_SELECT && KnnHasLimit(query) &&
		query->limitOption == LIMIT_OPTION_COUNT && query->groupClause == NIL && query->distinctClause == NIL &&
		!query->hasAggs && !query->hasWindowFuncs && !query->hasTargetSRFs && !query->groupingSets &&
		!query->havingQual;
}

/* May a merge join rely on the order of a target: does its key equal others? */
static bool
is_merged(const TopkTarget *target)
{
	int			members = 0;
	ListCell   *lc;

	foreach(lc, target->key->pk_eclass->ec_members)
	{
		members += !lfirst_node(EquivalenceMember, lc)->em_is_child;
	}
	return members > 1;
}

/*
 * May rows that are found late be out of order (TOPK_ORDER_...)?  Never, where something above
 * relies on it: nodes that find equal neighbors do, and merge joins.  In subqueries they do not
 * come last.
 */
static int
order_of_late(PlannerInfo *root, const TopkTarget *target)
{
	const Query *query = root->parse;

	/* a radius has no order */
	if (target->key == NULL)
		return 0;
	if (query->groupClause != NIL || query->distinctClause != NIL || query->hasWindowFuncs ||
		query->limitOption == LIMIT_OPTION_WITH_TIES || is_merged(target))
		return TOPK_ORDER_STRICT;
	return root->parent_root == NULL && takes_first_rows(query) &&
		target->index->rel->reloptkind == RELOPT_BASEREL ? TOPK_ORDER_LATE_LAST : 0;
}

/*
 * Are the rows of this relation all that the query wants of it, in this order?  Then how far they
 * are is of interest to the scan only, unless that is returned.
 */
static bool
orders_only(PlannerInfo *root, const TopkTarget *target)
{
	ListCell   *lc;

	if (target->key == NULL || target->within != NIL || !is_whole_query(root, target->index->rel) ||
		!takes_first_rows(root->parse) || root->placeholder_list != NIL)
		return false;
	foreach(lc, root->processed_tlist)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, lc);

		if (!entry->resjunk && TopkHasDistance((Node *) entry->expr, (Node *) target->form.distance))
			return false;
	}
	return true;
}

/* ---- costs ---- */

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
get_known(PlannerInfo *root, const TopkTarget *target, double passing, BitmapHeapPath *bitmap,
		  Relation relation, const QvSettings *settings, TopkKnown *known)
{
	const IndexOptInfo *index = target->index;
	const RelOptInfo *rel = index->rel;
	AttrNumber	column = index->indexkeys[0];
	int32		width = column > 0 ? get_attavgwidth(relation->rd_index->indrelid, column) : 0;
	int			dims = KnnDimensions(relation);

	/* on the average it is a pointer to where it is stored */
	bool		is_toasted = width > 0 && width <= TOAST_POINTER_SIZE && dims > TOAST_POINTER_SIZE;
	Cost		collect = 0;
	Selectivity selectivity = 0;

	memset(known, 0, sizeof(*known));
	known->index = relation;
	known->engine = KnnMethodOf(relation)->engine;
	known->settings = settings;
	known->sigmas = QvCurveSigmas(1 - settings->recall);
	known->by_value = true;
	QvGetUnits(index, dims, is_toasted ? TOAST_PAGES : 0, &known->units);
	known->units.filter = QvFilterCost(root, extract_actual_clauses(target->filter, false));
	known->rows = clamp_row_est(index->tuples);
	known->passing = Min(known->rows, clamp_row_est(passing));
	known->row_pages = known->engine->row_pages(relation);
	known->table_pages = rel->pages;
	known->table_rows = Max(1, rel->tuples);
	known->has_filter = target->filter != NIL && known->row_pages > 0;
	known->admitted = known->has_filter ?
		clauselist_selectivity(root, target->filter, rel->relid, JOIN_INNER, NULL) : 1;
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
 * Cost a path by what its ways cost.  The planner takes a share of what all rows cost beyond the
 * first ones; where it is known how many are wanted, that share is to be right.  A path with
 * parameters is for a condition on the distance, which is taken to leave few rows.  Returns whether
 * reading the table is the cheapest way to begin with.
 */
static bool
cost_path(Path *path, const TopkKnown *known, double wanted)
{
	double		rows = Max(1, path->param_info ? Min(path->rows, TOPK_FIRST_ROWS) : path->rows);
	double		first_rows = Min(rows, TOPK_FIRST_ROWS);
	double		start = QvDisabledCost(enable_indexscan);
	double		first = TopkScanCost(known, first_rows);
	double		all = TopkScanCost(known, rows);
	bool		takes_table = known->has_table && first >= TopkWayCost(known, TOPK_TABLE, first_rows);

	/*
	 * a scan that is to read the table looks for near rows before, so it is
	 * taken rather than a sort of all rows
	 */
	if (!takes_table)
		start += QV_START_OPERATORS * cpu_operator_cost;
	if (wanted > 0 && wanted < rows)
		all = first + (TopkScanCost(known, Max(wanted, first_rows)) - first) * rows / wanted;
	path->startup_cost = start + first + path->pathtarget->cost.startup;
	path->total_cost = path->startup_cost + Max(0, all - first) + path->pathtarget->cost.per_tuple * path->rows;
	return takes_table;
}

/* ---- the path ---- */

static Plan *
topk_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *best_path, List *tlist,
		  List *clauses, List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);
	List	   *filter = list_nth(linitial(best_path->custom_private), TOPK_EXPR_FILTER);

	scan->scan.plan.targetlist = tlist;
	/* the scan itself tests conditions on included columns */
	scan->scan.plan.qual = list_difference(extract_actual_clauses(clauses, false), filter);
	scan->scan.scanrelid = rel->relid;
	scan->flags = best_path->flags;
	scan->custom_exprs = linitial(best_path->custom_private);
	scan->custom_private = lsecond(best_path->custom_private);
	scan->methods = &qv_topk_scan_methods;
	if (custom_plans != NIL)
	{
		Plan	   *plan = linitial(custom_plans);

		/* conditions that are constant stand in a node above the bitmap scan */
		outerPlan(scan) = outerPlan(IsA(plan, Result) ? outerPlan(plan) : plan);
	}
	return &scan->scan.plan;
}

/*
 * In a join partition by partition the value comes from a child of the relation that the path was
 * made for.
 */
static List *
topk_reparameterize(PlannerInfo *root, List *private, RelOptInfo *child)
{
	return list_make2(QvAdjustToChild(root, linitial(private), child), lsecond(private));
}

static const CustomPathMethods topk_path_methods = {
	.CustomName = "Quiver Top-K Scan",
	.PlanCustomPath = topk_plan,
	.ReparameterizeCustomPathByChild = topk_reparameterize
};

/*
 * How many of the rows that pass all conditions would pass if none were on the distance.  Those say
 * how near rows are, and not how many are met.
 */
static double
passing_rows(const TopkTarget *target, double rows)
{
	List	   *on_distance = list_concat_copy(target->within, target->outside);
	ListCell   *lc;

	foreach(lc, on_distance)
	{
		const RestrictInfo *info = lfirst(lc);

		if (list_member_ptr(target->index->rel->baserestrictinfo, info) && info->norm_selec > 0)
			rows /= info->norm_selec;
	}
	return rows;
}

/* What the scan gets besides expressions. */
static List *
get_private(PlannerInfo *root, const TopkTarget *target, const TopkKnown *known)
{
	RelOptInfo *rel = target->index->rel;
	AttrNumber	column = target->index->indexkeys[0];
	TopkPlanned planned;

	/* what is between the fields is copied, too */
	memset(&planned, 0, sizeof(planned));
	planned.version = TOPK_PLAN_VERSION;
	planned.index = target->index->indexoid;
	planned.rows = wanted_rows(root);
	planned.limited = KnnHasLimit(root->parse) && !target->of_groups;
	planned.hint = !is_whole_query(root, rel);
	planned.guesses = orders_only(root, target);
	planned.filtered = known->filtered;
	planned.secured = root->qual_security_level > 0;
	planned.reads_as = rel->userid;
	planned.result = target->form.result;
	planned.needs = target->needs;
	planned.order = target->order | order_of_late(root, target);
	planned.not_null = column > 0 && QvColumnIsNotNull(known->index->rd_index->indrelid, rel, column);
	planned.indexed = known->rows / Max(1, rel->tuples);
	planned.passing = known->passing / known->rows;
	planned.members = known->members / known->rows;
	planned.collect = known->collect / Max(1, known->members);
	planned.admitted = known->admitted;
	planned.units = known->units;
	return list_make1(makeConst(BYTEAOID, -1, InvalidOid, -1,
								PointerGetDatum(cstring_to_text_with_len((char *) &planned, sizeof(planned))),
								false, false));
}

/*
 * Is reading the table a way that the planner counts?  Other paths that read it are exact, so it is
 * for a few rows only, and where the search has all rows and the user has set it no end.
 */
static bool
counts_table(const TopkKnown *known, double wanted, int left_out)
{
	return known->filtered && wanted > 0 && wanted <= TOPK_MOST_EXPECTED && left_out == 0 &&
		TopkMostRows(known->settings) == PG_INT64_MAX && !TopkHasMostLists(known->settings);
}

/*
 * A sort by the distance, or a condition on it, reads the values that rows have elsewhere.  The
 * server does not count that.  rows: of which the distance is computed.
 */
static void
count_values(RelOptInfo *rel, double rows, double value_cost)
{
	ListCell   *lc;

	foreach(lc, list_concat_copy(rel->pathlist, rel->partial_pathlist))
	{
		Path	   *path = lfirst(lc);

		if (path->parallel_workers > 0 || (path->param_info == NULL && path->pathkeys == NIL))
			path->total_cost += value_cost * rows * path->rows / rel->rows;
	}
}

/*
 * Add a path to a relation, unless it would miss rows that it must return, or conditions of its
 * own are volatile.
 */
static bool
add_topk_path(PlannerInfo *root, TopkTarget *target, double rows, BitmapHeapPath *bitmap, bool *counted)
{
	const IndexOptInfo *index = target->index;
	RelOptInfo *rel = index->rel;
	CustomPath *path = makeNode(CustomPath);
	ParamPathInfo *param = get_baserel_parampathinfo(root, rel, target->outer);
	List	   *further = param ? param->ppi_clauses : NIL;
	Relation	relation = index_open(index->indexoid, NoLock);
	QvSettings	settings;
	TopkKnown	known,
				costed;
	List	   *exprs;
	List	   *conditions;
	bool		is_filtered;
	int			left_out = QvMetaLeftOut(relation);
	bool		misses = target->is_missed || QvMetaMissing(relation, target->needs) != 0 ||
		contain_volatile_functions((Node *) further);
	double		wanted;

	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = rel->reltarget;
	path->path.param_info = param;
	conditions = list_difference_ptr(list_concat_copy(index->indrestrictinfo, further), target->within);
	is_filtered = TopkAddFilter(target, conditions);
	/* TopkExpr */
	exprs = lappend(list_make5(target->form.distance, target->form.value,
							   extract_actual_clauses(target->within, false),
							   target->written, extract_actual_clauses(target->filter, false)),
					extract_actual_clauses(target->outside, false));
	exprs = lappend(exprs, target->limit);
	path->path.rows = param ? param->ppi_rows : rel->rows;
	path->path.parallel_safe = rel->consider_parallel && is_parallel_safe(root, (Node *) exprs);
	if (target->key)
		path->path.pathkeys = list_make1(target->key);
	QvCountDisabled(&path->path, enable_indexscan);
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->methods = &topk_path_methods;
	if (bitmap)
		path->custom_paths = list_make1(bitmap);
	KnnSettingsOf(relation, &settings);
	get_known(root, target, passing_rows(target, rows), bitmap, relation, &settings, &known);
	known.filtered = is_filtered;
	if (target->key && !*counted && is_only_relation(root, rel))
	{
		count_values(rel, known.passing, known.units.value - known.units.measure);
		*counted = true;
	}
	wanted = param ? 0 : wanted_of(root, rel);
	known.has_table = counts_table(&known, wanted, left_out);
	costed = known;

	/*
	 * Other paths count the table's pages as read from disk.  A path that
	 * runs again and again finds its own in memory.
	 */
	if (param == NULL)
	{
		double		next_page;

		get_tablespace_page_costs(rel->reltablespace, &costed.units.row_page, &next_page);
		costed.units.next_row = costed.units.test + next_page * rel->pages / Max(1, rel->tuples);
	}
	/* when it is executed, the index may have left out rows */
	if (cost_path(&path->path, &costed, wanted))
		target->needs |= QV_LEFT_OUT_NULLS | QV_LEFT_OUT_NANS;
	path->custom_private = list_make2(exprs, get_private(root, target, &known));
	index_close(relation, NoLock);
	if (!misses)
		add_path(rel, &path->path);
	return !misses;
}

/* Take out the plain scans of an index, in its order, whose place a path takes. */
static void
drop_plain_scans(const IndexOptInfo *index)
{
	RelOptInfo *rel = index->rel;
	ListCell   *lc;

	foreach(lc, rel->pathlist)
	{
		IndexPath  *path = lfirst(lc);

		if (IsA(path, IndexPath) && path->indexinfo == index && list_length(path->indexorderbys) == 1 &&
			path->path.param_info == NULL)
			rel->pathlist = foreach_delete_current(rel->pathlist, lc);
	}
}

/*
 * How many rows of a relation are within a target's radius, among all that meet its other
 * conditions, and not less than "few"; INFINITY: that is not known.
 */
static double
rows_within(PlannerInfo *root, const TopkTarget *target, double few)
{
	const RelOptInfo *rel = target->index->rel;
	double		passing = passing_rows(target, rel->rows);
	double		share;
	Relation	index;

	/* the radius only ends a search */
	if (target->key && is_only_relation(root, rel))
		return Min(few, passing);
	index = index_open(target->index->indexoid, NoLock);
	share = TopkShareWithin(root, target, index);
	index_close(index, NoLock);
	return share < 0 ? INFINITY : Min(passing, Max(few, share * passing));
}

/*
 * Have all paths of a relation return as many rows as are within the radii of its targets: the
 * least number that is known, else a few.  The server takes a condition on the distance for one in
 * three, for which a scan of the table seems to find the first rows at once.
 */
static void
expect_within(PlannerInfo *root, RelOptInfo *rel, const List *targets)
{
	/* more than are asked for, so that the order of a path is worth something */
	double		few = Max(TOPK_FIRST_ROWS, 2 * wanted_rows(root));
	double		rows = INFINITY;
	bool		has_radius = false;
	double		factor;
	ListCell   *lc;

	foreach(lc, targets)
	{
		const TopkTarget *target = lfirst(lc);

		if (!bms_is_empty(target->outer) || target->within == NIL)
			continue;
		has_radius = true;
		rows = Min(rows, rows_within(root, target, few));
	}
	if (!has_radius)
		return;
	rows = clamp_row_est(isinf(rows) ? Min(few, rel->rows) : rows);
	factor = rows / rel->rows;
	rel->rows = rows;
	foreach(lc, list_concat_copy(rel->pathlist, rel->partial_pathlist))
	{
		Path	   *path = lfirst(lc);

		if (path->param_info == NULL)
			path->rows = clamp_row_est(path->rows * factor);
	}
}

/* What all indexes of a relation may be searched for. */
static List *
find_targets(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte, PathKey *groups)
{
	List	   *targets = NIL;
	ListCell   *lc;

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst(lc);

		if ((amcostestimate_function) index->amcostestimate == KnnCostEstimate &&
			!index->hypothetical && (index->indpred == NIL || index->predOK) && is_plain_table(rel, rte))
			targets = list_concat(targets, TopkFindTargets(root, index, groups));
	}
	return targets;
}

static void
topk_set_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	BitmapHeapPath *bitmap;
	bool		counted = false;
	PathKey    *groups;
	List	   *targets;
	double		rows = rel->rows;
	ListCell   *lc;

	if (previous_hook)
		previous_hook(root, rel, rti, rte);
	if (!topk_scan || rel->indexlist == NIL ||
	/* rows may be tested more than once, which conditions would tell */
		contain_volatile_functions((Node *) rel->baserestrictinfo))
		return;
	groups = TopkGroupsKey(root);
	targets = find_targets(root, rel, rte, groups);
	if (targets == NIL)
		return;
	bitmap = make_bitmap(root, rel);
	expect_within(root, rel, targets);
	foreach(lc, targets)
	{
		TopkTarget *target = lfirst(lc);

		/* the path takes the place of these */
		if (target->key && !target->of_groups)
			drop_plain_scans(target->index);
		if (!add_topk_path(root, target, rows, bitmap, &counted))
			/* the server may have dropped it for one of these */
			add_path(rel, create_seqscan_path(root, rel, rel->lateral_relids, 0));
		/* joins keep the order from now on */
		else if (target->of_groups &&
				 (root->query_pathkeys == NIL || linitial(root->query_pathkeys) != groups))
			QvKeepOrder(root, list_make1(groups));
	}
}

void
QvTopkInit(void)
{
	/* a library whose initialization failed half way is initialized again */
	if (GetCustomScanMethods(qv_topk_scan_methods.CustomName, true) == NULL)
	{
		RegisterCustomScanMethods(&qv_topk_scan_methods);
		previous_hook = set_rel_pathlist_hook;
		set_rel_pathlist_hook = topk_set_rel_pathlist;
		TopkGroupsInit();
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
