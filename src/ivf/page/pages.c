/*
 * pages.c
 *		Pages of lists; see pages.h.
 */
#include "postgres.h"

#include "compat.h"
#include "ivf/page/pages.h"
#include "miscadmin.h"
#include "pages/write.h"
#include "storage/freespace.h"
#include "storage/indexfsm.h"

/* ---- reading ---- */

/* Returns a page of a kind, of the owner's list and generation; InvalidBuffer otherwise. */
static Buffer
read_own_page(IvfHandle *handle, BlockNumber block, QvPageKind kind,
			  const IvfItemPageData *owner, int lockmode)
{
	Buffer		buf = QvReadAnyPage(handle->index, handle->hints, block,
									kind == QV_PAGE_RECORDS ? handle->record_strategy : handle->strategy,
									lockmode);
	Page		page = BufferGetPage(buf);

	/* all kinds begin with list and generation */
	if (QvPageIs(page, kind) && IvfPageItems(page)->list == owner->list &&
		IvfPageItems(page)->generation == owner->generation)
		return buf;
	if (PageIsNew(page) || QvPageGetHeader(page)->magic != QV_PAGE_MAGIC ||
		QvPageGetHeader(page)->version != QV_PAGE_VERSION)
		QvPageCheck(handle->index, block, page, kind);
	UnlockReleaseBuffer(buf);
	return InvalidBuffer;
}

Buffer
IvfReadListPage(IvfHandle *handle, BlockNumber block, uint32 list,
				uint32 generation, int lockmode)
{
	IvfItemPageData owner = {.list = list, .generation = generation};
	Buffer		buf = read_own_page(handle, block, QV_PAGE_CODES, &owner, lockmode);
	IvfListPage head;

	if (!BufferIsValid(buf))
		return buf;
	head = IvfPageList(BufferGetPage(buf));
	if (head->count > handle->layout.slots)
		QvReportCorruption(handle->index, block, "The page claims %u rows.", head->count);
	/* the position of its last slot is a uint32: IvfItemLink() must not wrap */
	if (head->number >= PG_UINT32_MAX / handle->layout.slots)
		QvReportCorruption(handle->index, block, "The page claims to be number %u of its list.",
						   head->number);
	return buf;
}

Buffer
IvfReadItemPage(IvfHandle *handle, IvfItemKind which, BlockNumber block,
				const IvfItemPageData *wanted, int lockmode)
{
	Buffer		buf = read_own_page(handle, block, handle->layout.items[which].kind, wanted,
									lockmode);

	if (BufferIsValid(buf) && IvfPageItems(BufferGetPage(buf))->number != wanted->number)
		QvReportCorruption(handle->index, block, "The page of %s is number %u of list %u, not %u.",
						   handle->layout.items[which].what, IvfPageItems(BufferGetPage(buf))->number,
						   wanted->list, wanted->number);
	return buf;
}

/* ---- allocation ---- */

Buffer
IvfAllocPage(IvfHandle *handle)
{
	Relation	index = handle->index;
	BlockNumber block;

	for (int i = 0; i < QV_MAX_RECYCLED && !handle->building &&
		 BlockNumberIsValid(block = GetFreeIndexPage(index)); i++)
	{
		Buffer		buf;
		Page		page;

		/* the map is not in the WAL: after a crash it may have any block */
		if (block == QV_META_BLOCK || block >= RelationGetNumberOfBlocks(index))
			continue;
		buf = QvReadBuffer(index, block, NULL);
		/* a locked page is in use; the caller has locks, so do not wait */
		if (!ConditionalLockBuffer(buf))
		{
			ReleaseBuffer(buf);
			continue;
		}
		page = BufferGetPage(buf);
		/* another backend may have added an empty page, to fill it later */
		if (!PageIsNew(page) && QvPageIs(page, QV_PAGE_FREE))
			return buf;
		UnlockReleaseBuffer(buf);
	}
	return QvNewPage(index, MAIN_FORKNUM);
}

void
IvfFreePage(IvfHandle *handle, Buffer buf)
{
	BlockNumber block = BufferGetBlockNumber(buf);
	QvWrite		w;

	QvWriteBegin(&w, handle->index, handle->building);
	(void) QvWriteRegisterNew(&w, buf, QV_PAGE_FREE);
	QvWriteCommit(&w);
	RecordFreeIndexPage(handle->index, block);
}

/* A range of freed blocks that the upper pages of the free space map do not show yet. */
typedef struct FreedRange
{
	BlockNumber first;			/* InvalidBlockNumber: no block */
	BlockNumber last;
} FreedRange;

/* Policy: blocks that are farther from each other than this are not in one range. */
#define FREED_APART 4096

/*
 * Updates the upper pages of the free space map for the range.  The rest of the map is left
 * alone, since it has a page for about 4,000 pages of the index.
 */
static void
show_freed(Relation index, FreedRange *freed)
{
	if (BlockNumberIsValid(freed->first))
		FreeSpaceMapVacuumRange(index, freed->first, freed->last + 1);
	freed->first = InvalidBlockNumber;
}

/* Adds a block to the range.  A block that is far from it begins a new range. */
static void
note_freed(Relation index, FreedRange *freed, BlockNumber block)
{
	if (BlockNumberIsValid(freed->first) &&
		(block + FREED_APART < freed->last || block > freed->first + FREED_APART))
		show_freed(index, freed);
	if (!BlockNumberIsValid(freed->first))
		freed->first = freed->last = block;
	freed->first = Min(freed->first, block);
	freed->last = Max(freed->last, block);
}

/* Frees a block if it is a page of that kind, of the owner's list and generation. */
static void
free_items(IvfHandle *handle, BlockNumber block, QvPageKind kind, const IvfItemPageData *owner)
{
	Buffer		buf = read_own_page(handle, block, kind, owner, BUFFER_LOCK_EXCLUSIVE);

	/* a page that two pages of codes share was freed the first time */
	if (BufferIsValid(buf))
	{
		IvfFreePage(handle, buf);
		UnlockReleaseBuffer(buf);
		QvInjectionPoint("quiver-ivf-page-freed");
	}
}

void
IvfFreeList(IvfHandle *handle, uint32 list, uint32 generation, BlockNumber head)
{
	const IvfLayout *layout = &handle->layout;
	IvfItemPageData owner = {.list = list, .generation = generation};
	BlockNumber *links = palloc(Max(1, layout->links) * sizeof(BlockNumber));
	FreedRange	freed = {.first = InvalidBlockNumber};

	while (BlockNumberIsValid(head))
	{
		Buffer		buf;
		BlockNumber next;

		CHECK_FOR_INTERRUPTS();
		buf = IvfReadListPage(handle, head, list, generation, BUFFER_LOCK_EXCLUSIVE);
		if (!BufferIsValid(buf))
			break;
		next = QvPageGetHeader(BufferGetPage(buf))->next;
		memcpy(links, IvfPageList(BufferGetPage(buf))->item_pages, layout->links * sizeof(BlockNumber));
		IvfFreePage(handle, buf);
		UnlockReleaseBuffer(buf);
		QvInjectionPoint("quiver-ivf-page-freed");
		note_freed(handle->index, &freed, head);
		for (int which = 0; which < IVF_ITEM_KINDS; which++)
		{
			const IvfItems *items = &layout->items[which];

			for (uint32 i = items->first_link; i < items->first_link + items->max_pages; i++)
				if (BlockNumberIsValid(links[i]))
				{
					free_items(handle, links[i], items->kind, &owner);
					note_freed(handle->index, &freed, links[i]);
				}
		}
		head = next;
	}
	pfree(links);
	show_freed(handle->index, &freed);
}
