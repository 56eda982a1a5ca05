/*
 * included.h
 *		The included columns of an index, as row pages have them.
 *
 * Values have a fixed length of at most QV_INCLUDED_MAX bytes.  A row page has them column by
 * column, after the codes of all its entries: first bits for each entry, then the values of each
 * column.  A condition on a column reads nothing else.
 */
#ifndef QV_ROWS_INCLUDED_H
#define QV_ROWS_INCLUDED_H

#include "postgres.h"

#include "access/attnum.h"
#include "access/relscan.h"
#include "access/tupmacs.h"
#include "catalog/pg_attribute.h"
#include "executor/tuptable.h"
#include "utils/rel.h"

#define QV_INCLUDED_MAX 16

/* The included columns of a row, in the order of the index. */
typedef struct QvIncludedRow
{
	const Datum *values;
	const bool *isnull;
} QvIncludedRow;

typedef struct QvIncludedColumn
{
	AttrNumber	attribute;		/* of the table */
	uint16		bit;			/* of an entry: it has a value */
	uint16		offset;			/* of its values; times the entries of a page */
	int16		length;
	bool		by_value;
} QvIncludedColumn;

typedef struct QvIncluded
{
	uint32		per_page;		/* entries */
	uint16		bits;			/* bytes of an entry's bits */
	uint16		count;
	QvIncludedColumn columns[FLEXIBLE_ARRAY_MEMBER];
} QvIncluded;

/* The first bit of an entry: are its columns known? */
#define QV_INCLUDED_KNOWN 1

/* How many columns does an index include? */
static inline int
QvIncludedCount(Relation index)
{
	return IndexRelationGetNumberOfAttributes(index) - IndexRelationGetNumberOfKeyAttributes(index);
}

/* Bytes of an entry's bits: are the columns known?  Then one for each: has it a value? */
extern Size QvIncludedBitsSize(int count);

/* Bytes of a column's values.  Raises an error if these have no place in an entry. */
extern Size QvIncludedLength(Form_pg_attribute attribute);

/* Bytes of an entry that they take. */
extern Size QvIncludedSize(Relation index);

/* Raises an error if a column is of a type whose values have no place in an entry. */
extern void QvIncludedCheckTypes(Relation index);

/* In CurrentMemoryContext; NULL: an index without included columns. */
extern QvIncluded *QvIncludedDescribe(Relation index, uint32 per_page);

/* Where the bits of entry i are, and its value of a column; at: the part of a page for all. */
static inline char *
QvIncludedBits(const QvIncluded *included, char *at, uint32 i)
{
	return at + i * included->bits;
}

static inline char *
QvIncludedValue(const QvIncluded *included, const QvIncludedColumn *column, char *at, uint32 i)
{
	return at + (Size) column->offset * included->per_page + (Size) i * column->length;
}

/* Are the columns of entry i known? */
static inline bool
QvIncludedIsKnown(const QvIncluded *included, const char *at, uint32 i)
{
	return (*QvIncludedBits(included, (char *) at, i) & QV_INCLUDED_KNOWN) != 0;
}

static inline bool
QvIncludedHasBit(const char *bits, int bit)
{
	return ((uint8) bits[bit / 8] >> (bit % 8)) & 1;
}

/* Write the columns of entry i; row NULL: they are not known. */
extern void QvIncludedPut(const QvIncluded *included, char *at, uint32 i, const QvIncludedRow *row);

/* Reads the columns of rows of the table, as a snapshot sees these. */
typedef struct QvIncludedReader
{
	BlockNumber table_blocks;
	Snapshot	snapshot;
	IndexFetchTableData *fetch;
	TupleTableSlot *slot;
} QvIncludedReader;

extern void QvIncludedBegin(QvIncludedReader *reader, Relation table, Snapshot snapshot);

/*
 * Read them into values and isnull, which have INDEX_MAX_KEYS places, in the order of the index.
 * They are there until the next call.  False: no version of the row is visible, or the table has no
 * such page.
 */
extern bool QvIncludedRead(QvIncludedReader *reader, const QvIncluded *included, ItemPointerData tid,
						   Datum *values, bool *isnull);

extern void QvIncludedEnd(QvIncludedReader *reader);

/* Copy them to another page. */
extern void QvIncludedCopy(const QvIncluded *included, char *at, const char *from, uint32 i);

/*
 * Read a value.  space[QV_INCLUDED_MAX], aligned as doubles are: the value is copied there, and
 * stays there if its type is passed by reference.
 */
static inline Datum
QvIncludedGet(const QvIncludedColumn *column, const char *value, char *space)
{
	memcpy(space, value, column->length);
	return fetch_att(space, column->by_value, column->length);
}

#endif							/* QV_ROWS_INCLUDED_H */
