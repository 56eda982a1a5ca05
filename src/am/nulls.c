/*
 * nulls.c
 *		Rows without a value; see nulls.h.
 *
 * An insert notes such a row in the metapage, when the row is in the table.  VACUUM notes that it
 * may look for one, and the next such insert takes that back.  If the next VACUUM finds it still
 * there, all rows that were left out are in the table, or gone.  So it reads the table.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "am/nulls.h"
#include "compat.h"
#include "pages/meta.h"
#include "utils/rel.h"

typedef bool (*NextRow) (TableScanDesc scan, ScanDirection direction, TupleTableSlot *slot);

/* The block of the first row of a scan that has no value in a column; invalid: there is none. */
static BlockNumber
first_null(TableScanDesc scan, NextRow next, AttrNumber column)
{
	TupleTableSlot *slot = table_slot_create(scan->rs_rd, NULL);
	BlockNumber found = InvalidBlockNumber;

	while (!BlockNumberIsValid(found) && next(scan, ForwardScanDirection, slot))
	{
		QvVacuumDelayPoint();
		if (slot_attisnull(slot, column))
			found = ItemPointerGetBlockNumber(&slot->tts_tid);
	}
	ExecDropSingleTupleTableSlot(slot);
	table_endscan(scan);
	return found;
}

/* The block of a row without a value, dead or not: there where one was seen, or anywhere. */
static BlockNumber
find_null(Relation table, AttrNumber column, BlockNumber seen)
{
	BlockNumber found = InvalidBlockNumber;
	ItemPointerData first,
				last;

	if (BlockNumberIsValid(seen))
	{
		ItemPointerSet(&first, seen, FirstOffsetNumber);
		ItemPointerSet(&last, seen, MaxOffsetNumber);
		found = first_null(table_beginscan_tidrange(table, SnapshotAny, &first, &last),
						   table_scan_getnextslot_tidrange, column);
	}
	if (!BlockNumberIsValid(found))
		found = first_null(table_beginscan_strat(table, SnapshotAny, 0, NULL, true, false),
						   table_scan_getnextslot, column);
	return found;
}

void
KnnLookForNulls(const IndexVacuumInfo *info)
{
	Relation	index = info->index;
	AttrNumber	column = index->rd_index->indkey.values[0];
	QvMetaNote	note = QvMetaGetNote(index);
	QvMetaNote	now = note;
	Relation	table;

	/* an expression may fail for a dead row */
	if (column <= 0 || !(note.left_out & QV_LEFT_OUT_NULLS))
		return;
	if (!note.may_look)
		now.may_look = true;
	else
	{
		table = table_open(index->rd_index->indrelid, AccessShareLock);
		now.seen = find_null(table, column, note.seen);
		table_close(table, AccessShareLock);
		if (!BlockNumberIsValid(now.seen))
		{
			now.left_out &= ~QV_LEFT_OUT_NULLS;
			now.may_look = false;
		}
	}
	QvMetaReplaceNote(index, &note, &now);
}
