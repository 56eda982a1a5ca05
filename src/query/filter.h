/*
 * filter.h
 *		Conditions on included columns, tested on the entries of row pages.
 *
 * A row that fails is not fetched from the table.  A row that may pass is tested once more there,
 * because its entry may not have the columns.
 *
 * An entry may be of a row that nobody may see.  A condition could raise an error for its values.
 * Such conditions are tested only where all rows of a table's page are visible; leakproof ones
 * always.
 */
#ifndef QV_QUERY_FILTER_H
#define QV_QUERY_FILTER_H

#include "postgres.h"

#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "query/stream.h"
#include "rows/rows.h"

/* How a condition is tested. */
typedef enum QvConditionKind
{
	QV_CONDITION_RANGE,			/* an integer lies in a range: many rows at
								 * once */
	QV_CONDITION_CALL,			/* a call of a strict function */
	QV_CONDITION_EXPRESSION		/* any expression */
} QvConditionKind;

typedef struct QvCondition
{
	QvConditionKind kind;
	bool		leakproof;

	/* of ranges and calls: a column and a constant */
	int			column;			/* place among the filter's */
	ExprState  *constant;

	/* of ranges */
	int			strategy;		/* of a btree: the column and the constant */
	int16		length;			/* of the constant */
	int64		least;
	int64		most;

	/* of calls */
	FunctionCallInfo call;
	int			argument;		/* that is the column */

	ExprState  *expression;
} QvCondition;

typedef struct QvFilter
{
	Relation	table;
	ExprContext *econtext;
	int			nconditions;
	QvCondition *conditions;	/* ranges first */
	int			nranges;
	bool		all_leakproof;
	bool		wants_visible;	/* find which rows are visible to everybody */
	TupleTableSlot *slot;		/* of the table's row type: has the columns */
	Buffer		visibility;		/* page of the visibility map, or
								 * InvalidBuffer */
	QvScan	   *engine;			/* a search, which counts what is read */
	const QvRows *rows;			/* of it; NULL: all rows may pass */
	QvRowsFinder finder;
	int			ncolumns;		/* that conditions have */
	QvIncludedColumn *columns;
	char	   *space;			/* QV_INCLUDED_MAX bytes for each included
								 * column */
	/* of a row page */
	char	   *included;		/* a copy of its columns */
	uint8	   *visible;		/* which of its rows are visible to everybody, */
	uint8	   *may_pass;		/* and which may pass */

	int64		tested;			/* entries, since the filter was made */
} QvFilter;

/*
 * In CurrentMemoryContext.  conditions: a list of expressions on rows of the table.  All must be
 * true.  node: evaluates them.
 */
extern QvFilter *QvFilterCreate(PlanState *node, Relation table, Relation index, List *conditions);

/* What it costs to test an entry by these conditions, many entries together (cost.h). */
extern Cost QvFilterCost(PlannerInfo *root, List *conditions);

/* Test by the row pages of a search that has been started; evaluates constants. */
extern void QvFilterUse(QvFilter *filter, QvScan *engine);

/*
 * Rows "first" to first + n - 1 of a page are tested in two steps.  at: its included columns.  The
 * page is locked, and the ranges are tested on it: may_pass[first + i].  Entries that are not
 * there may pass.  Returns whether there are other conditions on rows that are left.  These are
 * tested on the copy of the columns that QvFilterSee() has made, since a condition may read other
 * pages, and fail.
 */
extern bool QvFilterTestRanges(QvFilter *filter, const char *at, uint32 first, uint32 n);
extern void QvFilterTestOthers(QvFilter *filter, uint32 first, uint32 n);

/*
 * Copy the included columns of a page, and see which of its rows are visible to everybody.  The
 * page is locked, so that VACUUM cannot clear entries meanwhile.  number: of its first entry.
 */
extern void QvFilterSee(QvFilter *filter, const char *at, QvRowNumber number);

/* Ask the CPU for the columns of a row page that will be tested soon. */
extern void QvFilterPrefetch(const QvFilter *filter, BlockNumber block);

/*
 * Test a row whose entry is read first.  QV_ROW_PASSES, if wants_visible is set: all conditions
 * were tested, and the row is visible to everybody.
 */
extern QvAdmission QvFilterTestRow(QvFilter *filter, const ItemPointerData *tid);

/*
 * Have all included columns of a row in the slot; false: its entry does not have them, or the row
 * is not visible to everybody.
 */
extern bool QvFilterFill(QvFilter *filter, const ItemPointerData *tid);

/* Unpin the page of the visibility map. */
extern void QvFilterRelease(QvFilter *filter);

extern void QvFilterEnd(QvFilter *filter);

#endif							/* QV_QUERY_FILTER_H */
