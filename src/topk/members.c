/*
 * members.c
 *		The rows that other indexes find, as a set.
 *
 * A scan of bitmaps gives the server's TIDBitmap, which takes several times as long as reading
 * the index: each row is looked up in a hash table, which is sorted and read again.  Indexes
 * that can tell their rows one after the other are asked for these instead.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/nbtree.h"
#include "access/relscan.h"
#include "catalog/pg_am.h"
#include "compat.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "topk/state.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Room for rows, to begin with. */
#define FIRST_ROWS 1024

/* Of work_mem, what rows may take, and a set: there are two at most, but for an And below another. */
#define MEMORY_SHARE 3

/* The rows found so far, in the order of their index. */
typedef struct Members
{
	ItemPointerData *rows;
	Size		count;
	Size		room;
	Size		max_rows;		/* there is no memory for more */
} Members;

/* ---- which trees ---- */

static bool
can_tell_rows(const BitmapIndexScanState *scan)
{
	Oid			am = scan->biss_RelationDesc->rd_rel->relam;

	return (am == BTREE_AM_OID || am == HASH_AM_OID) && scan->biss_NumArrayKeys == 0;
}

/* The children of a node that joins bitmaps; 0: it is none. */
static int
children_of(PlanState *node, PlanState ***children)
{
	if (IsA(node, BitmapAndState))
	{
		*children = ((BitmapAndState *) node)->bitmapplans;
		return ((BitmapAndState *) node)->nplans;
	}
	if (IsA(node, BitmapOrState))
	{
		*children = ((BitmapOrState *) node)->bitmapplans;
		return ((BitmapOrState *) node)->nplans;
	}
	return 0;
}

/* Do all scans of a tree tell their rows?  And add how many these are expected to be. */
static bool
look_at(PlanState *node, double *rows)
{
	PlanState **children;
	int			n = children_of(node, &children);
	bool		all = n > 0;

	if (IsA(node, BitmapIndexScanState))
	{
		*rows += node->plan->plan_rows;
		return can_tell_rows((BitmapIndexScanState *) node);
	}
	for (int i = 0; i < n; i++)
		all = look_at(children[i], rows) && all;
	return all;
}

/*
 * Copy what EXPLAIN has counted of all nodes of a tree, or put it back: what was begun in vain
 * does not count.
 */
static void
copy_counts(PlanState *node, List **counts, bool back)
{
	PlanState **children;
	int			n = children_of(node, &children);

	if (node->instrument == NULL)
		return;
	if (back)
	{
		*node->instrument = *(Instrumentation *) linitial(*counts);
		*counts = list_delete_first(*counts);
	}
	else
	{
		Instrumentation *copy = palloc(sizeof(Instrumentation));

		*copy = *node->instrument;
		*counts = lappend(*counts, copy);
	}
	for (int i = 0; i < n; i++)
		copy_counts(children[i], counts, back);
}

void
TopkLookAtChild(TopkState *state)
{
	state->bitmap_rows = 0;
	state->tells_rows = look_at(state->child, &state->bitmap_rows);
}

/* ---- their rows ---- */

/* Add a row, if it is in "only" or there is none; false when there is no memory. */
static inline bool
add_row(Members *members, const QvTidSet *only, const ItemPointerData *row)
{
	if (only && !QvTidSetHas(only, row))
		return true;
	if (members->count == members->room)
	{
		if (members->room == members->max_rows)
			return false;
		members->room = Min(members->room * 2, members->max_rows);
		members->rows = repalloc_huge(members->rows, members->room * sizeof(ItemPointerData));
	}
	members->rows[members->count++] = *row;
	return true;
}

/*
 * Add the rows that a btree has found on the page of the one that it has told: it copies all of a
 * page together, and to be told of each takes four times as long as to read the copy.
 */
static bool
take_page(BTScanOpaque scan, const QvTidSet *only, Members *members, double *found)
{
	BTScanPos	page = &scan->currPos;

	*found += page->lastItem - page->itemIndex;
	while (page->itemIndex < page->lastItem)
		if (!add_row(members, only, &page->items[++page->itemIndex].heapTid))
			return false;
	return true;
}

/* As MultiExecBitmapIndexScan(): those of its rows that are in "only", if there is one. */
static bool
collect_scan(TopkState *state, BitmapIndexScanState *node, const QvTidSet *only, Members *members)
{
	IndexScanDesc scan = node->biss_ScanDesc;
	bool		has_keys = node->biss_RuntimeKeysReady || node->biss_NumRuntimeKeys == 0;
	bool		is_btree = scan->indexRelation->rd_rel->relam == BTREE_AM_OID;
	bool		fits = true;
	double		found = 0;

	if (node->ss.ps.instrument)
		InstrStartNode(node->ss.ps.instrument);
	if (!has_keys)
	{
		ExecReScan(&node->ss.ps);
		has_keys = node->biss_RuntimeKeysReady;
	}
	/* a scan of bitmaps has none, of rows one: btree asserts both since 18 */
	scan->heapRelation = state->css.ss.ss_currentRelation;
	while (has_keys && fits && scan->indexRelation->rd_indam->amgettuple(scan, ForwardScanDirection))
	{
		found++;
		fits = add_row(members, only, &scan->xs_heaptid);
		if (is_btree && fits)
			fits = take_page(((BTScanOpaque) scan->opaque), only, members, &found);
	}
	scan->heapRelation = NULL;
	/* as index_getnext_tid() would have, one by one */
	pgstat_count_index_tuples(scan->indexRelation, found);
	if (node->ss.ps.instrument)
		InstrStopNode(node->ss.ps.instrument, found);
	return fits;
}

static QvTidSet *
make_set(TopkState *state, const ItemPointerData *rows, Size n)
{
	MemoryContext old = MemoryContextSwitchTo(state->set_context);
	QvTidSet   *set;

	state->table_blocks = RelationGetNumberOfBlocks(state->css.ss.ss_currentRelation);
	set = QvTidSetOfRows(state->table_blocks, (Size) work_mem * 1024 / MEMORY_SHARE, rows, n);
	MemoryContextSwitchTo(old);
	return set;
}

static bool collect(TopkState *state, PlanState *node, const QvTidSet *only, Members *members);

/* Those that all children have: of each the rows that the one before has left. */
static bool
collect_and(TopkState *state, BitmapAndState *node, const QvTidSet *only, Members *members)
{
	Size		first = members->count;
	QvTidSet   *left = NULL;

	for (int i = 0; i < node->nplans; i++)
	{
		if (i > 0)
		{
			QvTidSet   *before = left;

			left = make_set(state, members->rows + first, members->count - first);
			if (before)
				QvTidSetFree(before);
			if (left == NULL)
				return false;
			members->count = first;
		}
		if (!collect(state, node->bitmapplans[i], left ? left : only, members))
			return false;
		if (members->count == first)
			break;
	}
	if (left)
		QvTidSetFree(left);
	return true;
}

/* A row may come more than once. */
static bool
collect_or(TopkState *state, BitmapOrState *node, const QvTidSet *only, Members *members)
{
	for (int i = 0; i < node->nplans; i++)
		if (!collect(state, node->bitmapplans[i], only, members))
			return false;
	return true;
}

/* False when there is no memory for all of them. */
static bool
collect(TopkState *state, PlanState *node, const QvTidSet *only, Members *members)
{
	bool		fits;

	check_stack_depth();
	if (node->chgParam)
		ExecReScan(node);
	if (IsA(node, BitmapIndexScanState))
		return collect_scan(state, (BitmapIndexScanState *) node, only, members);
	if (node->instrument)
		InstrStartNode(node->instrument);
	fits = IsA(node, BitmapAndState) ?
		collect_and(state, (BitmapAndState *) node, only, members) :
		collect_or(state, (BitmapOrState *) node, only, members);
	if (node->instrument)
		InstrStopNode(node->instrument, 0);
	return fits;
}

/*
 * Have the set without a TIDBitmap.  False when an index cannot tell its rows, or there is no
 * memory for them: then nothing has been done.
 */
bool
TopkCollectMembers(TopkState *state)
{
	Members		members = {0};
	List	   *counts = NIL;

	if (!state->tells_rows)
		return false;
	copy_counts(state->child, &counts, false);
	members.max_rows = Max(FIRST_ROWS, (Size) work_mem * 1024 / MEMORY_SHARE / sizeof(ItemPointerData));
	members.room = FIRST_ROWS;
	members.rows = MemoryContextAlloc(state->set_context, members.room * sizeof(ItemPointerData));
	if (collect(state, state->child, NULL, &members))
		state->set = make_set(state, members.rows, members.count);
	pfree(members.rows);
	if (state->set == NULL)
	{
		MemoryContextReset(state->set_context);
		copy_counts(state->child, &counts, true);
		ExecReScan(state->child);
	}
	list_free_deep(counts);
	return state->set != NULL;
}
