/*
 * check.c
 *		Verifying an index of posting lists: every invariant that
 *		src/ivf/README.md states.
 *
 * IVF_MOVE_LOCK keeps lists where they are, and a list's own lock keeps rows
 * from being added while that list is read.  The others may grow meanwhile:
 * a page of a list's generation that was not met is looked for once more.
 * Lists are followed page by page, so memory is a few bits for each block.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "access/xlog.h"
#include "containers/bitmap.h"
#include "containers/compare.h"
#include "ivf/calibrate.h"
#include "ivf/ivf.h"
#include "ivf/pages.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

/* The recall that probes are reported for: the default of quiver.recall. */
#define TOLD_RECALL 0.95

/* |centroid|^2 may have been summed by another kernel. */
#define NORM_TOLERANCE 1e-4f

typedef struct IvfChecker
{
	Relation	index;
	IvfHandle  *handle;
	const IvfMetaData *meta;
	const IvfLayout *layout;
	BufferAccessStrategy strategy;
	BlockNumber nblocks;		/* when it began */
	bool		locks;			/* not on a standby */
	uint8	   *used;			/* bitmap by block: something leads to it */
	uint8	   *suspect;		/* likewise: of a list's generation, not met */
	uint8	   *again;			/* bitmap by list: may have such pages */
	BlockNumber *directory;		/* its pages */
	uint32	   *rows;			/* live, by list */
	char	   *image;			/* page of the directory, or of a list */
	char	   *items[IVF_ITEM_KINDS];	/* pages of records and sketches read last */
	BlockNumber item_blocks[IVF_ITEM_KINDS];
	IvfInfo    *info;
} IvfChecker;

/* Copy a page. */
static Page
read_block(IvfChecker *c, BlockNumber block, char *image)
{
	Buffer		buf;

	CHECK_FOR_INTERRUPTS();
	buf = QvReadBuffer(c->index, block, c->strategy);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	memcpy(image, BufferGetPage(buf), BLCKSZ);
	UnlockReleaseBuffer(buf);
	return (Page) image;
}

/* Copy a page that a link leads to: of that kind, and met for the first time. */
static Page
read_linked(IvfChecker *c, BlockNumber from, BlockNumber block, QvPageKind kind, char *image)
{
	Page		page;

	if (!BlockNumberIsValid(block))
		QvReportCorruption(c->index, from, "A page that must be there is not linked.");
	page = read_block(c, block, image);
	QvPageCheck(c->index, block, page, kind);
	/* blocks from nblocks on have been added since */
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
	float		before = 0;

	BitmapSet(c->used, QV_META_BLOCK);
	for (int i = 0; i < IVF_TARGETS; i++)
	{
		if (!(meta->probes[i] >= before && meta->probes[i] <= 1))
			QvReportCorruption(c->index, QV_META_BLOCK, "The probes measured are not shares of the lists.");
		before = meta->probes[i];
	}
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
		Page		page = read_linked(c, QV_META_BLOCK, block, QV_PAGE_FLOATS, c->image);
		const float *mean = (const float *) QvPageGetData(page);

		for (uint32 i = 0; i < Min(per_page, c->layout->pdim - done); i++)
			if (!isfinite(mean[i]))
				QvReportCorruption(c->index, block, "Coordinate %u of the mean is not finite.", done + i);
	}
}

/* The centroid of a list; unpacked and decoded have room for it. */
static void
check_centroid(IvfChecker *c, BlockNumber block, uint32 list, IvfEntry entry,
			   uint8 *unpacked, float *decoded)
{
	const IvfLayout *layout = c->layout;
	const uint8 *code = IvfEntryCode(entry);
	float		norm2;

	if (layout->form == QV_FORM_PLAIN)
	{
		if (!c->handle->space.opclass.type->well_formed(code, layout->value_size, layout->dims))
			QvReportCorruption(c->index, block, "The value of list %u is damaged.", list);
		return;
	}
	if (!isfinite(entry->scale) || entry->scale < 0 || !isfinite(entry->norm2) || entry->norm2 < 0)
		QvReportCorruption(c->index, block, "List %u has factors that are not finite or negative.", list);
	if (layout->centroid_bits < 8)
	{
		qv_kernels.unpack_bits(code, layout->centroid_bits, unpacked, layout->pdim);
		code = unpacked;
	}
	qv_kernels.decode_u8(code, entry->scale, QvCodeOffset(layout->centroid_bits), decoded, layout->pdim);
	norm2 = qv_kernels.norm2_f32(decoded, layout->pdim);
	if (!(fabsf(norm2 - entry->norm2) <= NORM_TOLERANCE * norm2 + FLT_MIN))
		QvReportCorruption(c->index, block, "The centroid of list %u is not as long as the list says.", list);
}

/* The directory's pages form one chain with all lists in order. */
static void
check_directory(IvfChecker *c)
{
	const IvfMetaData *meta = c->meta;
	const IvfLayout *layout = c->layout;
	uint8	   *unpacked = palloc(Max(1, layout->pdim));
	float	   *decoded = palloc(Max(1, layout->pdim) * sizeof(float));
	BlockNumber block = meta->list_head,
				from = QV_META_BLOCK;
	uint32		npages = 0;

	for (uint32 done = 0; done < meta->lists;)
	{
		Page		page = read_linked(c, from, block, QV_PAGE_LISTS, c->image);
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

			if (entry->parent >= Max(1, meta->tops))
				QvReportCorruption(c->index, block, "List %u is in group %u of %u.",
								   done + i, entry->parent, meta->tops);
			check_centroid(c, block, done + i, entry, unpacked, decoded);
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
	pfree(unpacked);
	pfree(decoded);
}

/* ---- a list ---- */

/* Where a walk along a list is. */
typedef struct ListWalk
{
	uint32		list;
	uint32		generation;
	BlockNumber block;			/* being looked at */
	BlockNumber next;
	uint32		number;			/* of the block in the list */
	BlockNumber last[IVF_ITEM_KINDS];	/* pages of records and sketches of the slots so far */
	uint64		slots;			/* used, dead ones too */
	uint32		live;
} ListWalk;

static bool
tid_possible(ItemPointer tid)
{
	return BlockNumberIsValid(ItemPointerGetBlockNumberNoCheck(tid)) &&
		OffsetNumberIsValid(ItemPointerGetOffsetNumberNoCheck(tid));
}

static void *
item_of_slot(const IvfChecker *c, const ListWalk *walk, IvfItemKind which, uint32 slot)
{
	const IvfItems *items = &c->layout->items[which];

	return IvfPageItem(items, (Page) c->items[which],
					   IvfItemPlace(c->layout, items, walk->number, slot));
}

/* The record of a slot that is in use; returns whether it is live. */
static bool
check_record(IvfChecker *c, const ListWalk *walk, uint32 slot, bool live)
{
	BlockNumber block = c->item_blocks[IVF_RECORDS];
	IvfRecord	record = item_of_slot(c, walk, IVF_RECORDS, slot);

	if (ItemPointerIsValid(&record->tid) != live)
		QvReportCorruption(c->index, walk->block, "Row %u is %s, but its record is %s.", slot,
						   live ? "live" : "dead", live ? "dead" : "live");
	if (!live)
		return false;
	if (!tid_possible(&record->tid))
		QvReportCorruption(c->index, block, "The record of row %u of block %u holds an impossible heap TID.",
						   slot, walk->block);
	if (!isfinite(record->scale) || record->scale < 0 || !isfinite(record->add) ||
		!isfinite(record->error) || record->error < 0)
		QvReportCorruption(c->index, block,
						   "The record of row %u of block %u has factors that are not finite or negative.",
						   slot, walk->block);
	return true;
}

/* The sketch of a live slot, whose record is sound. */
static void
check_sketch(IvfChecker *c, const ListWalk *walk, uint32 slot)
{
	BlockNumber block = c->item_blocks[IVF_SKETCHES];
	IvfRecord	record = item_of_slot(c, walk, IVF_RECORDS, slot);
	IvfSketchData sketch;

	memcpy(&sketch, item_of_slot(c, walk, IVF_SKETCHES, slot), sizeof(sketch));
	if (!ItemPointerEquals(&sketch.tid, &record->tid))
		QvReportCorruption(c->index, block,
						   "The sketch of row %u of block %u is not of the row that its record is of.",
						   slot, walk->block);
	if (!isfinite(sketch.a) || !isfinite(sketch.b) || !QvFactorIsFinite(sketch.spread) ||
		(sketch.spread & 0x8000) != 0)
		QvReportCorruption(c->index, block,
						   "The sketch of row %u of block %u has factors that are not finite or negative.",
						   slot, walk->block);
}

/* Have the page of records, or of sketches, of a slot in hand. */
static void
load_items(IvfChecker *c, ListWalk *walk, IvfListPage head, IvfItemKind which, uint32 slot)
{
	const IvfItems *items = &c->layout->items[which];
	uint32		number = IvfItemPageNumber(c->layout, items, walk->number, slot);
	BlockNumber block = IvfItemBlock(c->layout, items, head, slot);
	IvfItemPage page;

	/* the first may be the last of the page before */
	if (slot == 0 && IvfItemPlace(c->layout, items, walk->number, 0) != 0)
	{
		if (block != walk->last[which])
			QvReportCorruption(c->index, walk->block,
							   "Page %u of list %u does not share the page of %s before it.",
							   walk->number, walk->list, items->what);
		if (c->item_blocks[which] == block)
			return;
		(void) read_block(c, block, c->items[which]);
	}
	else
		(void) read_linked(c, walk->block, block, items->kind, c->items[which]);
	c->item_blocks[which] = walk->last[which] = block;
	page = IvfPageItems((Page) c->items[which]);
	if (page->list != walk->list || page->generation != walk->generation || page->number != number)
		QvReportCorruption(c->index, block, "Page %u of the %s of list %u says that it is page %u of list %u.",
						   number, items->what, walk->list, page->number, page->list);
}

/* Pages of records and sketches are named for the slots in use, and for no others. */
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

static uint32
check_coded_rows(IvfChecker *c, ListWalk *walk, Page page)
{
	const IvfLayout *layout = c->layout;
	IvfListPage head = IvfPageList(page);
	uint32		live = 0;

	if (!isfinite(head->a_scale) || head->a_scale <= 0 || !isfinite(head->b_scale) || head->b_scale <= 0)
		QvReportCorruption(c->index, walk->block, "The scales of the page's factors are not finite and positive.");
	for (int which = 0; which < IVF_ITEM_KINDS; which++)
		if (layout->items[which].per_page > 0)
			check_item_links(c, walk, head, which);
	for (uint32 slot = 0; slot < layout->slots; slot++)
	{
		uint16	   *block = IvfPageBatch(layout, page, slot / QV_BATCH);
		bool		used = IvfBatchA(block)[slot % QV_BATCH] != QV_EMPTY_FACTOR;

		if (slot >= head->count)
		{
			if (used)
				QvReportCorruption(c->index, walk->block, "Row %u has a factor, but the page has %u rows.",
								   slot, head->count);
			continue;
		}
		if (used && (!QvFactorIsFinite(IvfBatchA(block)[slot % QV_BATCH]) ||
					 !QvFactorIsFinite(IvfBatchB(block)[slot % QV_BATCH])))
			QvReportCorruption(c->index, walk->block, "Row %u has a factor that is not finite.", slot);
		for (int which = 0; which < IVF_ITEM_KINDS; which++)
		{
			const IvfItems *items = &layout->items[which];

			if (items->per_page > 0 &&
				(slot == 0 || IvfItemPlace(layout, items, walk->number, slot) == 0))
				load_items(c, walk, head, which, slot);
		}
		if (!check_record(c, walk, slot, used))
			continue;
		live++;
		if (layout->sketch_bytes > 0)
			check_sketch(c, walk, slot);
	}
	return live;
}

static uint32
check_plain_rows(IvfChecker *c, ListWalk *walk, Page page)
{
	const IvfLayout *layout = c->layout;
	uint32		live = 0;

	for (uint32 slot = 0; slot < layout->slots; slot++)
	{
		IvfPlainRow row = IvfPagePlainRow(layout, page, slot);

		if (!ItemPointerIsValid(&row->tid))
			continue;
		if (slot >= IvfPageList(page)->count)
			QvReportCorruption(c->index, walk->block, "Row %u has a heap TID, but the page has %u rows.",
							   slot, IvfPageList(page)->count);
		if (!tid_possible(&row->tid))
			QvReportCorruption(c->index, walk->block, "Row %u holds an impossible heap TID.", slot);
		if (!c->handle->space.opclass.type->well_formed(IvfPlainValue(row), layout->value_size, layout->dims))
			QvReportCorruption(c->index, walk->block, "The value of row %u is damaged.", slot);
		live++;
	}
	return live;
}

/* One page of a list, copied to c->image. */
static void
check_list_page(IvfChecker *c, ListWalk *walk)
{
	Page		page = (Page) c->image;
	IvfListPage head = IvfPageList(page);
	uint32		live;

	if (head->list != walk->list || head->generation != walk->generation || head->number != walk->number)
		QvReportCorruption(c->index, walk->block, "Page %u of list %u says that it is page %u of list %u.",
						   walk->number, walk->list, head->number, head->list);
	/* pages are full but for the last */
	if (head->count > c->layout->slots || head->dead > head->count ||
		(head->count < c->layout->slots && BlockNumberIsValid(walk->next)))
		QvReportCorruption(c->index, walk->block, "The page claims %u rows of %u, %u of them dead.",
						   head->count, c->layout->slots, head->dead);
	live = c->layout->form == QV_FORM_CODED ? check_coded_rows(c, walk, page) : check_plain_rows(c, walk, page);
	if (live != head->count - head->dead)
		QvReportCorruption(c->index, walk->block, "The page has %u live rows, where it says %u.",
						   live, head->count - head->dead);
	walk->slots += head->count;
	walk->live += live;
	c->info->dead += head->dead;
}

/* The entry of a list as it is now; its code is not copied. */
static BlockNumber
read_entry(IvfChecker *c, uint32 list, IvfEntryData *entry)
{
	BlockNumber block = c->directory[list / c->layout->entries_per_page];
	Page		page = read_block(c, block, c->image);

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
		walk.last[which] = c->item_blocks[which] = InvalidBlockNumber;
	for (walk.block = entry.head; BlockNumberIsValid(walk.block); walk.block = walk.next)
	{
		(void) read_linked(c, from, walk.block, QV_PAGE_CODES, c->image);
		walk.next = QvPageGetHeader((Page) c->image)->next;
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

/* Mark the pages of a list once more: it has grown. */
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
		Page		page = read_block(c, block, c->image);
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

/* Is a page of a list of the list as it is now? */
static bool
is_current(IvfChecker *c, Page page)
{
	const IvfLists *lists = c->handle->lists;
	IvfListPage head = IvfPageList(page);

	return head->list < lists->count && head->generation == lists->refs[head->list].generation;
}

/* Every block that nothing leads to is free, or left by a crash. */
static void
check_others(IvfChecker *c)
{
	bool		any = false;

	for (BlockNumber block = 1; block < c->nblocks; block++)
	{
		Page		page;

		if (BitmapHas(c->used, block))
			continue;
		page = read_block(c, block, c->image);
		if (PageIsNew(page))
			c->info->lost_pages++;
		else if (QvPageIs(page, QV_PAGE_FREE))
			c->info->free_pages++;
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

/* Count by the headers of all pages. */
static void
survey(IvfChecker *c)
{
	for (BlockNumber block = 1; block < c->nblocks; block++)
	{
		Page		page = read_block(c, block, c->image);
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
				if (head->count > c->layout->slots || head->dead > head->count)
					QvReportCorruption(c->index, block, "The page claims %u rows of %u, %u of them dead.",
									   head->count, c->layout->slots, head->dead);
				c->rows[head->list] += head->count - head->dead;
				c->info->dead += head->dead;
			}
		}
		else if (!QvPageIs(page, QV_PAGE_FLOATS) && !QvPageIs(page, QV_PAGE_LISTS))
			QvReportCorruption(c->index, block, "The page is of no kind that an index of posting lists has.");
	}
}

/* Sum up the rows of all lists, and sort them. */
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
	info->probes = Max(1, Min(meta->lists, ceil(meta->lists * IvfProbesFor(meta, TOLD_RECALL))));
}

static void
run_checker(Relation index, const QvOpclassInfo *opclass, IvfInfo *info, bool verify)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver check",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	IvfInfo		counts = {0};
	IvfChecker	c = {0};
	Size		bytes;

	c.index = index;
	c.locks = verify && !RecoveryInProgress();
	if (c.locks)
		LockPage(index, IVF_MOVE_LOCK, ExclusiveLock);
	c.info = &counts;
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
	c.image = palloc(BLCKSZ);
	for (int which = 0; which < IVF_ITEM_KINDS; which++)
		c.items[which] = palloc(BLCKSZ);
	if (verify)
	{
		check_meta(&c);
		check_mean(&c);
		check_directory(&c);
		for (uint32 list = 0; list < c.meta->lists; list++)
			check_list(&c, list);
		check_others(&c);
	}
	else
		survey(&c);
	if (c.locks)
		UnlockPage(index, IVF_MOVE_LOCK, ExclusiveLock);
	summarize(&c);
	FreeAccessStrategy(c.strategy);
	if (info)
		*info = counts;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

void
IvfCheck(Relation index, const QvOpclassInfo *opclass, IvfInfo *info)
{
	run_checker(index, opclass, info, true);
}

void
IvfGetInfo(Relation index, const QvOpclassInfo *opclass, IvfInfo *info)
{
	run_checker(index, opclass, info, false);
}
