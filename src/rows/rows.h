/*
 * rows.h
 *		The row pages of an open index, and where the entry of a row is.
 */
#ifndef QV_ROWS_ROWS_H
#define QV_ROWS_ROWS_H

#include "pages/read.h"
#include "rows/code.h"
#include "rows/format.h"
#include "rows/included.h"
#include "space/space.h"

typedef struct QvRows
{
	Relation	index;
	MemoryContext context;
	QvBufferHints *hints;
	const QvSpace *space;
	bool		building;		/* pages are changed without WAL */
	QvRowsMeta	meta;			/* as read when the index was opened */
	Size		meta_offset;	/* where it is in the metapage's data */
	uint32		per_page;
	Size		code_size;		/* bytes of an entry without included columns */
	QvIncluded *included;		/* NULL: there are none */
} QvRows;

/* Entry number of a row. */
typedef uint64 QvRowNumber;

/*
 * Row pages have entries for no more lines than have this share of the entries in use.  UPDATEs of
 * all rows leave a table twice as large as it need be.
 */
#define QV_ROWS_DENSE_SHARE (1.0 / 3)

/* Bytes of an entry of vectors of pdim coordinates, with the included columns of an index. */
static inline Size
QvRowsEntrySize(Relation index, uint32 pdim)
{
	return QvRowEntrySize(pdim) + QvIncludedSize(index);
}

/*
 * Pages that the entries of an index with so many of the table's rows take, with their directory.
 * size: of an entry.
 */
extern double QvRowsEstimatePages(double rows, double table_rows, Size size);

/* The description of row pages, if there are some, is that. */
extern void QvRowsSetMeta(QvRows *rows, const QvRowsMeta *meta);

/* Describe the row pages of an index, if it has some; in CurrentMemoryContext. */
extern void QvRowsOpen(QvRows *rows, Relation index, QvBufferHints *hints, const QvSpace *space,
					   const QvRowsMeta *meta, Size meta_offset);

/* Can these numbers be, of vectors of pdim coordinates?  (A damaged metapage may say anything.) */
extern bool QvRowsMetaIsSound(const QvRowsMeta *meta, Relation index, uint32 pdim);

/* Has the index row pages? */
static inline bool
QvRowsExist(const QvRows *rows)
{
	return rows->meta.root != 0;
}

/* Has every row of the index an entry, or is on a line that a row page knows of? */
static inline bool
QvRowsAreWhole(const QvRowsMeta *meta)
{
	return meta->root != 0 && meta->missing < QV_ROWS_LEAVING;
}

/* Has the row an entry?  False for a line beyond those that have one. */
static inline bool
QvRowsHasNumber(const QvRows *rows, const ItemPointerData *tid, QvRowNumber *number)
{
	OffsetNumber line = ItemPointerGetOffsetNumberNoCheck(tid);

	if (line == InvalidOffsetNumber || line > rows->meta.lines)
		return false;
	*number = (QvRowNumber) ItemPointerGetBlockNumberNoCheck(tid) * rows->meta.lines + line - 1;
	return true;
}

/* Returns the page of the first entry of a row's block. */
static inline uint32
QvRowsPageOfBlock(const QvRows *rows, const ItemPointerData *tid)
{
	return (QvRowNumber) ItemPointerGetBlockNumberNoCheck(tid) * rows->meta.lines / rows->per_page;
}

/* Returns the first block whose first entry is on a row page, or on one after it. */
static inline BlockNumber
QvRowsFirstBlock(const QvRows *rows, uint32 page)
{
	return ((QvRowNumber) page * rows->per_page + rows->meta.lines - 1) / rows->meta.lines;
}

static inline void
QvRowsTid(const QvRows *rows, QvRowNumber number, ItemPointerData *tid)
{
	ItemPointerSet(tid, (BlockNumber) (number / rows->meta.lines),
				   (OffsetNumber) (number % rows->meta.lines + 1));
}

/* Entry i of a page; at: its entries. */
static inline QvRowEntry
QvRowsEntry(const QvRows *rows, const char *at, uint32 i)
{
	return (QvRowEntry) (at + i * rows->code_size);
}

/* The part of a page that has the included columns; at: its entries. */
static inline char *
QvRowsIncluded(const QvRows *rows, const char *at)
{
	return (char *) at + rows->per_page * rows->code_size;
}

/* Bytes of the entries of a page. */
static inline Size
QvRowsPageBytes(const QvRows *rows)
{
	return (Size) rows->per_page * rows->meta.entry_size;
}

/* The block of row page "number", or QV_ROWS_NO_PAGE. */
extern BlockNumber QvRowsPageBlock(const QvRows *rows, uint32 number);

/* Directory pages that a finder remembers: those of some million rows. */
#define QV_ROWS_REMEMBERED 16

/* Finds row pages; remembers directory pages. */
typedef struct QvRowsFinder
{
	const QvRows *rows;
	uint32		loaded[QV_ROWS_REMEMBERED]; /* numbers of the directory pages
											 * in blocks, plus 1; 0: none */
	BlockNumber *blocks[QV_ROWS_REMEMBERED];	/* QV_ROWS_FANOUT of each that
												 * was loaded */
	MemoryContext context;
} QvRowsFinder;

/*
 * A finder is zero before that is done first, but for the context of its memory.  If there is none,
 * it is CurrentMemoryContext.
 */
extern void QvRowsFinderInit(QvRowsFinder *finder, const QvRows *rows);

/* Likewise. */
extern BlockNumber QvRowsFindPage(QvRowsFinder *finder, uint32 number);

/*
 * The first row page number that the directory has no room for yet; pages: those of the directory,
 * may be NULL.
 */
extern uint32 QvRowsEnd(const QvRows *rows, uint64 *pages);

/*
 * Pin and lock row page "number", which is in that block.  Raises ERRCODE_INDEX_CORRUPTED when
 * another page is there.
 */
extern Buffer QvRowsReadPage(const QvRows *rows, BlockNumber block, uint32 number, int lockmode);

/*
 * Whoever wants to see all rows of an index: asked of each row whether it is wanted, and given its
 * place and its vector.
 */
typedef struct QvRowVisitor
{
	bool		(*wants) (void *arg, const ItemPointerData *tid);
	void		(*take) (void *arg, const ItemPointerData *tid, QvRowPlace place,
						 const QvRowVector *row);
	void	   *arg;
} QvRowVisitor;

/* An engine's function that shows all its rows, in any order. */
typedef void (*QvVisitRows) (void *engine, const QvRowVisitor *visitor);

#endif							/* QV_ROWS_ROWS_H */
