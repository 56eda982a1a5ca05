/*
 * rows.c
 *		The row pages of an open index; see rows.h.
 */
#include "postgres.h"

#include <math.h>

#include "pages/meta.h"
#include "rows/rows.h"

/* Root pages of a directory that has a row page for each number. */
#define MOST_ROOTS ((uint32) (PG_UINT32_MAX / ((uint64) QV_ROWS_FANOUT * QV_ROWS_FANOUT) + 1))

bool
QvRowsMetaIsSound(const QvRowsMeta *meta, Relation index, uint32 pdim)
{
	return meta->root == 0 ||
		(BlockNumberIsValid(meta->root) && pdim > 0 && meta->lines > 0 &&
		 meta->lines <= MaxHeapTuplesPerPage && meta->entry_size == QvRowsEntrySize(index, pdim) &&
		 QvRowsPerPage(meta->entry_size) > 0);
}

double
QvRowsEstimatePages(double rows, double table_rows, Size size)
{
	double		pages = ceil(table_rows / QvRowsPerPage(size));

	return rows > 0 && rows >= QV_ROWS_DENSE_SHARE * table_rows ?
		pages + ceil(pages / QV_ROWS_FANOUT) + 1 : 0;
}

void
QvRowsSetMeta(QvRows *rows, const QvRowsMeta *meta)
{
	MemoryContext old = MemoryContextSwitchTo(rows->context);

	rows->meta = *meta;
	if (meta->root != 0)
	{
		rows->per_page = QvRowsPerPage(meta->entry_size);
		rows->code_size = QvRowEntrySize(rows->space->pdim);
		rows->included = QvIncludedDescribe(rows->index, rows->per_page);
	}
	MemoryContextSwitchTo(old);
}

void
QvRowsOpen(QvRows *rows, Relation index, QvBufferHints *hints, const QvSpace *space,
		   const QvRowsMeta *meta, Size meta_offset)
{
	if (!QvRowsMetaIsSound(meta, index, space->pdim))
		QvReportCorruption(index, QV_META_BLOCK, "The description of the row pages is wrong.");
	memset(rows, 0, sizeof(*rows));
	rows->index = index;
	rows->context = CurrentMemoryContext;
	rows->hints = hints;
	rows->space = space;
	rows->meta_offset = meta_offset;
	QvRowsSetMeta(rows, meta);
}

void
QvRowsFinderInit(QvRowsFinder *finder, const QvRows *rows)
{
	finder->rows = rows;
	memset(finder->loaded, 0, sizeof(finder->loaded));
	if (finder->context == NULL)
		finder->context = CurrentMemoryContext;
}

/* Entry i of the page of blocks in a block; QV_ROWS_NO_PAGE if that is itself none. */
static BlockNumber
read_block(const QvRows *rows, BlockNumber block, uint32 i)
{
	BlockNumber found;
	Buffer		buf;

	if (block == QV_ROWS_NO_PAGE)
		return QV_ROWS_NO_PAGE;
	buf = QvReadPage(rows->index, rows->hints, block, QV_PAGE_ROW_DIRECTORY, BUFFER_LOCK_SHARE);
	found = QvPageBlocks(BufferGetPage(buf))[i];
	UnlockReleaseBuffer(buf);
	return found;
}

/* The block of a root page, or QV_ROWS_NO_PAGE. */
static BlockNumber
find_root(const QvRows *rows, uint32 number)
{
	BlockNumber block = rows->meta.root;

	for (uint32 i = 0; i < number && BlockNumberIsValid(block); i++)
	{
		Buffer		buf = QvReadPage(rows->index, rows->hints, block, QV_PAGE_ROW_DIRECTORY,
									 BUFFER_LOCK_SHARE);

		block = QvPageGetHeader(BufferGetPage(buf))->next;
		UnlockReleaseBuffer(buf);
	}
	return BlockNumberIsValid(block) ? block : QV_ROWS_NO_PAGE;
}

static BlockNumber
find_directory(const QvRows *rows, uint32 number)
{
	return read_block(rows, find_root(rows, number / QV_ROWS_FANOUT), number % QV_ROWS_FANOUT);
}

BlockNumber
QvRowsPageBlock(const QvRows *rows, uint32 number)
{
	return read_block(rows, find_directory(rows, number / QV_ROWS_FANOUT), number % QV_ROWS_FANOUT);
}

BlockNumber
QvRowsFindPage(QvRowsFinder *finder, uint32 number)
{
	const QvRows *rows = finder->rows;
	uint32		directory = number / QV_ROWS_FANOUT;
	uint32		place = directory % QV_ROWS_REMEMBERED;
	BlockNumber *blocks = finder->blocks[place];

	if (finder->loaded[place] != directory + 1)
	{
		BlockNumber block = find_directory(rows, directory);

		if (blocks == NULL)
			blocks = finder->blocks[place] = MemoryContextAlloc(finder->context,
																QV_ROWS_FANOUT * sizeof(BlockNumber));
		if (block != QV_ROWS_NO_PAGE)
		{
			Buffer		buf = QvReadPage(rows->index, rows->hints, block, QV_PAGE_ROW_DIRECTORY,
										 BUFFER_LOCK_SHARE);

			memcpy(blocks, QvPageBlocks(BufferGetPage(buf)), QV_ROWS_FANOUT * sizeof(BlockNumber));
			UnlockReleaseBuffer(buf);
		}
		else
			memset(blocks, 0, QV_ROWS_FANOUT * sizeof(BlockNumber));
		finder->loaded[place] = directory + 1;
	}
	return blocks[number % QV_ROWS_FANOUT];
}

uint32
QvRowsEnd(const QvRows *rows, uint64 *pages)
{
	uint32		end = 0;
	uint64		found = 0;
	BlockNumber block = rows->meta.root;

	for (uint32 root = 0; BlockNumberIsValid(block); root++)
	{
		Buffer		buf;

		if (root == MOST_ROOTS)
			QvReportCorruption(rows->index, block, "The directory of row pages leads to itself.");
		buf = QvReadPage(rows->index, rows->hints, block, QV_PAGE_ROW_DIRECTORY,
						 BUFFER_LOCK_SHARE);
		const BlockNumber *blocks = QvPageBlocks(BufferGetPage(buf));

		for (uint32 i = 0; i < QV_ROWS_FANOUT; i++)
			if (blocks[i] != QV_ROWS_NO_PAGE)
			{
				end = (root * QV_ROWS_FANOUT + i + 1) * QV_ROWS_FANOUT;
				found++;
			}
		found++;
		block = QvPageGetHeader(BufferGetPage(buf))->next;
		UnlockReleaseBuffer(buf);
	}
	if (pages)
		*pages = found;
	return end;
}

Buffer
QvRowsReadPage(const QvRows *rows, BlockNumber block, uint32 number, int lockmode)
{
	Buffer		buf = QvReadPage(rows->index, rows->hints, block, QV_PAGE_ROWS, lockmode);

	if (QvPageRows(BufferGetPage(buf))->number != number)
		QvReportCorruption(rows->index, block, "The page is row page %u, not %u.",
						   QvPageRows(BufferGetPage(buf))->number, number);
	return buf;
}
