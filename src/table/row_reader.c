/*
 * row_reader.c
 *		The table's rows that an index proposes; see row_reader.h.
 */
#include "postgres.h"

#include <math.h>

#include "access/detoast.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "compat.h"
#include "executor/executor.h"
#include "space/space.h"
#include "table/row_reader.h"
#include "utils/memutils.h"
#include "utils/rel.h"

RowReader *
RowReaderBegin(Relation heap, Relation index, const QvOpclassInfo *opclass)
{
	RowReader  *reader = palloc0(sizeof(RowReader));

	reader->context = CurrentMemoryContext;
	reader->opclass = opclass;
	reader->index = index;
	reader->fetch = QvTableFetchBegin(heap);
	reader->slot = table_slot_create(heap, NULL);
	reader->attribute = index->rd_index->indkey.values[0];
	if (reader->attribute == InvalidAttrNumber)
	{
		reader->info = BuildIndexInfo(index);
		reader->estate = CreateExecutorState();
		GetPerTupleExprContext(reader->estate)->ecxt_scantuple = reader->slot;
	}
	reader->row_context = AllocSetContextCreate(CurrentMemoryContext, "quiver row",
												ALLOCSET_DEFAULT_SIZES);
	return reader;
}

void
RowReaderUseHints(RowReader *reader, QvBufferHints *hints)
{
	reader->hints = reader->fetch->rel->rd_tableam == GetHeapamTableAmRoutine() ? hints : NULL;
}

bool
RowMayBe(RowReader *reader, ItemPointer tid)
{
	Relation	heap = reader->fetch->rel;
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);

	if (block < reader->nblocks || heap->rd_tableam != GetHeapamTableAmRoutine())
		return true;
	reader->nblocks = RelationGetNumberOfBlocks(heap);
	return block < reader->nblocks;
}

/*
 * Raises an error for a heap TID beyond the table's end.  The table's own error would not
 * name the index.
 */
static void
check_block(RowReader *reader, ItemPointer tid)
{
	if (!RowMayBe(reader, tid))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\" is damaged", RelationGetRelationName(reader->index)),
				 errdetail("It leads to row (%u,%u) of table \"%s\", which has %u blocks.",
						   ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid),
						   RelationGetRelationName(reader->fetch->rel), reader->nblocks),
				 errhint("Please REINDEX it.")));
}

/* The reader of out-of-line values; NULL: there is none. */
static ToastReader *
toast_reader(RowReader *reader)
{
	if (!reader->asked_toast)
	{
		MemoryContext old = MemoryContextSwitchTo(reader->context);

		reader->toast = ToastReaderBegin(reader->fetch->rel);
		reader->asked_toast = true;
		MemoryContextSwitchTo(old);
	}
	return reader->toast;
}

/* The line of the first tuple of a row's chain; NULL: there is none. */
static ItemId
first_tuple(Page page, OffsetNumber line)
{
	ItemId		id;

	if (line > PageGetMaxOffsetNumber(page))
		return NULL;
	id = PageGetItemId(page, line);
	if (ItemIdIsRedirected(id))
		id = PageGetItemId(page, ItemIdGetRedirect(id));
	return ItemIdIsNormal(id) ? id : NULL;
}

/* Ask for the out-of-line value of a row whose page is in memory, visible or not. */
static void
ask_for_value(RowReader *reader, const ItemPointerData *tid)
{
	Relation	heap = reader->fetch->rel;
	Buffer		buf = ReadBuffer(heap, ItemPointerGetBlockNumber(tid));
	Page		page = BufferGetPage(buf);
	char		pointer[TOAST_POINTER_SIZE];
	bool		is_outside = false;
	ItemId		id;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	id = first_tuple(page, ItemPointerGetOffsetNumber(tid));
	if (id)
	{
		HeapTupleData tuple = {.t_len = ItemIdGetLength(id), .t_data = (HeapTupleHeader) PageGetItem(page, id)};
		bool		isnull;
		Datum		value = heap_getattr(&tuple, reader->attribute, RelationGetDescr(heap), &isnull);

		is_outside = !isnull && VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value));
		if (is_outside)
			memcpy(pointer, DatumGetPointer(value), sizeof(pointer));
	}
	UnlockReleaseBuffer(buf);
	if (is_outside)
		ToastReaderAskFor(reader->toast, PointerGetDatum(pointer));
}

void
RowAskFor(RowReader *reader, const ItemPointerData *tid, bool value)
{
	ItemPointerData at = *tid;
	PrefetchBufferResult page;

	/*
	 * block numbers of another table access method may mean anything; one
	 * that is too large is from a damaged page
	 */
	if (effective_io_concurrency == 0 || reader->fetch->rel->rd_tableam != GetHeapamTableAmRoutine() ||
		!ItemPointerIsValid(&at) || !RowMayBe(reader, &at))
		return;
	page = PrefetchBuffer(reader->fetch->rel, MAIN_FORKNUM, ItemPointerGetBlockNumber(&at));
	if (value && BufferIsValid(page.recent_buffer) && reader->attribute != InvalidAttrNumber && toast_reader(reader))
		ask_for_value(reader, &at);
}

/*
 * One in this many pages that are pinned here is pruned, if needed.  The table's access
 * method prunes only pages that it pins itself.
 */
#define PRUNED_EVERY 16

/*
 * Pins the page of a fetch through its hint, for the table's access method to find.
 * Looking the page up is most of the cost of a fetch.
 */
static void
pin_recent(RowReader *reader, BlockNumber block)
{
	IndexFetchHeapData *fetch = (IndexFetchHeapData *) reader->fetch;
	Buffer		buf;

	if (BufferIsValid(fetch->xs_cbuf) && BufferGetBlockNumber(fetch->xs_cbuf) == block)
		return;
	buf = QvReadRecent(reader->fetch->rel, reader->hints, block);
	if (!BufferIsValid(buf))
		return;
	if (BufferIsValid(fetch->xs_cbuf))
		ReleaseBuffer(fetch->xs_cbuf);
	QvSetFetchBuffer(fetch, buf, block);
	if (++reader->hints->recent % PRUNED_EVERY == 0)
		QvPagePrune(fetch, buf);
}

bool
RowFetch(RowReader *reader, ItemPointer tid, Snapshot snapshot)
{
	ItemPointerData at = *tid;
	bool		call_again = false,
				all_dead = false,
				found;

	/*
	 * tables do not test this: InvalidBlockNumber would even add a page to
	 * them
	 */
	if (!ItemPointerIsValid(tid) ||
		!BlockNumberIsValid(ItemPointerGetBlockNumberNoCheck(tid)))
		return false;
	check_block(reader, tid);
	if (reader->hints)
		pin_recent(reader, ItemPointerGetBlockNumber(tid));
	/* this moves "at" to the visible version of the row's chain */
	found = table_index_fetch_tuple(reader->fetch, &at, snapshot, reader->slot, &call_again,
									&all_dead);
	if (reader->hints)
		QvRememberBuffer(reader->hints, ItemPointerGetBlockNumber(tid),
						 ((IndexFetchHeapData *) reader->fetch)->xs_cbuf);
	reader->fetched += found;
	return found;
}

/* Returns the indexed value of the fetched row. */
static Datum
row_value(RowReader *reader, bool *isnull)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnulls[INDEX_MAX_KEYS];

	if (reader->attribute != InvalidAttrNumber)
		return slot_getattr(reader->slot, reader->attribute, isnull);
	FormIndexDatum(reader->info, reader->slot, reader->estate, values, isnulls);
	*isnull = isnulls[0];
	return values[0];
}

/*
 * Detoasts a value.  The toast reader reads out-of-line values if it can; the server
 * reads the others.
 */
static void *
detoast(RowReader *reader, Datum datum)
{
	void	   *value = NULL;

	if (reader->attribute != InvalidAttrNumber &&
		VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(datum)) && toast_reader(reader))
		value = ToastReaderValue(reader->toast, datum);
	return value ? value : PG_DETOAST_DATUM(datum);
}

RowMeasure
RowDistance(RowReader *reader, const void *query, double *distance)
{
	const VectorTypeOps *type = reader->opclass->type;
	MemoryContext old = MemoryContextSwitchTo(reader->row_context);
	RowMeasure	result = ROW_NULL;
	bool		isnull;
	Datum		datum = row_value(reader, &isnull);

	*distance = query ? NAN : 0;
	if (!isnull)
	{
		void	   *value = detoast(reader, datum);

		if (query && type->dims(value) != type->dims(query))
			result = ROW_OTHER;
		else
			result = QvIsIndexed(reader->opclass, value) ? ROW_MEASURED : ROW_ZERO;
		if (result == ROW_MEASURED && query)
		{
			*distance = type->distance(reader->opclass->metric, query, value);
			reader->measured++;
		}
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(reader->row_context);
	if (reader->estate)
		ResetPerTupleExprContext(reader->estate);
	return result;
}

const void *
RowValue(RowReader *reader)
{
	MemoryContext old;
	void	   *value = NULL;
	bool		isnull;
	Datum		datum;

	MemoryContextReset(reader->row_context);
	if (reader->estate)
		ResetPerTupleExprContext(reader->estate);
	old = MemoryContextSwitchTo(reader->row_context);
	datum = row_value(reader, &isnull);
	if (!isnull)
		value = detoast(reader, datum);
	MemoryContextSwitchTo(old);
	return value && QvIsIndexed(reader->opclass, value) ? value : NULL;
}

void
RowReleaseValues(RowReader *reader)
{
	if (reader->toast)
		ToastReaderRelease(reader->toast);
}

void
RowReleasePages(RowReader *reader)
{
	table_index_fetch_reset(reader->fetch);
	RowReleaseValues(reader);
}

void
RowReaderEnd(RowReader *reader)
{
	if (reader->toast)
		ToastReaderEnd(reader->toast);
	ExecDropSingleTupleTableSlot(reader->slot);
	table_index_fetch_end(reader->fetch);
	if (reader->estate)
		FreeExecutorState(reader->estate);
	MemoryContextDelete(reader->row_context);
}
