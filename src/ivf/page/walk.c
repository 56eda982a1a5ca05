/*
 * walk.c
 *		Reading a list page by page; see walk.h.
 */
#include "postgres.h"

#include "ivf/page/pages.h"
#include "ivf/page/walk.h"
#include "miscadmin.h"

void
IvfWalkInit(IvfWalk *walk, IvfHandle *handle)
{
	memset(walk, 0, sizeof(*walk));
	walk->handle = handle;
	walk->images.page = palloc(BLCKSZ);
	for (int which = 0; which < IVF_ITEM_KINDS; which++)
		walk->images.items[which] = palloc(BLCKSZ);
	walk->scan = palloc(Max(8, handle->layout.scan_bits / 8));
}

void
IvfWalkEnd(IvfWalk *walk)
{
	pfree(walk->images.page);
	for (int which = 0; which < IVF_ITEM_KINDS; which++)
		pfree(walk->images.items[which]);
	pfree(walk->scan);
}

void
IvfWalkStart(IvfWalk *walk, uint32 list, BlockNumber head)
{
	walk->list = list;
	walk->generation = walk->handle->lists->refs[list].generation;
	walk->next = head;
	walk->number = 0;
	walk->images.block = InvalidBlockNumber;
	for (int which = 0; which < IVF_ITEM_KINDS; which++)
		walk->images.item_blocks[which] = InvalidBlockNumber;
}

void
IvfWalkAgain(IvfWalk *walk)
{
	if (!BlockNumberIsValid(walk->images.block))
		return;
	walk->next = walk->images.block;
	walk->number--;
	walk->images.block = InvalidBlockNumber;
}

bool
IvfWalkNextPage(IvfWalk *walk)
{
	Relation	index = walk->handle->index;
	BlockNumber block = walk->next;
	Buffer		buf;
	uint32		number;

	CHECK_FOR_INTERRUPTS();
	if (!BlockNumberIsValid(block))
		return false;
	buf = IvfReadListPage(walk->handle, block, walk->list, walk->generation, BUFFER_LOCK_SHARE);
	if (!BufferIsValid(buf))
		QvReportCorruption(index, block, "The page does not belong to list %u.", walk->list);
	memcpy(walk->images.page, BufferGetPage(buf), BLCKSZ);
	UnlockReleaseBuffer(buf);
	number = IvfPageList(walk->images.page)->number;
	if (number != walk->number)
		QvReportCorruption(index, block, "The page is number %u of list %u, not %u.",
						   number, walk->list, walk->number);
	walk->images.block = block;
	/* rows may have been added to a page of records since it was copied */
	for (int i = 0; i < lengthof(walk->images.item_blocks); i++)
		walk->images.item_blocks[i] = InvalidBlockNumber;
	walk->next = QvPageGetHeader(walk->images.page)->next;
	walk->number++;
	walk->slot = 0;
	return true;
}

/* Reads the page of records, or of sketches, of a slot of the current page, if need be. */
static void
load_items(IvfWalk *walk, IvfItemKind which, uint32 slot)
{
	const IvfLayout *layout = &walk->handle->layout;
	const IvfItems *items = &layout->items[which];
	Relation	index = walk->handle->index;
	IvfListPage head = IvfPageList(walk->images.page);
	BlockNumber block;
	IvfItemPageData wanted;
	Buffer		buf;

	if (items->per_page == 0)
		return;
	block = IvfItemBlock(layout, items, head, slot);
	if (!BlockNumberIsValid(block))
		QvReportCorruption(index, walk->images.block, "Row %u has no page of %s.", slot, items->what);
	if (walk->images.item_blocks[which] == block)
		return;
	wanted = IvfItemPageWanted(layout, items, head, slot);
	buf = IvfReadItemPage(walk->handle, which, block, &wanted, BUFFER_LOCK_SHARE);
	if (!BufferIsValid(buf))
		QvReportCorruption(index, block, "The page of %s does not belong to list %u.",
						   items->what, walk->list);
	memcpy(walk->images.items[which], BufferGetPage(buf), BLCKSZ);
	UnlockReleaseBuffer(buf);
	walk->images.item_blocks[which] = block;
}

ItemPointer
IvfWalkTid(IvfWalk *walk, uint32 slot)
{
	const IvfLayout *layout = &walk->handle->layout;

	load_items(walk, IVF_RECORDS, slot);
	return layout->codec->slot_tid(layout, walk->images.page, slot, walk->images.items[IVF_RECORDS]);
}

bool
IvfWalkRead(IvfWalk *walk, uint32 slot, IvfRow *row)
{
	if (!ItemPointerIsValid(IvfWalkTid(walk, slot)))
		return false;
	load_items(walk, IVF_SKETCHES, slot);
	walk->handle->layout.codec->read(walk->handle, &walk->images, slot, walk->scan, row);
	return true;
}

bool
IvfWalkNext(IvfWalk *walk, IvfRow *row)
{
	for (;;)
	{
		while (BlockNumberIsValid(walk->images.block) &&
			   walk->slot < IvfPageList(walk->images.page)->count)
			if (IvfWalkRead(walk, walk->slot++, row))
				return true;
		if (!IvfWalkNextPage(walk))
			return false;
	}
}
