/*
 * cache.c
 *		What a backend caches of an index of posting lists; see cache.h.
 *
 * If the metapage has another version of the directory, the pages that changed are read
 * again.  While other handles use the old directory, it is left to them until the last
 * handle is released, and a new directory is made.
 */
#include "postgres.h"

#include "ivf/page/cache.h"
#include "ivf/page/centroid_codes.h"
#include "ivf/page/meta.h"
#include "miscadmin.h"
#include "space/grow.h"

/* Copies an entry of the directory to place i. */
static void
take_entry(const IvfHandle *handle, IvfLists *lists, uint32 i, BlockNumber block,
		   IvfEntry entry)
{
	const IvfLayout *layout = &handle->layout;

	if (!layout->codec->take_centroid(layout, &handle->space.opclass, entry, &lists->centroids, i))
		QvReportCorruption(handle->index, block, "The value of list %u is damaged.", i);
	if (entry->parent >= Max(1, handle->meta.tops))
		QvReportCorruption(handle->index, block, "List %u is in group %u of %u.", i,
						   entry->parent, handle->meta.tops);
	lists->refs[i].head = entry->head;
	lists->refs[i].tail = entry->tail;
	lists->refs[i].directory = block;
	lists->refs[i].generation = entry->generation;
	lists->refs[i].parent = entry->parent;
	lists->refs[i].rows = entry->rows;
	lists->refs[i].refused = entry->refused;
}

/* Makes room for count lists.  A directory that has grown gets room for more to come. */
static void
make_room(IvfLists *lists, uint32 count)
{
	MemoryContext context = lists->part.context;
	uint32		room;

	if (count <= lists->allocated)
		return;
	/* most directories do not grow while a session has them */
	room = lists->allocated == 0 ? count : Min(count + count / 4 + 16, IVF_MAX_LISTS);
	lists->centroids.codes = QvResize(context, lists->centroids.codes, room * lists->centroids.stride);
	lists->centroids.scale = QvResize(context, lists->centroids.scale, room * sizeof(float));
	lists->centroids.norm2 = QvResize(context, lists->centroids.norm2, room * sizeof(float));
	lists->refs = QvResize(context, lists->refs, room * sizeof(IvfListRef));
	lists->allocated = room;
}

/*
 * Reads the pages of the directory that have changed since *lists was read.  The handle's
 * metapage says which version and how many lists there are.
 */
static void
read_lists(IvfHandle *handle, IvfLists *lists)
{
	Relation	index = handle->index;
	const IvfMetaData *meta = &handle->meta;
	const IvfLayout *layout = &handle->layout;
	BlockNumber block = meta->list_head;
	uint32		known = lists->count;
	uint32		version = lists->version;
	uint32		done = 0;

	lists->broken = true;
	lists->version = meta->version_lists;
	lists->centroids.stride = Max(layout->pdim, MAXALIGN(layout->value_size));
	make_room(lists, meta->lists);
	lists->count = meta->lists;
	while (done < lists->count)
	{
		Buffer		buf;
		IvfDirectory directory;
		uint32		n;

		CHECK_FOR_INTERRUPTS();
		if (!BlockNumberIsValid(block))
			QvReportCorruption(index, QV_META_BLOCK, "The directory ends after %u of %u lists.",
							   done, lists->count);
		buf = QvReadPage(index, handle->hints, block, QV_PAGE_LISTS, BUFFER_LOCK_SHARE);
		directory = IvfPageDirectory(BufferGetPage(buf));
		if (directory->first != done || directory->count == 0 ||
			directory->count > layout->entries_per_page)
			QvReportCorruption(index, block, "The page of the directory has %u lists from %u on.",
							   directory->count, directory->first);
		/* lists that were appended since the metapage was read do not count */
		n = Min(directory->count, lists->count - done);
		if (done + n > known || (int32) (directory->version - version) > 0)
			for (uint32 i = 0; i < n; i++)
			{
				IvfEntry	entry = IvfPageEntry(layout, BufferGetPage(buf), i);
				bool		moved = done + i >= known ||
					lists->refs[done + i].generation != entry->generation;

				take_entry(handle, lists, done + i, block, entry);
				/* the centroid changes only when the list moves */
				if (moved)
					IvfUpdateCentroidCode(handle, lists, done + i);
			}
		done += n;
		block = QvPageGetHeader(BufferGetPage(buf))->next;
		UnlockReleaseBuffer(buf);
	}
	lists->filled = 0;
	for (uint32 i = 0; i < lists->count; i++)
		lists->filled += BlockNumberIsValid(lists->refs[i].head);
}

static void
read_meta(IvfHandle *handle)
{
	const QvOpclassInfo *opclass = &handle->space.opclass;
	bool		coded = opclass->type->dense_float;

	IvfReadMeta(handle->index, &handle->meta, &handle->layout);
	if (handle->meta.metric != opclass->metric ||
		handle->meta.form != (coded ? QV_FORM_CODED : QV_FORM_PLAIN) ||
		(coded && !QvSpaceKindFits(handle->meta.space, opclass)))
		QvReportCorruption(handle->index, QV_META_BLOCK, "The metapage is for another operator class.");
}

/* Brings *lists up to date with the index. */
static void
update_lists(IvfHandle *handle, IvfLists *lists)
{
	do
	{
		read_lists(handle, lists);

		/*
		 * A list may have been split meanwhile.  Its entry may then have been
		 * read as its first part, before the other parts were counted.  Other
		 * changes are found when the index is opened next.
		 */
		read_meta(handle);
	} while (handle->meta.lists != lists->count);
	IvfFinishCentroidCodes(handle, lists);
	lists->broken = false;
}

/*
 * Brings the directory of a cache entry up to the version of the handle's metapage.  The
 * handle itself may use that directory already.
 */
static void
renew_lists(IvfHandle *handle, QvRelCacheEntry *entry)
{
	IvfLists   *lists = (IvfLists *) entry->part;
	bool		usable = lists && !lists->broken;

	if (usable && lists->version == handle->meta.version_lists && lists->count == handle->meta.lists)
		return;
	/* in place, unless others use it: the entry does, and the handle may */
	if (usable && lists->part.pins == (handle->lists == lists ? 2 : 1))
	{
		update_lists(handle, lists);
		return;
	}
	lists = QvRelCacheNewPart(sizeof(IvfLists));
	update_lists(handle, lists);
	QvRelCacheSetPart(entry, &lists->part);
}

IvfHandle *
IvfOpen(Relation index, const QvOpclassInfo *opclass)
{
	IvfHandle  *handle = palloc0(sizeof(IvfHandle));
	const IvfMetaData *meta = &handle->meta;
	QvRelCacheEntry *entry;

	handle->index = index;
	handle->space.opclass = *opclass;
	read_meta(handle);
	entry = QvRelCacheOpen(index, opclass, meta->build_id, meta->dims, meta->pdim, meta->seed,
						   meta->space, meta->level, meta->mean_block);
	handle->hints = &entry->hints;
	handle->space = entry->space;
	renew_lists(handle, entry);
	QvRowsOpen(&handle->rows, index, handle->hints, &handle->space, &meta->rows,
			   offsetof(IvfMetaData, rows));
	handle->lists = QvRelCachePin(&handle->cached, entry);
	return handle;
}

bool
IvfRefresh(IvfHandle *handle)
{
	uint32		version = handle->lists->version;

	read_meta(handle);
	renew_lists(handle, handle->cached.entry);
	handle->lists = QvRelCachePinAgain(&handle->cached);
	return handle->lists->version != version;
}
