/*
 * format.h
 *		Row pages on disk: what an index knows of each row of the table, in the table's
 *		order (src/rows/README.md).
 */
#ifndef QV_ROWS_FORMAT_H
#define QV_ROWS_FORMAT_H

#include "postgres.h"

#include "pages/page.h"
#include "storage/itemptr.h"
#include "storage/off.h"

/* In the metapage of a coded index.  All zero: an index without row pages. */
typedef struct QvRowsMeta
{
	BlockNumber root;			/* first root page of the directory; 0: there
								 * is none */
	uint16		lines;			/* entries of a block of the table */
	uint16		entry_size;		/* bytes, with its included columns */
	uint32		missing;		/* rows without an entry, or whose place has
								 * changed, about; without row pages: rows of
								 * the table when these were not worth it, or
								 * 0 */
} QvRowsMeta;

/* "missing" while the first entries are made, and while row pages are being left. */
#define QV_ROWS_BEGUN PG_UINT32_MAX
#define QV_ROWS_LEAVING (PG_UINT32_MAX - 1)

StaticAssertDecl(sizeof(QvRowsMeta) == 12, "on-disk description of row pages changed");

/* Where an engine has a row: a page and a place on it; what they mean is the engine's business. */
typedef struct QvRowPlace
{
	uint32		block;
	uint16		slot;
} QvRowPlace;

/*
 * An entry.  The floats are the upper halves of float32.  An entry begins at an even offset.
 */
typedef struct QvRowEntryData
{
	uint16		block_hi;		/* QvRowPlace.block */
	uint16		block_lo;
	uint16		slot;			/* QvRowPlace.slot + 1; 0: there is no entry */
	uint16		norm2;			/* |x|^2, rounded down */
	uint16		factor;			/* x is about that times what the bits stand
								 * for */
	uint16		spread;			/* how far the row may be from that; rounded
								 * up, infinite: not known */
	uint8		bits[FLEXIBLE_ARRAY_MEMBER];	/* the signs of x[pdim] */
} QvRowEntryData;

typedef QvRowEntryData *QvRowEntry;

StaticAssertDecl(offsetof(QvRowEntryData, bits) == 12, "on-disk row entry changed");

#define QvRowEntrySize(pdim) (offsetof(QvRowEntryData, bits) + (pdim) / 8)

/*
 * What a row page starts with.  Entries follow, without their included columns, and then these,
 * column by column (included.h).
 */
typedef struct QvRowPageData
{
	uint32		number;			/* of this page, from 0 */
	uint32		last_line;		/* rows of blocks whose first entry is here
								 * may be on lines without entries, up to this
								 * one; 0: none is */
} QvRowPageData;

typedef QvRowPageData *QvRowPage;

#define QvPageRows(page) ((QvRowPage) QvPageGetData(page))
#define QvPageEntries(page) (QvPageGetData(page) + sizeof(QvRowPageData))
#define QvRowsPerPage(size) ((uint32) ((QV_PAGE_SPACE - sizeof(QvRowPageData)) / (size)))

/*
 * The directory has two levels.  A root page has the blocks of directory pages, a directory page
 * those of row pages, each by number; 0: there is no such page yet.  Root pages are a chain.
 */
#define QV_ROWS_NO_PAGE ((BlockNumber) 0)
#define QV_ROWS_FANOUT ((uint32) (QV_PAGE_SPACE / sizeof(BlockNumber)))
#define QvPageBlocks(page) ((BlockNumber *) QvPageGetData(page))

static inline bool
QvRowEntryIsThere(const QvRowEntryData *entry)
{
	return entry->slot != 0;
}

static inline QvRowPlace
QvRowEntryPlace(const QvRowEntryData *entry)
{
	return (QvRowPlace)
	{
		.block = (uint32) entry->block_hi << 16 | entry->block_lo,
			.slot = entry->slot - 1
	};
}

/* The upper half of a float32, and back. */
static inline float
QvHalfToFloat(uint16 half)
{
	uint32		bits = (uint32) half << 16;
	float		x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* Not below a number that is not negative.  What is not finite stays so. */
static inline uint16
QvHalfAbove(float x)
{
	uint32		bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits >> 16 < 0x7F80 && (bits & 0xFFFF) != 0 ? (bits >> 16) + 1 : bits >> 16;
}

/* Not above a number.  What is not finite stays so. */
static inline uint16
QvHalfBelow(float x)
{
	uint32		bits;

	if (x < 0)
		return QvHalfAbove(-x) | 0x8000;
	memcpy(&bits, &x, sizeof(bits));
	return bits >> 16;
}

#endif							/* QV_ROWS_FORMAT_H */
