/*
 * rows.h
 *		The row pages of an open index, and where the entry of a row is.
 */
#ifndef QV_ROWS_ROWS_H
#define QV_ROWS_ROWS_H

#include "pages/read.h"
#include "rows/format.h"
#include "space/space.h"

typedef struct QvRows
{
	Relation	index;
	QvBufferHints *hints;
	const QvSpace *space;
	bool		building;		/* pages are changed without WAL */
	QvRowsMeta	meta;			/* as read when the index was opened */
	Size		meta_offset;	/* where it is in the metapage's data */
	uint32		per_page;
} QvRows;

/* Entry number of a row. */
typedef uint64 QvRowNumber;

/*
 * Row pages have entries for no more lines than have this share of the entries in use.  Where that leaves
 * the other share of the rows without an entry, an index has no row pages.
 */
#define QV_ROWS_DENSE_SHARE 0.5

/*
 * Pages that the entries of an index with so many of the table's rows take, of vectors of pdim
 * coordinates, with their directory.
 */
extern double QvRowsEstimatePages(double rows, double table_rows, uint32 pdim);

/* Describe the row pages of an index, if it has some. */
extern void QvRowsOpen(QvRows *rows, Relation index, QvBufferHints *hints, const QvSpace *space,
					   const QvRowsMeta *meta, Size meta_offset);

/* Can these numbers be, of vectors of pdim coordinates?  (A damaged metapage may say anything.) */
extern bool QvRowsMetaIsSound(const QvRowsMeta *meta, uint32 pdim);

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
	return meta->root != 0 && meta->missing != PG_UINT32_MAX;
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

/* The block of row page "number", or QV_ROWS_NO_PAGE. */
extern BlockNumber QvRowsPageBlock(const QvRows *rows, uint32 number);

/* Finds row pages one after the other; remembers the directory page that it has read last. */
typedef struct QvRowsFinder
{
	const QvRows *rows;
	uint32		loaded;			/* number of the directory page in blocks,
								 * plus 1; 0: none */
	BlockNumber blocks[QV_ROWS_FANOUT];
} QvRowsFinder;

extern void QvRowsFinderInit(QvRowsFinder *finder, const QvRows *rows);

/* Likewise, for numbers that follow each other. */
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
 * place and its vector x[pdim], rotated and centered, which is off by residual at most.
 */
typedef struct QvRowVisitor
{
	bool		(*wants) (void *arg, const ItemPointerData *tid);
	void		(*take) (void *arg, const ItemPointerData *tid, QvRowPlace place, const float *x,
						 float residual);
	void	   *arg;
} QvRowVisitor;

/* An engine's function that shows all its rows, in any order. */
typedef void (*QvVisitRows) (void *engine, const QvRowVisitor *visitor);

#endif							/* QV_ROWS_ROWS_H */
