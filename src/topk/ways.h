/*
 * ways.h
 *		The ways to find the rows of a top-k scan, and what each costs; see src/topk/README.md,
 *		"Ways" and "Choice".
 */
#ifndef QV_TOPK_WAYS_H
#define QV_TOPK_WAYS_H

#include "postgres.h"

#include "am/options.h"
#include "query/cost.h"
#include "utils/rel.h"

typedef enum TopkWay
{
	TOPK_WALK,					/* the index proposes rows, nearest first */
	TOPK_CODES,					/* the codes of all rows do */
	TOPK_SET,					/* rows that other indexes find, all of them */
	TOPK_TABLE,					/* all rows of the table */
	TOPK_WAYS
} TopkWay;

/* quiver.topk_way: that way, where a query has it; TOPK_WAYS: the cheapest. */
extern int	topk_way;

/*
 * A walk begins for at most that many rows, since statistics may not know a condition.  It goes on
 * for more.  The planner takes a scan that may read the table for at most as many.
 */
#define TOPK_MOST_EXPECTED 100

/*
 * Rows after which the user has a walk or a search by codes stop.  The effort that the user has set
 * is spent all the same.
 */
static inline int64
TopkMostRows(const QvSettings *settings)
{
	int			most = settings->max_scan_tuples;

	return most > 0 && most != DEFAULT_MAX_SCAN_TUPLES ? Max(most, settings->ef_search) : PG_INT64_MAX;
}

/* Has the user set the most lists that a walk reads? */
static inline bool
TopkHasMostLists(const QvSettings *settings)
{
	return settings->max_probes > 0 && settings->max_probes < IVFFLAT_MAX_LISTS;
}

/* What the costs depend on. */
typedef struct TopkKnown
{
	Relation	index;
	const QvEngine *engine;
	const QvSettings *settings;
	double		sigmas;			/* of the errors of codes that bounds count */
	bool		by_value;		/* there is a value to search for */
	QvUnits		units;
	double		table_rows;		/* of the table */
	double		rows;			/* of the index */
	double		passing;		/* of these, rows that pass all conditions */
	bool		filtered;		/* some do not */
	double		row_pages;		/* of the index; 0: none */
	double		table_pages;
	bool		has_table;		/* reading the table counts as a way */

	/* what entries of row pages know */
	bool		has_filter;		/* there are conditions on included columns */
	double		admitted;		/* share of rows that passes these; 1 without
								 * any */

	/* what other indexes know */
	bool		has_set;		/* there are some */
	double		members;		/* rows that they find */
	double		collect;		/* what it costs to have these; 0: they are
								 * there */
	bool		is_there;		/* they are, so rows can be looked up among
								 * them */
	double		bitmap;			/* the planner's cost of a bitmap scan of
								 * them; 0: at run time */
} TopkKnown;

/* Rows that are searched for at first, however many are wanted: the choice does not depend on k. */
#define TOPK_FIRST_ROWS 10

/* Rows that have to be proposed for a number of rows to pass. */
extern double TopkProposals(const TopkKnown *known, double wanted);

/*
 * What it costs the index to propose rows, nearest first, of which a number is wanted.  Its search
 * is deep enough for "depth" rows.
 */
extern double TopkWalkCost(const TopkKnown *known, double depth, double proposals, double wanted);

/*
 * What a way costs to return a number of rows; INFINITY: the way cannot be used.  The first rows
 * of a search without conditions are left to the index.
 */
extern double TopkWayCost(const TopkKnown *known, TopkWay way, double wanted);

/* The cheapest way to return a number of rows, from one on, and what it costs. */
extern TopkWay TopkCheapest(const TopkKnown *known, TopkWay from, double wanted, double *cost);

/* What a scan costs that may change its way, for the planner. */
extern double TopkScanCost(const TopkKnown *known, double wanted);

#endif							/* QV_TOPK_WAYS_H */
