/*
 * state.h
 *		A top-k scan that is executed.
 */
#ifndef QV_TOPK_STATE_H
#define QV_TOPK_STATE_H

#include "postgres.h"

#include "am/methods.h"
#include "nodes/execnodes.h"
#include "query/filter.h"
#include "query/stream.h"
#include "topk/set.h"
#include "topk/topk.h"
#include "topk/ways.h"

typedef struct TopkState
{
	CustomScanState css;

	/* of the plan */
	TopkPlanned planned;		/* a search may learn that shares are larger */
	Relation	index;			/* and what follows: not when it is only
								 * explained */
	QvOpclassInfo opclass;
	ExprState  *query;
	ExprState  *limit;			/* all rows are wanted if it is NULL; NULL: it
								 * is known */
	ExprState  *within;			/* conditions on the distance, which is in
								 * caseValue_datum; NULL: none */
	ExprState  *distance;		/* as the query has it; NULL: the projection
								 * does not take it from the search */
	ExprState  *outside;		/* the first condition that near rows do not
								 * meet; NULL: there is none */
	ExprState  *ahead;			/* conditions before it: without it, all */
	ExprState  *after;			/* and after it */
	QvFilter   *filter;			/* those on included columns, as tested on an
								 * entry */

	/* of a search */
	MemoryContext context;		/* of the value and the searches by other ways */
	QvScan	   *engine;			/* it counts what all searches have read */
	QvScan	   *other;			/* the search that is used instead of it, or
								 * NULL */
	RowReader  *rows;
	QvStream   *stream;
	QvSettings	settings;
	TopkKnown	known;
	const void *value;			/* searched for; NULL: any order */
	TopkSet		set;			/* rows that other indexes find */
	TopkWay		way;			/* that runs; TOPK_WAYS: none does yet */
	bool		started;
	bool		reads_table;	/* the index misses rows that must come first,
								 * or a search might */
	bool		reads_rows;		/* the way reads rows of the table in order */
	bool		looks;			/* the walk may cost a little before another
								 * way is thought of */
	double		spent_before;	/* by all ways, when one was last taken */
	double		collected;		/* what collecting the set has cost */
	double		share;			/* of the rows that were expected to pass when
								 * the way was begun, */
	double		admitted;		/* and to pass conditions on included columns */
	double		found;			/* most rows that a way before it has found */
	double		others_spent;	/* what those have cost, without the set */
	double		patience;		/* how many times a walk's cost collecting the
								 * set may take */
	int64		next_choice;	/* rows proposed by the way when it is made
								 * again, */
	double		next_cost;		/* or what the way has cost then */
	int64		by_way_before;	/* rows that it had proposed when it was last
								 * asked for more */
	int64		skipped;		/* rows of the way that are too near, */
	int64		far_enough;		/* and that are not */
	QvStreamCounters before;	/* the stream's when the way was begun, */
	int64		tested_before;	/* and the filter's */
	int64		removed_before;

	/* counters, over all searches */
	int64		searches;
	bool		ran[TOPK_WAYS];
	double		last;			/* distance of the row returned last */
} TopkState;

#define TopkPlan(state) ((CustomScan *) (state)->css.ss.ps.plan)
#define TopkPlanExpr(state, which) list_nth(TopkPlan(state)->custom_exprs, which)

/* search.c: begin a search; the next row, in stream->rows->slot; false when there is none. */
extern void TopkStart(TopkState *state);
extern bool TopkNext(TopkState *state, QvStreamRow *row);

/* No more rows are wanted: count what was read. */
extern void TopkEnd(TopkState *state);

/* explain.c: CustomExecMethods.ExplainCustomScan */
extern void TopkExplain(CustomScanState *css, List *ancestors, ExplainState *es);

#endif							/* QV_TOPK_STATE_H */
