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
	GraphTidMap *tid_map;		/* or NULL */
	Size		too_large;		/* for so many bytes; 0: not tried */
	double		spent;			/* since there was none */
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

/* Lower bits of codes. */
static void
free_fine_codes(QvRelCacheEntry *entry)
{
	GraphTidMap *map = ((GraphRelCache *) entry)->tid_map;

	if (map)
		QvBitCodesFreeFine(&map->rows.codes);
}

/* Makes a cache entry for the index of a handle.  The handle uses it from now on. */
static GraphRelCache *
make_entry(GraphHandle *handle)
{
	const GraphMetaData *meta = &handle->meta;
	GraphRelCache *entry = (GraphRelCache *) QvRelCacheNew(sizeof(GraphRelCache));
	MemoryContext old = MemoryContextSwitchTo(entry->base.context);

	entry->base.do_without = free_fine_codes;
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

/* ---- the map of heap TIDs ---- */

GraphTidMap *
GraphKeptTidMap(const GraphHandle *handle)
{
	return handle->entry->tid_map;
}

void
GraphKeepTidMap(GraphHandle *handle, GraphTidMap *map)
{
	GraphTidMap *old = handle->entry->tid_map;

	if (map)
		QvRelCacheKeepPart(&map->part, &handle->entry->base);
	handle->entry->tid_map = map;
	handle->entry->spent = 0;
	if (old)
		QvRelCacheRetirePart(&old->part);
}

static bool
is_too_large(const GraphRelCache *entry)
{
	return entry->too_large > 0 && QvTidMapMemory() <= entry->too_large;
}

bool
GraphTidMapIsTooLarge(const GraphHandle *handle)
{
	return is_too_large(handle->entry);
}

void
GraphNoteTooLarge(GraphHandle *handle)
{
	handle->entry->too_large = Max(1, QvTidMapMemory());
}

const GraphTidMap *
GraphFindTidMap(Relation index, const GraphMetaData *meta, double *spent)
{
	GraphRelCache *entry = (GraphRelCache *) QvRelCacheFind(index, meta->build_id);

	*spent = entry && !is_too_large(entry) ? entry->spent : 0;
	return entry ? entry->tid_map : NULL;
}

void
GraphNoteSpent(GraphHandle *handle, double cost)
{
	handle->entry->spent += cost;
}

void
GraphForgetSpent(GraphHandle *handle)
{
	handle->entry->spent = 0;
}
