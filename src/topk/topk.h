/*
 * topk.h
 *		The top-k scan: a plan node for ORDER BY column <op> value LIMIT k that knows
 *		how many rows are wanted and which (src/topk/README.md).
 */
#ifndef QV_TOPK_TOPK_H
#define QV_TOPK_TOPK_H

#include "postgres.h"

#include "nodes/extensible.h"

/* Let the planner know of the node; at load, also when that was tried before. */
extern void QvTopkInit(void);

/* Memory of a row that is kept, without its tuple: itself and its place in a hash table. */
#define TOPK_BYTES_PER_ROW 64

/* What plan.c gives to exec.c, in CustomScan.custom_private and custom_exprs. */
#define TOPK_PLAN_VERSION 5

typedef enum TopkPrivate
{
	TOPK_PRIVATE_VERSION,		/* Integer: TOPK_PLAN_VERSION */
	TOPK_PRIVATE_INDEX,			/* Oid, as Integer */
	TOPK_PRIVATE_ROWS,			/* Integer: k, 0: known when the scan starts
								 * only */
	TOPK_PRIVATE_HINT,			/* Boolean: more may be wanted */
	TOPK_PRIVATE_GUESSES,		/* Boolean: nobody but the scan needs to know
								 * how far rows are */
	TOPK_PRIVATE_FILTERED,		/* Boolean: not all rows of the index pass the
								 * conditions */
	TOPK_PRIVATE_RESULT,		/* Integer: a TopkResult */
	TOPK_PRIVATE_SECURED,		/* Boolean: there may be rows that row
								 * security hides from the user */
	TOPK_PRIVATE_UNSURE,		/* Boolean: how many rows the bitmap has (or
								 * pass, without one) depends on what the
								 * planner did not know */
	TOPK_PRIVATE_RANK,			/* Float: rows of the index nearer than the
								 * last of those wanted, for each wanted */
	TOPK_PRIVATE_TABLE,			/* Float: rows of the index */
	TOPK_PRIVATE_MEASURE,		/* Float: cost of a row's distance, in fetches
								 * of a row */
	TOPK_PRIVATE_MEMBERS,		/* Float: rows that the bitmap is expected to
								 * have */
	TOPK_PRIVATE_FIELDS
} TopkPrivate;

/* What the ORDER BY operator makes of a distance as the index measures it. */
typedef enum TopkResult
{
	TOPK_RESULT_UNKNOWN,		/* the operator is not of this library */
	TOPK_RESULT_SAME,
	TOPK_RESULT_ROOT
} TopkResult;

typedef enum TopkExpr
{
	TOPK_EXPR_ORDER,			/* the ORDER BY expression */
	TOPK_EXPR_QUERY,			/* its value that is searched for */
	TOPK_EXPR_LIMIT,			/* NULL constant: none */
	TOPK_EXPR_OFFSET,
	TOPK_EXPR_RADIUS			/* rows at this distance or more do not count;
								 * NULL constant: all do */
} TopkExpr;

extern const CustomScanMethods qv_topk_scan_methods;	/* exec.c */

#endif							/* QV_TOPK_TOPK_H */
