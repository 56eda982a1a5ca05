/*
 * directory.c
 *		Entries of the directory of lists; see directory.h.
 */
#include "postgres.h"

#include "compat.h"
#include "ivf/page/directory.h"
#include "ivf/page/meta.h"
#include "ivf/page/pages.h"
#include "pages/write.h"

void
IvfMakeEntry(const IvfLayout *layout, const QvOpclassInfo *opclass, const float *centroid,
			 uint32 parent, IvfEntry entry)
{
	memset(entry, 0, layout->entry_size);
	entry->head = entry->tail = InvalidBlockNumber;
	entry->generation = 1;
	entry->parent = parent;
	layout->codec->encode_centroid(layout, opclass, centroid, entry);
}

Buffer
IvfReadEntry(IvfHandle *handle, uint32 list, int lockmode, IvfEntry *entry)
{
	BlockNumber block = handle->lists->refs[list].directory;
	Buffer		buf = QvReadPage(handle->index, handle->hints, block, QV_PAGE_LISTS, lockmode);
	IvfDirectory directory = IvfPageDirectory(BufferGetPage(buf));

	if (list < directory->first || list - directory->first >= directory->count ||
		directory->count > handle->layout.entries_per_page)
		QvReportCorruption(handle->index, block, "The page of the directory does not have list %u.", list);
	*entry = IvfPageEntry(&handle->layout, BufferGetPage(buf), list - directory->first);
	return buf;
}

/* Writes one WAL record: the directory's page, the metapage. */
void
IvfReplaceEntry(IvfHandle *handle, uint32 list, const IvfListRef *now)
{
	Buffer		meta_buf,
				buf;
	IvfEntry	entry;
	IvfMetaData *meta;
	QvWrite		w;
	Page		page;
	uint32		first;

	buf = IvfReadEntry(handle, list, BUFFER_LOCK_EXCLUSIVE, &entry);
	first = IvfPageDirectory(BufferGetPage(buf))->first;
	meta_buf = IvfLockMeta(handle);
	QvWriteBegin(&w, handle->index, handle->building);
	page = QvWriteRegister(&w, buf);
	entry = IvfPageEntry(&handle->layout, page, list - first);
	entry->head = now->head;
	entry->tail = now->tail;
	entry->generation = now->generation;
	entry->rows = now->rows;
	entry->refused = now->refused;
	meta = IvfPageMeta(QvWriteRegister(&w, meta_buf));
	IvfPageDirectory(page)->version = ++meta->version_lists;
	QvWriteEnd(&w);
	QvInjectionPoint("quiver-ivf-list-replaced");
}

/*
 * Writes one WAL record: the page of the entry, the last page of the directory, a new page if
 * that is full, the metapage.
 */
void
IvfReplaceByParts(IvfHandle *handle, uint32 list, const IvfEntry *entries, uint32 parts)
{
	const IvfLayout *layout = &handle->layout;
	Relation	index = handle->index;
	IvfEntry	entry;
	Buffer		buf = IvfReadEntry(handle, list, BUFFER_LOCK_EXCLUSIVE, &entry);
	Buffer		tail_buf = buf;
	Buffer		new_buf = InvalidBuffer;
	Buffer		meta_buf;
	uint32		first = IvfPageDirectory(BufferGetPage(buf))->first;
	BlockNumber tail = handle->meta.list_tail;
	IvfMetaData *meta;
	IvfDirectory directory;
	QvWrite		w;
	Page		page,
				tail_page;

	/* appending needs IVF_MOVE_LOCK, so the handle has the tail */
	if (tail != BufferGetBlockNumber(buf))
		tail_buf = QvReadPage(index, handle->hints, tail, QV_PAGE_LISTS, BUFFER_LOCK_EXCLUSIVE);
	directory = IvfPageDirectory(BufferGetPage(tail_buf));
	if (directory->first + directory->count != handle->lists->count ||
		directory->count > layout->entries_per_page)
		QvReportCorruption(index, tail, "The directory does not end at list %u.", handle->lists->count);
	/* a record has room for one new page */
	Assert(parts - 1 <= layout->entries_per_page);
	if (directory->count + parts - 1 > layout->entries_per_page)
		new_buf = IvfAllocPage(handle);
	meta_buf = IvfLockMeta(handle);

	QvWriteBegin(&w, index, handle->building);
	page = QvWriteRegister(&w, buf);
	tail_page = tail_buf == buf ? page : QvWriteRegister(&w, tail_buf);
	meta = IvfPageMeta(QvWriteRegister(&w, meta_buf));
	memcpy(IvfPageEntry(layout, page, list - first), entries[0], layout->entry_size);
	IvfPageDirectory(page)->version = ++meta->version_lists;
	for (uint32 i = 1; i < parts; i++)
	{
		if (IvfPageDirectory(tail_page)->count == layout->entries_per_page)
		{
			QvPageGetHeader(tail_page)->next = BufferGetBlockNumber(new_buf);
			tail_page = QvWriteRegisterNew(&w, new_buf, QV_PAGE_LISTS);
			IvfPageDirectory(tail_page)->first = meta->lists;
			meta->list_tail = BufferGetBlockNumber(new_buf);
		}
		directory = IvfPageDirectory(tail_page);
		memcpy(IvfPageEntry(layout, tail_page, directory->count++), entries[i], layout->entry_size);
		directory->version = meta->version_lists;
		meta->lists++;
	}
	QvWriteCommit(&w);
	UnlockReleaseBuffer(meta_buf);
	if (BufferIsValid(new_buf))
		UnlockReleaseBuffer(new_buf);
	if (tail_buf != buf)
		UnlockReleaseBuffer(tail_buf);
	UnlockReleaseBuffer(buf);
	QvInjectionPoint("quiver-ivf-list-split");
}
