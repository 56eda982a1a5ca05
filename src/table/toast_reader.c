/*
 * toast_reader.c
 *		Out-of-line values of a table; see toast_reader.h.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/genam.h"
#include "access/heaptoast.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/toast_internals.h"
#include "compat.h"
#include "table/toast_reader.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

/* Columns of a TOAST table. */
#define VALUE_ATTRIBUTE 1
#define CHUNK_ATTRIBUTE 2
#define DATA_ATTRIBUTE 3

struct ToastReader
{
	MemoryContext context;		/* for what the scan allocates */
	Relation	table;			/* the TOAST table */
	Relation   *indexes;
	int			nindexes;
	SnapshotData snapshot;
	IndexScanDesc scan;
	TupleTableSlot *slot;
	bool		reading;		/* pages may be pinned */
};

static bool
is_heap(Relation table)
{
	return table->rd_tableam == GetHeapamTableAmRoutine();
}

ToastReader *
ToastReaderBegin(Relation table)
{
	ToastReader *reader;
	int			valid;

	if (!OidIsValid(table->rd_rel->reltoastrelid) || !is_heap(table) || QvSnapshotsAge())
		return NULL;
	reader = palloc0(sizeof(ToastReader));
	reader->context = CurrentMemoryContext;
	reader->table = table_open(table->rd_rel->reltoastrelid, AccessShareLock);
	valid = toast_open_indexes(reader->table, AccessShareLock, &reader->indexes,
							   &reader->nindexes);
	reader->slot = table_slot_create(reader->table, NULL);

	/*
	 * every version that is there: a snapshot that sees the row sees its
	 * value
	 */
	reader->snapshot.snapshot_type = SNAPSHOT_TOAST;
	if (is_heap(reader->table))
		reader->scan = QvIndexBeginScan(reader->table, reader->indexes[valid],
										&reader->snapshot, 1);
	return reader;
}

/* Copies the next chunk.  Returns false unless it has that number and that size. */
static bool
copy_chunk(ToastReader *reader, int32 number, char *to, int32 size)
{
	TupleTableSlot *slot = reader->slot;
	bool		no_number,
				no_data;
	struct varlena *data;
	int32		found;

	if (!index_getnext_slot(reader->scan, ForwardScanDirection, slot))
		return false;
	found = DatumGetInt32(slot_getattr(slot, CHUNK_ATTRIBUTE, &no_number));
	data = (struct varlena *) DatumGetPointer(slot_getattr(slot, DATA_ATTRIBUTE, &no_data));
	if (no_number || no_data || found != number || VARATT_IS_EXTERNAL(data) ||
		VARATT_IS_COMPRESSED(data) || VARSIZE_ANY_EXHDR(data) != size)
		return false;
	memcpy(to, VARDATA_ANY(data), size);
	return true;
}

/* Begins to read the chunks of a value. */
static void
find_chunks(ToastReader *reader, Oid id)
{
	ScanKeyData key;

	ScanKeyInit(&key, VALUE_ATTRIBUTE, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(id));
	index_rescan(reader->scan, &key, 1, NULL, 0);
	reader->reading = true;
}

/* Copies all chunks of a value.  Returns false if one is missing. */
static bool
copy_chunks(ToastReader *reader, Oid id, char *to, int32 size)
{
	int32		number = 0;

	find_chunks(reader, id);
	for (int32 at = 0; at < size; at += TOAST_MAX_CHUNK_SIZE)
		if (!copy_chunk(reader, number++, to + at, Min(TOAST_MAX_CHUNK_SIZE, size - at)))
			return false;
	return true;
}

/* Has the reader a value?  *place: where. */
static bool
has_value(const ToastReader *reader, Datum datum, struct varatt_external *place)
{
	struct varlena *pointer = (struct varlena *) DatumGetPointer(datum);

	if (reader->scan == NULL || !VARATT_IS_EXTERNAL_ONDISK(pointer))
		return false;
	VARATT_EXTERNAL_GET_POINTER(*place, pointer);
	return place->va_toastrelid == RelationGetRelid(reader->table) && !VARATT_EXTERNAL_IS_COMPRESSED(*place);
}

struct varlena *
ToastReaderValue(ToastReader *reader, Datum datum)
{
	struct varatt_external place;
	struct varlena *value;
	MemoryContext old;
	int32		size;
	bool		whole;

	if (!has_value(reader, datum, &place))
		return NULL;
	size = VARATT_EXTERNAL_GET_EXTSIZE(place);
	value = palloc(size + VARHDRSZ);
	SET_VARSIZE(value, size + VARHDRSZ);
	old = MemoryContextSwitchTo(reader->context);
	whole = copy_chunks(reader, place.va_valueid, VARDATA(value), size);
	MemoryContextSwitchTo(old);
	if (whole)
		return value;
	pfree(value);
	return NULL;
}

void
ToastReaderAskFor(ToastReader *reader, Datum datum)
{
	struct varatt_external place;
	BlockNumber last = InvalidBlockNumber;
	MemoryContext old;
	ItemPointer tid;

	if (!has_value(reader, datum, &place))
		return;
	old = MemoryContextSwitchTo(reader->context);
	find_chunks(reader, place.va_valueid);
	while ((tid = index_getnext_tid(reader->scan, ForwardScanDirection)) != NULL)
	{
		BlockNumber block = ItemPointerGetBlockNumber(tid);

		if (block != last)
			(void) PrefetchBuffer(reader->table, MAIN_FORKNUM, block);
		last = block;
	}
	MemoryContextSwitchTo(old);
}

void
ToastReaderRelease(ToastReader *reader)
{
	if (!reader->reading)
		return;
	ExecClearTuple(reader->slot);
	/* with the same key */
	index_rescan(reader->scan, NULL, 1, NULL, 0);
	reader->reading = false;
}

void
ToastReaderEnd(ToastReader *reader)
{
	if (reader->scan)
		index_endscan(reader->scan);
	ExecDropSingleTupleTableSlot(reader->slot);
	toast_close_indexes(reader->indexes, reader->nindexes, AccessShareLock);
	table_close(reader->table, AccessShareLock);
	pfree(reader);
}
