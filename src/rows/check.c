/*
 * check.c
 *		Verifying row pages; see check.h.
 */
#include "postgres.h"

#include <math.h>

#include "access/table.h"
#include "catalog/index.h"
#include "miscadmin.h"
#include "rows/check.h"
#include "rows/code.h"
#include "utils/datum.h"
#include "utils/snapmgr.h"

/* Rounding of coordinates, as a share of their length. */
#define ROUNDING 1e-3

typedef struct Check
{
	const QvRows *rows;
	QvRowsFinder finder;
	QvRowEntry	entry;			/* a copy */

	/* for included columns */
	char	   *page;			/* a copy of a page's entries */
	Relation	table;
	QvIncludedReader reader;

	uint64		found;			/* entries of rows of the index */
	QvRowsChecked *checked;
} Check;

static uint32
count_entries(const QvRows *rows, const char *entries)
{
	uint32		n = 0;

	for (uint32 i = 0; i < rows->per_page; i++)
		n += QvRowEntryIsThere(QvRowsEntry(rows, entries, i));
	return n;
}

/* Compare the included columns of an entry with those of the row that it leads to. */
static void
check_columns(Check *check, BlockNumber block, uint32 i, const ItemPointerData *tid)
{
	const QvRows *rows = check->rows;
	const QvIncluded *included = rows->included;
	char	   *at = QvRowsIncluded(rows, check->page);
	const char *bits = QvIncludedBits(included, at, i);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	if (!(*bits & QV_INCLUDED_KNOWN) || !QvIncludedRead(&check->reader, included, *tid, values, isnull))
		return;
	for (int c = 0; c < included->count; c++)
	{
		const QvIncludedColumn *column = &included->columns[c];
		char		space[QV_INCLUDED_MAX] pg_attribute_aligned(MAXIMUM_ALIGNOF);

		if (isnull[c] == QvIncludedHasBit(bits, column->bit) ||
			(!isnull[c] && !datumIsEqual(values[c], QvIncludedGet(column, QvIncludedValue(included, column, at, i), space),
										 column->by_value, column->length)))
			QvReportCorruption(rows->index, block, "Column \"%s\" of row (%u,%u) is another than in the table.",
							   NameStr(TupleDescAttr(RelationGetDescr(check->table), column->attribute - 1)->attname),
							   ItemPointerGetBlockNumberNoCheck(tid), ItemPointerGetOffsetNumberNoCheck(tid));
	}
}

/* Compare the included columns of a page with the table.  No page is locked meanwhile. */
static void
check_included(Check *check, BlockNumber block, uint32 number)
{
	const QvRows *rows = check->rows;

	for (uint32 i = 0; i < rows->per_page; i++)
	{
		ItemPointerData tid;

		QvRowsTid(rows, (QvRowNumber) number * rows->per_page + i, &tid);
		if (QvRowEntryIsThere(QvRowsEntry(rows, check->page, i)))
			check_columns(check, block, i, &tid);
	}
}

/* Go through all row pages and count their entries. */
static void
check_pages(Check *check)
{
	const QvRows *rows = check->rows;
	uint32		end = QvRowsEnd(rows, &check->checked->pages);

	QvRowsFinderInit(&check->finder, rows);
	for (uint32 number = 0; number < end; number++)
	{
		BlockNumber block = QvRowsFindPage(&check->finder, number);
		Buffer		buf;

		CHECK_FOR_INTERRUPTS();
		if (block == QV_ROWS_NO_PAGE)
			continue;
		buf = QvRowsReadPage(rows, block, number, BUFFER_LOCK_SHARE);
		check->checked->pages++;
		check->checked->entries += count_entries(rows, QvPageEntries(BufferGetPage(buf)));
		if (rows->included)
			memcpy(check->page, QvPageEntries(BufferGetPage(buf)), QvRowsPageBytes(rows));
		UnlockReleaseBuffer(buf);
		if (rows->included)
			check_included(check, block, number);
	}
	/* pages may have been added meanwhile */
	QvRowsFinderInit(&check->finder, rows);
}

/*
 * Returns whether an entry's code is as near to a row as it says.  Neither the code's error is more
 * than its spread, nor that of the value which the code was made of.  What the index stores now is
 * off by its residual.
 */
static bool
code_matches(const QvRows *rows, const QvRowEntryData *entry, const QvRowVector *row)
{
	uint32		pdim = rows->space->pdim;
	const float *x = row->x;
	double		norm2 = qv_kernels.norm2_f32(x, pdim);
	double		factor = QvHalfToFloat(entry->factor);
	double		most = 2 * QvHalfToFloat(entry->spread) + row->residual + ROUNDING * sqrt(norm2);
	double		ip = 0;

	for (uint32 i = 0; i < pdim; i++)
		ip += (entry->bits[i / 8] >> (i % 8)) & 1 ? x[i] / 2 : -x[i] / 2;
	return !(norm2 - 2 * factor * ip + factor * factor * pdim / 4 > most * most);
}

/* Copy the entry of a row; its block, or QV_ROWS_NO_PAGE: there is none. */
static BlockNumber
copy_entry(Check *check, const ItemPointerData *tid)
{
	const QvRows *rows = check->rows;
	QvRowNumber number;
	BlockNumber block;
	Buffer		buf;

	check->entry->slot = 0;
	if (!QvRowsHasNumber(rows, tid, &number))
		return QV_ROWS_NO_PAGE;
	block = QvRowsFindPage(&check->finder, number / rows->per_page);
	if (block == QV_ROWS_NO_PAGE)
		return QV_ROWS_NO_PAGE;
	buf = QvRowsReadPage(rows, block, number / rows->per_page, BUFFER_LOCK_SHARE);
	memcpy(check->entry, QvRowsEntry(rows, QvPageEntries(BufferGetPage(buf)), number % rows->per_page),
		   rows->code_size);
	UnlockReleaseBuffer(buf);
	return block;
}

/* QvRowVisitor.wants */
static bool
wants_row(void *arg, const ItemPointerData *tid)
{
	return true;
}

/* QvRowVisitor.take */
static void
take_row(void *arg, const ItemPointerData *tid, QvRowPlace place, const QvRowVector *row)
{
	Check	   *check = arg;
	BlockNumber block = copy_entry(check, tid);
	QvRowPlace	said;

	if (!QvRowEntryIsThere(check->entry))
	{
		check->checked->missing++;
		return;
	}
	check->found++;
	said = QvRowEntryPlace(check->entry);
	check->checked->moved += said.block != place.block || said.slot != place.slot;
	if (!code_matches(check->rows, check->entry, row))
		QvReportCorruption(check->rows->index, block, "The code of row (%u,%u) is not that of its vector.",
						   ItemPointerGetBlockNumberNoCheck(tid),
						   ItemPointerGetOffsetNumberNoCheck(tid));
}

void
QvRowsCheck(const QvRows *rows, QvVisitRows visit, void *engine, QvRowsChecked *checked)
{
	Check	   *check = palloc0(sizeof(Check));
	QvRowVisitor visitor = {wants_row, take_row, check};

	memset(checked, 0, sizeof(*checked));
	check->rows = rows;
	check->entry = palloc(rows->code_size);
	check->checked = checked;
	if (rows->included)
	{
		check->page = palloc(BLCKSZ);
		check->table = table_open(IndexGetRelation(RelationGetRelid(rows->index), false), AccessShareLock);
		QvIncludedBegin(&check->reader, check->table, GetLatestSnapshot());
	}
	check_pages(check);
	if (rows->included)
	{
		QvIncludedEnd(&check->reader);
		table_close(check->table, NoLock);
		pfree(check->page);
	}
	visit(engine, &visitor);
	if (check->found < checked->entries)
		QvReportCorruption(rows->index, rows->meta.root,
						   "Of " UINT64_FORMAT " entries " UINT64_FORMAT " are of rows that the index does not have.",
						   checked->entries, checked->entries - check->found);
	pfree(check->entry);
	pfree(check);
}
