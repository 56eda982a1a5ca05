/*
 * cache.c
 *		Per-backend cache of graph indexes; see cache.h.
 *
 * Keeping is done by space/relcache.c.  The table of entry points is replaced (never
 * changed) when the metapage says so, and an old one lives until its last
 * handle is released.
 */
#include "postgres.h"

#include "graph/cache.h"
#include "graph/form.h"
#include "pages/keep.h"
#include "utils/memutils.h"

/* What is kept of one index. */
typedef struct GraphRelCache
{
	QvRelCacheEntry		kept;
	QvBufferHints hints;
	QvRotation	rotation;
	float	   *mean;
	float		mean_norm2;
	GraphEntryPoints *entry_points;
} GraphRelCache;

GraphMetaData *
GraphPageMeta(Relation index, Page page)
{
	GraphMetaData *meta;

	if (!QvPageIs(page, QV_PAGE_META) &&
		!PageIsNew(page) &&
		*(uint32 *) PageGetContents(page) == PGVECTOR_HNSW_MAGIC)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" was built by pgvector",
						RelationGetRelationName(index)),
				 errdetail("Quiver does not read pgvector's index pages."),
				 errhint("Please REINDEX it.")));
	QvPageCheck(index, GRAPH_META_BLOCK, page, QV_PAGE_META);
	meta = (GraphMetaData *) QvPageGetData(page);
	if (meta->magic != GRAPH_META_MAGIC)
		QvReportCorruption(index, GRAPH_META_BLOCK, "The metapage is not that of a graph index.");
	if (meta->version != GRAPH_META_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" has format version %u, which this version of Quiver does not read",
						RelationGetRelationName(index), meta->version),
				 errhint("Please REINDEX it.")));
	return meta;
}

void
GraphReadMeta(Relation index, GraphMetaData *meta)
{
	Buffer		buf = QvReadBuffer(index, GRAPH_META_BLOCK, NULL);

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	*meta = *GraphPageMeta(index, BufferGetPage(buf));
	UnlockReleaseBuffer(buf);
}

/* Read the entry points into *entry_points, memory from CurrentMemoryContext. */
static void
read_entry_points(GraphHandle *handle, GraphEntryPoints *entry_points)
{
	Relation	index = handle->index;
	const GraphMetaData *meta = &handle->meta;
	BlockNumber block = meta->entry_head;
	int			per_page = GraphEntryBatchesPerPage(meta->entry_bits);
	BlockNumber pages = 0,
				limit = RelationGetNumberOfBlocks(index);

	entry_points->version = meta->entry_version;
	entry_points->batch_size = GraphEntryBatchSize(meta->entry_bits);
	entry_points->nbatches = (meta->entry_count + QV_BATCH - 1) / QV_BATCH;
	if (meta->entry_count > (uint64) limit * per_page * QV_BATCH)
		QvReportCorruption(index, GRAPH_META_BLOCK, "The table of entry points cannot have %u entries.",
						   meta->entry_count);
	entry_points->batches = MemoryContextAllocExtended(CurrentMemoryContext,
												Max(1, entry_points->nbatches) * entry_points->batch_size,
												MCXT_ALLOC_HUGE);
	for (uint32 i = 0; i < entry_points->nbatches;)
	{
		Buffer		buf;
		Page		page;

		if (!BlockNumberIsValid(block) || ++pages > limit)
			QvReportCorruption(index, GRAPH_META_BLOCK, "The chain of entry point pages is broken.");
		buf = QvReadPage(index, handle->hints, block, QV_PAGE_ENTRIES, BUFFER_LOCK_SHARE);
		page = BufferGetPage(buf);
		for (int j = 0; j < per_page && i < entry_points->nbatches; j++, i++)
		{
			GraphEntryBatch *to = GraphEntryBatchAt(entry_points, i);

			memcpy(to, QvPageGetData(page) + j * entry_points->batch_size, entry_points->batch_size);
			if (to->count > QV_BATCH)
				QvReportCorruption(index, block, "A batch of entry points claims %u entries.", to->count);
		}
		block = QvPageGetHeader(page)->next;
		UnlockReleaseBuffer(buf);
	}

	/*
	 * An entry appended since the metapage was read may be in the last block;
	 * remember what the metapage said, so that it is noticed as new.
	 */
	entry_points->count = meta->entry_count;
	if (handle->ops->read_entries)
		handle->ops->read_entries(handle, entry_points);
}

/* The table of entry points of an index, to live in its cache entry's context. */
static GraphEntryPoints *
load_entry_points(GraphHandle *handle, MemoryContext parent)
{
	/* under the caller's context until complete: an error must not leak it */
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "quiver entry points",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GraphEntryPoints *entry_points = palloc0(sizeof(GraphEntryPoints));

	entry_points->context = context;
	read_entry_points(handle, entry_points);
	MemoryContextSwitchTo(old);
	MemoryContextSetParent(context, parent);
	entry_points->current = true;
	return entry_points;
}

static void
release_handle(void *arg)
{
	GraphHandle *handle = arg;
	GraphEntryPoints *entry_points = handle->entry_points;
	GraphRelCache *entry = handle->entry;

	if (--entry_points->users == 0 && !entry_points->current)
		MemoryContextDelete(entry_points->context);
	QvRelCacheUnpin(&entry->kept);
}

/* Start an entry for the index of a handle, and let the handle use it. */
static GraphRelCache *
make_entry(GraphHandle *handle)
{
	const GraphMetaData *meta = &handle->meta;
	MemoryContext context;
	GraphRelCache *entry;

	/* under the caller's context until complete: an error must not leak it */
	context = AllocSetContextCreate(CurrentMemoryContext, "quiver graph index",
									ALLOCSET_DEFAULT_SIZES);
	entry = MemoryContextAllocZero(context, sizeof(GraphRelCache));
	entry->kept.context = context;
	entry->hints.context = context;
	handle->hints = &entry->hints;
	if (meta->form == GRAPH_CODED)
	{
		uint8	   *signs = MemoryContextAlloc(context, QvRotationSignBytes(meta->dims));

		QvRotationInit(&entry->rotation, meta->dims, meta->seed, signs);
		entry->mean = MemoryContextAlloc(context, meta->pdim * sizeof(float));
		QvReadFloats(handle->index, &entry->hints, meta->mean_block, entry->mean, meta->pdim);
		entry->mean_norm2 = qv_kernels.norm2_f32(entry->mean, meta->pdim);
	}
	entry->entry_points = load_entry_points(handle, context);
	QvRelCacheAdd(&entry->kept, handle->index, meta->build_id);
	return entry;
}

GraphHandle *
GraphOpen(Relation index, const QvOpclassInfo *opclass)
{
	GraphHandle *handle = palloc0(sizeof(GraphHandle));
	GraphRelCache *entry;

	handle->index = index;
	handle->opclass = *opclass;
	GraphReadMeta(index, &handle->meta);
	if (!GraphLayoutFromMeta(&handle->layout, &handle->meta))
		QvReportCorruption(index, GRAPH_META_BLOCK, "The metapage's sizes do not fit together.");
	if (handle->meta.metric != opclass->metric ||
		handle->meta.form != GraphChooseForm(opclass, handle->meta.dims))
		QvReportCorruption(index, GRAPH_META_BLOCK, "The metapage is for another operator class.");
	handle->ops = GraphFormOf(&handle->meta);
	entry = (GraphRelCache *) QvRelCacheFind(index, handle->meta.build_id);
	if (entry == NULL)
		entry = make_entry(handle);
	handle->hints = &entry->hints;
	if (entry->entry_points->version != handle->meta.entry_version ||
		entry->entry_points->count != handle->meta.entry_count)
	{
		GraphEntryPoints *old = entry->entry_points;

		entry->entry_points = load_entry_points(handle, entry->kept.context);
		old->current = false;
		if (old->users == 0)
			MemoryContextDelete(old->context);
	}
	handle->entry = entry;
	handle->rotation = entry->rotation;
	handle->mean = entry->mean;
	handle->mean_norm2 = entry->mean_norm2;
	handle->entry_points = entry->entry_points;
	QvRelCachePin(&entry->kept);
	entry->entry_points->users++;
	handle->release.func = release_handle;
	handle->release.arg = handle;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &handle->release);
	return handle;
}
