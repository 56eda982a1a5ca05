/*
 * state.h
 *		A top-k scan that is executed.
 */
#ifndef QV_TOPK_STATE_H
#define QV_TOPK_STATE_H

#include "postgres.h"

#include "am/methods.h"
#include "nodes/execnodes.h"
#include "nodes/tidbitmap.h"
#include "table/row_reader.h"
#include "topk/nearest.h"
#include "topk/topk.h"

/* How rows are found. */
typedef enum TopkStrategy
{
	TOPK_BY_ROW,				/* the index proposes, conditions are tested
								 * on the row */
	TOPK_IN_INDEX,				/* the index proposes rows of the bitmap only */
	TOPK_SWEEP,					/* likewise, by looking at all of them */
	TOPK_EXACT					/* every row of the bitmap is measured */
} TopkStrategy;

#define TOPK_STRATEGIES (TOPK_EXACT + 1)

typedef struct TopkCounters
{
	int64		searches;
	int64		rounds;
	int64		proposed;		/* heap TIDs, by the index */
	int64		fetched;		/* rows that are visible */
	int64		measured;
	int64		lossy_pages;
	double		last;			/* distance of the farthest row of the last
								 * round, */
	double		bound;			/* and of rows that it did not look at */
	bool		ran[TOPK_STRATEGIES];
} TopkCounters;

typedef struct TopkState
{
	CustomScanState css;

	/* of the plan */
	Relation	index;			/* and what follows: not when it is only
								 * explained */
	const KnnEngine *source;
	KnnSettings settings;		/* as of TopkStart() */
	QvOpclassInfo opclass;
	ExprState  *query;
	ExprState  *limit;
	ExprState  *offset;
	ExprState  *radius;
	ExprState  *order;			/* the ORDER BY expression */
	bool		shows_distance; /* the projection takes it from the search */
	bool		guesses;		/* nobody but us needs the distances */
	ExprState  *qual;			/* all conditions of the relation */
	PlanState  *child;			/* gives the bitmap; NULL: none */
	bool		unsure;			/* the planner's estimate of the bitmap's rows
								 * (without one, of those that pass) is a
								 * default */
	double		rank_per_row;	/* learned, where that is so, until there is
								 * the bitmap */
	double		table_rows;
	BlockNumber table_blocks;	/* known with "sweep" */
	double		measure_cost;
	double		expected_members;	/* of the bitmap; known once there is one */
	double		bitmap_rows;	/* that its scans are expected to find */
	bool		tells_rows;		/* one after the other: members.c */

	/* of a search */
	MemoryContext context;		/* of the value and the engine */
	RowReader  *rows;
	QvScan	   *engine;
	KnnGoal		goal;
	KnnScanRules rules;
	const void *value;			/* searched for; NULL: any order */
	double		limit_distance; /* rows farther than this do not count */
	TIDBitmap  *bitmap;			/* kept from search to search while it is the
								 * same; NULL: none yet, or the set has all */
	MemoryContext set_context;
	QvTidSet   *set;			/* its rows, for the engine */
	bool		sweepable;		/* the set has these rows and no others, and
								 * the engine can look at all of them: */
	KnnSweep	sweep;			/* what that takes */
	TopkNearest nearest;
	bool		may_guess;		/* rows of this round are measured where their
								 * place is in doubt only */
	TopkStrategy strategy;
	bool		started;
	QvScanCounters before;		/* the engine's when its search began */
	int64		proposed;		/* by the engine since */
	int64		passed;			/* of these, those that passed the conditions */
	bool		asked_for_more; /* than the engine's first window or batch has */
	double		prepared;		/* the engine has been told that so many rows
								 * will likely be proposed in all */
	int64		reconsidered;	/* with so many proposed the bitmap is thought
								 * of again */
	uint32		returned;		/* of the rows of this round */
	int64		returned_before;	/* in the rounds before it */
	double		last_distance;	/* of the row returned last, in any round */
	struct QvTids_hash *ties;	/* returned at that distance; in relaxed
								 * order, all returned */
	bool		strict_now;		/* there was no memory for that */
	TopkCounters counters;
} TopkState;

#define TopkPlan(state) ((CustomScan *) (state)->css.ss.ps.plan)
#define TopkPlanField(scan, field) list_nth((scan)->custom_private, field)

/* Is an expression of the plan not there? */
static inline bool
TopkIsNull(const Node *expr)
{
	return IsA(expr, Const) && ((const Const *) expr)->constisnull;
}

/* Are the rows of the bitmap there? */
static inline bool
TopkHasBitmap(const TopkState *state)
{
	return state->bitmap != NULL || state->set != NULL;
}

/* members.c: can the rows of a child be had without a bitmap, and how many do its scans find? */
extern void TopkLookAtChild(TopkState *state);

/* Have the set without a bitmap; false when that cannot be. */
extern bool TopkCollectMembers(TopkState *state);

/*
 * rows.c: a row that the index calls tid, and knows to be no farther than error from a distance (not finite:
 * it does not), is tested, measured, and kept if it is near enough; before, so many are wanted.
 */
extern void TopkStartRows(TopkState *state, uint32 wanted);
extern void TopkTakeRow(TopkState *state, ItemPointer tid, double distance, double error);

/* Have the bitmap, and with it the number of its rows; what a sweep for these takes now. */
extern void TopkGetBitmap(TopkState *state);
extern void TopkAskOfSweep(TopkState *state);
extern void TopkExpectSweep(TopkState *state);

/* Take every row of the bitmap; of the table. */
extern void TopkMeasureMembers(TopkState *state);
extern void TopkMeasureTable(TopkState *state);

/*
 * choice.c: how to begin; and, when a batch has ended, or pauses, whether another strategy
 * takes less than going on: then it is set.
 */
extern TopkStrategy TopkChooseFirst(TopkState *state, uint32 wanted);
extern bool TopkSwitches(TopkState *state, bool ended);

/* What the engine is told: before its search, at a pause, and at the end of a window or batch. */
extern void TopkSetGoal(TopkState *state, uint32 wanted);
extern void TopkSetPause(TopkState *state);
extern void TopkExpectMore(TopkState *state, double bound);

/* All rows were measured: the engine is told what that has cost. */
extern void TopkNoteExact(const TopkState *state, uint32 wanted);

/* Rows wanted in this round and before; looked at by the engine; and how deep it has to go. */
extern uint32 TopkWantedInAll(const TopkState *state);
extern int64 TopkRowsSeen(const TopkState *state);
extern double TopkNeededRank(const TopkState *state, double bound);
extern bool TopkIsDeep(const TopkState *state, double rank, double distance);

/* search.c: begin a search; find the rows of its first round, then of the next. */
extern void TopkStart(TopkState *state);
extern void TopkNextRound(TopkState *state);

/* A row is returned. */
extern void TopkNoteReturned(TopkState *state, const TopkRow *row);

/* explain.c: CustomExecMethods.ExplainCustomScan */
extern void TopkExplain(CustomScanState *css, List *ancestors, ExplainState *es);

#endif							/* QV_TOPK_STATE_H */
