/*
 * topk.h
 *		The top-k scan: a plan node for ORDER BY column <op> value LIMIT k that knows
 *		how many rows are wanted and which (src/topk/README.md).
 */
#ifndef QV_TOPK_TOPK_H
#define QV_TOPK_TOPK_H

#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/parsenodes.h"
#include "nodes/primnodes.h"
#include "query/cost.h"

/* Let the planner know of the node; at load, also when that was tried before. */
extern void QvTopkInit(void);

/* What plan.c gives to exec.c, in CustomScan.custom_private and custom_exprs. */
#define TOPK_PLAN_VERSION 8

#define TOPK_UNITS ((int) (sizeof(QvUnits) / sizeof(double)))

typedef enum TopkPrivate
{
	TOPK_PRIVATE_VERSION,		/* Integer: TOPK_PLAN_VERSION */
	TOPK_PRIVATE_INDEX,			/* Oid, as Integer */
	TOPK_PRIVATE_ROWS,			/* Integer: k; 0: not known when it is
								 * planned, or all */
	TOPK_PRIVATE_HINT,			/* Boolean: more may be wanted */
	TOPK_PRIVATE_GUESSES,		/* Boolean: nobody but the scan needs to know
								 * how far rows are */
	TOPK_PRIVATE_FILTERED,		/* Boolean: not all rows of the index pass the
								 * conditions */
	TOPK_PRIVATE_RESULT,		/* Integer: a TopkResult */
	TOPK_PRIVATE_SECURED,		/* Boolean: there may be rows that row
								 * security hides from the user */
	TOPK_PRIVATE_NEEDS,			/* Integer, of QV_LEFT_OUT_...: rows that the
								 * scan must return */
	TOPK_PRIVATE_ORDER,			/* Integer, of TOPK_ORDER_... */

	/* Floats */
	TOPK_PRIVATE_INDEXED,		/* share of the table's rows that are in the
								 * index, */
	TOPK_PRIVATE_PASSING,		/* of these, share that passes the conditions, */
	TOPK_PRIVATE_MEMBERS,		/* and that other indexes find */
	TOPK_PRIVATE_COLLECT,		/* cost of one of these */
	TOPK_PRIVATE_ADMITTED,		/* share of the index's rows that passes
								 * conditions on included columns */
	TOPK_PRIVATE_UNITS,			/* the members of QvUnits, in their order */
	TOPK_PRIVATE_LAST_UNIT = TOPK_PRIVATE_UNITS + TOPK_UNITS - 1,
	TOPK_PRIVATE_FIELDS
} TopkPrivate;

/* What a distance function makes of a distance as the index measures it. */
typedef enum TopkResult
{
	TOPK_RESULT_UNKNOWN,		/* the operator is not of this library */
	TOPK_RESULT_SAME,
	TOPK_RESULT_ROOT,
	TOPK_RESULT_NEGATIVE
} TopkResult;

/* The order of the rows. */
#define TOPK_ORDER_DESCENDS 1	/* the sort key falls with the distance */
#define TOPK_ORDER_NULLS_FIRST 2
#define TOPK_ORDER_NONE 4		/* any: there is no sort key */
#define TOPK_ORDER_NANS_LAST 8	/* even if the sort key falls */
#define TOPK_ORDER_STRICT 16	/* even if the user has relaxed it */

typedef enum TopkExpr
{
	TOPK_EXPR_DISTANCE,			/* as the query has it */
	TOPK_EXPR_QUERY,			/* its value that is searched for */
	TOPK_EXPR_LIMIT,			/* NULL constant: none */
	TOPK_EXPR_OFFSET,
	TOPK_EXPR_WITHIN,			/* conditions on the distance that far rows do
								 * not meet; NULL constant: none */
	TOPK_EXPR_KEY,				/* the sort key; NULL constant: none, or the
								 * distance */
	TOPK_EXPR_FILTER,			/* conditions on included columns; NULL
								 * constant: none */
	TOPK_EXPR_LEAKPROOF			/* the leakproof ones of these; NULL constant:
								 * none */
} TopkExpr;

/* Does a query have a LIMIT?  LIMIT ALL is none. */
static inline bool
TopkHasLimit(const Query *query)
{
	return query->limitCount && !(IsA(query->limitCount, Const) && ((Const *) query->limitCount)->constisnull);
}

extern const CustomScanMethods qv_topk_scan_methods;	/* exec.c */

/* Does a top-k scan in a plan read the whole table, for rows that its index has left out? */
extern bool TopkReadsTable(PlanState *plan, void *unused);

#endif							/* QV_TOPK_TOPK_H */
