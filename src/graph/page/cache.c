/*
 * cache.c
 *		Per-backend cache of graph indexes; see cache.h.
 *
 * The relation cache (space/relcache.c) holds the entries.  Entry points are replaced when
 * the metapage says so.  The old ones live until their last handle is released.  They never
 * change, except that the values of a plain graph are read when a search first needs them.
 */
#include "postgres.h"

#include "graph/page/cache.h"
#include "graph/page/entry_points.h"
#include "graph/page/meta.h"
#include "utils/memutils.h"

/* Cache entry of a graph index. */
typedef struct GraphRelCache
{
	QvRelCacheEntry base;
	GraphEntryPoints *entry_points;
} GraphRelCache;

/* Reads the entry points of an index, as a part of its cache entry. */
static GraphEntryPoints *
load_entry_points(GraphHandle *handle, GraphRelCache *entry)
{
	GraphEntryPoints *entry_points = GraphReadEntryPoints(handle);

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

/* Makes a cache entry for the index of a handle.  The handle uses it from now on. */
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
		handle->meta.form != GraphChooseForm(opclass, handle->meta.dims) ||
		(handle->meta.form == QV_FORM_CODED && handle->meta.space != QvSpaceKindOf(opclass)))
		QvReportCorruption(index, QV_META_BLOCK, "The metapage is for another operator class.");
	entry = (GraphRelCache *) QvRelCacheFind(index, handle->meta.build_id);
	if (entry == NULL)
		entry = make_entry(handle);
	handle->hints = &entry->base.hints;
	handle->table_hints = &entry->base.table_hints;
	handle->space = entry->base.space;
	handle->has_rows = QvRowsOpen(&handle->rows, index, handle->hints, &handle->space, &handle->meta.rows,
								  offsetof(GraphMetaData, rows));
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
