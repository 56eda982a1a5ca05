/*
 * write.c
 *		Changing row pages; see write.h.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "common/pg_prng.h"
#include "containers/bitmap.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "pages/meta.h"
#include "pages/write.h"
#include "rows/code.h"
#include "rows/write.h"
#include "space/room.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Row pages that were not worth it may be when the table has so many times the rows. */
#define TRY_AGAIN 2

/* Blocks of the table that are counted together: on one row page, or a few. */
#define RANGE_BLOCKS 16

/*
 * Shares of the rows: more than the first have entries only where FULL_SHARE of the entries is in
 * use; and the least for which row pages are made.
 */
#define ENOUGH_SHARE 0.99
#define FULL_SHARE 0.5
#define LEAST_SHARE 0.5

/* Row pages begin again when that gives entries to more than this share of the rows. */
#define AGAIN_SHARE 0.1

/* Rows without an entry that one insert in this number notes in the metapage. */
#define NOTED_TOGETHER 64

/* VACUUM makes entries that are missing when they are more than this share of the rows. */
#define MISSING_SHARE 0.05

/* ---- new pages ---- */

/* Have a root page lead to one more, which is returned; the old one is released. */
static Buffer
add_root(const QvRows *rows, Buffer last)
{
	Buffer		buf = QvNewPage(rows->index, MAIN_FORKNUM);
	QvWrite		w;

	QvWriteBegin(&w, rows->index, rows->building);
	QvPageGetHeader(QvWriteRegister(&w, last))->next = BufferGetBlockNumber(buf);
	(void) QvWriteRegisterNew(&w, buf, QV_PAGE_ROW_DIRECTORY);
	QvWriteCommit(&w);
	UnlockReleaseBuffer(last);
	return buf;
}

/* The root page of a directory page, pinned and exclusively locked; made if there is none. */
static Buffer
lock_root(const QvRows *rows, uint32 directory)
{
	Buffer		buf = QvReadPage(rows->index, rows->hints, rows->meta.root, QV_PAGE_ROW_DIRECTORY,
								 BUFFER_LOCK_EXCLUSIVE);

	for (uint32 i = 0; i < directory / QV_ROWS_FANOUT; i++)
	{
		BlockNumber next = QvPageGetHeader(BufferGetPage(buf))->next;

		if (BlockNumberIsValid(next))
		{
			UnlockReleaseBuffer(buf);
			buf = QvReadPage(rows->index, rows->hints, next, QV_PAGE_ROW_DIRECTORY,
							 BUFFER_LOCK_EXCLUSIVE);
		}
		else
			buf = add_root(rows, buf);
	}
	return buf;
}

/*
 * The page that place i of a page of blocks leads to, pinned and exclusively locked; made, by one
 * WAL record, if there is none.  The page of blocks is pinned and exclusively locked, and released.
 * number: of a row page.
 */
static Buffer
lock_child(const QvRows *rows, Buffer parent, uint32 i, QvPageKind kind, uint32 number)
{
	BlockNumber block = QvPageBlocks(BufferGetPage(parent))[i];
	Buffer		buf;
	QvWrite		w;
	Page		page;

	if (block != QV_ROWS_NO_PAGE)
	{
		UnlockReleaseBuffer(parent);
		return kind == QV_PAGE_ROWS ? QvRowsReadPage(rows, block, number, BUFFER_LOCK_EXCLUSIVE) :
			QvReadPage(rows->index, rows->hints, block, kind, BUFFER_LOCK_EXCLUSIVE);
	}
	buf = QvNewPage(rows->index, MAIN_FORKNUM);
	QvWriteBegin(&w, rows->index, rows->building);
	QvPageBlocks(QvWriteRegister(&w, parent))[i] = BufferGetBlockNumber(buf);
	page = QvWriteRegisterNew(&w, buf, kind);
	if (kind == QV_PAGE_ROWS)
		QvPageRows(page)->number = number;
	QvWriteCommit(&w);
	UnlockReleaseBuffer(parent);
	if (kind == QV_PAGE_ROWS)
		QvInjectionPoint("quiver-rows-page-added");
	return buf;
}

/* Row page "number", pinned and exclusively locked; made, by this backend or another, if there is none. */
static Buffer
lock_page(const QvRows *rows, uint32 number)
{
	BlockNumber block = QvRowsPageBlock(rows, number);
	uint32		directory = number / QV_ROWS_FANOUT;
	Buffer		buf;

	if (block != QV_ROWS_NO_PAGE)
		return QvRowsReadPage(rows, block, number, BUFFER_LOCK_EXCLUSIVE);
	buf = lock_child(rows, lock_root(rows, directory), directory % QV_ROWS_FANOUT, QV_PAGE_ROW_DIRECTORY, 0);
	return lock_child(rows, buf, number % QV_ROWS_FANOUT, QV_PAGE_ROWS, number);
}

static QvRowsMeta *
meta_on_page(const QvRows *rows, Page page)
{
	return (QvRowsMeta *) (QvPageGetData(page) + rows->meta_offset);
}

/* ---- the metapage ---- */

static Buffer
lock_meta(const QvRows *rows)
{
	return QvReadPage(rows->index, rows->hints, QV_META_BLOCK, QV_PAGE_META, BUFFER_LOCK_EXCLUSIVE);
}

static QvRowsMeta
read_meta(const QvRows *rows)
{
	Buffer		buf = QvReadPage(rows->index, rows->hints, QV_META_BLOCK, QV_PAGE_META, BUFFER_LOCK_SHARE);
	QvRowsMeta	meta = *meta_on_page(rows, BufferGetPage(buf));

	UnlockReleaseBuffer(buf);
	return meta;
}

/* Set what the metapage says: one WAL record.  Others change no more than "missing". */
static void
write_meta(QvRows *rows, const QvRowsMeta *meta)
{
	Buffer		buf = lock_meta(rows);
	QvWrite		w;

	QvWriteBegin(&w, rows->index, rows->building);
	*meta_on_page(rows, QvWriteRegister(&w, buf)) = *meta;
	QvWriteCommit(&w);
	UnlockReleaseBuffer(buf);
	QvRowsSetMeta(rows, meta);
}

/* Set how many entries are missing: one WAL record. */
static void
write_missing(QvRows *rows, uint32 missing)
{
	QvRowsMeta	meta = rows->meta;

	meta.missing = missing;
	write_meta(rows, &meta);
}

void
QvRowsNoteMissing(QvRows *rows, uint32 count)
{
	Buffer		buf = lock_meta(rows);
	uint32		before = meta_on_page(rows, BufferGetPage(buf))->missing;
	QvWrite		w;

	/* there may be other row pages by now, or none, or they are being left */
	if (meta_on_page(rows, BufferGetPage(buf))->root == rows->meta.root && before < QV_ROWS_LEAVING)
	{
		QvWriteBegin(&w, rows->index, rows->building);
		meta_on_page(rows, QvWriteRegister(&w, buf))->missing =
			Min((uint64) before + count, QV_ROWS_LEAVING - 1);
		QvWriteCommit(&w);
	}
	UnlockReleaseBuffer(buf);
}

bool
QvRowsWantMerge(const QvRowsMeta *meta, double table_rows)
{
	return meta->root == 0 ? table_rows > TRY_AGAIN * (double) meta->missing :
		meta->missing > MISSING_SHARE * table_rows;
}

/* ---- inserts ---- */

static void
make_entry(const QvRows *rows, QvRowPlace place, const QvRowVector *row, QvRowEntry entry)
{
	QvRowEncode(rows->space, row, entry);
	entry->block_hi = place.block >> 16;
	entry->block_lo = (uint16) place.block;
	entry->slot = place.slot + 1;
}

/* Note on the locked page of a row's block that the row is on a line without an entry. */
static void
note_line(const QvRows *rows, const ItemPointerData *tid, Buffer buf)
{
	uint32		line = ItemPointerGetOffsetNumberNoCheck(tid);
	QvWrite		w;

	if (QvPageRows(BufferGetPage(buf))->last_line >= line)
		return;
	QvWriteBegin(&w, rows->index, rows->building);
	QvPageRows(QvWriteRegister(&w, buf))->last_line = line;
	QvWriteCommit(&w);
}

/* Put the entry of a row on its page, which is locked. */
static void
put_entry(const QvRows *rows, uint32 i, QvRowPlace place, const QvRowVector *row,
		  const QvIncludedRow *included, Buffer buf)
{
	QvWrite		w;
	char	   *entries;

	QvWriteBegin(&w, rows->index, rows->building);
	entries = QvPageEntries(QvWriteRegister(&w, buf));
	make_entry(rows, place, row, QvRowsEntry(rows, entries, i));
	if (rows->included)
		QvIncludedPut(rows->included, QvRowsIncluded(rows, entries), i, included);
	QvWriteCommit(&w);
}

/* The page of a row's entry, or of its block if the row's line has none. */
static uint32
page_of(const QvRows *rows, const ItemPointerData *tid, bool *has_entry)
{
	QvRowNumber number;

	*has_entry = QvRowsHasNumber(rows, tid, &number);
	return *has_entry ? number / rows->per_page : QvRowsPageOfBlock(rows, tid);
}

/*
 * Lock the page of a row's entry, or of its block; InvalidBuffer: the index has no row pages.
 * VACUUM may begin them, also again, and then reads all rows of the index.  It finds a row that was
 * added before.  The metapage is therefore read after that, while the page is locked.
 */
static Buffer
lock_current_page(QvRows *rows, const ItemPointerData *tid)
{
	for (;;)
	{
		bool		has_entry;
		Buffer		buf = InvalidBuffer;
		QvRowsMeta	meta;

		if (rows->meta.root != 0)
			buf = lock_page(rows, page_of(rows, tid, &has_entry));
		meta = read_meta(rows);
		if (meta.root == rows->meta.root)
		{
			rows->meta = meta;
			return buf;
		}
		if (BufferIsValid(buf))
			UnlockReleaseBuffer(buf);
		QvRowsSetMeta(rows, &meta);
	}
}

void
QvRowsPut(QvRows *rows, const ItemPointerData *tid, QvRowPlace place, const QvRowVector *row,
		  const QvIncludedRow *included)
{
	Buffer		buf = lock_current_page(rows, tid);
	QvRowNumber number;
	bool		has_number;

	if (!BufferIsValid(buf))
		return;
	has_number = QvRowsHasNumber(rows, tid, &number);
	if (has_number)
		put_entry(rows, number % rows->per_page, place, row,
				  rows->meta.missing == QV_ROWS_LEAVING ? NULL : included, buf);
	else
		note_line(rows, tid, buf);
	UnlockReleaseBuffer(buf);
	if (!has_number && pg_prng_uint64(&pg_global_prng_state) % NOTED_TOGETHER == 0)
		QvRowsNoteMissing(rows, NOTED_TOGETHER);
}

/* ---- VACUUM ---- */

/*
 * Find the entries of a page in hand that are of dead rows; all, if callback is NULL.  Returns how
 * many.
 */
static uint32
find_entries(const QvRows *rows, Page page, uint32 number, IndexBulkDeleteCallback callback,
			 void *state, uint16 *found)
{
	uint32		n = 0;

	for (uint32 i = 0; i < rows->per_page; i++)
	{
		ItemPointerData tid;

		if (!QvRowEntryIsThere(QvRowsEntry(rows, QvPageEntries(page), i)))
			continue;
		QvRowsTid(rows, (QvRowNumber) number * rows->per_page + i, &tid);
		if (callback == NULL || callback(&tid, state))
			found[n++] = i;
	}
	return n;
}

void
QvRowsClear(const QvRows *rows, IndexBulkDeleteCallback callback, void *state,
			BufferAccessStrategy strategy)
{
	QvRowsFinder *finder = palloc0(sizeof(QvRowsFinder));
	uint16	   *found = palloc(rows->per_page * sizeof(uint16));
	PGAlignedBlock *image = palloc(sizeof(PGAlignedBlock));
	uint32		end = QvRowsEnd(rows, NULL);

	QvRowsFinderInit(finder, rows);
	for (uint32 number = 0; number < end; number++)
	{
		BlockNumber block = QvRowsFindPage(finder, number);
		uint32		n;
		Buffer		buf;
		QvWrite		w;
		char	   *entries;

		if (block == QV_ROWS_NO_PAGE)
			continue;
		QvVacuumDelayPoint();

		/*
		 * the callback is not called under a lock; only VACUUM takes entries
		 * away
		 */
		buf = QvReadAnyPage(rows->index, NULL, block, strategy, BUFFER_LOCK_SHARE);
		memcpy(image->data, BufferGetPage(buf), BLCKSZ);
		UnlockReleaseBuffer(buf);
		QvPageCheck(rows->index, block, (Page) image->data, QV_PAGE_ROWS);
		n = find_entries(rows, (Page) image->data, number, callback, state, found);
		if (n == 0)
			continue;
		buf = QvRowsReadPage(rows, block, number, BUFFER_LOCK_EXCLUSIVE);
		QvWriteBegin(&w, rows->index, rows->building);
		entries = QvPageEntries(QvWriteRegister(&w, buf));
		for (uint32 i = 0; i < n; i++)
		{
			if (callback)
				memset(QvRowsEntry(rows, entries, found[i]), 0, rows->code_size);
			if (rows->included)
				QvIncludedPut(rows->included, QvRowsIncluded(rows, entries), found[i], NULL);
		}
		QvWriteCommit(&w);
		UnlockReleaseBuffer(buf);
		if (callback)
			QvInjectionPoint("quiver-rows-cleared");
		else
			QvInjectionPoint("quiver-rows-hidden");
	}
	pfree(image);
	pfree(found);
	pfree(finder);
}

/* ---- all rows ---- */

typedef struct Merge
{
	QvRows	   *rows;
	Relation	table;
	double		table_rows;

	/* counting */
	bool		counting;
	uint64		count;
	uint64		lines[MaxHeapTuplesPerPage + 1];	/* rows on each line */
	BlockNumber end;			/* of the table, as far as there are rows */
	uint64		used;			/* blocks of ranges that have rows */
	uint32		nranges;		/* in the table, */
	uint8	   *ranges;			/* and which of them have rows: bits */

	/* parts */
	uint32		pages;			/* in all, */
	uint32		first;			/* and in hand from this one on, */
	uint32		npages;			/* so many */
	uint32		room;			/* for so many */
	char	   *entries;		/* of the pages in hand */
	uint16	   *last_lines;		/* QvRowPageData.last_line of each */

	/* included columns */
	QvRowsFinder finder;
	bool	   *known;			/* which entries of a page have them */
} Merge;

/* The entries of a page in hand, as they are on the page. */
static inline char *
entries_of(const Merge *merge, uint32 page)
{
	return merge->entries + page * QvRowsPageBytes(merge->rows);
}

static void
begin_counting(Merge *merge)
{
	merge->counting = true;
	merge->nranges = RelationGetNumberOfBlocks(merge->table) / RANGE_BLOCKS + 1;
	merge->ranges = palloc0(BitmapBytes(merge->nranges));
}

static void
count_row(Merge *merge, const ItemPointerData *tid)
{
	OffsetNumber line = ItemPointerGetOffsetNumberNoCheck(tid);
	uint32		range = ItemPointerGetBlockNumberNoCheck(tid) / RANGE_BLOCKS;

	/* a damaged heap TID leads nowhere */
	if (line == InvalidOffsetNumber || line > MaxHeapTuplesPerPage || range >= merge->nranges)
		return;
	merge->count++;
	merge->lines[line]++;
	merge->end = Max(merge->end, ItemPointerGetBlockNumberNoCheck(tid) + 1);
	if (BitmapHas(merge->ranges, range))
		return;
	BitmapSet(merge->ranges, range);
	merge->used += RANGE_BLOCKS;
}

/*
 * Have a part for a page, too, if rows of it were added after they had been counted.  Inserts since
 * the first part was begun have written their entries: parts must not go on as long as rows come.
 */
static void
want_page(Merge *merge, const ItemPointerData *tid, uint32 page)
{
	OffsetNumber line = ItemPointerGetOffsetNumberNoCheck(tid);

	/* a damaged heap TID leads nowhere */
	if (merge->first > 0 || page < merge->pages || line == InvalidOffsetNumber || line > MaxHeapTuplesPerPage ||
		ItemPointerGetBlockNumberNoCheck(tid) >= RelationGetNumberOfBlocks(merge->table))
		return;
	merge->pages = page + 1;
}

/* QvRowVisitor.wants */
static bool
wants_row(void *arg, const ItemPointerData *tid)
{
	Merge	   *merge = arg;
	OffsetNumber line = ItemPointerGetOffsetNumberNoCheck(tid);
	bool		has_entry;
	uint32		page,
				i;

	if (merge->counting)
	{
		count_row(merge, tid);
		return false;
	}
	page = page_of(merge->rows, tid, &has_entry);
	want_page(merge, tid, page);
	i = page - merge->first;
	if (!has_entry && i < merge->npages && line <= MaxHeapTuplesPerPage)
		merge->last_lines[i] = Max(merge->last_lines[i], line);
	return has_entry && i < merge->npages;
}

/* QvRowVisitor.take */
static void
take_row(void *arg, const ItemPointerData *tid, QvRowPlace place, const QvRowVector *row)
{
	Merge	   *merge = arg;
	const QvRows *rows = merge->rows;
	QvRowNumber number;

	if (!QvRowsHasNumber(rows, tid, &number))
		return;
	number -= (QvRowNumber) merge->first * rows->per_page;
	make_entry(rows, place, row,
			   QvRowsEntry(rows, entries_of(merge, number / rows->per_page), number % rows->per_page));
}

/*
 * How many lines of a block have entries; 0: row pages are not worth it.  Ranges without a row have
 * no row pages.
 */
static uint16
choose_lines(const Merge *merge)
{
	uint64		blocks = Min(merge->end, merge->used);
	uint64		seen = 0,
				covered = 0;
	uint16		lines = 0;

	for (uint16 line = 1; line <= MaxHeapTuplesPerPage && seen < merge->count; line++)
	{
		double		dense = seen < ENOUGH_SHARE * merge->count ? QV_ROWS_DENSE_SHARE : FULL_SHARE;

		seen += merge->lines[line];
		if (seen < dense * blocks * line)
			continue;
		lines = line;
		covered = seen;
	}
	return covered >= LEAST_SHARE * merge->count ? lines : 0;
}

/* Would more lines give entries to enough rows to begin row pages again? */
static bool
is_worth_it(const Merge *merge, uint16 lines)
{
	uint64		gained = 0;

	for (uint16 line = merge->rows->meta.lines + 1; line <= lines; line++)
		gained += merge->lines[line];
	return gained > AGAIN_SHARE * merge->count;
}

/* Begin the directory, with an empty root page: one WAL record of that and the metapage. */
static void
make_root(Merge *merge, uint16 lines)
{
	QvRows	   *rows = merge->rows;
	Buffer		meta = lock_meta(rows);
	Buffer		buf = QvNewPage(rows->index, MAIN_FORKNUM);
	QvRowsMeta	made;
	QvWrite		w;

	made.root = BufferGetBlockNumber(buf);
	made.lines = lines;
	made.entry_size = QvRowsEntrySize(rows->index, rows->space->pdim);
	made.missing = QV_ROWS_BEGUN;
	QvRowsSetMeta(rows, &made);
	QvWriteBegin(&w, rows->index, rows->building);
	*meta_on_page(rows, QvWriteRegister(&w, meta)) = rows->meta;
	(void) QvWriteRegisterNew(&w, buf, QV_PAGE_ROW_DIRECTORY);
	QvWriteCommit(&w);
	UnlockReleaseBuffer(buf);
	UnlockReleaseBuffer(meta);
	QvInjectionPoint("quiver-rows-begun");
}

/*
 * Leave the row pages, so that others can be begun.  Searches that are under way go on with them,
 * and find all rows that they may see.  VACUUM clears no entries there any more.  The page of a
 * dead row may be visible to all later, and the entry of the row would still pass the filter.  So
 * included columns are forgotten before.  If that is canceled, the next VACUUM clears entries.
 */
static void
leave_pages(QvRows *rows)
{
	QvRowsMeta	none = {0};

	if (rows->included)
	{
		write_missing(rows, QV_ROWS_LEAVING);
		QvInjectionPoint("quiver-rows-leaving");
		/* no insert puts any from now on */
		QvRowsClear(rows, NULL, NULL, NULL);
	}
	write_meta(rows, &none);
	QvInjectionPoint("quiver-rows-left");
}

/* Are the included columns of an entry known?  at: the entries of its page. */
static bool
has_columns(const QvRows *rows, const char *at, uint32 i)
{
	return QvIncludedIsKnown(rows->included, QvRowsIncluded(rows, at), i);
}

/*
 * Put the entries that were made into a copy of their page.  Returns whether that changes it.
 */
static bool
put_made(const QvRows *rows, const char *made, char *entries)
{
	bool		changed = false;

	for (uint32 i = 0; i < rows->per_page; i++)
	{
		const QvRowEntryData *entry = QvRowsEntry(rows, made, i);
		QvRowEntry	there = QvRowsEntry(rows, entries, i);
		bool		is_there = QvRowEntryIsThere(there);

		/*
		 * the code that is there may be of the row's value, and better than
		 * ours
		 */
		Size		size = is_there ? offsetof(QvRowEntryData, norm2) : rows->code_size;
		bool		columns;

		if (!QvRowEntryIsThere(entry))
			continue;
		columns = rows->included &&
			(!is_there || (has_columns(rows, made, i) && !has_columns(rows, entries, i)));
		if (is_there && !columns && memcmp(there, entry, size) == 0)
			continue;
		memcpy(there, entry, size);
		if (columns)
			QvIncludedCopy(rows->included, QvRowsIncluded(rows, entries), QvRowsIncluded(rows, made), i);
		changed = true;
	}
	return changed;
}

/* Write one of the pages in hand, where it is not so already: one WAL record. */
static void
write_page(const Merge *merge, uint32 i)
{
	const QvRows *rows = merge->rows;
	const char *made = entries_of(merge, i);
	PGAlignedBlock image;
	Page		page = (Page) image.data;
	bool		changed;
	Buffer		buf;
	QvWrite		w;
	uint32		e = 0;

	while (e < rows->per_page && !QvRowEntryIsThere(QvRowsEntry(rows, made, e)))
		e++;
	if (e == rows->per_page && merge->last_lines[i] == 0)
		return;
	buf = lock_page(rows, merge->first + i);
	memcpy(image.data, BufferGetPage(buf), BLCKSZ);
	changed = put_made(rows, made, QvPageEntries(page));
	if (QvPageRows(page)->last_line < merge->last_lines[i])
	{
		QvPageRows(page)->last_line = merge->last_lines[i];
		changed = true;
	}
	if (changed)
	{
		QvWriteBegin(&w, rows->index, rows->building);
		memcpy(QvWriteRegister(&w, buf), image.data, BLCKSZ);
		QvWriteCommit(&w);
	}
	UnlockReleaseBuffer(buf);
	if (changed)
		QvInjectionPoint("quiver-rows-merged");
}

/* Which entries of row page "number" have their columns? */
static void
note_known(Merge *merge, uint32 number)
{
	const QvRows *rows = merge->rows;
	BlockNumber block = rows->building ? QV_ROWS_NO_PAGE : QvRowsFindPage(&merge->finder, number);
	Buffer		buf;

	memset(merge->known, false, rows->per_page * sizeof(bool));
	if (block == QV_ROWS_NO_PAGE)
		return;
	buf = QvRowsReadPage(rows, block, number, BUFFER_LOCK_SHARE);
	for (uint32 i = 0; i < rows->per_page; i++)
	{
		const char *at = QvPageEntries(BufferGetPage(buf));

		merge->known[i] = QvRowEntryIsThere(QvRowsEntry(rows, at, i)) && has_columns(rows, at, i);
	}
	UnlockReleaseBuffer(buf);
}

/*
 * Have the included columns of the rows in hand that lack them.  Each version that an entry leads
 * to has the same, because an update of such a column is never HOT.  Versions from before the
 * build may differ, and searches by the index do not see them.  So the newest are read, and rows
 * that other transactions are inserting, as these wrote no entry before there were row pages.
 */
static void
read_included_of_part(Merge *merge)
{
	const QvRows *rows = merge->rows;
	SnapshotData dirty;
	QvIncludedReader reader;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	InitDirtySnapshot(dirty);
	QvIncludedBegin(&reader, merge->table, &dirty);
	for (uint32 page = 0; page < merge->npages; page++)
	{
		const char *entries = entries_of(merge, page);

		if (rows->building)
			CHECK_FOR_INTERRUPTS();
		else
			QvVacuumDelayPoint();
		note_known(merge, merge->first + page);
		for (uint32 i = 0; i < rows->per_page; i++)
		{
			ItemPointerData tid;

			if (merge->known[i] || !QvRowEntryIsThere(QvRowsEntry(rows, entries, i)))
				continue;
			QvRowsTid(rows, (QvRowNumber) (merge->first + page) * rows->per_page + i, &tid);
			if (QvIncludedRead(&reader, rows->included, tid, values, isnull))
				QvIncludedPut(rows->included, QvRowsIncluded(rows, entries), i, &(QvIncludedRow) {values, isnull});
		}
	}
	QvIncludedEnd(&reader);
}

/* The rows have been counted: begin with the first part.  False when there is none. */
static bool
begin_parts(Merge *merge)
{
	QvRows	   *rows = merge->rows;
	uint16		lines = merge->count > 0 ? choose_lines(merge) : 0;
	Size		page_bytes;

	merge->counting = false;
	if (rows->meta.root != 0 && (rows->meta.missing == QV_ROWS_LEAVING || is_worth_it(merge, lines)))
		leave_pages(rows);
	if (rows->meta.root == 0)
	{
		if (lines == 0)
		{
			write_missing(rows, Min(merge->table_rows, PG_UINT32_MAX));
			return false;
		}
		make_root(merge, lines);
	}
	QvRowsFinderInit(&merge->finder, rows);
	merge->known = palloc(rows->per_page * sizeof(bool));
	page_bytes = QvRowsPageBytes(rows);
	merge->pages = ((uint64) merge->end * rows->meta.lines + rows->per_page - 1) / rows->per_page;
	merge->room = Max(1, Min(merge->pages, (Size) QvMaintenanceWorkMem() * 1024 / page_bytes));
	merge->npages = merge->room;
	merge->entries = MemoryContextAllocExtended(CurrentMemoryContext, merge->room * page_bytes,
												MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	merge->last_lines = MemoryContextAllocExtended(CurrentMemoryContext, merge->room * sizeof(uint16),
												   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	return true;
}

/* Write what was taken, and go on to the next part; false when there is none. */
static bool
next_part(Merge *merge)
{
	const QvRows *rows = merge->rows;

	if (rows->included)
		read_included_of_part(merge);
	for (uint32 i = 0; i < merge->npages; i++)
	{
		if (rows->building)
			CHECK_FOR_INTERRUPTS();
		else
			QvVacuumDelayPoint();
		write_page(merge, i);
	}
	merge->first += merge->npages;
	/* an index without rows has no pages, and one part */
	merge->npages = merge->first < merge->pages ? Min(merge->room, merge->pages - merge->first) : 0;
	memset(merge->entries, 0, merge->npages * QvRowsPageBytes(rows));
	memset(merge->last_lines, 0, merge->npages * sizeof(uint16));
	return merge->npages > 0;
}

void
QvRowsMerge(QvRows *rows, bool building, double table_rows, QvVisitRows visit, void *engine)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver row pages",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Merge	   *merge = palloc0(sizeof(Merge));
	QvRowVisitor visitor = {wants_row, take_row, merge};

	rows->building = building;
	merge->rows = rows;
	/* a build or VACUUM has locked the table */
	merge->table = table_open(rows->index->rd_index->indrelid, NoLock);
	merge->table_rows = table_rows;
	begin_counting(merge);
	visit(engine, &visitor);
	if (begin_parts(merge))
	{
		do
			visit(engine, &visitor);
		while (next_part(merge));
		write_missing(rows, 0);
	}
	table_close(merge->table, NoLock);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
