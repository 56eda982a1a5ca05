/*
 * format.h
 *		What an index of posting lists looks like on disk.
 *
 * The tables of offsets, the meaning of every field and the rules that keep
 * them true are in src/ivf/README.md; quiver_check() verifies them.
 */
#ifndef QV_IVF_CODEC_FORMAT_H
#define QV_IVF_CODEC_FORMAT_H

#include "postgres.h"

#include "kernels/kernels.h"
#include "pages/meta.h"
#include "rows/format.h"
#include "space/factor.h"
#include "space/space.h"
#include "storage/itemptr.h"

#define IVF_META_MAGIC 0x51764976	/* "QvIv" */
#define IVF_META_VERSION 4		/* has row pages; since 3 codes may be raw:
								 * IVF_RAW */
#define IVF_META_WITH_ROWS 4
#define IVF_META_WITH_RAW 3
#define IVF_META_FIRST 1		/* and that of plain indexes still */

/* stock pgvector's ivfflat metapage starts with this, where ours has its header */
#define PGVECTOR_IVFFLAT_MAGIC 0x14FF1A7

#define IVF_MAX_LISTS 65536

/* Recall targets that probes are measured for: see probes.h. */
#define IVF_TARGETS 5

/* Numbers of rows that they are measured for, beside a few. */
#define IVF_DEPTHS 2

/* Lists are split as rows arrive. */
#define IVF_GROWS 1

/* Rows are being moved, or who moved them did not get to the end: there may be
 * pages that nothing leads to. */
#define IVF_MOVING 2

/* Lists have become many more since probes were measured as they should be. */
#define IVF_MEASURE 4

#define IVF_FLAGS (IVF_GROWS | IVF_MOVING | IVF_MEASURE)

typedef struct IvfMetaData
{
	uint32		magic;
	uint32		version;
	uint32		dims;			/* of the column */
	uint32		pdim;			/* padded: coordinates of a code */
	uint8		form;			/* QvForm */
	uint8		space;			/* QvSpaceKind */
	uint8		metric;			/* QvMetric, to refuse another opclass */
	uint8		bits;			/* of a record's code: 8, 4 or 2 a coordinate */
	uint8		centroid_bits;	/* likewise of a centroid's */
	uint8		flags;			/* IVF_GROWS, ... */
	uint16		scan_bits;		/* B: coordinates in the 1-bit codes */
	uint16		batches_per_page;	/* FastScan batches on a page of codes */
	uint16		records_per_page;
	uint16		entries_per_page;	/* lists on a page of the directory */
	uint16		sketches_per_page;	/* as many as slots on a page of codes, or
									 * 0 */
	uint32		record_size;
	uint32		entry_size;
	uint32		value_size;		/* plain: of a row's value */
	uint32		max_lists;		/* splitting stops there */
	uint64		seed;			/* of the rotation and of the build */
	uint64		build_id;		/* random: tells rebuilt indexes apart */
	BlockNumber mean_block;		/* first of consecutive float array pages */
	BlockNumber list_head;		/* directory: a chain of pages */
	BlockNumber list_tail;
	uint32		lists;			/* entries of the directory */
	uint32		tops;			/* groups of lists: parents are below this */
	uint32		version_lists;	/* changes whenever the directory does */
	double		tuples;			/* heap rows as of the last build or vacuum */
	uint32		measured_lists; /* lists there were when probes were measured */
	float		probes[IVF_TARGETS];	/* share of lists; 0: not measured */
	float		deep_probes[IVF_DEPTHS][IVF_TARGETS];	/* likewise, for more
														 * rows */
	uint32		deep_lists;		/* lists there were then; 0: never tried */
	uint32		vacuums;		/* that may have removed rows: changes before
								 * their heap TIDs are used again */
	QvRowsMeta	rows;			/* row pages */
} IvfMetaData;

StaticAssertDecl(sizeof(IvfMetaData) == 184, "on-disk ivf metapage changed");

/*
 * A list in the directory, followed by the code of its centroid (coded: packed,
 * centroid_bits a coordinate; plain: the value).
 */
typedef struct IvfEntryData
{
	BlockNumber head;			/* first page of the list, or invalid: no row
								 * yet */
	BlockNumber tail;			/* last page, or one not long before it */
	uint32		generation;		/* of the list's pages: changes when they do */
	uint32		parent;			/* group of lists */
	uint32		rows;			/* as of the last build, split or vacuum */
	float		scale;			/* of the centroid's code */
	float		norm2;			/* |centroid|^2, of the decoded code */
	uint32		refused;		/* rows it had when it could not be split; 0:
								 * never */
} IvfEntryData;

typedef IvfEntryData *IvfEntry;

StaticAssertDecl(sizeof(IvfEntryData) == 32, "on-disk ivf list changed");

/* A page of the directory starts with this. */
typedef struct IvfDirectoryData
{
	uint32		first;			/* number of its first list */
	uint32		count;			/* lists on it */
	uint32		version;		/* IvfMetaData.version_lists of its last
								 * change */
	uint32		unused;
} IvfDirectoryData;

typedef IvfDirectoryData *IvfDirectory;

/* Bytes of a page for entries. */
#define IVF_ENTRY_SPACE (QV_PAGE_SPACE - sizeof(IvfDirectoryData))

/*
 * A page of a list: its header, then batches_per_page batches (IvfLayout), or,
 * in a plain index, rows.  Position p of a list is slot p % slots_per_page of
 * page number p / slots_per_page, and record p % records_per_page of page of
 * records p / records_per_page; likewise of sketches.  The pages that hold a
 * page's records are named in item_pages[], the one with that of slot 0 first, then
 * those of its sketches.
 */
typedef struct IvfListPageData
{
	uint32		list;
	uint32		generation;
	uint32		number;			/* of the page in its list, from 0 */
	uint16		count;			/* slots used, dead ones too */
	uint16		dead;			/* how many are, and IVF_RAW */
	float		a_scale;		/* of the a factors */
	float		b_scale;
	BlockNumber item_pages[FLEXIBLE_ARRAY_MEMBER];
} IvfListPageData;

typedef IvfListPageData *IvfListPage;

#define IvfListHeadSize(layout) \
	(offsetof(IvfListPageData, item_pages) + (layout)->links * sizeof(BlockNumber))

StaticAssertDecl(offsetof(IvfListPageData, item_pages) == 24, "on-disk ivf page of codes changed");

/*
 * In IvfListPageData.dead: the one-bit codes of the batch that is not full yet
 * lie one after the other, not nibble by nibble as FastScan wants them.
 */
#define IVF_RAW 0x8000

#define IvfDeadSlots(head) ((uint32) ((head)->dead & ~IVF_RAW))
#define IvfHasRaw(head) (((head)->dead & IVF_RAW) != 0)

/* Are the codes of that batch raw? */
static inline bool
IvfIsRaw(const IvfListPageData *head, uint32 batch)
{
	return IvfHasRaw(head) && batch == head->count / QV_BATCH;
}

/* A page of records, or of sketches, starts with this. */
typedef struct IvfItemPageData
{
	uint32		list;
	uint32		generation;
	uint32		number;			/* of the page among the list's pages of that
								 * kind */
	uint32		unused;
} IvfItemPageData;

typedef IvfItemPageData *IvfItemPage;

StaticAssertDecl(sizeof(IvfItemPageData) == 16, "on-disk ivf page of records changed");

/* A row, followed by its packed code. */
typedef struct IvfRecordData
{
	float		scale;			/* residual ~ scale * (code - offset) */
	float		add;			/* L2: |residual|^2 + 2 <decoded residual,
								 * centroid> */
	float		error;			/* |residual - decoded residual|, at most */
	ItemPointerData tid;		/* invalid: dead */
	uint16		unused;
} IvfRecordData;

typedef IvfRecordData *IvfRecord;

StaticAssertDecl(sizeof(IvfRecordData) == 20, "on-disk ivf record changed");

/*
 * What a code of up to two bits a coordinate says of a row beyond its one-bit
 * code, followed by its bits: the low one of the first coordinates (as many as
 * there is room for), then the high one of those that have no one-bit code.
 */
typedef struct IvfSketchData
{
	float		a;				/* factors, as those of one-bit codes */
	float		b;
	uint16		spread;			/* float16: of an inner product with the code,
								 * for a query of length 1 */
	ItemPointerData tid;
} IvfSketchData;

StaticAssertDecl(sizeof(IvfSketchData) == 16, "on-disk ivf sketch changed");

/* A row of a plain index, followed by its value. */
typedef struct IvfPlainRowData
{
	ItemPointerData tid;		/* invalid: dead */
	uint16		unused;
} IvfPlainRowData;

typedef IvfPlainRowData *IvfPlainRow;

StaticAssertDecl(sizeof(IvfPlainRowData) == 8, "on-disk ivf row changed");

/* What lies beside a list's pages of codes. */
typedef enum IvfItemKind
{
	IVF_RECORDS,
	IVF_SKETCHES
} IvfItemKind;

#define IVF_ITEM_KINDS 2

typedef struct IvfItems
{
	QvPageKind	kind;			/* of its pages */
	const char *what;			/* its name, for messages */
	uint32		size;			/* of an item; 0: there are none */
	uint32		per_page;
	uint32		max_pages;		/* that hold the items of one page */
	uint32		first_link;		/* where item_pages[] names them */
} IvfItems;

typedef struct IvfCodec IvfCodec;

/* Where the parts are; derived from the metapage, never stored. */
typedef struct IvfLayout
{
	const IvfCodec *codec;		/* of the index's form: codec.h */
	QvSpaceKind space;
	uint32		dims;
	uint32		pdim;
	uint32		width;			/* coordinates of a centroid in memory: pdim,
								 * or dims */
	int			bits;
	int			centroid_bits;
	uint32		scan_bits;
	uint32		slots;			/* on a page of a list */
	uint32		batches;		/* FastScan batches on it */
	uint32		batch_size;		/* codes and factors of 32 rows */
	uint32		batch_start;	/* offset of the first in the page's data */
	bool		raw;			/* codes may be, and factors of batches that
								 * are not begun are zero, not empty */
	IvfItems	items[IVF_ITEM_KINDS];	/* by IvfItemKind */
	uint32		links;			/* pages named on a page */
	uint32		entry_size;
	uint32		entries_per_page;
	uint32		centroid_bytes; /* packed code of a centroid, or value */
	uint32		code_bytes;		/* packed code of a record */
	uint32		sketch_bytes;	/* with its factors; 0: none */
	uint32		sketch_lows;	/* coordinates whose low bit it has */
	uint32		value_size;
	uint32		data_bytes;		/* of a row: its codes, one after the other,
								 * or its value */
	uint32		row_size;		/* plain: of a row on its page */
} IvfLayout;

/* ---- addresses ---- */

#define IvfPageDirectory(page) ((IvfDirectory) QvPageGetData(page))

static inline IvfEntry
IvfPageEntry(const IvfLayout *layout, Page page, uint32 i)
{
	return (IvfEntry) (QvPageGetData(page) + sizeof(IvfDirectoryData) +
					   (Size) i * layout->entry_size);
}

#define IvfEntryCode(entry) ((uint8 *) (entry) + sizeof(IvfEntryData))

/* Does the page belong to a list? */
static inline bool
IvfIsListPage(Page page)
{
	return QvPageIs(page, QV_PAGE_CODES) || QvPageIs(page, QV_PAGE_RECORDS) ||
		QvPageIs(page, QV_PAGE_SKETCHES);
}

#define IvfPageList(page) ((IvfListPage) QvPageGetData(page))

/* A batch: 32 a factors, 32 b factors (float16), FastScan codes. */
static inline uint16 *
IvfPageBatch(const IvfLayout *layout, Page page, uint32 batch)
{
	return (uint16 *) (QvPageGetData(page) + layout->batch_start +
					   (Size) batch * layout->batch_size);
}

#define IvfBatchA(batch) (batch)
#define IvfBatchB(batch) ((batch) + QV_BATCH)
#define IvfBatchCodes(batch) ((uint8 *) ((batch) + 2 * QV_BATCH))

/* The a factor of a slot, which tells whether there is a live row. */
static inline uint16 *
IvfSlotFactor(const IvfLayout *layout, Page page, uint32 slot)
{
	return IvfBatchA(IvfPageBatch(layout, page, slot / QV_BATCH)) + slot % QV_BATCH;
}

/* -65504: the a factor of a row whose factors are too large: its estimate is below any distance. */
#define IVF_UNKNOWN_FACTOR 0xFBFF

#define IvfPageItems(page) ((IvfItemPage) QvPageGetData(page))

/* Item number i of a page of records or sketches. */
static inline void *
IvfPageItem(const IvfItems *items, Page page, uint32 i)
{
	return QvPageGetData(page) + sizeof(IvfItemPageData) + (Size) i * items->size;
}

#define IvfRecordCode(record) ((uint8 *) (record) + sizeof(IvfRecordData))

static inline IvfPlainRow
IvfPagePlainRow(const IvfLayout *layout, Page page, uint32 slot)
{
	return (IvfPlainRow) (QvPageGetData(page) + layout->batch_start +
						  (Size) slot * layout->row_size);
}

#define IvfPlainValue(row) ((void *) ((char *) (row) + sizeof(IvfPlainRowData)))

/* The page of a slot's item: its number in the list, and its link in item_pages[]. */
static inline uint32
IvfItemPageNumber(const IvfLayout *layout, const IvfItems *items, uint32 number, uint32 slot)
{
	return (number * layout->slots + slot) / items->per_page;
}

static inline uint32
IvfItemLink(const IvfLayout *layout, const IvfItems *items, uint32 number, uint32 slot)
{
	return IvfItemPageNumber(layout, items, number, slot) -
		IvfItemPageNumber(layout, items, number, 0);
}

/* Its place on that page. */
static inline uint32
IvfItemPlace(const IvfLayout *layout, const IvfItems *items, uint32 number, uint32 slot)
{
	return (number * layout->slots + slot) % items->per_page;
}

/* What that page begins with. */
static inline IvfItemPageData
IvfItemPageWanted(const IvfLayout *layout, const IvfItems *items, const IvfListPageData *head,
				  uint32 slot)
{
	return (IvfItemPageData)
	{
		.list = head->list,
			.generation = head->generation,
			.number = IvfItemPageNumber(layout, items, head->number, slot)
	};
}

/* The page of a slot's item; invalid when there is none, or the page of codes is damaged. */
static inline BlockNumber
IvfItemBlock(const IvfLayout *layout, const IvfItems *items, const IvfListPageData *head,
			 uint32 slot)
{
	uint32		index = IvfItemLink(layout, items, head->number, slot);

	return index < items->max_pages ? head->item_pages[items->first_link + index] :
		InvalidBlockNumber;
}

#endif							/* QV_IVF_CODEC_FORMAT_H */
