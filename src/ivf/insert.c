/*
 * insert.c
 *		Adding a row to its list.
 */
#include "postgres.h"

#include "ivf/build.h"
#include "ivf/move.h"
#include "ivf/pages.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

/* The row to add, and where it goes. */
typedef struct Insertion
{
	IvfHandle  *handle;
	IvfQuery	query;
	uint32		list;
	IvfRow		row;
	uint8	   *code;
	uint8	   *scan;
	float	   *scratch;
} Insertion;

/* Choose the list, and code the row for it. */
static void
choose_home(Insertion *in)
{
	in->list = IvfHome(in->handle, &in->query);
	if (in->handle->layout.form == IVF_PLAIN)
		in->row.code = in->query.value;
	else
		IvfEncode(in->handle, in->list, in->query.q.x, in->code, in->scan, in->scratch, &in->row);
}

/*
 * The last page of the list, pinned and exclusively locked.  InvalidBuffer when
 * the list has no page yet, or (*moved) when it is not where we think.
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
		/* our own guess for the next time; the directory's is not far behind */
		ref->tail = block;
		if (!BlockNumberIsValid(next))
			return buf;
		UnlockReleaseBuffer(buf);
		block = next;
	}
	return InvalidBuffer;
}

/* Write the record of the row for a slot into its page, registered in w. */
static void
put_record(Insertion *in, Page records, uint32 number, uint32 slot, bool new_page)
{
	const IvfLayout *layout = &in->handle->layout;

	if (new_page)
	{
		IvfRecordPage head = IvfPageRecords(records);

		head->list = in->list;
		head->generation = in->handle->lists->refs[in->list].generation;
		head->number = IvfRecordPageNumber(layout, number, slot);
	}
	IvfPutRecord(layout, records, IvfRecordSlot(layout, number, slot), &in->row);
}

/*
 * Add the row to a page that has room.  WAL record: the page, and the page of
 * its record.
 */
static void
add_to_page(Insertion *in, Buffer buf)
{
	IvfHandle  *handle = in->handle;
	const IvfLayout *layout = &handle->layout;
	IvfListPage head = IvfPageList(BufferGetPage(buf));
	uint32		slot = head->count;
	uint32		index = 0;
	bool		new_page = false;
	Buffer		record_buf = InvalidBuffer;
	QvWrite		w;
	Page		page;

	if (layout->form == IVF_CODED)
	{
		index = IvfRecordPageIndex(layout, head->number, slot);
		/* the page itself would be locked twice */
		if (index >= layout->max_records || head->records[index] == BufferGetBlockNumber(buf))
			QvReportCorruption(handle->index, BufferGetBlockNumber(buf),
							   "Row %u would be in page of records %u.", slot, index);
		new_page = !BlockNumberIsValid(head->records[index]);
		if (new_page)
			record_buf = IvfAllocPage(handle, false);
		else
		{
			/* which would wait for itself */
			if (head->records[index] == BufferGetBlockNumber(buf))
				QvReportCorruption(handle->index, head->records[index],
								   "The page is named as page of records of its own rows.");
			record_buf = IvfReadRecordPage(handle, head->records[index], in->list, head->generation,
										   IvfRecordPageNumber(layout, head->number, slot),
										   BUFFER_LOCK_EXCLUSIVE);
			if (!BufferIsValid(record_buf))
				QvReportCorruption(handle->index, head->records[index],
								   "The page of records does not belong to list %u.", in->list);
		}
	}
	QvWriteBegin(&w, handle->index, false);
	page = QvWriteRegister(&w, buf);
	head = IvfPageList(page);
	if (layout->form == IVF_CODED)
	{
		Page		records = new_page ?
			QvWriteRegisterNew(&w, record_buf, QV_PAGE_RECORDS) :
			QvWriteRegister(&w, record_buf);

		put_record(in, records, head->number, slot, new_page);
		head->records[index] = BufferGetBlockNumber(record_buf);
	}
	if (slot == 0)
		IvfSetScales(head, &in->row, 1);
	IvfPutSlot(layout, page, slot, &in->row);
	head->count = slot + 1;
	QvWriteCommit(&w);
	if (BufferIsValid(record_buf))
		UnlockReleaseBuffer(record_buf);
}

/* Make buf an empty page of the list. */
static Page
init_page(Insertion *in, QvWrite *w, Buffer buf)
{
	const IvfLayout *layout = &in->handle->layout;
	Page		page = QvWriteRegisterNew(w, buf, QV_PAGE_CODES);
	IvfListPage head = IvfPageList(page);

	head->list = in->list;
	head->generation = in->handle->lists->refs[in->list].generation;
	head->a_scale = head->b_scale = 1;
	for (uint32 i = 0; i < layout->max_records; i++)
		head->records[i] = InvalidBlockNumber;
	IvfClearSlots(layout, page);
	return page;
}

/*
 * Add an empty page after the last one of the list, which is pinned and locked
 * in *tail.  WAL record: both.  *tail is then the new page.
 */
static void
add_page(Insertion *in, Buffer *tail)
{
	IvfHandle  *handle = in->handle;
	const IvfLayout *layout = &handle->layout;
	Buffer		buf = IvfAllocPage(handle, false);
	QvWrite		w;
	Page		before;
	IvfListPage head,
				last;

	QvWriteBegin(&w, handle->index, false);
	head = IvfPageList(init_page(in, &w, buf));
	before = QvWriteRegister(&w, *tail);
	last = IvfPageList(before);
	head->number = last->number + 1;
	/* the page of records may be shared with the page before */
	if (layout->form == IVF_CODED && IvfRecordSlot(layout, head->number, 0) != 0)
		head->records[0] = last->records[IvfRecordPageIndex(layout, last->number, layout->slots - 1)];
	QvPageGetHeader(before)->next = BufferGetBlockNumber(buf);
	QvWriteCommit(&w);
	UnlockReleaseBuffer(*tail);
	handle->lists->refs[in->list].tail = BufferGetBlockNumber(buf);
	*tail = buf;
}

/*
 * Give the list, which has no page and which nobody else adds to, its first
 * one.  WAL record: the page, the directory's, the metapage, since scans must
 * learn of it.  Returns the page pinned and locked; InvalidBuffer when the list
 * is not what we think.
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
	buf = IvfAllocPage(handle, false);
	meta_buf = QvReadPage(handle->index, handle->hints, IVF_META_BLOCK, QV_PAGE_META,
						  BUFFER_LOCK_EXCLUSIVE);
	(void) IvfPageMeta(handle->index, BufferGetPage(meta_buf));
	QvWriteBegin(&w, handle->index, false);
	(void) init_page(in, &w, buf);
	page = QvWriteRegister(&w, entry_buf);
	entry = IvfPageEntry(&handle->layout, page, in->list - first);
	entry->head = entry->tail = BufferGetBlockNumber(buf);
	meta = (IvfMetaData *) QvPageGetData(QvWriteRegister(&w, meta_buf));
	IvfPageDirectory(page)->version = ++meta->version_lists;
	QvWriteCommit(&w);
	UnlockReleaseBuffer(meta_buf);
	UnlockReleaseBuffer(entry_buf);
	return buf;
}

/* Let the directory know of the list's last page, so that others find it. */
static void
note_tail(Insertion *in, BlockNumber tail)
{
	IvfHandle  *handle = in->handle;
	IvfEntry	entry;
	Buffer		buf = IvfReadEntry(handle, in->list, BUFFER_LOCK_EXCLUSIVE, &entry);
	uint32		first = IvfPageDirectory(BufferGetPage(buf))->first;
	QvWrite		w;

	QvWriteBegin(&w, handle->index, false);
	entry = IvfPageEntry(&handle->layout, QvWriteRegister(&w, buf), in->list - first);
	entry->tail = tail;
	QvWriteCommit(&w);
	UnlockReleaseBuffer(buf);
}

/*
 * Add the row to its list.  False when the list has moved since the directory
 * was read.  *rows gets about how many rows the list has, and *generation its
 * generation.
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
		new_tail = BufferGetBlockNumber(buf);
	}
	add_to_page(in, buf);
	head = IvfPageList(BufferGetPage(buf));
	*rows = (uint64) head->number * layout->slots + head->count;
	*generation = head->generation;
	UnlockReleaseBuffer(buf);
	if (BlockNumberIsValid(new_tail))
		note_tail(in, new_tail);
	return true;
}

/* Prepare the value; false when it is not indexed. */
static bool
prepare(Insertion *in, const void *value)
{
	IvfHandle  *handle = in->handle;
	const IvfLayout *layout = &handle->layout;
	float	   *x,
			   *rotated;

	IvfCheckDims(&handle->meta, &handle->opclass, value);
	if (!IvfIsIndexed(&handle->opclass, value))
		return false;
	if (layout->form == IVF_PLAIN)
	{
		in->query.value = value;
		return true;
	}
	x = palloc(layout->pdim * sizeof(float));
	rotated = palloc(layout->pdim * sizeof(float));
	handle->opclass.type->to_float(value, x);
	(void) IvfRotate(handle, x, rotated);
	IvfQueryInit(handle, &in->query, rotated, false);
	in->code = palloc(layout->code_bytes);
	in->scan = palloc(layout->scan_bits / 8);
	in->scratch = palloc(3 * layout->pdim * sizeof(float));
	return true;
}

void
IvfInsert(Relation index, const QvOpclassInfo *opclass, const void *value,
		  ItemPointer tid)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver insert",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Insertion	in = {0};
	uint64		rows = 0;
	uint32		generation = 0;
	bool		added = false;

	in.handle = IvfOpen(index, opclass);
	if (!prepare(&in, value))
	{
		MemoryContextSwitchTo(old);
		MemoryContextDelete(context);
		return;
	}
	for (;;)
	{
		LOCKMODE	mode;

		choose_home(&in);
		in.row.tid = *tid;
		/* many add to a list at once, but its first page is for one to make */
		mode = BlockNumberIsValid(in.handle->lists->refs[in.list].head) ? ShareLock : ExclusiveLock;
		LockPage(index, IVF_LIST_LOCK(in.list), mode);
		added = add_row(&in, &rows, &generation);
		UnlockPage(index, IVF_LIST_LOCK(in.list), mode);
		if (added)
			break;
		CHECK_FOR_INTERRUPTS();
		if (!IvfRefresh(in.handle))
			QvReportCorruption(index, IVF_META_BLOCK,
							   "A page of list %u does not belong to it, and nothing has changed.", in.list);
		/* other centroids, and so another list, code and look-up table */
		(void) prepare(&in, value);
	}
	if (IvfWantsSplit(in.handle, in.list, rows))
		IvfTrySplit(index, opclass, in.list, generation, rows);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
