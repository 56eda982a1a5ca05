/*
 * form.c
 *		Forms of a distance; see form.h and src/topk/README.md, "Forms".
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "am/beside.h"
#include "am/opclass.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "topk/form.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* ---- functions ---- */

/* How a function turns with one of its arguments, while the others are constant. */
typedef enum Turn
{
	RISES,
	RISES_ROUNDED,				/* and gives the number below, or above */
	RISES_OR_FAILS,				/* the same, with an error for large numbers,
								 * or those with too many digits */
	FALLS,
	ADDS,						/* rises with either argument */
	SUBTRACTS,					/* rises with the first, and falls with the
								 * second */
	MULTIPLIES,					/* by the sign of the other argument */
	DIVIDES,					/* the first by the sign of the second; the
								 * second where its sign is known */
	EXPONENTIAL,				/* rises, and is positive */
	LOGARITHM,					/* rises where the argument is not negative */
	ROOT,						/* the same, and is not negative */
	MAGNITUDE,					/* where the sign of the argument is known */
	RAISES						/* with the first from zero; the second is
								 * positive */
} Turn;

static const struct
{
	Oid			function;
	Turn		turn;
}			functions[] =

{
	{F_FLOAT8PL, ADDS}, {F_FLOAT8MI, SUBTRACTS}, {F_FLOAT8MUL, MULTIPLIES}, {F_FLOAT8DIV, DIVIDES},
	{F_FLOAT4PL, ADDS}, {F_FLOAT4MI, SUBTRACTS}, {F_FLOAT4MUL, MULTIPLIES}, {F_FLOAT4DIV, DIVIDES},
	{F_FLOAT48PL, ADDS}, {F_FLOAT48MI, SUBTRACTS}, {F_FLOAT48MUL, MULTIPLIES}, {F_FLOAT48DIV, DIVIDES},
	{F_FLOAT84PL, ADDS}, {F_FLOAT84MI, SUBTRACTS}, {F_FLOAT84MUL, MULTIPLIES}, {F_FLOAT84DIV, DIVIDES},
	{F_NUMERIC_ADD, ADDS}, {F_NUMERIC_SUB, SUBTRACTS}, {F_NUMERIC_MUL, MULTIPLIES}, {F_NUMERIC_DIV, DIVIDES},
	{F_FLOAT8UM, FALLS}, {F_FLOAT4UM, FALLS}, {F_NUMERIC_UMINUS, FALLS},
	{F_FLOAT8UP, RISES}, {F_FLOAT4UP, RISES}, {F_NUMERIC_UPLUS, RISES},
	/* casts */
	{F_FLOAT4_FLOAT8, RISES}, {F_FLOAT8_FLOAT4, RISES}, {F_NUMERIC_FLOAT8, RISES}, {F_NUMERIC_FLOAT4, RISES},
	{F_FLOAT8_NUMERIC, RISES}, {F_FLOAT4_NUMERIC, RISES}, {F_NUMERIC_NUMERIC_INT4, RISES_OR_FAILS},
	{F_INT4_FLOAT8, RISES_OR_FAILS}, {F_INT4_FLOAT4, RISES_OR_FAILS}, {F_INT4_NUMERIC, RISES_OR_FAILS},
	{F_INT8_FLOAT8, RISES_OR_FAILS}, {F_INT8_FLOAT4, RISES_OR_FAILS}, {F_INT8_NUMERIC, RISES_OR_FAILS},
	/* rounding */
	{F_ROUND_FLOAT8, RISES_ROUNDED}, {F_DROUND, RISES_ROUNDED}, {F_ROUND_NUMERIC, RISES_ROUNDED},
	{F_ROUND_NUMERIC_INT4, RISES_ROUNDED}, {F_TRUNC_FLOAT8, RISES_ROUNDED}, {F_DTRUNC, RISES_ROUNDED},
	{F_TRUNC_NUMERIC, RISES_ROUNDED}, {F_TRUNC_NUMERIC_INT4, RISES_ROUNDED},
	{F_FLOOR_FLOAT8, RISES_ROUNDED}, {F_FLOOR_NUMERIC, RISES_ROUNDED}, {F_CEIL_FLOAT8, RISES_ROUNDED},
	{F_CEIL_NUMERIC, RISES_ROUNDED}, {F_CEILING_FLOAT8, RISES_ROUNDED}, {F_CEILING_NUMERIC, RISES_ROUNDED},
	/* others */
	{F_EXP_FLOAT8, EXPONENTIAL}, {F_DEXP, EXPONENTIAL}, {F_EXP_NUMERIC, EXPONENTIAL},
	{F_LN_FLOAT8, LOGARITHM}, {F_DLOG1, LOGARITHM}, {F_LN_NUMERIC, LOGARITHM},
	{F_LOG_FLOAT8, LOGARITHM}, {F_LOG10_FLOAT8, LOGARITHM}, {F_DLOG10, LOGARITHM},
	{F_LOG_NUMERIC, LOGARITHM}, {F_LOG10_NUMERIC, LOGARITHM},
	{F_SQRT_FLOAT8, ROOT}, {F_DSQRT, ROOT}, {F_SQRT_NUMERIC, ROOT},
	{F_FLOAT8ABS, MAGNITUDE}, {F_ABS_FLOAT8, MAGNITUDE}, {F_ABS_NUMERIC, MAGNITUDE}, {F_NUMERIC_ABS, MAGNITUDE},
	{F_POWER_FLOAT8_FLOAT8, RAISES}, {F_POW_FLOAT8_FLOAT8, RAISES}, {F_DPOW, RAISES},
	{F_POWER_NUMERIC_NUMERIC, RAISES}, {F_POW_NUMERIC_NUMERIC, RAISES}
};

/* exp() of more is no number, and power() of a distance may be none. */
#define LARGEST_EXPONENT 700
#define LARGEST_POWER 7

/* ---- the distance ---- */

Oid
TopkFunctionOf(const Node *expr, List **args)
{
	if (IsA(expr, OpExpr))
	{
		*args = ((const OpExpr *) expr)->args;
		return get_opcode(((const OpExpr *) expr)->opno);
	}
	if (IsA(expr, FuncExpr))
	{
		*args = ((const FuncExpr *) expr)->args;
		return ((const FuncExpr *) expr)->funcid;
	}
	return InvalidOid;
}

bool
TopkSameDistance(const Node *a, const Node *b)
{
	List	   *x = NIL,
			   *y = NIL;
	Oid			function = TopkFunctionOf(a, &x);

	if (!OidIsValid(function) || list_length(x) != 2 || TopkFunctionOf(b, &y) != function || list_length(y) != 2)
		return false;
	return (equal(linitial(x), linitial(y)) && equal(lsecond(x), lsecond(y))) ||
		(equal(linitial(x), lsecond(y)) && equal(lsecond(x), linitial(y)));
}

bool
TopkHasDistance(Node *expr, void *distance)
{
	if (expr == NULL)
		return false;
	return TopkSameDistance(expr, distance) || expression_tree_walker(expr, TopkHasDistance, distance);
}

Node *
TopkReplaceDistance(Node *expr, void *distance)
{
	CaseTestExpr *test;

	if (expr == NULL)
		return NULL;
	if (!TopkSameDistance(expr, distance))
		switch (nodeTag(expr))
		{
			case T_OpExpr:
			case T_FuncExpr:
			case T_RelabelType:
			case T_CoalesceExpr:
			case T_MinMaxExpr:
			case T_BoolExpr:
			case T_List:
			case T_TargetEntry:
				return expression_tree_mutator(expr, TopkReplaceDistance, distance);
			default:
				/* others may have another use for the same field */
				return copyObject(expr);
		}
	test = makeNode(CaseTestExpr);
	test->typeId = FLOAT8OID;
	test->typeMod = -1;
	return (Node *) test;
}

/* Are two functions of one library, which is not the server's? */
static bool
share_library(Oid a, Oid b)
{
	const char *x = QvFunctionLibrary(a, NULL),
			   *y = QvFunctionLibrary(b, NULL);

	return x && y && strcmp(x, y) == 0;
}

/*
 * What is known of a distance function: its range, whether it may be NaN, and what it makes of the
 * index's distance.  Nothing is known of those of another library than that of the access method.
 */
static void
describe_distance(const IndexOptInfo *index, Oid function, TopkForm *form)
{
	Relation	relation = index_open(index->indexoid, NoLock);
	QvOpclassInfo opclass;

	QvGetOpclass(relation, &opclass);
	form->result = TOPK_RESULT_UNKNOWN;
	form->least = -INFINITY;
	form->most = INFINITY;
	form->may_be_nan = true;
	if (share_library(function, relation->rd_amhandler))
	{
		form->result = opclass.metric == QV_METRIC_L2 ? TOPK_RESULT_ROOT : TOPK_RESULT_SAME;
		form->may_be_nan = opclass.metric == QV_METRIC_COSINE;
		form->least = opclass.metric == QV_METRIC_IP ? -INFINITY : 0;
		form->most = opclass.metric == QV_METRIC_COSINE ? 2 :
			opclass.metric == QV_METRIC_JACCARD ? 1 : INFINITY;
	}
	index_close(relation, NoLock);
}

bool
TopkIsDistance(Oid function, Oid distance)
{
	const char *name = get_func_name(function),
			   *negative = get_func_name(distance);

	return function == distance ||
		(name && negative && strcmp(name, "inner_product") == 0 &&
		 strstr(negative, "negative_inner_product") &&
		 get_func_namespace(function) == get_func_namespace(distance) && share_library(function, distance));
}

/* Is an expression the distance by which the index orders rows, or its negative? */
static bool
match_distance(const IndexOptInfo *index, Node *expr, TopkForm *form)
{
	List	   *args = NIL;
	Oid			function = TopkFunctionOf(expr, &args),
				order,
				distance;

	if (!OidIsValid(function) || list_length(args) != 2)
		return false;
	for (int side = 0; side < 2; side++)
	{
		Node	   *value = list_nth(args, 1 - side);

		if (!match_index_to_operand(list_nth(args, side), 0, unconstify(IndexOptInfo *, index)) ||
			bms_is_member(index->rel->relid, pull_varnos(NULL, value)) || contain_volatile_functions(value))
			continue;
		order = get_opfamily_member(index->opfamily[0], index->opcintype[0], index->opcintype[0], 1);
		if (!OidIsValid(order))
			return false;
		distance = get_opcode(order);
		if (!TopkIsDistance(function, distance))
			return false;
		memset(form, 0, sizeof(*form));
		form->distance = (Expr *) expr;
		form->value = (Expr *) value;
		describe_distance(index, distance, form);
		if (function == distance)
			return true;
		if (form->result == TOPK_RESULT_UNKNOWN)
			return false;
		form->result = TOPK_RESULT_NEGATIVE;
		form->falls = true;
		return true;
	}
	return false;
}

/* ---- forms ---- */

/* Is an expression the same for all rows of a search? */
static bool
is_constant(Node *expr)
{
	return bms_is_empty(pull_varnos(NULL, expr)) && !contain_volatile_functions(expr) &&
		!contain_subplans(expr);
}

/* The number that an expression is; false when it is not known. */
static bool
get_number(const Node *expr, double *number)
{
	const Const *constant = (const Const *) expr;

	if (expr == NULL || !IsA(expr, Const) || constant->constisnull)
		return false;
	switch (constant->consttype)
	{
		case FLOAT8OID:
			*number = DatumGetFloat8(constant->constvalue);
			break;
		case FLOAT4OID:
			*number = DatumGetFloat4(constant->constvalue);
			break;
		case INT4OID:
			*number = DatumGetInt32(constant->constvalue);
			break;
		case NUMERICOID:
			*number = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, constant->constvalue));
			break;
		default:
			return false;
	}
	return isfinite(*number);
}

static void
set_range(TopkForm *form, double a, double b)
{
	form->least = isnan(a) || isnan(b) ? -INFINITY : Min(a, b);
	form->most = isnan(a) || isnan(b) ? INFINITY : Max(a, b);
}

/* Turn a form into factor times it, and offset more. */
static void
set_linear(TopkForm *form, double factor, double offset)
{
	form->falls ^= factor < 0;
	set_range(form, form->least * factor + offset, form->most * factor + offset);
}

/* A sum is off by rounding, and numbers of other types are off from ours. */
static void
widen(TopkForm *form, const Node *expr)
{
	if (exprType(expr) == FLOAT8OID)
		return;
	form->least -= 1e-6 * fabs(form->least) + 1e-6;
	form->most += 1e-6 * fabs(form->most) + 1e-6;
}

/*
 * Apply a function to a form that is its argument number "at".  other: its other argument, a
 * constant, or NULL.  Returns false if the result does not turn in one way.
 */
static bool
apply(Turn turn, int at, const Node *other, const Node *expr, TopkForm *form)
{
	double		c = NAN;
	bool		known = get_number(other, &c);
	bool		subtrahend = turn == SUBTRACTS && at == 1;

	switch (turn)
	{
		case RISES:
			return true;
		case RISES_OR_FAILS:
		case RISES_ROUNDED:
			if (at != 0)
				return false;
			form->may_fail |= turn == RISES_OR_FAILS &&
				(other || fabs(form->least) + fabs(form->most) > PG_INT32_MAX);
			/* to a number of digits, or before the point */
			if (other && (!known || c < 0))
				set_range(form, -INFINITY, INFINITY);
			else
				set_range(form, floor(form->least), ceil(form->most));
			return true;
		case FALLS:
			set_linear(form, -1, 0);
			return true;
		case ADDS:
		case SUBTRACTS:
			/* adding 0 is how to ask for no index */
			if (known && c == 0 && !subtrahend)
				return false;
			set_linear(form, subtrahend ? -1 : 1, turn == SUBTRACTS && !subtrahend ? -c : c);
			widen(form, expr);
			return true;
		case MULTIPLIES:
		case DIVIDES:
			if (!known || c == 0)
				return false;
			if (turn == MULTIPLIES || at == 0)
			{
				set_linear(form, turn == MULTIPLIES ? c : 1 / c, 0);
				return true;
			}
			if (form->least < 0 && form->most > 0)
				return false;
			form->may_fail |= form->least == 0 || form->most == 0;
			form->falls ^= c > 0;
			/* the sign is all that is asked for */
			if ((form->least >= 0) == (c > 0))
				set_range(form, 0, INFINITY);
			else
				set_range(form, -INFINITY, 0);
			return true;
		case EXPONENTIAL:
			form->may_fail |= fabs(form->least) + fabs(form->most) > LARGEST_EXPONENT;
			set_range(form, 0, INFINITY);
			return true;
		case LOGARITHM:
			if (form->least < 0)
				return false;
			form->may_fail |= form->least == 0;
			set_range(form, -INFINITY, INFINITY);
			return true;
		case MAGNITUDE:
			if (form->least >= 0)
				return true;
			if (form->most > 0)
				return false;
			set_linear(form, -1, 0);
			return true;
		case ROOT:
		case RAISES:
			if (form->least < 0 || (turn == RAISES && (at != 0 || !known || c <= 0)))
				return false;
			form->may_fail |= c > LARGEST_POWER && isinf(form->most);
			set_range(form, 0, INFINITY);
			return true;
	}
	return false;
}

static bool form_of(const IndexOptInfo *index, Node *expr, TopkForm *form);

/* The argument that is a form, while all others are constant; -1: there is none. */
static int
find_form(const IndexOptInfo *index, List *args, TopkForm *form)
{
	int			at = -1;

	for (int i = 0; i < list_length(args); i++)
	{
		if (is_constant(list_nth(args, i)))
			continue;
		if (at >= 0)
			return -1;
		at = i;
	}
	return at >= 0 && form_of(index, list_nth(args, at), form) ? at : -1;
}

/* Does a form of a function turn in one way? */
static bool
form_of_function(const IndexOptInfo *index, Node *expr, TopkForm *form)
{
	List	   *args = NIL;
	Oid			function = TopkFunctionOf(expr, &args);
	int			i,
				at;

	for (i = 0; i < lengthof(functions); i++)
		if (functions[i].function == function)
			break;
	if (i == lengthof(functions) || (at = find_form(index, args, form)) < 0)
		return false;
	return apply(functions[i].turn, at, list_length(args) == 2 ? list_nth(args, 1 - at) : NULL, expr, form);
}

/* LEAST and GREATEST of a form and constants: they rise with it, and leave out NULLs. */
static bool
form_of_least(const IndexOptInfo *index, const MinMaxExpr *expr, TopkForm *form)
{
	int			at = find_form(index, expr->args, form);

	if (at < 0)
		return false;
	for (int i = 0; i < list_length(expr->args); i++)
	{
		bool		greatest = expr->op == IS_GREATEST;
		double		low,
					high;

		if (i == at)
			continue;
		if (get_number(list_nth(expr->args, i), &low))
			high = low;
		else
		{
			low = -INFINITY;
			high = INFINITY;
		}
		form->least = greatest ? Max(form->least, low) : Min(form->least, low);
		form->most = greatest ? Max(form->most, high) : Min(form->most, high);
	}
	form->fills_nulls = true;
	/* NaN is the greatest number */
	form->fills_nans |= expr->op == IS_LEAST;
	return true;
}

static bool
form_of(const IndexOptInfo *index, Node *expr, TopkForm *form)
{
	check_stack_depth();
	if (match_distance(index, expr, form))
		return true;
	switch (nodeTag(expr))
	{
		case T_RelabelType:
			return form_of(index, (Node *) ((RelabelType *) expr)->arg, form);
		case T_OpExpr:
		case T_FuncExpr:
			return form_of_function(index, expr, form);
		case T_CoalesceExpr:
			if (find_form(index, ((CoalesceExpr *) expr)->args, form) != 0)
				return false;
			form->fills_nulls = true;
			return true;
		case T_MinMaxExpr:
			return form_of_least(index, (MinMaxExpr *) expr, form);
		default:
			return false;
	}
}

bool
TopkMatchForm(const IndexOptInfo *index, Node *expr, TopkForm *form)
{
	return form_of(index, expr, form) && !contain_volatile_functions(expr) && !expression_returns_set(expr);
}
