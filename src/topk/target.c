/*
 * target.c
 *		What a query lets an index be searched for; see target.h.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/sysattr.h"
#include "am/methods.h"
#include "compat.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "pages/meta.h"
#include "parser/parsetree.h"
#include "topk/groups.h"
#include "topk/target.h"
#include "topk/topk.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

/* ---- orders and radii ---- */

/* The operator family that orders a type. */
static Oid
order_family(const Node *expr)
{
	return lookup_type_cache(exprType(expr), TYPECACHE_BTREE_OPFAMILY)->btree_opf;
}

static bool
has_column(Node *node, void *index)
{
	if (node == NULL)
		return false;
	return match_index_to_operand(node, 0, index) || expression_tree_walker(node, has_column, index);
}

/* May rows that meet the conditions have no value in the index's column? */
static bool
may_be_null(PlannerInfo *root, IndexOptInfo *index)
{
	const RelOptInfo *rel = index->rel;
	ListCell   *lc;

	if (index->indexkeys[0] > 0 &&
		QvColumnIsNotNull(planner_rt_fetch(rel->relid, root)->relid, rel, index->indexkeys[0]))
		return false;
	foreach(lc, rel->baserestrictinfo)
	{
		Node	   *clause = (Node *) lfirst_node(RestrictInfo, lc)->clause;

		if (KnnIsNullTest(clause, IS_NOT_NULL, index) ||
			(!contain_nonstrict_functions(clause) && has_column(clause, index)))
			return false;
	}
	return true;
}

/* Could a form give another order, or other rows, than the index's distance does? */
static bool
is_misleading(PlannerInfo *root, const TopkForm *form, IndexOptInfo *index)
{
	return (form->fills_nans && form->may_be_nan) || (form->fills_nulls && may_be_null(root, index));
}

/* The rows that do not meet a condition on a form of the distance. */
typedef enum Excluded
{
	EXCLUDES_FAR,
	EXCLUDES_NEAR,
	EXCLUDES_OTHERS				/* or it is none */
} Excluded;

/* Which rows does a condition exclude?  What it is compared with may be of other relations. */
static Excluded
match_bound(PlannerInfo *root, IndexOptInfo *index, const RestrictInfo *info, TopkForm *form)
{
	const OpExpr *op = (const OpExpr *) info->clause;

	if (!is_opclause(op) || list_length(op->args) != 2)
		return EXCLUDES_OTHERS;
	for (int side = 0; side < 2; side++)
	{
		Node	   *left = list_nth(op->args, side);
		Node	   *right = list_nth(op->args, 1 - side);
		Oid			operator = side == 0 ? op->opno : get_commutator(op->opno);
		int			strategy;

		if (!OidIsValid(operator) || !TopkMatchForm(index, left, form) ||
			form->result == TOPK_RESULT_UNKNOWN || form->may_fail || is_misleading(root, form, index) ||
			bms_is_member(index->rel->relid, pull_varnos(root, right)) || contain_volatile_functions((Node *) op) ||
			contain_subplans(right))
			continue;
		strategy = get_op_opfamily_strategy(operator, order_family(left));
		if (strategy == BTLessStrategyNumber || strategy == BTLessEqualStrategyNumber)
			return form->falls ? EXCLUDES_NEAR : EXCLUDES_FAR;
		if (strategy == BTGreaterStrategyNumber || strategy == BTGreaterEqualStrategyNumber)
			return form->falls ? EXCLUDES_FAR : EXCLUDES_NEAR;
	}
	return EXCLUDES_OTHERS;
}

/* Add to a target those of some conditions that are on the distance from its value. */
static void
add_bounds(PlannerInfo *root, TopkTarget *target, List *conditions)
{
	ListCell   *lc;

	foreach(lc, conditions)
	{
		RestrictInfo *info = lfirst(lc);
		TopkForm	form;
		Excluded	excluded;

		if (!restriction_is_securely_promotable(info, target->index->rel))
			continue;
		excluded = match_bound(root, target->index, info, &form);
		if (excluded == EXCLUDES_OTHERS ||
			!TopkSameDistance((Node *) form.distance, (Node *) target->form.distance))
			continue;
		if (excluded == EXCLUDES_NEAR)
		{
			target->outside = lappend(target->outside, info);
			continue;
		}
		target->within = lappend(target->within, info);
		/* NaN is greater than all numbers */
		if (form.falls && form.may_be_nan)
			target->needs |= QV_LEFT_OUT_NANS;
	}
}

/* Rows without a value, or without a distance, must not be missed if there may be some. */
static void
add_needs(PlannerInfo *root, TopkTarget *target, bool nulls, bool nans)
{
	if (nulls && may_be_null(root, target->index))
		target->needs |= QV_LEFT_OUT_NULLS;
	if (nans && target->form.may_be_nan)
		target->needs |= QV_LEFT_OUT_NANS;
}

/* The target of rows in the order of a path key; NULL: a search of the index does not give it. */
static TopkTarget *
match_key(PlannerInfo *root, IndexOptInfo *index, PathKey *key)
{
	const RelOptInfo *rel = index->rel;
	EquivalenceMember *member;
	bool		ascends = QvPathKeyAscends(key);
	TopkForm	form;

	/* a join that fills rows with NULLs must have them all */
	if (key->pk_eclass->ec_has_volatile || QvIsNullable(root, rel))
		return NULL;
	QvForeachMember(member, key->pk_eclass, rel->relids)
	{
		Node	   *expr = (Node *) member->em_expr;
		TopkTarget *target;

		if (!bms_equal(member->em_relids, rel->relids) || order_family(expr) != key->pk_opfamily ||
			!TopkMatchForm(index, expr, &form) || form.falls == ascends ||
			!bms_is_empty(pull_varnos(root, (Node *) form.value)) || is_misleading(root, &form, index))
			continue;
		target = palloc0(sizeof(TopkTarget));
		target->index = index;
		target->form = form;
		target->key = key;
		target->written = expr == (Node *) form.distance ? NULL : (Expr *) expr;
		target->order = (ascends ? 0 : TOPK_ORDER_DESCENDS) | (key->pk_nulls_first ? TOPK_ORDER_NULLS_FIRST : 0);
		/* rows that would come first */
		add_needs(root, target, key->pk_nulls_first, !ascends);
		add_bounds(root, target, rel->baserestrictinfo);
		return target;
	}
	return NULL;
}

/* ---- conditions on included columns ---- */

bool
TopkAddFilter(TopkTarget *target, List *conditions)
{
	IndexOptInfo *index = target->index;
	RelOptInfo *rel = index->rel;
	Bitmapset  *included = NULL;
	bool		is_filtered = false;
	ListCell   *lc;

	for (int i = index->nkeycolumns; i < index->ncolumns; i++)
		included = bms_add_member(included, index->indexkeys[i] - FirstLowInvalidHeapAttributeNumber);
	foreach(lc, conditions)
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, lc);
		Node	   *clause = (Node *) info->clause;
		Bitmapset  *columns = NULL;

		is_filtered |= !list_member_ptr(target->outside, info) && !KnnIsNullTest(clause, IS_NOT_NULL, index);
		pull_varattnos(clause, rel->relid, &columns);
		if (!bms_is_empty(columns) && bms_is_subset(columns, included) &&
			restriction_is_securely_promotable(info, rel) && !contain_volatile_functions(clause) &&
			!contain_subplans(clause))
			target->filter = lappend(target->filter, info);
	}
	return is_filtered;
}

/* ---- targets ---- */

/* Is there a window function that needs other rows than those before? */
static bool
looks_ahead(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	if (IsA(node, WindowFunc))
	{
		Oid			function = ((WindowFunc *) node)->winfnoid;

		return function != F_ROW_NUMBER && function != F_RANK_ && function != F_DENSE_RANK_;
	}
	return expression_tree_walker(node, looks_ahead, unused);
}

/* Does a query make something of all rows, or of groups of them, before it takes the first? */
static bool
counts_all_rows(const PlannerInfo *root)
{
	const Query *query = root->parse;

	return query->hasAggs || query->groupClause != NIL ||
		(query->distinctClause != NIL && query->sortClause == NIL) ||
		(query->hasWindowFuncs && (list_length(query->windowClause) > 1 || looks_ahead((Node *) query->targetList, NULL))) ||
	/* a window has the order that is asked for, and the answer another one */
		(root->window_pathkeys != NIL && root->sort_pathkeys != NIL &&
		 linitial(root->window_pathkeys) != linitial(root->sort_pathkeys));
}

/*
 * The target of rows within a radius, in any order; NULL: there is none.  info: a condition on the
 * distance, which may be from values of other relations.  Indexes of pgvector's methods have none,
 * as in pgvector: a DELETE would leave the rows that their effort does not find.
 */
static TopkTarget *
match_radius(PlannerInfo *root, IndexOptInfo *index, RestrictInfo *info)
{
	RelOptInfo *rel = index->rel;
	TopkTarget *target;
	TopkForm	form;

	if (!KnnHasRecall(index->relam) || !restriction_is_securely_promotable(info, rel) ||
		match_bound(root, index, info, &form) != EXCLUDES_FAR)
		return NULL;
	target = palloc0(sizeof(TopkTarget));
	target->index = index;
	target->form = form;
	target->outer = bms_difference(info->clause_relids, rel->relids);
	target->order = TOPK_ORDER_NONE;
	/* it may be of a join */
	add_bounds(root, target, list_concat_unique_ptr(list_make1(info), rel->baserestrictinfo));
	return target;
}

/*
 * The target of rows in the order of nearest groups; NULL: there is none.  Groups of several tables
 * have none: their rows are appended.
 */
static TopkTarget *
match_groups(PlannerInfo *root, IndexOptInfo *index, PathKey *key)
{
	TopkTarget *target = index->rel->reloptkind == RELOPT_BASEREL ? match_key(root, index, key) : NULL;
	const Query *limited = TopkGroupsLimited(root);

	if (target == NULL || !TopkGroupsMatch(root, index, &target->form, &target->order) ||
		!KnnCanEvaluateLimit(limited))
		return NULL;
	target->of_groups = true;
	target->limit = KnnUnknownLimit(limited);
	if (!root->parse->hasAggs && !TopkGroupsKeepOrder(root))
		add_needs(root, target, true, true);
	return target;
}

/* The target of the relation's rows by themselves; NULL: there is none. */
static TopkTarget *
find_target(PlannerInfo *root, IndexOptInfo *index, PathKey *groups)
{
	TopkTarget *target = groups ? match_groups(root, index, groups) : NULL;
	ListCell   *lc;

	if (target)
		return target;
	if (root->query_pathkeys != NIL && !KnnNeedsAllRows(root, index->rel, true))
		target = match_key(root, index, linitial(root->query_pathkeys));
	if (target)
	{
		if (counts_all_rows(root))
			add_needs(root, target, true, true);
		if (root->parse->groupClause != NIL || root->parse->distinctClause != NIL)
			target->limit = KnnUnknownLimit(root->parse);
		/* an effort is for as many rows as are asked for */
		target->is_missed = !KnnHasLimit(root->parse) && !KnnHasRecall(index->relam);
		return KnnHasLimit(root->parse) || target->within != NIL ? target : NULL;
	}
	foreach(lc, index->rel->baserestrictinfo)
	{
		target = match_radius(root, index, lfirst(lc));
		if (target)
			return target;
	}
	return NULL;
}

List *
TopkFindTargets(PlannerInfo *root, IndexOptInfo *index, PathKey *groups)
{
	TopkTarget *target;
	List	   *targets;
	ListCell   *lc;

	/* rows without a value are in no index */
	if (KnnHasNullTest(index->indrestrictinfo, IS_NULL, index))
		return NIL;
	target = find_target(root, index, groups);
	targets = target ? list_make1(target) : NIL;
	foreach(lc, index->rel->joininfo)
	{
		if (join_clause_is_movable_to(lfirst(lc), index->rel) &&
			(target = match_radius(root, index, lfirst(lc))) != NULL)
			targets = lappend(targets, target);
	}
	return targets;
}
