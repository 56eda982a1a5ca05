/*
 * check.c
 *		Verifying an index of posting lists: every invariant that
 *		src/ivf/README.md states.
 *
 * IVF_MOVE_LOCK keeps lists where they are.  A list's own lock keeps rows from being added
 * while that list is read.  Other lists may grow meanwhile.  Therefore a list is read again
 * if there are pages of its generation that nothing led to.  Lists are followed page by page,
 * so that memory is a few bits for each block.
 */
#include "postgres.h"

#include <math.h>

#include "access/xlog.h"
#include "containers/bitmap.h"
#include "containers/compare.h"
#include "ivf/ivf.h"
#include "ivf/page/cache.h"
#include "ivf/page/pages.h"
#include "ivf/page/probes.h"
#include "ivf/update/row_pages.h"
#include "miscadmin.h"
#include "query/options.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

typedef struct IvfChecker
{
	Relation	index;
	IvfHandle  *handle;
	const IvfMetaData *meta;
	const IvfLayout *layout;
	BufferAccessStrategy strategy;
	BlockNumber nblocks;		/* of the index, when the check began */
	bool		locks;			/* page locks are taken; not on a standby */
	uint8	   *used;			/* bitmap by block: something leads to it */
	uint8	   *suspect;		/* bitmap by block: of a list's generation,
								 * but nothing led to it */
	uint8	   *again;			/* bitmap by list: it has suspect pages */
	BlockNumber *directory;		/* pages of the directory */
	uint32	   *rows;			/* live rows, by list */
	IvfPageImages images;		/* of a page of the directory, or of a list */
	IvfInfo    *info;
} IvfChecker;

/* Copies a page. */
static Page
read_block(IvfChecker *c, BlockNumber block, Page image)
{
	Buffer		buf;

	CHECK_FOR_INTERRUPTS();
	buf = QvReadBuffer(c->index, block, c->strategy);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	memcpy(image, BufferGetPage(buf), BLCKSZ);
	UnlockReleaseBuffer(buf);
	return image;
}

/* Copies a page that a link leads to.  It must be of that kind, with no other link to it. */
static Page
read_linked(IvfChecker *c, BlockNumber from, BlockNumber block, QvPageKind kind, Page image)
{
	Page		page;

	if (!BlockNumberIsValid(block))
		QvReportCorruption(c->index, from, "A page that must be there is not linked.");
	page = read_block(c, block, image);
	QvPageCheck(c->index, block, page, kind);
	/* blocks from nblocks on have been added since the check began */
	if (block < c->nblocks)
	{
		if (BitmapHas(c->used, block))
			QvReportCorruption(c->index, block, "Two links lead to the page, one of them at block %u.", from);
		BitmapSet(c->used, block);
	}
	return page;
}

/* ---- metapage, mean, directory ---- */

static void
check_meta(IvfChecker *c)
{
	const IvfMetaData *meta = c->meta;

	BitmapSet(c->used, QV_META_BLOCK);
	if (!IvfProbesAreShares(meta) || !QvCurveIsSound(&meta->curve))
		QvReportCorruption(c->index, QV_META_BLOCK, "The probes measured are not shares of the lists.");
	if (!isfinite(meta->tuples) || meta->tuples < 0)
		QvReportCorruption(c->index, QV_META_BLOCK, "The number of rows is not finite or negative.");
	if (meta->measured_lists > meta->lists)
		QvReportCorruption(c->index, QV_META_BLOCK, "Probes were measured with %u lists, and there are %u.",
						   meta->measured_lists, meta->lists);
}

static void
check_mean(IvfChecker *c)
{
	uint32		per_page = QV_PAGE_SPACE / sizeof(float);
	BlockNumber block = c->meta->mean_block;

	for (uint32 done = 0; done < c->layout->pdim; done += per_page, block++)
	{
		Page		page = read_linked(c, QV_META_BLOCK, block, QV_PAGE_FLOATS, c->images.page);
		const float *mean = (const float *) QvPageGetData(page);

		for (uint32 i = 0; i < Min(per_page, c->layout->pdim - done); i++)
			if (!isfinite(mean[i]))
				QvReportCorruption(c->index, block, "Coordinate %u of the mean is not finite.", done + i);
	}
}

/* Verifies that the directory's pages form one chain with all lists in order. */
static void
check_directory(IvfChecker *c)
{
	const IvfMetaData *meta = c->meta;
	const IvfLayout *layout = c->layout;
	BlockNumber block = meta->list_head,
				from = QV_META_BLOCK;
	uint32		npages = 0;

	for (uint32 done = 0; done < meta->lists;)
	{
		Page		page = read_linked(c, from, block, QV_PAGE_LISTS, c->images.page);
		IvfDirectory directory = IvfPageDirectory(page);

		/* pages are full but for the last */
		if (directory->first != done ||
			directory->count != Min(layout->entries_per_page, meta->lists - done))
			QvReportCorruption(c->index, block,
							   "The page of the directory has %u lists from %u on, where the metapage says %u.",
							   directory->count, directory->first, meta->lists);
		for (uint32 i = 0; i < directory->count; i++)
		{
			IvfEntry	entry = IvfPageEntry(layout, page, i);
			const char *wrong = layout->codec->check_centroid(layout, &c->handle->space.opclass, entry);

			if (entry->parent >= Max(1, meta->tops))
				QvReportCorruption(c->index, block, "List %u is in group %u of %u.",
								   done + i, entry->parent, meta->tops);
			if (wrong)
				QvReportCorruption(c->index, block, wrong, done + i);
		}
		done += directory->count;
		c->directory[npages++] = from = block;
		block = QvPageGetHeader(page)->next;
	}
	if (BlockNumberIsValid(block))
		QvReportCorruption(c->index, from, "The directory goes on after its %u lists.", meta->lists);
	if (from != meta->list_tail)
		QvReportCorruption(c->index, QV_META_BLOCK, "The last page of the directory is %u, not %u.",
						   from, meta->list_tail);
}

/* ---- a list ---- */

/* Where the check is in a list. */
typedef struct ListWalk
{
	uint32		list;
	uint32		generation;
	BlockNumber block;			/* current page */
	BlockNumber next;			/* the page after it */
	uint32		number;			/* of the current page in the list */
	BlockNumber last[IVF_ITEM_KINDS];	/* pages of records and sketches of
										 * the last slot so far */
	uint64		slots;			/* used so far, dead ones too */
	uint32		live;			/* live rows so far */
} ListWalk;

/* Copies the page of records, or of sketches, of a slot, if need be. */
static void
load_items(IvfChecker *c, ListWalk *walk, IvfListPage head, IvfItemKind which, uint32 slot)
{
	const IvfItems *items = &c->layout->items[which];
	uint32		number = IvfItemPageNumber(c->layout, items, walk->number, slot);
	BlockNumber block = IvfItemBlock(c->layout, items, head, slot);
	IvfItemPage page;

	/* slot 0 may share its page of items with the page before */
	if (slot == 0 && IvfItemPlace(c->layout, items, walk->number, 0) != 0)
	{
		if (block != walk->last[which])
			QvReportCorruption(c->index, walk->block,
							   "Page %u of list %u does not share the page of %s before it.",
							   walk->number, walk->list, items->what);
		if (c->images.item_blocks[which] == block)
			return;
		(void) read_block(c, block, c->images.items[which]);
	}
	else
		(void) read_linked(c, walk->block, block, items->kind, c->images.items[which]);
	c->images.item_blocks[which] = walk->last[which] = block;
	page = IvfPageItems(c->images.items[which]);
	if (page->list != walk->list || page->generation != walk->generation || page->number != number)
		QvReportCorruption(c->index, block, "Page %u of the %s of list %u says that it is page %u of list %u.",
						   number, items->what, walk->list, page->number, page->list);
}

/* Verifies that pages of records and sketches are named for the slots in use, and no others. */
static void
check_item_links(IvfChecker *c, const ListWalk *walk, IvfListPage head, IvfItemKind which)
{
	const IvfLayout *layout = c->layout;
	const IvfItems *items = &layout->items[which];
	const BlockNumber *links = head->item_pages + items->first_link;
	uint32		wanted = 0;

	if (head->count > 0)
		wanted = IvfItemLink(layout, items, walk->number, head->count - 1) + 1;
	else if (walk->number > 0 && IvfItemPlace(layout, items, walk->number, 0) != 0)
		wanted = 1;
	if (wanted > items->max_pages)
		QvReportCorruption(c->index, walk->block, "%u rows have more pages of %s than the page names.",
						   head->count, items->what);
	for (uint32 i = 0; i < items->max_pages; i++)
		if (BlockNumberIsValid(links[i]) != (i < wanted))
			QvReportCorruption(c->index, walk->block, "Page of %s %u is %s.", items->what, i,
							   i < wanted ? "missing" : "named, but has no rows");
	if (head->count == 0 && wanted > 0 && links[0] != walk->last[which])
		QvReportCorruption(c->index, walk->block,
						   "Page %u of list %u does not share the page of %s before it.",
						   walk->number, walk->list, items->what);
}

/* Verifies the rows of a page; returns how many are live. */
static uint32
check_rows(IvfChecker *c, ListWalk *walk, IvfListPage head)
{
	const IvfLayout *layout = c->layout;
	uint32		live = 0;

	if (layout->batches > 0 &&
		(!isfinite(head->a_scale) || head->a_scale <= 0 || !isfinite(head->b_scale) || head->b_scale <= 0))
		QvReportCorruption(c->index, walk->block, "The scales of the page's factors are not finite and positive.");
	for (int which = 0; which < IVF_ITEM_KINDS; which++)
		if (layout->items[which].per_page > 0)
			check_item_links(c, walk, head, which);
	for (uint32 slot = 0; slot < layout->slots; slot++)
	{
		for (int which = 0; which < IVF_ITEM_KINDS; which++)
		{
			const IvfItems *items = &layout->items[which];

			if (slot < head->count && items->per_page > 0 &&
				(slot == 0 || IvfItemPlace(layout, items, walk->number, slot) == 0))
				load_items(c, walk, head, which, slot);
		}
		live += layout->codec->check_slot(c->handle, &c->images, slot);
	}
	return live;
}

/* Verifies the current page of a list. */
static void
check_list_page(IvfChecker *c, ListWalk *walk)
{
	Page		page = c->images.page;
	IvfListPage head = IvfPageList(page);
	uint32		live;

	if (head->list != walk->list || head->generation != walk->generation || head->number != walk->number)
		QvReportCorruption(c->index, walk->block, "Page %u of list %u says that it is page %u of list %u.",
						   walk->number, walk->list, head->number, head->list);
	/* pages are full but for the last */
	if (head->count > c->layout->slots || IvfDeadSlots(head) > head->count ||
		(head->count < c->layout->slots && BlockNumberIsValid(walk->next)))
		QvReportCorruption(c->index, walk->block, "The page claims %u rows of %u, %u of them dead.",
						   head->count, c->layout->slots, IvfDeadSlots(head));
	/* a full batch is packed */
	if (IvfHasRaw(head) && (!c->layout->raw || head->count % QV_BATCH == 0))
		QvReportCorruption(c->index, walk->block, "The page claims raw codes, where it has none.");
	live = check_rows(c, walk, head);
	if (live != head->count - IvfDeadSlots(head))
		QvReportCorruption(c->index, walk->block, "The page has %u live rows, where it says %u.",
						   live, head->count - IvfDeadSlots(head));
	walk->slots += head->count;
	walk->live += live;
	c->info->dead += IvfDeadSlots(head);
}

/* Copies the entry of a list, without its code.  Returns the entry's page. */
static BlockNumber
read_entry(IvfChecker *c, uint32 list, IvfEntryData *entry)
{
	BlockNumber block = c->directory[list / c->layout->entries_per_page];
	Page		page = read_block(c, block, c->images.page);

	QvPageCheck(c->index, block, page, QV_PAGE_LISTS);
	if (list - IvfPageDirectory(page)->first >= IvfPageDirectory(page)->count)
		QvReportCorruption(c->index, block, "The page of the directory does not have list %u.", list);
	*entry = *IvfPageEntry(c->layout, page, list % c->layout->entries_per_page);
	return block;
}

static void
check_list(IvfChecker *c, uint32 list)
{
	IvfEntryData entry;
	BlockNumber from;
	ListWalk	walk = {.list = list};
	bool		tail_met = false;

	if (c->locks)
		LockPage(c->index, IVF_LIST_LOCK(list), ExclusiveLock);
	from = read_entry(c, list, &entry);
	if (BlockNumberIsValid(entry.head) != BlockNumberIsValid(entry.tail))
		QvReportCorruption(c->index, from, "List %u has only one of its ends.", list);
	walk.generation = entry.generation;
	for (int which = 0; which < IVF_ITEM_KINDS; which++)
		walk.last[which] = c->images.item_blocks[which] = InvalidBlockNumber;
	for (walk.block = entry.head; BlockNumberIsValid(walk.block); walk.block = walk.next)
	{
		(void) read_linked(c, from, walk.block, QV_PAGE_CODES, c->images.page);
		c->images.block = walk.block;
		walk.next = QvPageGetHeader(c->images.page)->next;
		check_list_page(c, &walk);
		tail_met |= walk.block == entry.tail;
		from = walk.block;
		walk.number++;
	}
	if (BlockNumberIsValid(entry.tail) && !tail_met)
		QvReportCorruption(c->index, entry.tail, "The page is not in list %u, whose tail it is to be.", list);
	if (entry.rows > walk.slots)
		QvReportCorruption(c->index, from, "List %u has %u rows in the directory, but room for " UINT64_FORMAT " only.",
						   list, entry.rows, walk.slots);
	c->rows[list] = walk.live;
	if (c->locks)
		UnlockPage(c->index, IVF_LIST_LOCK(list), ExclusiveLock);
}

/* ---- pages that nothing leads to ---- */

/* Marks the pages of a list once more, since it may have grown. */
static void
mark_list(IvfChecker *c, uint32 list)
{
	IvfEntryData entry;
	BlockNumber block;

	LockPage(c->index, IVF_LIST_LOCK(list), ExclusiveLock);
	(void) read_entry(c, list, &entry);
	block = entry.head;
	for (uint32 number = 0; BlockNumberIsValid(block); number++)
	{
		Page		page = read_block(c, block, c->images.page);
		IvfListPage head = IvfPageList(page);

		QvPageCheck(c->index, block, page, QV_PAGE_CODES);
		if (head->list != list || head->generation != entry.generation || head->number != number)
			QvReportCorruption(c->index, block, "Page %u of list %u says that it is page %u of list %u.",
							   number, list, head->number, head->list);
		if (block < c->nblocks)
			BitmapSet(c->used, block);
		for (uint32 i = 0; i < c->layout->links; i++)
			if (head->item_pages[i] < c->nblocks)
				BitmapSet(c->used, head->item_pages[i]);
		block = QvPageGetHeader(page)->next;
	}
	UnlockPage(c->index, IVF_LIST_LOCK(list), ExclusiveLock);
}

/* Returns whether a page of a list is of the list's current generation. */
static bool
is_current(IvfChecker *c, Page page)
{
	const IvfLists *lists = c->handle->lists;
	IvfListPage head = IvfPageList(page);

	return head->list < lists->count && head->generation == lists->refs[head->list].generation;
}

/* Verifies that every block that nothing leads to is free, or was left by a crash. */
static void
check_others(IvfChecker *c)
{
	bool		any = false;
	uint64		row_pages = 0;

	for (BlockNumber block = 1; block < c->nblocks; block++)
	{
		Page		page;

		if (BitmapHas(c->used, block))
			continue;
		page = read_block(c, block, c->images.page);
		if (PageIsNew(page))
			c->info->lost_pages++;
		else if (QvPageIs(page, QV_PAGE_FREE))
			c->info->free_pages++;
		else if (QvPageIsOfRows(page))
			row_pages++;
		else if (!IvfIsListPage(page))
			QvReportCorruption(c->index, block, "Nothing leads to the page, and it is not free.");
		else if (!c->locks || !is_current(c, page))
			c->info->lost_pages++;
		else
		{
			BitmapSet(c->suspect, block);
			BitmapSet(c->again, IvfPageList(page)->list);
			any = true;
		}
	}
	if (row_pages > c->info->rows.pages)
		c->info->lost_pages += row_pages - c->info->rows.pages;
	if (!any)
		return;
	for (uint32 list = 0; list < c->meta->lists; list++)
		if (BitmapHas(c->again, list))
			mark_list(c, list);
	for (BlockNumber block = 1; block < c->nblocks; block++)
		if (BitmapHas(c->suspect, block) && !BitmapHas(c->used, block))
			c->info->lost_pages++;
}

/* ---- counting ---- */

/* Counts rows and pages by the headers of all pages. */
static void
survey(IvfChecker *c)
{
	for (BlockNumber block = 1; block < c->nblocks; block++)
	{
		Page		page = read_block(c, block, c->images.page);
		IvfListPage head = IvfPageList(page);

		if (PageIsNew(page))
			c->info->lost_pages++;
		else if (QvPageIs(page, QV_PAGE_FREE))
			c->info->free_pages++;
		else if (IvfIsListPage(page))
		{
			if (!is_current(c, page))
				c->info->lost_pages++;
			else if (QvPageIs(page, QV_PAGE_CODES))
			{
				if (head->count > c->layout->slots || IvfDeadSlots(head) > head->count)
					QvReportCorruption(c->index, block, "The page claims %u rows of %u, %u of them dead.",
									   head->count, c->layout->slots, IvfDeadSlots(head));
				c->rows[head->list] += head->count - IvfDeadSlots(head);
				c->info->dead += IvfDeadSlots(head);
			}
		}
		else if (!QvPageIs(page, QV_PAGE_FLOATS) && !QvPageIs(page, QV_PAGE_LISTS) && !QvPageIsOfRows(page))
			QvReportCorruption(c->index, block, "The page is of no kind that an index of posting lists has.");
	}
}

/* Sums up the rows of all lists, and sorts the lists' sizes. */
static void
summarize(IvfChecker *c)
{
	const IvfMetaData *meta = c->meta;
	IvfInfo    *info = c->info;
	double		sum = 0,
				squares = 0;

	for (uint32 i = 0; i < meta->lists; i++)
	{
		sum += c->rows[i];
		squares += (double) c->rows[i] * c->rows[i];
	}
	qsort(c->rows, meta->lists, sizeof(uint32), CompareUint32);
	info->tuples = sum;
	info->dims = meta->dims;
	info->bits = meta->bits;
	info->scan_bits = meta->scan_bits;
	info->lists = meta->lists;
	info->smallest = c->rows[0];
	info->median = c->rows[meta->lists / 2];
	info->largest = c->rows[meta->lists - 1];
	info->balance = sum > 0 ? squares / sum / sum * meta->lists : 1;
	info->probes = Max(1, Min(meta->lists, ceil(meta->lists * IvfProbesFor(meta, QV_DEFAULT_RECALL))));
}

void
IvfCheck(Relation index, const QvOpclassInfo *opclass, bool verify, IvfInfo *info)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver check",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	IvfChecker	c = {0};
	Size		bytes;

	c.index = index;
	c.locks = verify && !RecoveryInProgress();
	if (c.locks)
		LockPage(index, IVF_MOVE_LOCK, ExclusiveLock);
	memset(info, 0, sizeof(*info));
	c.info = info;
	c.handle = IvfOpen(index, opclass);
	c.meta = &c.handle->meta;
	c.layout = &c.handle->layout;
	c.strategy = GetAccessStrategy(BAS_BULKREAD);
	c.nblocks = RelationGetNumberOfBlocks(index);
	bytes = c.nblocks / 8 + 1;
	c.used = MemoryContextAllocExtended(context, bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	c.suspect = MemoryContextAllocExtended(context, bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	c.again = palloc0(c.meta->lists / 8 + 1);
	c.directory = palloc((c.meta->lists / c.layout->entries_per_page + 1) * sizeof(BlockNumber));
	c.rows = palloc0(c.meta->lists * sizeof(uint32));
	c.images.page = palloc(BLCKSZ);
	for (int which = 0; which < IVF_ITEM_KINDS; which++)
		c.images.items[which] = palloc(BLCKSZ);
	if (verify)
	{
		check_meta(&c);
		check_mean(&c);
		check_directory(&c);
		for (uint32 list = 0; list < c.meta->lists; list++)
			check_list(&c, list);
		if (QvRowsExist(&c.handle->rows))
			QvRowsCheck(&c.handle->rows, IvfVisitRows, c.handle, &info->rows);
		check_others(&c);
	}
	else
		survey(&c);
	if (c.locks)
		UnlockPage(index, IVF_MOVE_LOCK, ExclusiveLock);
	summarize(&c);
	FreeAccessStrategy(c.strategy);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
