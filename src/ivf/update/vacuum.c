/*
 * vacuum.c
 *		Removing dead rows from posting lists.
 *
 *	1. Entries of dead rows are cleared on row pages.
 *	2. Every list is read, page by page with its records, and dead rows are marked.
 *	3. Pages that nothing leads to become free: those of lists that were moving when
 *	   the server went down, and pages added just before that.
 *	4. Lists with many dead rows are compacted.  That needs space, so it comes when the
 *	   table is rid of its dead rows, and when all pages that may be used again are free.
 *
 * IVF_MOVE_LOCK is held from the first step to the third.  A row that moved from a list
 * not read yet to a list that was read would keep pointing to a row that is gone.
 */
#include "postgres.h"

#include "access/genam.h"
#include "compat.h"
#include "containers/bitmap.h"
#include "ivf/ivf.h"
#include "ivf/page/cache.h"
#include "ivf/page/directory.h"
#include "ivf/page/meta.h"
#include "ivf/page/pages.h"
#include "ivf/page/walk.h"
#include "ivf/update/calibrate.h"
#include "ivf/update/row_pages.h"
#include "ivf/update/move.h"
#include "miscadmin.h"
#include "pages/turnover.h"
#include "pages/write.h"
#include "rows/write.h"
#include "storage/indexfsm.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

/* Policy: a list with more than this share of dead slots is compacted. */
#define COMPACT_ABOVE 0.2

typedef struct IvfVacuum
{
	IvfHandle  *handle;
	IndexBulkDeleteResult *stats;
	IndexBulkDeleteCallback callback;
	void	   *callback_state;
	BufferAccessStrategy strategy;
	BlockNumber nblocks;		/* of the index, when VACUUM began */
	uint8	   *used;			/* bitmap by block: something leads to it */
	double		live;			/* live rows so far */
	double		removed;		/* rows marked dead so far */
	IvfWalk		walk;
	uint8	   *dead;			/* by slot of the current page: it dies now */
} IvfVacuum;

static void
set_used(IvfVacuum *v, BlockNumber block)
{
	if (block < v->nblocks)
		BitmapSet(v->used, block);
}

/*
 * Marks the dead rows among slots first to last of a page, whose records are on one page.
 * Writes one WAL record: both pages.
 */
static void
mark_dead(IvfVacuum *v, Buffer buf, uint32 first, uint32 last)
{
	IvfHandle  *handle = v->handle;
	const IvfLayout *layout = &handle->layout;
	const IvfItems *items = &layout->items[IVF_RECORDS];
	IvfListPage head = IvfPageList(BufferGetPage(buf));
	Buffer		record_buf = InvalidBuffer;
	Page		page,
				records = NULL;
	QvWrite		w;

	if (items->per_page > 0)
	{
		BlockNumber block = IvfItemBlock(layout, items, head, first);
		IvfItemPageData wanted = IvfItemPageWanted(layout, items, head, first);

		record_buf = IvfReadItemPage(handle, IVF_RECORDS, block, &wanted, BUFFER_LOCK_EXCLUSIVE);
		if (!BufferIsValid(record_buf))
			QvReportCorruption(handle->index, block,
							   "The page of records does not belong to list %u.", head->list);
	}
	QvWriteBegin(&w, handle->index, handle->building);
	page = QvWriteRegister(&w, buf);
	if (BufferIsValid(record_buf))
		records = QvWriteRegister(&w, record_buf);
	for (uint32 slot = first; slot <= last; slot++)
		if (v->dead[slot])
		{
			layout->codec->mark_dead(layout, page, slot, records);
			IvfPageList(page)->dead++;
			v->stats->tuples_removed++;
			v->removed++;
		}
	QvWriteCommit(&w);
	if (BufferIsValid(record_buf))
		UnlockReleaseBuffer(record_buf);
	QvInjectionPoint("quiver-ivf-some-dead");
}

/* Notes that something leads to the current page, and to its pages of records and sketches. */
static void
note_used(IvfVacuum *v)
{
	IvfListPage head = IvfPageList(v->walk.images.page);

	set_used(v, v->walk.images.block);
	for (uint32 i = 0; i < v->handle->layout.links; i++)
		if (BlockNumberIsValid(head->item_pages[i]))
			set_used(v, head->item_pages[i]);
}

/* Finds the dead rows of the current page; returns how many are to be marked. */
static uint32
find_dead(IvfVacuum *v)
{
	uint32		count = IvfPageList(v->walk.images.page)->count;
	uint32		ndead = 0;

	for (uint32 slot = 0; slot < count; slot++)
	{
		ItemPointer tid = IvfWalkTid(&v->walk, slot);
		bool		live = ItemPointerIsValid(tid);

		v->dead[slot] = live && v->callback(tid, v->callback_state);
		ndead += v->dead[slot];
		v->live += live && !v->dead[slot];
	}
	return ndead;
}

/*
 * Marks the dead rows of the current page.  They are found in a copy, without the page's
 * lock.  This is safe because rows can only be added meanwhile.
 */
static void
vacuum_page(IvfVacuum *v)
{
	IvfHandle  *handle = v->handle;
	const IvfLayout *layout = &handle->layout;
	const IvfItems *items = &layout->items[IVF_RECORDS];
	BlockNumber block = v->walk.images.block;
	IvfListPage head = IvfPageList(v->walk.images.page);
	Buffer		buf;

	note_used(v);
	if (find_dead(v) == 0)
		return;
	buf = IvfReadListPage(handle, block, head->list, head->generation, BUFFER_LOCK_EXCLUSIVE);
	if (!BufferIsValid(buf))
		QvReportCorruption(handle->index, block, "The page does not belong to list %u.", head->list);
	for (uint32 first = 0, last; first < head->count; first = last + 1)
	{
		bool		any = v->dead[first];

		last = first;
		while (last + 1 < head->count &&
			   (items->per_page == 0 ||
				IvfItemLink(layout, items, head->number, last + 1) ==
				IvfItemLink(layout, items, head->number, first)))
			any |= v->dead[++last];
		if (any)
			mark_dead(v, buf, first, last);
	}
	UnlockReleaseBuffer(buf);
	QvInjectionPoint("quiver-ivf-rows-dead");
}

/* Goes through the pages of a list.  Without a callback, notes only which pages there are. */
static void
vacuum_list(IvfVacuum *v, uint32 list)
{
	IvfHandle  *handle = v->handle;
	BlockNumber head;
	IvfEntry	entry;
	Buffer		buf = IvfReadEntry(handle, list, BUFFER_LOCK_SHARE, &entry);

	/* the list may have got its first page since the directory was read */
	head = entry->head;
	UnlockReleaseBuffer(buf);
	IvfWalkStart(&v->walk, list, head);
	while (IvfWalkNextPage(&v->walk))
	{
		QvVacuumDelayPoint();
		if (v->callback)
			vacuum_page(v);
		else
			note_used(v);
	}
}

/* ---- pages that nothing leads to ---- */

/* Returns whether a page, which is exclusively locked, was left behind by a move or a crash. */
static bool
is_left_behind(IvfVacuum *v, Page page)
{
	const IvfLists *lists = v->handle->lists;
	uint32		list;

	/* inserts fill new pages before unlocking them; nobody else moves rows */
	if (PageIsNew(page))
		return true;
	if (!IvfIsListPage(page))
		return false;
	/* a page of the list's generation may have been added since */
	list = IvfPageList(page)->list;
	return list >= lists->count || IvfPageList(page)->generation != lists->refs[list].generation;
}

/* Frees the pages that nothing leads to, and publishes all free pages. */
static void
free_unused(IvfVacuum *v)
{
	Relation	index = v->handle->index;

	(void) IvfRefresh(v->handle);
	for (BlockNumber block = 1; block < v->nblocks; block++)
	{
		Buffer		buf;
		Page		page;
		bool		left_behind;

		if (BitmapHas(v->used, block))
			continue;
		QvVacuumDelayPoint();
		buf = QvReadAnyPage(index, NULL, block, v->strategy, BUFFER_LOCK_EXCLUSIVE);
		page = BufferGetPage(buf);
		left_behind = is_left_behind(v, page);
		if (left_behind)
			IvfFreePage(v->handle, buf);
		else if (QvPageIs(page, QV_PAGE_FREE))
			RecordFreeIndexPage(index, block);
		if (QvPageIs(BufferGetPage(buf), QV_PAGE_FREE))
			v->stats->pages_free++;
		UnlockReleaseBuffer(buf);
		if (left_behind)
			QvInjectionPoint("quiver-ivf-left-page-freed");
	}
	QvPublishFreePages(index);
}

/* ---- compaction ---- */

/* Counts the slots of a list that are in use, and the dead ones among them. */
static void
count_slots(IvfVacuum *v, uint32 list, uint64 *rows, uint64 *dead)
{
	IvfHandle  *handle = v->handle;
	uint32		number = 0;
	IvfEntry	entry;
	Buffer		buf = IvfReadEntry(handle, list, BUFFER_LOCK_SHARE, &entry);
	BlockNumber block = entry->head;
	uint32		generation = entry->generation;

	UnlockReleaseBuffer(buf);
	*rows = *dead = 0;
	while (BlockNumberIsValid(block))
	{
		IvfListPage head;

		QvVacuumDelayPoint();
		buf = IvfReadListPage(handle, block, list, generation, BUFFER_LOCK_SHARE);
		head = BufferIsValid(buf) ? IvfPageList(BufferGetPage(buf)) : NULL;
		if (head == NULL || head->number != number++)
			QvReportCorruption(handle->index, block, "The page does not belong to list %u.", list);
		*rows += head->count;
		*dead += IvfDeadSlots(head);
		block = QvPageGetHeader(BufferGetPage(buf))->next;
		UnlockReleaseBuffer(buf);
	}
}

/* Compacts the lists that have many dead rows. */
static void
compact_lists(IvfVacuum *v)
{
	uint64		rows,
				dead;

	for (uint32 list = 0; list < v->handle->lists->count; list++)
	{
		count_slots(v, list, &rows, &dead);
		if (dead > COMPACT_ABOVE * rows)
		{
			IvfSetFlags(v->handle, IVF_MOVING, 0);
			QvInjectionPoint("quiver-ivf-move-begun");
			IvfCompactList(v->handle, list);
		}
	}
	IvfSetFlags(v->handle, 0, IVF_MOVING);
	QvInjectionPoint("quiver-ivf-move-ended");
}

/* ---- */

/* Writes the counts into the metapage, as one WAL record. */
static void
write_tuples(IvfVacuum *v)
{
	Buffer		buf = IvfLockMeta(v->handle);
	IvfMetaData *meta;
	QvWrite		w;

	QvWriteBegin(&w, v->handle->index, v->handle->building);
	meta = IvfPageMeta(QvWriteRegister(&w, buf));
	meta->tuples = v->live;
	meta->measured_rows = QvTurnoverRemoved(meta->measured_rows, v->removed);
	/* a VACUUM that was interrupted may have removed all dead rows before */
	meta->vacuums++;
	QvWriteEnd(&w);
	QvInjectionPoint("quiver-ivf-counts-written");
}

/* Counts the rows when none was dead, and writes the counts. */
static void
count_rows(IvfVacuum *v)
{
	uint64		rows,
				dead;

	for (uint32 list = 0; list < v->handle->lists->count; list++)
	{
		count_slots(v, list, &rows, &dead);
		v->live += rows - dead;
	}
	write_tuples(v);
}

/* Takes IVF_MOVE_LOCK and opens the index.  Lists do not move from now on. */
static void
begin_vacuum(IvfVacuum *v, IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
			 const QvOpclassInfo *opclass)
{
	LockPage(info->index, IVF_MOVE_LOCK, ExclusiveLock);
	v->handle = IvfOpen(info->index, opclass);
	v->strategy = info->strategy;
	v->handle->strategy = v->handle->record_strategy = info->strategy;
	v->stats = stats;
	v->nblocks = RelationGetNumberOfBlocks(info->index);
	v->used = MemoryContextAllocExtended(CurrentMemoryContext, v->nblocks / 8 + 1,
										 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	v->dead = palloc(v->handle->layout.slots);
	IvfWalkInit(&v->walk, v->handle);
}

/* Goes through all lists, and frees the pages that none of them leads to. */
static void
vacuum_lists(IvfVacuum *v)
{
	v->stats->pages_free = 0;
	for (uint32 list = 0; list < v->handle->lists->count; list++)
		vacuum_list(v, list);
	free_unused(v);
	IvfSetFlags(v->handle, 0, IVF_MOVING);
	QvInjectionPoint("quiver-ivf-move-ended");
}

void
IvfBulkDelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
			  IndexBulkDeleteCallback callback, void *callback_state,
			  const QvOpclassInfo *opclass)
{
	IvfVacuum	v = {.callback = callback, .callback_state = callback_state};

	begin_vacuum(&v, info, stats, opclass);
	if (QvRowsExist(&v.handle->rows))
		QvRowsClear(&v.handle->rows, callback, callback_state, info->strategy);
	vacuum_lists(&v);
	write_tuples(&v);
	UnlockPage(info->index, IVF_MOVE_LOCK, ExclusiveLock);
	stats->num_index_tuples = v.live;
	stats->estimated_count = false;
}

/* Returns whether row pages should be brought up to date. */
static bool
lacks_rows(const IvfMetaData *meta, const IndexVacuumInfo *info)
{
	return IvfCanHaveRows(meta) && QvRowsWantMerge(&meta->rows, info->num_heap_tuples);
}

/*
 * Does the upkeep after the table's dead rows are gone: frees pages that an interrupted
 * move has left, compacts lists, measures probes if it is time, makes entries that are missing.
 */
static void
keep_up(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, const QvOpclassInfo *opclass)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver upkeep",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	IvfVacuum	v = {0};

	begin_vacuum(&v, info, stats, opclass);
	if (v.handle->meta.flags & IVF_MOVING)
		vacuum_lists(&v);
	if (stats->tuples_removed > 0)
	{
		compact_lists(&v);
		/* entries of rows that have moved are missing */
		v.handle = IvfOpen(info->index, opclass);
	}
	if (IvfWantsMeasuring(&v.handle->meta, stats->num_index_tuples))
	{
		if (stats->estimated_count)
			count_rows(&v);
		IvfMeasureProbes(v.handle, 0, info->num_heap_tuples);
	}
	if (lacks_rows(&v.handle->meta, info))
		QvRowsMerge(&v.handle->rows, false, info->num_heap_tuples, IvfVisitRows, v.handle);
	UnlockPage(info->index, IVF_MOVE_LOCK, ExclusiveLock);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

IndexBulkDeleteResult *
IvfVacuumCleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
				 const QvOpclassInfo *opclass)
{
	IvfMetaData meta;

	if (stats == NULL)
	{
		/* no row was dead: no page was read */
		stats = palloc0(sizeof(IndexBulkDeleteResult));
		stats->estimated_count = true;
	}
	if (IvfPeekMeta(info->index, &meta))
	{
		if (stats->estimated_count)
			stats->num_index_tuples = IvfRowsOf(&meta, info->num_heap_tuples);
		if ((meta.flags & IVF_MOVING) || stats->tuples_removed > 0 ||
			IvfWantsMeasuring(&meta, stats->num_index_tuples) || lacks_rows(&meta, info))
			keep_up(info, stats, opclass);
	}
	else
		/* the next search or insert reports an index that cannot be used */
		ereport(WARNING,
				(errmsg("index \"%s\" is damaged or not Quiver's, and was left alone",
						RelationGetRelationName(info->index)),
				 errhint("Please REINDEX it.")));
	stats->num_pages = RelationGetNumberOfBlocks(info->index);
	return stats;
}
