/*
 * format.h
 *		What an index of posting lists looks like on disk.
 *
 * The tables of offsets and the meaning of every field are in
 * src/ivf/codec/README.md and src/ivf/page/README.md.  The rules that keep them
 * true are in src/ivf/README.md, "Invariants".  quiver_check() verifies them.
 */
#ifndef QV_IVF_CODEC_FORMAT_H
#define QV_IVF_CODEC_FORMAT_H

#include "postgres.h"

#include "kernels/kernels.h"
#include "pages/meta.h"
#include "query/curve.h"
#include "rows/format.h"
#include "space/factor.h"
#include "space/space.h"
#include "storage/itemptr.h"

#define IVF_META_MAGIC 0x51764976	/* "QvIv" */
#define IVF_META_VERSION 4		/* version of new coded indexes */
#define IVF_META_WITH_ROWS 4	/* first version with row pages */
#define IVF_META_WITH_RAW 3		/* first version with raw batches: IVF_RAW */
#define IVF_META_FIRST 1		/* first version; plain indexes have it still */

/* Stock pgvector's ivfflat metapage starts with this number, where ours has its header. */
#define PGVECTOR_IVFFLAT_MAGIC 0x14FF1A7

#define IVF_MAX_LISTS 65536

/* Recalls that probes are measured for: see probes.h. */
#define IVF_TARGETS 5

/* Numbers of nearest rows that probes are measured for, beside a few rows: IvfDepthRows. */
#define IVF_DEPTHS 6

/* Flag: lists are split as rows arrive. */
#define IVF_GROWS 1

/*
 * Flag: rows are being moved, or a move was interrupted.  There may be pages that
 * nothing leads to.
 */
#define IVF_MOVING 2

/* Flag: VACUUM is to measure probes.  An insert has measured a part of them, or none. */
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
	uint8		bits;			/* of a record's code, per coordinate: 8, 4 or
								 * 2; plain: 0 */
	uint8		centroid_bits;	/* of a centroid's code, in the same way */
	uint8		flags;			/* IVF_GROWS, ... */
	uint16		scan_bits;		/* B: coordinates in the one-bit codes */
	uint16		batches_per_page;	/* FastScan batches on a page of codes */
	uint16		records_per_page;
	uint16		entries_per_page;	/* lists on a page of the directory */
	uint16		sketches_per_page;	/* as many as slots on a page of codes; 0:
									 * no sketches */
	uint32		record_size;	/* bytes */
	uint32		entry_size;		/* bytes of a directory entry */
	uint32		value_size;		/* plain: bytes of a row's value */
	uint32		max_lists;		/* lists at which splitting stops */
	uint64		seed;			/* of the rotation and of the build */
	uint64		build_id;		/* random: tells rebuilt indexes apart */
	BlockNumber mean_block;		/* first of consecutive float array pages */
	BlockNumber list_head;		/* first page of the directory */
	BlockNumber list_tail;		/* last page of the directory */
	uint32		lists;			/* entries of the directory */
	uint32		tops;			/* groups of lists: parents are below this */
	uint32		version_lists;	/* changes whenever the directory does */
	double		tuples;			/* rows as of the last build, or VACUUM that
								 * removed rows or measured probes */
	uint32		measured_lists; /* lists there were when probes were measured */
	float		probes[IVF_TARGETS];	/* share of lists; 0: not measured */
	float		measured_rows;	/* rows there were when all probes were
								 * measured, less twice those removed since,
								 * at least 1; below 1: not known */
	float		table_share;	/* share of the table's rows that they were;
								 * 0: not known */
	uint32		unused[9];		/* older versions measured two depths, from
								 * measured_rows on */
	uint32		vacuums;		/* VACUUMs that may have removed rows: changes
								 * before heap TIDs of removed rows are used
								 * again */
	QvRowsMeta	rows;			/* where the row pages are */
	QvCurve		curve;			/* by quiver_calibrate() */
	uint32		deep_lists;		/* lists there were when deep_probes were
								 * measured; 0: never tried, or by an older
								 * version */
	float		deep_probes[IVF_DEPTHS][IVF_TARGETS];	/* share of lists for
														 * IvfDepthRows; 0: not
														 * measured */
	float		top_probes[1 + IVF_DEPTHS]; /* of probes and of deep_probes,
											 * for a recall of 0.999; 0: not
											 * measured */
	float		low_probes[1 + IVF_DEPTHS]; /* in the same way, for a recall
											 * of 0.5 */
	float		level;			/* power space: QvSpace.level */
} IvfMetaData;

StaticAssertDecl(sizeof(IvfMetaData) == 400, "on-disk ivf metapage changed");

/* Tells whether an index can have row pages.  Indexes of older versions have none. */
static inline bool
IvfCanHaveRows(const IvfMetaData *meta)
{
	return meta->form == QV_FORM_CODED && meta->version >= IVF_META_WITH_ROWS;
}

/*
 * A list in the directory.  The code of its centroid follows: coded, packed with
 * centroid_bits per coordinate; plain, the value.
 */
typedef struct IvfEntryData
{
	BlockNumber head;			/* first page of the list, or invalid: no row
								 * yet */
	BlockNumber tail;			/* last page, or one not long before it */
	uint32		generation;		/* of the list's pages: changes when they do */
	uint32		parent;			/* number of its group */
	uint32		rows;			/* as of the last build, split or compaction */
	float		scale;			/* of the centroid's code */
	float		norm2;			/* |decoded centroid|^2 */
	uint32		refused;		/* rows it had when it was to be split; 0:
								 * never */
} IvfEntryData;

typedef IvfEntryData *IvfEntry;

StaticAssertDecl(sizeof(IvfEntryData) == 32, "on-disk ivf list changed");

/* The head of a page of the directory. */
typedef struct IvfDirectoryData
{
	uint32		first;			/* number of its first list */
	uint32		count;			/* lists on it */
	uint32		version;		/* IvfMetaData.version_lists at its last
								 * change */
	uint32		unused;
} IvfDirectoryData;

typedef IvfDirectoryData *IvfDirectory;

/* Bytes of a page for entries. */
#define IVF_ENTRY_SPACE (QV_PAGE_SPACE - sizeof(IvfDirectoryData))

/*
 * The head of a page of a list.  Batches follow, or rows in a plain index.
 *
 * Position p of a list is slot p % slots of page p / slots.  It is record p % records
 * of page of records p / records, where "slots" and "records" are those on a page.
 * Sketches are numbered as records are.
 */
typedef struct IvfListPageData
{
	uint32		list;
	uint32		generation;
	uint32		number;			/* of the page in its list, from 0 */
	uint16		count;			/* slots used, dead ones too */
	uint16		dead;			/* number of dead slots, and IVF_RAW */
	float		a_scale;		/* what the factors a are relative to */
	float		b_scale;		/* what the factors b are relative to */
	BlockNumber item_pages[FLEXIBLE_ARRAY_MEMBER];	/* pages of the slots'
													 * records, that of slot 0
													 * first; then of their
													 * sketches */
} IvfListPageData;

typedef IvfListPageData *IvfListPage;

StaticAssertDecl(offsetof(IvfListPageData, item_pages) == 24, "on-disk ivf page of codes changed");

/*
 * In IvfListPageData.dead: the batch that is not full yet is raw.  Its one-bit codes
 * lie one after the other, and not nibble by nibble as FastScan reads them.
 */
#define IVF_RAW 0x8000

#define IvfDeadSlots(head) ((uint32) ((head)->dead & ~IVF_RAW))
#define IvfHasRaw(head) (((head)->dead & IVF_RAW) != 0)

/* Returns whether the codes of a batch are raw. */
static inline bool
IvfIsRaw(const IvfListPageData *head, uint32 batch)
{
	return IvfHasRaw(head) && batch == head->count / QV_BATCH;
}

/* The head of a page of records, or of sketches. */
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

/* A record.  The row's packed code follows. */
typedef struct IvfRecordData
{
	float		scale;			/* decoded residual = scale * (code - offset) */
	float		add;			/* L2: |residual|^2 + 2 <decoded residual,
								 * centroid>; inner product: 0 */
	float		error;			/* |residual - decoded residual|, at most */
	ItemPointerData tid;		/* invalid: dead */
	uint16		unused;
} IvfRecordData;

typedef IvfRecordData *IvfRecord;

StaticAssertDecl(sizeof(IvfRecordData) == 20, "on-disk ivf record changed");

/*
 * A sketch: what a two-bit code adds to a row's one-bit code.  Its bits follow: the low
 * bits of the first coordinates, as many as there is room for, then the high bits of the
 * coordinates that have no one-bit code.
 */
typedef struct IvfSketchData
{
	float		a;				/* factors, as those of one-bit codes */
	float		b;
	uint16		spread;			/* float16: standard deviation of an inner
								 * product with the code, for a query of
								 * length 1 */
	ItemPointerData tid;		/* stays when the row is dead */
} IvfSketchData;

StaticAssertDecl(sizeof(IvfSketchData) == 16, "on-disk ivf sketch changed");

/* A row of a plain index.  Its value follows. */
typedef struct IvfPlainRowData
{
	ItemPointerData tid;		/* invalid: dead, or no row yet */
	uint16		unused;
} IvfPlainRowData;

typedef IvfPlainRowData *IvfPlainRow;

StaticAssertDecl(sizeof(IvfPlainRowData) == 8, "on-disk ivf row changed");

/* The kinds of items that lie beside a list's pages of codes. */
typedef enum IvfItemKind
{
	IVF_RECORDS,
	IVF_SKETCHES
} IvfItemKind;

#define IVF_ITEM_KINDS 2

typedef struct IvfItems
{
	QvPageKind	kind;			/* of the pages of these items */
	const char *what;			/* the items' name, for messages */
	uint32		size;			/* bytes of an item; 0: there are none */
	uint32		per_page;		/* items on a page; 0: there are none */
	uint32		max_pages;		/* pages that the items of one page of codes
								 * may be on */
	uint32		first_link;		/* the first place in item_pages[] for them */
} IvfItems;

typedef struct IvfCodec IvfCodec;

/* Sizes, and where the parts of pages are.  Derived from the metapage, never stored. */
typedef struct IvfLayout
{
	const IvfCodec *codec;		/* of the index's form: codec.h */
	QvSpaceKind space;
	uint32		dims;
	uint32		pdim;
	uint32		width;			/* coordinates of a centroid in memory: pdim;
								 * plain: dims */
	int			bits;
	int			centroid_bits;
	uint32		scan_bits;
	uint32		slots;			/* on a page of codes, or plain rows */
	uint32		batches;		/* FastScan batches on a page of codes */
	uint32		batch_size;		/* bytes: codes and factors of 32 rows */
	uint32		batch_start;	/* offset of the first batch, or plain row, in
								 * the page's data */
	bool		raw;			/* batches may be raw, and batches that are
								 * not begun have zeros as factors */
	IvfItems	items[IVF_ITEM_KINDS];	/* by IvfItemKind */
	uint32		links;			/* places in item_pages[] */
	uint32		entry_size;
	uint32		entries_per_page;
	uint32		centroid_bytes; /* packed code of a centroid, or value */
	uint32		code_bytes;		/* packed code of a record */
	uint32		sketch_bytes;	/* of a sketch with its factors; 0: none */
	uint32		sketch_lows;	/* coordinates whose low bit a sketch has */
	uint32		value_size;
	uint32		data_bytes;		/* of a row's codes, one after the other, or
								 * of its value */
	uint32		row_size;		/* plain: bytes of a row on its page */
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

/* Returns whether a page belongs to a list. */
static inline bool
IvfIsListPage(Page page)
{
	return QvPageIs(page, QV_PAGE_CODES) || QvPageIs(page, QV_PAGE_RECORDS) ||
		QvPageIs(page, QV_PAGE_SKETCHES);
}

#define IvfPageList(page) ((IvfListPage) QvPageGetData(page))

/* Returns a batch: 32 factors a, 32 factors b (float16), then codes. */
static inline uint16 *
IvfPageBatch(const IvfLayout *layout, Page page, uint32 batch)
{
	return (uint16 *) (QvPageGetData(page) + layout->batch_start +
					   (Size) batch * layout->batch_size);
}

#define IvfBatchA(batch) (batch)
#define IvfBatchB(batch) ((batch) + QV_BATCH)
#define IvfBatchCodes(batch) ((uint8 *) ((batch) + 2 * QV_BATCH))

/* Returns the factor a of a slot, which says whether there is a live row. */
static inline uint16 *
IvfSlotFactor(const IvfLayout *layout, Page page, uint32 slot)
{
	return IvfBatchA(IvfPageBatch(layout, page, slot / QV_BATCH)) + slot % QV_BATCH;
}

/* The factor a of a row whose factors are too large, -65504: its estimate is below any distance. */
#define IVF_UNKNOWN_FACTOR 0xFBFF

#define IvfPageItems(page) ((IvfItemPage) QvPageGetData(page))

/* Returns item number i of a page of records or sketches. */
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

/* Returns the number that the page of a slot's item has among the list's pages of that kind. */
static inline uint32
IvfItemPageNumber(const IvfLayout *layout, const IvfItems *items, uint32 number, uint32 slot)
{
	return (number * layout->slots + slot) / items->per_page;
}

/* Returns the place, from first_link on in item_pages[], of the page of a slot's item. */
static inline uint32
IvfItemLink(const IvfLayout *layout, const IvfItems *items, uint32 number, uint32 slot)
{
	return IvfItemPageNumber(layout, items, number, slot) -
		IvfItemPageNumber(layout, items, number, 0);
}

/* Returns the place of a slot's item on its page. */
static inline uint32
IvfItemPlace(const IvfLayout *layout, const IvfItems *items, uint32 number, uint32 slot)
{
	return (number * layout->slots + slot) % items->per_page;
}

/* Returns the head that the page of a slot's item must have. */
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

/* Returns the page of a slot's item; invalid if there is none, or the page of codes is damaged. */
static inline BlockNumber
IvfItemBlock(const IvfLayout *layout, const IvfItems *items, const IvfListPageData *head,
			 uint32 slot)
{
	uint32		index = IvfItemLink(layout, items, head->number, slot);

	return index < items->max_pages ? head->item_pages[items->first_link + index] :
		InvalidBlockNumber;
}

#endif							/* QV_IVF_CODEC_FORMAT_H */
