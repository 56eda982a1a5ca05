/*
 * cache.c
 *		What a backend keeps of an index of posting lists; see cache.h.
 *
 * When the metapage says that the directory is another, the pages that changed
 * are read again.  While other handles use what was read before, it is left to
 * them, until the last is released, and a new one is made.
 */
#include "postgres.h"

#include "ivf/cache.h"
#include "ivf/route.h"
#include "miscadmin.h"
#include "pages/keep.h"
#include "utils/memutils.h"

typedef struct IvfRelCache
{
	QvRelCacheEntry		kept;
	QvBufferHints hints;
	QvRotation	rotation;
	float	   *mean;
	IvfScanStats	stats;
	IvfLists   *lists;
} IvfRelCache;

IvfMetaData *
IvfPageMeta(Relation index, Page page)
{
	IvfMetaData *meta;

	if (!QvPageIs(page, QV_PAGE_META) &&
		!PageIsNew(page) &&
		*(uint32 *) PageGetContents(page) == PGVECTOR_IVFFLAT_MAGIC)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" was built by pgvector",
						RelationGetRelationName(index)),
				 errdetail("Quiver does not read pgvector's index pages."),
				 errhint("Please REINDEX it.")));
	QvPageCheck(index, IVF_META_BLOCK, page, QV_PAGE_META);
	meta = (IvfMetaData *) QvPageGetData(page);
	if (meta->magic != IVF_META_MAGIC)
		QvReportCorruption(index, IVF_META_BLOCK, "The metapage is not that of an index of posting lists.");
	if (meta->version != IVF_META_VERSION && meta->version != IVF_META_WITHOUT_SKETCHES)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" has format version %u, which this version of Quiver does not read",
						RelationGetRelationName(index), meta->version),
				 errhint("Please REINDEX it.")));
	return meta;
}

void
IvfReadMeta(Relation index, IvfMetaData *meta)
{
	Buffer		buf = QvReadBuffer(index, IVF_META_BLOCK, NULL);

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	*meta = *IvfPageMeta(index, BufferGetPage(buf));
	UnlockReleaseBuffer(buf);
}

/* Copy one entry of the directory to place i. */
static void
take_entry(const IvfHandle *handle, IvfLists *lists, uint32 i, BlockNumber block,
		   IvfEntry entry)
{
	const IvfLayout *layout = &handle->layout;
	uint8	   *code = lists->codes + i * lists->stride;

	if (layout->form == IVF_CODED && layout->centroid_bits < 8)
		qv_kernels.unpack_bits(IvfEntryCode(entry), layout->centroid_bits, code, layout->pdim);
	else
		memcpy(code, IvfEntryCode(entry), layout->centroid_bytes);
	if (layout->form == IVF_PLAIN &&
		!handle->opclass.type->well_formed(code, layout->value_size, layout->dims))
		QvReportCorruption(handle->index, block, "The value of list %u is damaged.", i);
	if (entry->parent >= Max(1, handle->meta.tops))
		QvReportCorruption(handle->index, block, "List %u is in group %u of %u.", i,
						   entry->parent, handle->meta.tops);
	lists->scale[i] = entry->scale;
	lists->norm2[i] = entry->norm2;
	lists->refs[i].head = entry->head;
	lists->refs[i].tail = entry->tail;
	lists->refs[i].directory = block;
	lists->refs[i].generation = entry->generation;
	lists->refs[i].parent = entry->parent;
	lists->refs[i].rows = entry->rows;
	lists->refs[i].refused = entry->refused;
}

/* Have room for so many lists, and some that will be added. */
static void
make_room(IvfLists *lists, uint32 count)
{
	MemoryContext old;
	uint32		room = Min(count + count / 4 + 16, IVF_MAX_LISTS);

	if (count <= lists->allocated)
		return;
	old = MemoryContextSwitchTo(lists->context);
	if (lists->allocated == 0)
	{
		lists->codes = MemoryContextAllocExtended(CurrentMemoryContext, room * lists->stride,
												  MCXT_ALLOC_HUGE);
		lists->scale = palloc(room * sizeof(float));
		lists->norm2 = palloc(room * sizeof(float));
		lists->refs = palloc(room * sizeof(IvfListRef));
	}
	else
	{
		lists->codes = repalloc_huge(lists->codes, room * lists->stride);
		lists->scale = repalloc(lists->scale, room * sizeof(float));
		lists->norm2 = repalloc(lists->norm2, room * sizeof(float));
		lists->refs = repalloc(lists->refs, room * sizeof(IvfListRef));
	}
	lists->allocated = room;
	MemoryContextSwitchTo(old);
}

/*
 * Read the pages of the directory that are younger than *lists, as it is by the
 * handle's metapage.
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
	lists->stride = layout->form == IVF_CODED ? layout->pdim : MAXALIGN(layout->value_size);
	make_room(lists, meta->lists);
	lists->count = meta->lists;
	while (done < lists->count)
	{
		Buffer		buf;
		IvfDirectory directory;
		uint32		n;

		CHECK_FOR_INTERRUPTS();
		if (!BlockNumberIsValid(block))
			QvReportCorruption(index, IVF_META_BLOCK, "The directory ends after %u of %u lists.",
							   done, lists->count);
		buf = QvReadPage(index, handle->hints, block, QV_PAGE_LISTS, BUFFER_LOCK_SHARE);
		directory = IvfPageDirectory(BufferGetPage(buf));
		if (directory->first != done || directory->count == 0 ||
			directory->count > layout->entries_per_page)
			QvReportCorruption(index, block, "The page of the directory has %u lists from %u on.",
							   directory->count, directory->first);
		/* one appended since the metapage was read is not counted */
		n = Min(directory->count, lists->count - done);
		if (done + n > known || (int32) (directory->version - version) > 0)
			for (uint32 i = 0; i < n; i++)
			{
				take_entry(handle, lists, done + i, block,
						   IvfPageEntry(layout, BufferGetPage(buf), i));
				if (layout->form == IVF_CODED)
					IvfRouteUpdate(handle, lists, done + i);
			}
		done += n;
		block = QvPageGetHeader(BufferGetPage(buf))->next;
		UnlockReleaseBuffer(buf);
	}
}

static void
read_meta(IvfHandle *handle)
{
	IvfReadMeta(handle->index, &handle->meta);
	if (!IvfLayoutFromMeta(&handle->layout, &handle->meta))
		QvReportCorruption(handle->index, IVF_META_BLOCK, "The metapage's numbers do not fit together.");
	if (handle->meta.metric != handle->opclass.metric ||
		(handle->meta.form == IVF_CODED) != handle->opclass.type->dense_float)
		QvReportCorruption(handle->index, IVF_META_BLOCK, "The metapage is for another operator class.");
}

/* Bring *lists up to the directory of an index as it is now. */
static void
update_lists(IvfHandle *handle, IvfLists *lists)
{
	do
	{
		read_lists(handle, lists);

		/*
		 * A list that was split meanwhile may have been read as its first half,
		 * while the second was not counted yet.
		 */
		read_meta(handle);
	} while (handle->meta.version_lists != lists->version);
	if (handle->layout.form == IVF_CODED)
		IvfRouteFinish(handle, lists);
	lists->broken = false;
}

/* The directory of an index as it is now, to live in parent. */
static IvfLists *
load_lists(IvfHandle *handle, MemoryContext parent)
{
	/* under the caller's context until complete: an error must not leak it */
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver lists",
												  ALLOCSET_SMALL_SIZES);
	IvfLists   *lists = MemoryContextAllocZero(context, sizeof(IvfLists));

	lists->context = context;
	update_lists(handle, lists);
	MemoryContextSetParent(context, parent);
	lists->current = true;
	return lists;
}

static void
release_lists(IvfLists *lists)
{
	if (--lists->users == 0 && !lists->current)
		MemoryContextDelete(lists->context);
}

static void
release_handle(void *arg)
{
	IvfHandle  *handle = arg;

	release_lists(handle->lists);
	QvRelCacheUnpin(&handle->kept->kept);
}

/* Start to keep the index of a handle. */
static IvfRelCache *
make_entry(IvfHandle *handle)
{
	const IvfMetaData *meta = &handle->meta;
	/* under the caller's context until complete */
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver ivf index",
												  ALLOCSET_DEFAULT_SIZES);
	IvfRelCache    *kept = MemoryContextAllocZero(context, sizeof(IvfRelCache));

	kept->kept.context = context;
	kept->hints.context = context;
	handle->hints = &kept->hints;
	if (meta->form == IVF_CODED)
	{
		uint8	   *signs = MemoryContextAlloc(context, QvRotationSignBytes(meta->dims));

		QvRotationInit(&kept->rotation, meta->dims, meta->seed, signs);
		kept->mean = MemoryContextAlloc(context, meta->pdim * sizeof(float));
		QvReadFloats(handle->index, &kept->hints, meta->mean_block, kept->mean, meta->pdim);
		handle->mean = kept->mean;
	}
	kept->lists = load_lists(handle, context);
	QvRelCacheAdd(&kept->kept, handle->index, meta->build_id);
	return kept;
}

/*
 * Let what is kept have the directory of the handle's metapage; the handle
 * itself may use it already.
 */
static void
renew_lists(IvfHandle *handle, IvfRelCache *kept)
{
	IvfLists   *old = kept->lists;

	if (old->version == handle->meta.version_lists && old->count == handle->meta.lists &&
		!old->broken)
		return;
	if (old->users == (handle->lists == old ? 1 : 0) && !old->broken)
	{
		update_lists(handle, old);
		return;
	}
	kept->lists = load_lists(handle, kept->kept.context);
	old->current = false;
	if (old->users == 0)
		MemoryContextDelete(old->context);
}

IvfHandle *
IvfOpen(Relation index, const QvOpclassInfo *opclass)
{
	IvfHandle  *handle = palloc0(sizeof(IvfHandle));
	IvfRelCache    *kept;

	handle->index = index;
	handle->opclass = *opclass;
	read_meta(handle);
	kept = (IvfRelCache *) QvRelCacheFind(index, handle->meta.build_id);
	if (kept == NULL)
		kept = make_entry(handle);
	handle->hints = &kept->hints;
	handle->rotation = kept->rotation;
	handle->mean = kept->mean;
	renew_lists(handle, kept);
	handle->kept = kept;
	handle->stats = &kept->stats;
	handle->lists = kept->lists;
	handle->lists->users++;
	QvRelCachePin(&kept->kept);
	handle->release.func = release_handle;
	handle->release.arg = handle;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &handle->release);
	return handle;
}

bool
IvfRefresh(IvfHandle *handle)
{
	IvfLists   *old = handle->lists;
	uint32		version = old->version;

	read_meta(handle);
	renew_lists(handle, handle->kept);
	if (handle->kept->lists != old)
	{
		handle->lists = handle->kept->lists;
		handle->lists->users++;
		release_lists(old);
	}
	return handle->lists->version != version;
}
