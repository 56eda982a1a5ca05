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
#include "space/relcache.h"
#include "utils/memutils.h"

/* What is kept of one index. */
typedef struct GraphRelCache
{
	QvRelCacheEntry base;
	GraphEntryPoints *entry_points;
} GraphRelCache;

static const QvMetaFormat graph_meta_format = {
	.what = "a graph index",
	.magic = GRAPH_META_MAGIC,
	.min_version = GRAPH_META_VERSION,
	.max_version = GRAPH_META_VERSION,
	.pgvector_magic = PGVECTOR_HNSW_MAGIC
};

GraphMetaData *
GraphPageMeta(Relation index, Page page)
{
	return QvMetaGet(index, page, &graph_meta_format);
}

void
GraphReadMeta(Relation index, GraphMetaData *meta)
{
	QvMetaRead(index, &graph_meta_format, meta, sizeof(*meta));
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
		QvReportCorruption(index, QV_META_BLOCK, "The table of entry points cannot have %u entries.",
						   meta->entry_count);
	entry_points->batches = MemoryContextAllocExtended(CurrentMemoryContext,
												Max(1, entry_points->nbatches) * entry_points->batch_size,
												MCXT_ALLOC_HUGE);
	for (uint32 i = 0; i < entry_points->nbatches;)
	{
		Buffer		buf;
		Page		page;

		if (!BlockNumberIsValid(block) || ++pages > limit)
			QvReportCorruption(index, QV_META_BLOCK, "The chain of entry point pages is broken.");
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

/* The entry points of an index, to live in its cache entry. */
static GraphEntryPoints *
load_entry_points(GraphHandle *handle, GraphRelCache *entry)
{
	GraphEntryPoints *entry_points = QvRelCacheNewPart(sizeof(GraphEntryPoints));
	MemoryContext old = MemoryContextSwitchTo(entry_points->part.context);

	read_entry_points(handle, entry_points);
	MemoryContextSwitchTo(old);
	QvRelCacheKeepPart(&entry_points->part, &entry->base);
	return entry_points;
}

static void
release_handle(void *arg)
{
	GraphHandle *handle = arg;

	QvRelCacheUnpinPart(&handle->entry_points->part);
	QvRelCacheUnpin(&handle->entry->base);
}

/* Start an entry for the index of a handle, and let the handle use it. */
static GraphRelCache *
make_entry(GraphHandle *handle)
{
	const GraphMetaData *meta = &handle->meta;
	GraphRelCache *entry = (GraphRelCache *) QvRelCacheNew(sizeof(GraphRelCache));
	MemoryContext old = MemoryContextSwitchTo(entry->base.context);

	handle->hints = &entry->base.hints;
	QvSpaceInit(&entry->base.space, &handle->space.opclass, meta->dims, meta->pdim);
	if (meta->form == QV_FORM_CODED)
		QvSpaceRead(&entry->base.space, meta->seed, handle->index, handle->hints,
					meta->mean_block);
	handle->space = entry->base.space;
	MemoryContextSwitchTo(old);
	entry->entry_points = load_entry_points(handle, entry);
	QvRelCacheAdd(&entry->base, handle->index, meta->build_id);
	return entry;
}

GraphHandle *
GraphOpen(Relation index, const QvOpclassInfo *opclass)
{
	GraphHandle *handle = palloc0(sizeof(GraphHandle));
	GraphRelCache *entry;

	handle->index = index;
	handle->space.opclass = *opclass;
	GraphReadMeta(index, &handle->meta);
	if (!GraphLayoutFromMeta(&handle->layout, &handle->meta))
		QvReportCorruption(index, QV_META_BLOCK, "The metapage's sizes do not fit together.");
	if (handle->meta.metric != opclass->metric ||
		handle->meta.form != GraphChooseForm(opclass, handle->meta.dims))
		QvReportCorruption(index, QV_META_BLOCK, "The metapage is for another operator class.");
	handle->ops = GraphFormOf(&handle->meta);
	entry = (GraphRelCache *) QvRelCacheFind(index, handle->meta.build_id);
	if (entry == NULL)
		entry = make_entry(handle);
	handle->hints = &entry->base.hints;
	handle->space = entry->base.space;
	if (entry->entry_points->version != handle->meta.entry_version ||
		entry->entry_points->count != handle->meta.entry_count)
	{
		GraphEntryPoints *old = entry->entry_points;

		entry->entry_points = load_entry_points(handle, entry);
		QvRelCacheRetirePart(&old->part);
	}
	handle->entry = entry;
	handle->entry_points = entry->entry_points;
	QvRelCachePin(&entry->base);
	QvRelCachePinPart(&entry->entry_points->part);
	handle->release.func = release_handle;
	handle->release.arg = handle;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &handle->release);
	return handle;
}
