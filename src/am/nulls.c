/*
 * nulls.c
 *		Rows without a value; see nulls.h.
 *
 * An insert notes such a row in the metapage, when the row is in the table.  A query that reads the
 * table for it notes that.  VACUUM then notes that it may look for one, and the next such insert
 * takes that back.  If the next VACUUM finds it still there, all rows that were left out are in the
 * table, or gone.  So it reads the table.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/tableam.h"
#include "am/nulls.h"
#include "catalog/pg_am.h"
#include "compat.h"
#include "pages/meta.h"
#include "storage/bufmgr.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/relcache.h"

/* The block of a row without a value, dead or not, from "first" on and around; invalid: none. */
static BlockNumber
find_null(Relation table, AttrNumber column, BlockNumber first)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(table);
	BlockNumber found = InvalidBlockNumber;
	TableScanDesc scan = table_beginscan_strat(table, SnapshotAny, 0, NULL, true, false);
	TupleTableSlot *slot = table_slot_create(table, NULL);

	if (first < nblocks)
		heap_setscanlimits(scan, first, nblocks);
	while (!BlockNumberIsValid(found) && table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		QvVacuumDelayPoint();
		if (slot_attisnull(slot, column))
			found = ItemPointerGetBlockNumber(&slot->tts_tid);
	}
	ExecDropSingleTupleTableSlot(slot);
	table_endscan(scan);
	return found;
}

void
KnnLookForNulls(const IndexVacuumInfo *info)
{
	Relation	index = info->index;
	AttrNumber	column = index->rd_index->indkey.values[0];
	QvMetaNote	note,
				now;
	Relation	table;

	/*
	 * An expression may fail for a dead row.  Rows that a partial index is
	 * not for would count.
	 */
	if (column <= 0 || RelationGetIndexPredicate(index) != NIL || RelationGetNumberOfBlocks(index) == 0)
		return;
	note = now = QvMetaGetNote(index);
	if (!(note.left_out & QV_LEFT_OUT_NULLS) || !note.wanted)
		return;
	table = table_open(index->rd_index->indrelid, AccessShareLock);
	if (!note.may_look)
		now.may_look = true;
	else if (table->rd_rel->relam == HEAP_TABLE_AM_OID)
	{
		now.seen = find_null(table, column, note.seen);
		if (!BlockNumberIsValid(now.seen))
			now = (QvMetaNote) {.left_out = note.left_out & ~QV_LEFT_OUT_NULLS, .seen = InvalidBlockNumber};
	}

	/*
	 * plans that read the table are made again; a worker sends no such
	 * message
	 */
	if (QvMetaReplaceNote(index, &note, &now) && !(now.left_out & QV_LEFT_OUT_NULLS) && !IsParallelWorker())
		CacheInvalidateRelcache(table);
	table_close(table, AccessShareLock);
}
