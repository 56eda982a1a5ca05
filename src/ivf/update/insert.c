/*
 * insert.c
 *		Adding a row to its list.
 *
 * See src/ivf/update/README.md, "Insert".
 */
#include "postgres.h"

#include "compat.h"
#include "ivf/ivf.h"
#include "ivf/page/cache.h"
#include "ivf/page/directory.h"
#include "ivf/page/meta.h"
#include "ivf/page/pages.h"
#include "ivf/page/writer.h"
#include "ivf/search/nearest.h"
#include "ivf/update/move.h"
#include "miscadmin.h"
#include "pages/write.h"
#include "rows/write.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

/* The row to add, and where it goes. */
typedef struct Insertion
{
	IvfHandle  *handle;
	IvfQuery	query;
	uint32		list;
	IvfRow		row;
	IvfRowRoom	room;
	float	   *centroid;		/* of the list, decoded */
	QvRowPlace	place;			/* of the row's record, for its entry */
} Insertion;

/*
 * Returns the last page of the list, pinned and exclusively locked.  Returns InvalidBuffer if
 * the list has no page yet, or if it has moved, which sets *moved.
 */
static Buffer
lock_tail(Insertion *in, bool *moved)
{
	IvfHandle  *handle = in->handle;
	IvfListRef *ref = &handle->lists->refs[in->list];
	BlockNumber block = ref->tail;
	uint32		number = 0;
	bool		first = true;

	*moved = false;
	while (BlockNumberIsValid(block))
	{
		Buffer		buf;
		BlockNumber next;

		CHECK_FOR_INTERRUPTS();
		buf = IvfReadListPage(handle, block, in->list, ref->generation, BUFFER_LOCK_EXCLUSIVE);
		if (!BufferIsValid(buf))
		{
			*moved = true;
			return InvalidBuffer;
		}
		if (!first && IvfPageList(BufferGetPage(buf))->number != number + 1)
			QvReportCorruption(handle->index, block, "The page is number %u of list %u, not %u.",
							   IvfPageList(BufferGetPage(buf))->number, in->list, number + 1);
		number = IvfPageList(BufferGetPage(buf))->number;
		first = false;
		next = QvPageGetHeader(BufferGetPage(buf))->next;
		/* for the next insert; the tail in the directory is not far behind */
		ref->tail = block;
		if (!BlockNumberIsValid(next))
			return buf;
		UnlockReleaseBuffer(buf);
		block = next;
	}
	return InvalidBuffer;
}

/* Where the record, or the sketch, of the row goes. */
typedef struct ItemPlace
{
	Buffer		buf;			/* pinned and exclusively locked; invalid: the
								 * index has no such items */
	bool		new_page;		/* the item begins a page */
	uint32		link;			/* place in item_pages[] */
} ItemPlace;

/*
 * Finds the page of items for a slot of a page of codes, which is locked.  Locks that page if
 * there is one.
 */
static ItemPlace
lock_items(Insertion *in, Buffer codes, IvfItemKind which, uint32 slot)
{
	IvfHandle  *handle = in->handle;
	const IvfLayout *layout = &handle->layout;
	const IvfItems *items = &layout->items[which];
	IvfListPage head = IvfPageList(BufferGetPage(codes));
	ItemPlace	place = {.buf = InvalidBuffer};
	IvfItemPageData wanted;
	uint32		index;
	BlockNumber block;

	if (items->per_page == 0)
		return place;
	index = IvfItemLink(layout, items, head->number, slot);
	if (index >= items->max_pages)
		QvReportCorruption(handle->index, BufferGetBlockNumber(codes),
						   "Row %u would be in page of %s %u.", slot, items->what, index);
	place.link = items->first_link + index;
	block = head->item_pages[place.link];
	place.new_page = !BlockNumberIsValid(block);
	if (place.new_page)
		return place;
	/* we would wait forever for a page that we have locked already */
	for (uint32 i = 0; i < layout->links; i++)
		if (i != place.link && head->item_pages[i] == block)
			QvReportCorruption(handle->index, block, "The page is named twice by its page of codes.");
	if (block == BufferGetBlockNumber(codes))
		QvReportCorruption(handle->index, block,
						   "The page is named as page of %s of its own rows.", items->what);
	wanted = IvfItemPageWanted(layout, items, head, slot);
	place.buf = IvfReadItemPage(handle, which, block, &wanted, BUFFER_LOCK_EXCLUSIVE);
	if (!BufferIsValid(place.buf))
		QvReportCorruption(handle->index, block,
						   "The page of %s does not belong to list %u.", items->what, in->list);
	return place;
}

/*
 * Adds the row to a page that has room.  Writes one WAL record: the page, and the pages of the
 * row's record and sketch.
 */
static void
add_to_page(Insertion *in, Buffer buf)
{
	IvfHandle  *handle = in->handle;
	const IvfLayout *layout = &handle->layout;
	uint32		slot = IvfPageList(BufferGetPage(buf))->count;
	ItemPlace	places[IVF_ITEM_KINDS];
	IvfListPage head;
	QvWrite		w;
	Page		page;

	for (int which = 0; which < IVF_ITEM_KINDS; which++)
		places[which] = lock_items(in, buf, which, slot);
	/* allocated after that: a damaged link may name a page that is free */
	for (int which = 0; which < IVF_ITEM_KINDS; which++)
		if (places[which].new_page)
			places[which].buf = IvfAllocPage(handle);
	QvWriteBegin(&w, handle->index, handle->building);
	page = QvWriteRegister(&w, buf);
	head = IvfPageList(page);
	for (int which = 0; which < IVF_ITEM_KINDS; which++)
	{
		const IvfItems *items = &layout->items[which];
		ItemPlace  *place = &places[which];
		Page		item_page;

		if (!BufferIsValid(place->buf))
			continue;
		if (place->new_page)
		{
			item_page = QvWriteRegisterNew(&w, place->buf, items->kind);
			*IvfPageItems(item_page) = IvfItemPageWanted(layout, items, head, slot);
			head->item_pages[place->link] = BufferGetBlockNumber(place->buf);
		}
		else
			item_page = QvWriteRegister(&w, place->buf);
		layout->codec->put_item(layout, which, item_page,
								IvfItemPlace(layout, items, head->number, slot), &in->row);
		if (which == IVF_RECORDS)
			in->place = (QvRowPlace)
		{
			BufferGetBlockNumber(place->buf),
				IvfItemPlace(layout, items, head->number, slot)
		};
	}
	if (slot == 0)
		IvfSetScales(head, &in->row);
	layout->codec->put_slot(layout, page, slot, &in->row);
	head->count = slot + 1;
	QvWriteCommit(&w);
	for (int which = IVF_ITEM_KINDS - 1; which >= 0; which--)
		if (BufferIsValid(places[which].buf))
			UnlockReleaseBuffer(places[which].buf);
}

/* Makes buf an empty page of the list. */
static Page
init_page(Insertion *in, QvWrite *w, Buffer buf)
{
	const IvfLayout *layout = &in->handle->layout;
	Page		page = QvWriteRegisterNew(w, buf, QV_PAGE_CODES);
	IvfListPage head = IvfPageList(page);

	head->list = in->list;
	head->generation = in->handle->lists->refs[in->list].generation;
	head->a_scale = head->b_scale = 1;
	for (uint32 i = 0; i < layout->links; i++)
		head->item_pages[i] = InvalidBlockNumber;
	layout->codec->clear_slots(layout, page);
	return page;
}

/*
 * Adds an empty page after the last one of the list, which is pinned and locked in *tail.
 * Writes one WAL record: both pages.  *tail becomes the new page.
 */
static void
add_page(Insertion *in, Buffer *tail)
{
	IvfHandle  *handle = in->handle;
	const IvfLayout *layout = &handle->layout;
	Buffer		buf = IvfAllocPage(handle);
	QvWrite		w;
	Page		before;
	IvfListPage head,
				last;

	QvWriteBegin(&w, handle->index, handle->building);
	head = IvfPageList(init_page(in, &w, buf));
	before = QvWriteRegister(&w, *tail);
	last = IvfPageList(before);
	head->number = last->number + 1;
	/* a page of records or sketches may be shared with the page before */
	for (int which = 0; which < IVF_ITEM_KINDS; which++)
	{
		const IvfItems *items = &layout->items[which];

		if (items->per_page > 0 && IvfItemPlace(layout, items, head->number, 0) != 0)
			head->item_pages[items->first_link] =
				last->item_pages[items->first_link +
								 IvfItemLink(layout, items, last->number, layout->slots - 1)];
	}
	QvPageGetHeader(before)->next = BufferGetBlockNumber(buf);
	QvWriteCommit(&w);
	UnlockReleaseBuffer(*tail);
	handle->lists->refs[in->list].tail = BufferGetBlockNumber(buf);
	*tail = buf;
}

/*
 * Gives the list its first page.  The list's lock is held exclusively, so nobody else adds to
 * it.  Writes one WAL record: the page, the directory's page, the metapage, so that scans see
 * the change.  Returns the page pinned and locked; InvalidBuffer if the list is not as the
 * directory in memory has it.
 */
static Buffer
first_page(Insertion *in)
{
	IvfHandle  *handle = in->handle;
	IvfListRef *ref = &handle->lists->refs[in->list];
	IvfEntry	entry;
	Buffer		entry_buf = IvfReadEntry(handle, in->list, BUFFER_LOCK_EXCLUSIVE, &entry);
	uint32		first = IvfPageDirectory(BufferGetPage(entry_buf))->first;
	Buffer		buf,
				meta_buf;
	IvfMetaData *meta;
	QvWrite		w;
	Page		page;

	if (entry->generation != ref->generation || BlockNumberIsValid(entry->head))
	{
		UnlockReleaseBuffer(entry_buf);
		return InvalidBuffer;
	}
	buf = IvfAllocPage(handle);
	meta_buf = IvfLockMeta(handle);
	QvWriteBegin(&w, handle->index, handle->building);
	(void) init_page(in, &w, buf);
	page = QvWriteRegister(&w, entry_buf);
	entry = IvfPageEntry(&handle->layout, page, in->list - first);
	entry->head = entry->tail = BufferGetBlockNumber(buf);
	meta = IvfPageMeta(QvWriteRegister(&w, meta_buf));
	IvfPageDirectory(page)->version = ++meta->version_lists;
	QvWriteCommit(&w);
	UnlockReleaseBuffer(meta_buf);
	UnlockReleaseBuffer(entry_buf);
	QvInjectionPoint("quiver-ivf-first-page");
	return buf;
}

/*
 * Returns whether the list is as the directory in memory has it.  We hold its lock, so it does
 * not move from now on.  It may have moved while we waited for the lock.  Its old pages are
 * freed after that, so until then they do not show it.
 */
static bool
list_is_current(Insertion *in)
{
	IvfEntry	entry;
	Buffer		buf = IvfReadEntry(in->handle, in->list, BUFFER_LOCK_SHARE, &entry);
	bool		current = entry->generation == in->handle->lists->refs[in->list].generation;

	UnlockReleaseBuffer(buf);
	return current;
}

/* Writes the list's last page into its entry, as one WAL record, so that others find it. */
static void
note_tail(Insertion *in, BlockNumber tail)
{
	IvfHandle  *handle = in->handle;
	IvfEntry	entry;
	Buffer		buf = IvfReadEntry(handle, in->list, BUFFER_LOCK_EXCLUSIVE, &entry);
	uint32		first = IvfPageDirectory(BufferGetPage(buf))->first;
	QvWrite		w;

	QvWriteBegin(&w, handle->index, handle->building);
	entry = IvfPageEntry(&handle->layout, QvWriteRegister(&w, buf), in->list - first);
	entry->tail = tail;
	QvWriteEnd(&w);
	QvInjectionPoint("quiver-ivf-tail-noted");
}

/*
 * Adds the row to its list.  Returns false if the list has moved since the directory was read.
 * Sets *rows to about the number of rows of the list, and *generation to its generation.
 */
static bool
add_row(Insertion *in, uint64 *rows, uint32 *generation)
{
	IvfHandle  *handle = in->handle;
	const IvfLayout *layout = &handle->layout;
	bool		moved;
	Buffer		buf = lock_tail(in, &moved);
	IvfListPage head;
	BlockNumber new_tail = InvalidBlockNumber;

	if (moved)
		return false;
	if (!BufferIsValid(buf))
	{
		buf = first_page(in);
		if (!BufferIsValid(buf))
			return false;
	}
	else if (IvfPageList(BufferGetPage(buf))->count >= layout->slots)
	{
		add_page(in, &buf);
		QvInjectionPoint("quiver-ivf-page-added");
		new_tail = BufferGetBlockNumber(buf);
	}
	add_to_page(in, buf);
	head = IvfPageList(BufferGetPage(buf));
	*rows = (uint64) head->number * layout->slots + head->count;
	*generation = head->generation;
	UnlockReleaseBuffer(buf);
	QvInjectionPoint("quiver-ivf-row-added");
	if (BlockNumberIsValid(new_tail))
		note_tail(in, new_tail);
	return true;
}

void
IvfInsert(Relation index, const QvOpclassInfo *opclass, const void *value,
		  const QvIncludedRow *included, ItemPointer tid, Relation heap)
{
	Insertion	in = {0};
	uint64		rows = 0;
	uint32		generation = 0;
	bool		added = false;

	in.handle = IvfOpen(index, opclass);
	QvCheckDims(opclass, in.handle->meta.dims, value);
	in.room.data = palloc(in.handle->layout.data_bytes);
	in.room.scratch = palloc(2 * in.handle->layout.width * sizeof(float));
	in.centroid = palloc(in.handle->layout.width * sizeof(float));
	for (;;)
	{
		LOCKMODE	mode;

		in.list = IvfEncodeInNearest(in.handle, value, in.centroid, &in.room, &in.query, &in.row);
		in.row.tid = *tid;
		/* many add to a list at once, but only one makes its first page */
		mode = BlockNumberIsValid(in.handle->lists->refs[in.list].head) ? ShareLock : ExclusiveLock;
		LockPage(index, IVF_LIST_LOCK(in.list), mode);
		added = list_is_current(&in) && add_row(&in, &rows, &generation);
		UnlockPage(index, IVF_LIST_LOCK(in.list), mode);
		if (added)
			break;
		CHECK_FOR_INTERRUPTS();
		if (!IvfRefresh(in.handle))
			QvReportCorruption(index, QV_META_BLOCK,
							   "A page of list %u does not belong to it, and nothing has changed.", in.list);
	}
	QvInjectionPoint("quiver-ivf-row-added");
	if (IvfCanHaveRows(&in.handle->meta))
		QvRowsPut(&in.handle->rows, tid, in.place,
				  &(QvRowVector) {in.query.base.row, 0, in.query.base.row_norm2}, included);
	if (IvfWantsSplit(in.handle, in.list, rows))
	{
		TableValues table;

		TableValuesInit(&table, heap, index, opclass);
		IvfTrySplit(index, opclass, in.list, generation, rows, &table);
		TableValuesEnd(&table);
	}
}
