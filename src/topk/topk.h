/*
 * topk.h
 *		The top-k scan: a plan node for ORDER BY column <op> value LIMIT k that knows
 *		how many rows are wanted and which (src/topk/README.md).
 */
#ifndef QV_TOPK_TOPK_H
#define QV_TOPK_TOPK_H

#include "postgres.h"

#include <math.h>

#include "nodes/extensible.h"
#include "nodes/parsenodes.h"
#include "nodes/primnodes.h"
#include "query/cost.h"

/* Let the planner know of the node; at load, also when that was tried before. */
extern void QvTopkInit(void);

/* What a distance function makes of a distance as the index measures it. */
typedef enum TopkResult
{
	TOPK_RESULT_UNKNOWN,		/* the operator is not of this library */
	TOPK_RESULT_SAME,
	TOPK_RESULT_ROOT,
	TOPK_RESULT_NEGATIVE
} TopkResult;

/* A distance of the index, as a function of that result has it. */
static inline double
TopkResultOf(TopkResult result, double distance)
{
	switch (result)
	{
		case TOPK_RESULT_ROOT:
			return distance > 0 ? sqrt(distance) : 0;
		case TOPK_RESULT_NEGATIVE:
			/* no -0 */
			return 0 - distance;
		default:
			return distance;
	}
}

/* What is less is taken as 0: a cast to real would fail. */
#define TOPK_LEAST_DISTANCE 1e-30

/*
 * What the function has for an estimate: that of the possible distance nearest to it.  Conditions
 * may not be defined for others.
 */
static inline double
TopkResultPossible(QvMetric metric, TopkResult result, double distance)
{
	if (metric != QV_METRIC_IP && distance < TOPK_LEAST_DISTANCE)
		distance = 0;
	return TopkResultOf(result, metric == QV_METRIC_COSINE ? Min(distance, 2) : distance);
}

/* The order of the rows. */
#define TOPK_ORDER_DESCENDS 1	/* the sort key falls with the distance */
#define TOPK_ORDER_NULLS_FIRST 2
#define TOPK_ORDER_NONE 4		/* any: there is no sort key */
#define TOPK_ORDER_NANS_LAST 8	/* even if the sort key falls */
#define TOPK_ORDER_STRICT 16	/* even if the user has relaxed it */
#define TOPK_ORDER_LATE_LAST 32 /* but for late rows, which come last */

/*
 * What plan.c gives to exec.c, in CustomScan.custom_private, as the bytes of a constant.  The
 * version is also that of groups.h.
 */
#define TOPK_PLAN_VERSION 18

typedef struct TopkPlanned
{
	int			version;		/* TOPK_PLAN_VERSION */
	Oid			index;
	int			rows;			/* k; 0: not known when it is planned, or all */
	bool		limited;		/* there is a LIMIT */
	bool		hint;			/* more may be wanted */
	bool		guesses;		/* nobody but the scan needs to know how far
								 * rows are */
	bool		filtered;		/* not all rows of the index pass the
								 * conditions */
	bool		not_null;		/* every row has a value */
	bool		secured;		/* there may be rows that row security hides
								 * from the user */
	Oid			reads_as;		/* the role that a view reads the table as;
								 * InvalidOid: the user, or no view does */
	TopkResult	result;
	int			needs;			/* QV_LEFT_OUT_...: rows that the scan must
								 * return */
	int			order;			/* TOPK_ORDER_... */
	double		indexed;		/* share of the table's rows that are in the
								 * index, */
	double		passing;		/* of these, share that passes the conditions, */
	double		members;		/* and that other indexes find */
	double		collect;		/* cost of one of these */
	double		admitted;		/* share of the index's rows that passes
								 * conditions on included columns */
	QvUnits		units;
} TopkPlanned;

/* ... and in CustomScan.custom_exprs. */
typedef enum TopkExpr
{
	TOPK_EXPR_DISTANCE,			/* as the query has it */
	TOPK_EXPR_QUERY,			/* its value that is searched for */
	TOPK_EXPR_WITHIN,			/* list: conditions on the distance that far
								 * rows do not meet */
	TOPK_EXPR_KEY,				/* the sort key; NULL: none, or the distance */
	TOPK_EXPR_FILTER,			/* list: conditions on included columns */
	TOPK_EXPR_OUTSIDE,			/* list: conditions on the distance that near
								 * rows do not meet */
	TOPK_EXPR_LIMIT				/* of groups, all of which are wanted if it is
								 * NULL; NULL: it is known */
} TopkExpr;

extern const CustomScanMethods qv_topk_scan_methods;	/* exec.c */

/* Returns what was planned.  A plan of another version of the library is an error. */
extern TopkPlanned TopkGetPlanned(const CustomScan *scan);

/* Does a top-k scan in a plan read the whole table, for rows that its index has left out? */
extern bool TopkReadsTable(PlanState *plan, void *unused);

#endif							/* QV_TOPK_TOPK_H */
