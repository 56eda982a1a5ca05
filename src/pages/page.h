/*
 * page.h
 *		Pages of a Quiver index: their kinds, their header, and the check of every
 *		page that is read.
 *
 * The header is at the start of the page's contents, not in the special area.  A check
 * therefore touches a cache line that reading the page touches anyway.
 */
#ifndef QV_PAGES_PAGE_H
#define QV_PAGES_PAGE_H

#include "compat.h"

#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/rel.h"

#define QV_PAGE_MAGIC 0x5156	/* "QV" */

/* Kinds of pages.  The values are on disk: a value is never used for another kind. */
typedef enum QvPageKind
{
	QV_PAGE_META = 1,			/* block 0 */
	QV_PAGE_FLOATS = 2,			/* consecutive float32 values: the mean */
	QV_PAGE_ENTRIES = 3,		/* entry points of a graph */
	QV_PAGE_NODES = 4,			/* fixed-size node slots of a graph */
	QV_PAGE_VALUES = 5,			/* whole values that do not fit into nodes */
	QV_PAGE_LISTS = 6,			/* directory of posting lists */
	QV_PAGE_CODES = 7,			/* rows of a posting list, as they are scanned */
	QV_PAGE_RECORDS = 8,		/* finer codes and heap TIDs of a posting list */
	QV_PAGE_FREE = 9,			/* free page */
	QV_PAGE_SKETCHES = 10,		/* two-bit codes of a posting list */
	QV_PAGE_ROWS = 11,			/* row entries, in the table's order */
	QV_PAGE_ROW_DIRECTORY = 12, /* where row pages are */
	QV_PAGE_KINDS
} QvPageKind;

typedef struct QvPageHeaderData
{
	uint16		magic;			/* QV_PAGE_MAGIC */
	uint8		kind;			/* QvPageKind */
	uint8		version;		/* format of this kind of page, from 1 */
	BlockNumber next;			/* next page of the chain, or invalid; of a
								 * metapage: see QvMetaLeftOut() */
} QvPageHeaderData;

typedef QvPageHeaderData *QvPageHeader;

StaticAssertDecl(sizeof(QvPageHeaderData) == 8, "on-disk page header changed");

#define QV_PAGE_VERSION 1
#define QV_PAGE_START (MAXALIGN(SizeOfPageHeaderData) + sizeof(QvPageHeaderData))
#define QV_PAGE_SPACE (BLCKSZ - QV_PAGE_START)

/*
 * Pages that the free space map may name to one insert and that are not free, before the insert
 * adds a page.  After a crash or a promotion the map may name any number of them.
 */
#define QV_MAX_RECYCLED 64

/* Floats on a QV_PAGE_FLOATS page. */
#define QV_FLOATS_PER_PAGE (QV_PAGE_SPACE / sizeof(float))

#define QvPageGetHeader(page) ((QvPageHeader) PageGetContents(page))
#define QvPageGetData(page) ((char *) (page) + QV_PAGE_START)

extern void QvPageInit(Page page, QvPageKind kind);

/*
 * Is the page of that kind?  A page whose pd_upper is not its end is of none.  This is
 * needed because generic WAL zeroes the bytes from pd_lower, which a commit sets, to
 * pd_upper, and pd_upper may then be below pd_lower.
 */
static inline bool
QvPageIs(Page page, QvPageKind kind)
{
	QvPageHeader h = QvPageGetHeader(page);

	return h->magic == QV_PAGE_MAGIC && h->kind == kind &&
		h->version == QV_PAGE_VERSION && ((PageHeader) page)->pd_upper == BLCKSZ;
}

/* Is the page one of src/rows? */
static inline bool
QvPageIsOfRows(Page page)
{
	return QvPageIs(page, QV_PAGE_ROWS) || QvPageIs(page, QV_PAGE_ROW_DIRECTORY);
}

/* Raises ERRCODE_INDEX_CORRUPTED unless the page is of that kind. */
extern void QvPageCheck(Relation index, BlockNumber block, Page page,
						QvPageKind kind);

/* Reports damage found in a block, and never returns. detail is a whole sentence. */
pg_noreturn extern void QvReportCorruption(Relation index, BlockNumber block,
										   const char *detail,...) pg_attribute_printf(3, 4);

#endif							/* QV_PAGES_PAGE_H */
