/*
 * set.c
 *		The rows that other indexes find, as a set; see set.h.
 *
 * A scan of bitmaps gives the server's TIDBitmap, which takes several times as long as reading
 * the index: each row is looked up in a hash table, which is sorted and read again.  Indexes
 * that can return their rows one after the other are asked for these instead.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/gist_private.h"
#include "access/nbtree.h"
#include "access/relscan.h"
#include "access/htup_details.h"
#include "catalog/pg_am.h"
#include "compat.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "topk/set.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Room for rows, to begin with. */
#define FIRST_ROWS 1024

/*
 * Rows, and a set, may each have this part of work_mem, and the final set has what rows leave.
 * There are at most two sets at a time, but for an And below another.
 */
#define MEMORY_SHARE 3

static Size
memory_share(void)
{
	return (Size) work_mem * 1024 / MEMORY_SHARE;
}

void
TopkSetInit(TopkSet *set, PlanState *child, Relation table)
{
	set->child = child;
	set->table = table;
	set->context = AllocSetContextCreate(CurrentMemoryContext, "quiver top-k set",
										 ALLOCSET_SMALL_SIZES);
}

void
TopkSetForget(TopkSet *set)
{
	MemoryContextReset(set->context);
	set->state = TOPK_SET_NONE;
	set->rows = NULL;
	set->found = NULL;
	set->nfound = set->room = 0;
}

/* ---- which trees ---- */

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

/* Is there a scan in a tree that cannot return its rows? */
static bool
has_other_scan(PlanState *node, void *unused)
{
	if (IsA(node, BitmapIndexScanState))
	{
		const BitmapIndexScanState *scan = (BitmapIndexScanState *) node;
		Oid			am = scan->biss_RelationDesc->rd_rel->relam;

		return (am != BTREE_AM_OID && am != HASH_AM_OID && am != GIST_AM_OID) || scan->biss_NumArrayKeys > 0;
	}
	return planstate_tree_walker(node, has_other_scan, unused);
}

/* ---- rows one after the other ---- */

/*
 * Have the rows found in a set rather than one after the other; false when there is no memory.
 * all: further rows may be added.
 */
static bool
take_found(TopkSet *set, bool all)
{
	set->rows = QvTidSetOfRows(set->context, RelationGetNumberOfBlocks(set->table),
							   memory_share() * (MEMORY_SHARE - 1), set->found, set->nfound, all);
	if (set->rows == NULL)
		return false;
	pfree(set->found);
	set->found = NULL;
	return true;
}

/* Have room for more rows; false when there is no memory. */
static bool
make_room(TopkSet *set)
{
	Size		most = Max(FIRST_ROWS, memory_share() / sizeof(ItemPointerData));
	Size		lines = (Size) RelationGetNumberOfBlocks(set->table) * sizeof(uint32);

	/*
	 * a single scan's rows go on in a set as soon as they take more memory
	 * than it
	 */
	if (IsA(set->child, BitmapIndexScanState) &&
		(set->room >= most || set->room * sizeof(ItemPointerData) >= lines) && take_found(set, true))
		return true;
	/* work_mem may be less than it was */
	if (set->room >= most)
		return false;
	set->room = Min(set->room * 2, most);
	set->found = repalloc_huge(set->found, set->room * sizeof(ItemPointerData));
	return true;
}

/* Add a row, if it is in "only" or there is none; false when there is no memory. */
static inline bool
add_row(TopkSet *set, const QvTidSet *only, const ItemPointerData *row)
{
	if (only && !QvTidSetHas(only, row))
		return true;
	if (set->rows == NULL && set->nfound == set->room && !make_room(set))
		return false;
	set->nfound++;
	if (set->rows)
		return QvTidSetTake(set->rows, row);
	set->found[set->nfound - 1] = *row;
	return true;
}

/*
 * Add the rows that a btree, or GiST, has found on the page of the one that it has returned: it
 * copies all of a page together, and to be given each takes four times as long as to read the copy.
 */
static bool
take_page(IndexScanDesc scan, const QvTidSet *only, TopkSet *set, double *found)
{
	if (scan->indexRelation->rd_rel->relam == BTREE_AM_OID)
	{
		BTScanPos	page = &((BTScanOpaque) scan->opaque)->currPos;

		*found += page->lastItem - page->itemIndex;
		while (page->itemIndex < page->lastItem)
			if (!add_row(set, only, &page->items[++page->itemIndex].heapTid))
				return false;
	}
	else if (scan->indexRelation->rd_rel->relam == GIST_AM_OID)
	{
		GISTScanOpaque gist = scan->opaque;

		*found += gist->nPageData - gist->curPageData;
		while (gist->curPageData < gist->nPageData)
			if (!add_row(set, only, &gist->pageData[gist->curPageData++].heapPtr))
				return false;
	}
	return true;
}

/*
 * As MultiExecBitmapIndexScan(): those of its rows that are in "only", if there is one.  A scan
 * that has stopped goes on; it can stop if it is the whole tree.  Returns the state of the set; it
 * has failed when there is no memory.
 */
static TopkSetState
collect_scan(TopkSet *set, BitmapIndexScanState *node, const QvTidSet *only)
{
	IndexScanDesc scan = node->biss_ScanDesc;
	bool		has_keys = node->biss_RuntimeKeysReady || node->biss_NumRuntimeKeys == 0;
	Oid			am = scan->indexRelation->rd_rel->relam;
	bool		can_stop = set->enough && am != HASH_AM_OID && &node->ss.ps == set->child;
	TopkSetState result = TOPK_SET_READY;
	double		found = 0;

	if (node->ss.ps.instrument)
		InstrStartNode(node->ss.ps.instrument);
	if (!has_keys && set->state == TOPK_SET_NONE)
	{
		ExecReScan(&node->ss.ps);
		has_keys = node->biss_RuntimeKeysReady;
	}
	/* a scan of bitmaps has none, of rows one: btree asserts both since 18 */
	scan->heapRelation = set->table;
	while (has_keys && result == TOPK_SET_READY &&
		   scan->indexRelation->rd_indam->amgettuple(scan, ForwardScanDirection))
	{
		found++;
		if (!add_row(set, only, &scan->xs_heaptid) || !take_page(scan, only, set, &found))
			result = TOPK_SET_FAILED;
		else if (can_stop && set->enough(set->arg, set->nfound))
		{
			/* all rows of its page were taken: VACUUM need not wait for that */
			if (am == BTREE_AM_OID)
				BTScanPosUnpinIfPinned(((BTScanOpaque) scan->opaque)->currPos);
			result = TOPK_SET_PART;
		}
	}
	scan->heapRelation = NULL;
	/* as index_getnext_tid() would have, one by one */
	pgstat_count_index_tuples(scan->indexRelation, found);
	if (node->ss.ps.instrument)
		InstrStopNode(node->ss.ps.instrument, found);
	return result;
}

/*
 * Collect the rows of a tree that are in "only", if there is one.  Of an And each child gives the
 * rows that the ones before have left.  Of an Or a row may come more than once.
 */
static TopkSetState
collect(TopkSet *set, PlanState *node, const QvTidSet *only)
{
	Size		first = set->nfound;
	QvTidSet   *left = NULL;
	TopkSetState result = TOPK_SET_READY;
	PlanState **children;
	int			n = children_of(node, &children);

	check_stack_depth();
	if (node->chgParam)
		ExecReScan(node);
	if (n == 0)
		return collect_scan(set, (BitmapIndexScanState *) node, only);
	if (node->instrument)
		InstrStartNode(node->instrument);
	for (int i = 0; i < n && result == TOPK_SET_READY; i++)
	{
		if (i > 0 && IsA(node, BitmapAndState))
		{
			if (set->nfound == first)
				break;
			if (left)
				QvTidSetFree(left);
			left = QvTidSetOfRows(set->context, RelationGetNumberOfBlocks(set->table), memory_share(),
								  set->found + first, set->nfound - first, false);
			set->nfound = first;
			if (left == NULL)
				result = TOPK_SET_FAILED;
		}
		if (result == TOPK_SET_READY)
			result = collect(set, children[i], left ? left : only);
	}
	if (left)
		QvTidSetFree(left);
	if (node->instrument)
		InstrStopNode(node->instrument, 0);
	return result;
}

/* Have the rows without a TIDBitmap.  When there is no memory for them, nothing has been done. */
static void
collect_rows(TopkSet *set)
{
	if (set->state == TOPK_SET_NONE)
	{
		set->room = FIRST_ROWS;
		set->found = MemoryContextAlloc(set->context, set->room * sizeof(ItemPointerData));
	}
	set->state = collect(set, set->child, NULL);
	if (set->state == TOPK_SET_READY && set->rows == NULL && !take_found(set, false))
		set->state = TOPK_SET_FAILED;
	if (set->state == TOPK_SET_FAILED)
	{
		TopkSetForget(set);
		ExecReScan(set->child);
	}
}

/* ---- the server's bitmap ---- */

/* Go through a bitmap: note its blocks in the set, or add its rows. */
static void
read_bitmap(TIDBitmap *bitmap, QvTidSet *rows, bool add)
{
	QvBitmapIterator *iterator = QvBitmapBegin(bitmap);
	QvBitmapBlock block;
	OffsetNumber offsets[MaxHeapTuplesPerPage];

	while (QvBitmapNext(iterator, &block))
	{
		bool		lossy = QvBitmapIsLossy(&block);
		int			n = lossy ? 0 : QvBitmapOffsets(&block, offsets, MaxHeapTuplesPerPage);

		if (add)
			QvTidSetAdd(rows, block.blockno, lossy ? NULL : offsets, n);
		else
			QvTidSetNote(rows, block.blockno, lossy ? MaxHeapTuplesPerPage : offsets[n - 1]);
	}
	QvBitmapEnd(iterator);
}

/* Have the server's bitmap, and a set of its rows if there is memory for that. */
static void
collect_bitmap(TopkSet *set)
{
	TIDBitmap  *bitmap = (TIDBitmap *) MultiExecProcNode(set->child);

	if (!IsA(bitmap, TIDBitmap))
		elog(ERROR, "unrecognized result from subplan");
	set->rows = QvTidSetCreate(set->context, RelationGetNumberOfBlocks(set->table), (Size) work_mem * 1024);
	set->state = set->rows ? TOPK_SET_READY : TOPK_SET_FAILED;
	if (set->rows)
	{
		read_bitmap(bitmap, set->rows, false);
		(void) QvTidSetMakeRoom(set->rows);
		read_bitmap(bitmap, set->rows, true);
	}
	tbm_free(bitmap);
}

void
TopkSetCollect(TopkSet *set, bool (*enough) (void *arg, double found), void *arg)
{
	if (set->child == NULL || set->state == TOPK_SET_READY || set->state == TOPK_SET_FAILED)
		return;
	set->enough = enough;
	set->arg = arg;
	if (!has_other_scan(set->child, NULL))
		collect_rows(set);
	if (set->state == TOPK_SET_NONE)
		collect_bitmap(set);
}
