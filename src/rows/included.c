/*
 * included.c
 *		The included columns of an index; see included.h.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "compat.h"
#include "rows/included.h"
#include "storage/bufmgr.h"
#include "utils/snapmgr.h"

Size
QvIncludedBitsSize(int count)
{
	return (count + 1 + 7) / 8;
}

/* Included column i, from 0. */
static inline Form_pg_attribute
column_of(Relation index, int i)
{
	return TupleDescAttr(RelationGetDescr(index), IndexRelationGetNumberOfKeyAttributes(index) + i);
}

Size
QvIncludedLength(Form_pg_attribute attribute)
{
	if (attribute->attlen <= 0 || attribute->attlen > QV_INCLUDED_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("column \"%s\" cannot be included in an index",
						NameStr(attribute->attname)),
				 errdetail("The values of an included column have a fixed length of at most %d bytes.",
						   QV_INCLUDED_MAX),
				 errhint("Include an enum or a generated column with a hash instead, "
						 "or create an index on the column.")));
	return attribute->attlen;
}

Size
QvIncludedSize(Relation index)
{
	int			count = QvIncludedCount(index);
	Size		size = QvIncludedBitsSize(count);

	if (count == 0)
		return 0;
	for (int i = 0; i < count; i++)
		size += column_of(index, i)->attlen;
	return size;
}

void
QvIncludedCheckTypes(Relation index)
{
	for (int i = 0; i < QvIncludedCount(index); i++)
		(void) QvIncludedLength(column_of(index, i));
}

QvIncluded *
QvIncludedDescribe(Relation index, uint32 per_page)
{
	int			count = QvIncludedCount(index);
	int			keys = IndexRelationGetNumberOfKeyAttributes(index);
	Size		offset = QvIncludedBitsSize(count);
	QvIncluded *included;

	if (count == 0)
		return NULL;
	included = palloc(offsetof(QvIncluded, columns) + count * sizeof(QvIncludedColumn));
	included->per_page = per_page;
	included->bits = QvIncludedBitsSize(count);
	included->count = count;
	for (int i = 0; i < count; i++)
	{
		Form_pg_attribute attribute = column_of(index, i);

		included->columns[i] = (QvIncludedColumn)
		{
			.attribute = index->rd_index->indkey.values[keys + i],
				.bit = i + 1,
				.offset = offset,
				.length = attribute->attlen,
				.by_value = attribute->attbyval
		};
		offset += attribute->attlen;
	}
	return included;
}

static void
put_value(const QvIncludedColumn *column, char *at, Datum value)
{
	Datum		aligned;

	if (column->by_value)
		store_att_byval(&aligned, value, column->length);
	memcpy(at, column->by_value ? (char *) &aligned : DatumGetPointer(value), column->length);
}

void
QvIncludedPut(const QvIncluded *included, char *at, uint32 i, const QvIncludedRow *row)
{
	char	   *bits = QvIncludedBits(included, at, i);

	memset(bits, 0, included->bits);
	for (int c = 0; c < included->count; c++)
	{
		const QvIncludedColumn *column = &included->columns[c];
		char	   *value = QvIncludedValue(included, column, at, i);

		if (row && !row->isnull[c])
		{
			bits[column->bit / 8] |= 1 << (column->bit % 8);
			put_value(column, value, row->values[c]);
		}
		else
			memset(value, 0, column->length);
	}
	if (row)
		bits[0] |= QV_INCLUDED_KNOWN;
}

void
QvIncludedCopy(const QvIncluded *included, char *at, const char *from, uint32 i)
{
	memcpy(QvIncludedBits(included, at, i), QvIncludedBits(included, (char *) from, i), included->bits);
	for (int c = 0; c < included->count; c++)
	{
		const QvIncludedColumn *column = &included->columns[c];

		memcpy(QvIncludedValue(included, column, at, i),
			   QvIncludedValue(included, column, (char *) from, i), column->length);
	}
}

void
QvIncludedBegin(QvIncludedReader *reader, Relation table, Snapshot snapshot)
{
	reader->table_blocks = RelationGetNumberOfBlocks(table);
	reader->snapshot = IsMVCCSnapshot(snapshot) ? RegisterSnapshot(snapshot) : snapshot;
	reader->fetch = QvTableFetchBegin(table);
	reader->slot = table_slot_create(table, NULL);
}

bool
QvIncludedRead(QvIncludedReader *reader, const QvIncluded *included, ItemPointerData tid,
			   Datum *values, bool *isnull)
{
	bool		call_again = false,
				all_dead = false;

	/* the index may be damaged */
	if (ItemPointerGetBlockNumberNoCheck(&tid) >= reader->table_blocks ||
		!table_index_fetch_tuple(reader->fetch, &tid, reader->snapshot, reader->slot, &call_again, &all_dead))
		return false;
	for (int c = 0; c < included->count; c++)
		values[c] = slot_getattr(reader->slot, included->columns[c].attribute, &isnull[c]);
	return true;
}

void
QvIncludedEnd(QvIncludedReader *reader)
{
	ExecDropSingleTupleTableSlot(reader->slot);
	table_index_fetch_end(reader->fetch);
	if (IsMVCCSnapshot(reader->snapshot))
		UnregisterSnapshot(reader->snapshot);
}
