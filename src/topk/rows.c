/*
 * rows.c
 *		Reading rows of the table for a top-k scan; see src/topk/README.md, "Executor".
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/tableam.h"
#include "compat.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "topk/state.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Tuples up to this size are kept until they are returned; others are fetched again. */
#define MAX_COPY 2048

/* So few rows may be kept without being measured: of more, most lie where others may. */
#define MAX_GUESSED 100

/* ---- rows that are proposed ---- */

/* Was the row returned before the rows of this round?  Or, in strict order, should it have been? */
static bool
is_late(const TopkState *state, const TopkRow *row)
{
	if (state->returned_before == 0 || row->distance > state->last_distance)
		return false;
	if (row->distance < state->last_distance && (!state->rules.relaxed || state->strict_now))
		return true;
	return TopkTidsHas(state->ties, (ItemPointer) &row->tid);
}

/* Keep a copy of the row fetched while there is room. */
static HeapTuple
copy_row(TopkState *state)
{
	MemoryContext old;
	HeapTuple	tuple;
	bool		copied;

	if (MemoryContextMemAllocated(state->nearest.context, false) >= (Size) work_mem * 1024)
		return NULL;
	tuple = ExecFetchSlotHeapTuple(state->rows->slot, false, &copied);
	Assert(!copied);
	if (tuple->t_len > MAX_COPY)
		return NULL;
	old = MemoryContextSwitchTo(state->nearest.context);
	tuple = heap_copytuple(tuple);
	MemoryContextSwitchTo(old);
	return tuple;
}

/* A TopkMeasure. */
static void
measure_row(void *arg, TopkRow *row, bool fetched)
{
	TopkState  *state = arg;
	RowReader  *rows = state->rows;
	ItemPointerData tid = row->tid;
	double		most = row->distance;

	CHECK_FOR_INTERRUPTS();
	state->counters.measured++;
	if (!fetched && row->tuple)
	{
		ExecForceStoreHeapTuple(row->tuple, rows->slot, false);
		fetched = true;
	}
	if (!(fetched || RowFetch(rows, &tid, state->css.ss.ps.state->es_snapshot)) ||
		!RowDistance(rows, state->value, &row->distance))
		row->distance = INFINITY;
	/* a damaged index, or a distance that the index does not know so */
	if (!(row->distance >= row->least && row->distance <= most))
		state->may_guess = false;
	row->least = row->distance;
	ExecClearTuple(rows->slot);
}

/* Forget the rows of a round, to find so many. */
void
TopkStartRows(TopkState *state, uint32 wanted)
{
	state->may_guess = state->guesses && wanted <= MAX_GUESSED && state->returned_before == 0 &&
		state->value != NULL && isinf(state->limit_distance);
	TopkNearestReset(&state->nearest, wanted, state->may_guess ? measure_row : NULL, state);
	state->returned = 0;
}

/* Keep the row fetched, which is between these distances, if it may be near enough. */
static void
keep_row(TopkState *state, ItemPointer tid, double least, double most)
{
	TopkRow		row = {.least = least, .distance = most, .tid = *tid};

	if (TopkNearestIsFull(&state->nearest, least))
		return;
	row.tuple = copy_row(state);
	if (!TopkNearestOffer(&state->nearest, &row) && row.tuple)
		heap_freetuple(row.tuple);
}

/*
 * Test a row that the index calls tid, measure it, and keep it if it is near enough.  The index may
 * know that it is no farther than error from a distance.
 */
void
TopkTakeRow(TopkState *state, ItemPointer tid, double distance, double error)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	TupleTableSlot *slot = state->rows->slot;
	TopkRow		row = {.tid = *tid};

	CHECK_FOR_INTERRUPTS();
	if (!RowFetch(state->rows, tid, state->css.ss.ps.state->es_snapshot))
		return;
	state->counters.fetched++;
	pgstat_count_heap_fetch(state->index);
	if (state->qual)
	{
		ResetExprContext(econtext);
		econtext->ecxt_scantuple = slot;
		if (!ExecQual(state->qual, econtext))
		{
			InstrCountFiltered1(&state->css.ss, 1);
			ExecClearTuple(slot);
			return;
		}
	}
	state->passed++;
	if (state->may_guess && isfinite(distance) && isfinite(error))
	{
		keep_row(state, tid, distance - error, distance + error);
		ExecClearTuple(slot);
		return;
	}
	state->counters.measured++;
	/* in no index, or returned in an earlier round */
	if (RowDistance(state->rows, state->value, &row.distance) && !is_late(state, &row))
		keep_row(state, tid, row.distance, row.distance);
	ExecClearTuple(slot);
}

/* ---- the bitmap ---- */

/* What does a sweep take now?  What the backend knows changes from search to search. */
void
TopkAskOfSweep(TopkState *state)
{
	state->sweep = (KnnSweep) {0};
	if (state->sweepable)
		state->source->sweep(state->index, &state->settings, state->table_rows, &state->sweep);
}

/* And before there is a bitmap: as if it could be swept. */
void
TopkExpectSweep(TopkState *state)
{
	if (TopkHasBitmap(state) || state->sweep.pages > 0)
		return;
	state->table_blocks = RelationGetNumberOfBlocks(state->css.ss.ss_currentRelation);
	state->source->sweep(state->index, &state->settings, state->table_rows, &state->sweep);
}

/* Count the rows of the bitmap, where there is no memory for a set. */
static uint64
count_bitmap(TIDBitmap *bitmap)
{
	QvBitmapIterator *iterator = QvBitmapBegin(bitmap);
	QvBitmapBlock block;
	OffsetNumber offsets[MaxHeapTuplesPerPage];
	uint64		rows = 0;

	while (QvBitmapNext(iterator, &block))
		rows += QvBitmapIsLossy(&block) ? MaxHeapTuplesPerPage :
			QvBitmapOffsets(&block, offsets, MaxHeapTuplesPerPage);
	QvBitmapEnd(iterator);
	return rows;
}

static void
fill_set(QvTidSet *set, TIDBitmap *bitmap)
{
	QvBitmapIterator *iterator = QvBitmapBegin(bitmap);
	QvBitmapBlock block;
	OffsetNumber offsets[MaxHeapTuplesPerPage];

	while (QvBitmapNext(iterator, &block))
	{
		if (QvBitmapIsLossy(&block))
			QvTidSetAdd(set, block.blockno, NULL, 0);
		else
			QvTidSetAdd(set, block.blockno, offsets,
						QvBitmapOffsets(&block, offsets, MaxHeapTuplesPerPage));
	}
	QvBitmapEnd(iterator);
}

/* Have the server's bitmap, and a set of its rows if there is memory for that. */
static void
run_bitmap(TopkState *state)
{
	Node	   *result = MultiExecProcNode(state->child);
	MemoryContext old;

	if (!IsA(result, TIDBitmap))
		elog(ERROR, "unrecognized result from subplan");
	state->bitmap = (TIDBitmap *) result;
	old = MemoryContextSwitchTo(state->set_context);
	state->table_blocks = RelationGetNumberOfBlocks(state->css.ss.ss_currentRelation);
	state->set = QvTidSetCreate(state->table_blocks, (Size) work_mem * 1024);
	MemoryContextSwitchTo(old);
	if (state->set)
		fill_set(state->set, state->bitmap);
}

/* Have the bitmap's rows as a set, or the bitmap, and their number. */
void
TopkGetBitmap(TopkState *state)
{
	double		members;

	if (TopkHasBitmap(state))
		return;
	MemoryContextReset(state->set_context);
	if (!TopkCollectMembers(state))
		run_bitmap(state);
	members = state->set ? state->set->members : count_bitmap(state->bitmap);
	/* the estimate was off by so much */
	state->rank_per_row *= state->expected_members / Max(1, members);
	state->expected_members = members;
	/* of rows that the set only seems to have too many would be proposed */
	state->sweepable = state->set && state->set->words > 0 && state->set->lossy == 0;
	TopkAskOfSweep(state);
}

/* Measure every row of the server's bitmap. */
static void
measure_bitmap(TopkState *state)
{
	QvBitmapIterator *iterator = QvBitmapBegin(state->bitmap);
	QvBitmapBlock block;
	OffsetNumber offsets[MaxHeapTuplesPerPage];

	while (QvBitmapNext(iterator, &block))
	{
		bool		lossy = QvBitmapIsLossy(&block);
		int			n = lossy ? MaxHeapTuplesPerPage :
			QvBitmapOffsets(&block, offsets, MaxHeapTuplesPerPage);

		state->counters.lossy_pages += lossy;
		for (int i = 0; i < n; i++)
		{
			ItemPointerData tid;

			/* of a lossy page: what is no start of a chain gives no row */
			ItemPointerSet(&tid, block.blockno, lossy ? FirstOffsetNumber + i : offsets[i]);
			TopkTakeRow(state, &tid, NAN, NAN);
		}
	}
	QvBitmapEnd(iterator);
}

/* Measure every row of the bitmap. */
void
TopkMeasureMembers(TopkState *state)
{
	QvTidSetIterator it = {0};
	ItemPointerData tid;

	state->counters.ran[TOPK_EXACT] = true;
	TopkGetBitmap(state);
	if (state->bitmap)
	{
		measure_bitmap(state);
		return;
	}
	it.set = state->set;
	while (QvTidSetNext(&it, &tid))
		TopkTakeRow(state, &tid, NAN, NAN);
}

/* Lines of a page of the table. */
static OffsetNumber
page_lines(Relation table, BlockNumber block)
{
	Buffer		buf = ReadBuffer(table, block);
	OffsetNumber lines;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	lines = PageGetMaxOffsetNumber(BufferGetPage(buf));
	UnlockReleaseBuffer(buf);
	return lines;
}

/* Measure every row of the table that passes: no other index knows which do. */
void
TopkMeasureTable(TopkState *state)
{
	Relation	table = state->css.ss.ss_currentRelation;
	BlockNumber nblocks = RelationGetNumberOfBlocks(table);

	state->counters.ran[TOPK_EXACT] = true;
	for (BlockNumber block = 0; block < nblocks; block++)
	{
		OffsetNumber lines = page_lines(table, block);

		for (OffsetNumber line = FirstOffsetNumber; line <= lines; line++)
		{
			ItemPointerData tid;

			/* what is no start of a chain gives no row */
			ItemPointerSet(&tid, block, line);
			TopkTakeRow(state, &tid, NAN, NAN);
		}
	}
}
