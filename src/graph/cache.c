/*
 * cache.c
 *		Per-backend cache of graph indexes; see cache.h.
 *
 * Keeping is done by pages/keep.c.  The entry table is replaced (never
 * changed) when the metapage says so, and an old one lives until its last
 * handle is released.
 */
#include "postgres.h"

#include "graph/cache.h"
#include "graph/form.h"
#include "pages/keep.h"
#include "utils/memutils.h"

/* What is kept of one index. */
typedef struct GraphCacheEntry
{
	QvKept		kept;
	QvBufferHints hints;
	QvRotation	rotation;
	float	   *mean;
	float		mean_norm2;
	GraphRoutes *routes;
} GraphCacheEntry;

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

/* Read the entry table into *routes, memory from CurrentMemoryContext. */
static void
read_routes(GraphHandle *handle, GraphRoutes *routes)
{
	Relation	index = handle->index;
	const GraphMetaData *meta = &handle->meta;
	BlockNumber block = meta->route_head;
	int			per_page = GraphRouteBlocksPerPage(meta->route_bits);
	BlockNumber pages = 0,
				limit = RelationGetNumberOfBlocks(index);

	routes->version = meta->route_version;
	routes->block_size = GraphRouteBlockSize(meta->route_bits);
	routes->nblocks = (meta->route_count + QV_BLOCK - 1) / QV_BLOCK;
	if (meta->route_count > (uint64) limit * per_page * QV_BLOCK)
		QvReportCorruption(index, GRAPH_META_BLOCK, "The entry table cannot have %u entries.",
						   meta->route_count);
	routes->blocks = MemoryContextAllocExtended(CurrentMemoryContext,
												Max(1, routes->nblocks) * routes->block_size,
												MCXT_ALLOC_HUGE);
	for (uint32 i = 0; i < routes->nblocks;)
	{
		Buffer		buf;
		Page		page;

		if (!BlockNumberIsValid(block) || ++pages > limit)
			QvReportCorruption(index, GRAPH_META_BLOCK, "The chain of entry table pages is broken.");
		buf = QvReadPage(index, handle->hints, block, QV_PAGE_ROUTES, BUFFER_LOCK_SHARE);
		page = BufferGetPage(buf);
		for (int j = 0; j < per_page && i < routes->nblocks; j++, i++)
		{
			GraphRouteBlock *to = GraphRoutesBlock(routes, i);

			memcpy(to, QvPageGetData(page) + j * routes->block_size, routes->block_size);
			if (to->count > QV_BLOCK)
				QvReportCorruption(index, block, "An entry table block claims %u entries.", to->count);
		}
		block = QvPageGetHeader(page)->next;
		UnlockReleaseBuffer(buf);
	}

	/*
	 * An entry appended since the metapage was read may be in the last block;
	 * remember what the metapage said, so that it is noticed as new.
	 */
	routes->count = meta->route_count;
	if (handle->ops->read_entries)
		handle->ops->read_entries(handle, routes);
}

/* The entry table of an index, to live in its cache entry's context. */
static GraphRoutes *
load_routes(GraphHandle *handle, MemoryContext parent)
{
	/* under the caller's context until complete: an error must not leak it */
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "quiver entry table",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GraphRoutes *routes = palloc0(sizeof(GraphRoutes));

	routes->context = context;
	read_routes(handle, routes);
	MemoryContextSwitchTo(old);
	MemoryContextSetParent(context, parent);
	routes->current = true;
	return routes;
}

static void
release_handle(void *arg)
{
	GraphHandle *handle = arg;
	GraphRoutes *routes = handle->routes;
	GraphCacheEntry *entry = handle->entry;

	if (--routes->users == 0 && !routes->current)
		MemoryContextDelete(routes->context);
	QvKeepRelease(&entry->kept);
}

/* Start an entry for the index of a handle, and let the handle use it. */
static GraphCacheEntry *
make_entry(GraphHandle *handle)
{
	const GraphMetaData *meta = &handle->meta;
	MemoryContext context;
	GraphCacheEntry *entry;

	/* under the caller's context until complete: an error must not leak it */
	context = AllocSetContextCreate(CurrentMemoryContext, "quiver graph index",
									ALLOCSET_DEFAULT_SIZES);
	entry = MemoryContextAllocZero(context, sizeof(GraphCacheEntry));
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
	entry->routes = load_routes(handle, context);
	QvKeepAdd(&entry->kept, handle->index, meta->build_id);
	return entry;
}

GraphHandle *
GraphOpen(Relation index, const QvOpclassInfo *opclass)
{
	GraphHandle *handle = palloc0(sizeof(GraphHandle));
	GraphCacheEntry *entry;

	handle->index = index;
	handle->opclass = *opclass;
	GraphReadMeta(index, &handle->meta);
	if (!GraphLayoutFromMeta(&handle->layout, &handle->meta))
		QvReportCorruption(index, GRAPH_META_BLOCK, "The metapage's sizes do not fit together.");
	if (handle->meta.metric != opclass->metric ||
		handle->meta.form != GraphChooseForm(opclass, handle->meta.dims))
		QvReportCorruption(index, GRAPH_META_BLOCK, "The metapage is for another operator class.");
	handle->ops = GraphFormOf(&handle->meta);
	entry = (GraphCacheEntry *) QvKeepFind(index, handle->meta.build_id);
	if (entry == NULL)
		entry = make_entry(handle);
	handle->hints = &entry->hints;
	if (entry->routes->version != handle->meta.route_version ||
		entry->routes->count != handle->meta.route_count)
	{
		GraphRoutes *old = entry->routes;

		entry->routes = load_routes(handle, entry->kept.context);
		old->current = false;
		if (old->users == 0)
			MemoryContextDelete(old->context);
	}
	handle->entry = entry;
	handle->rotation = entry->rotation;
	handle->mean = entry->mean;
	handle->mean_norm2 = entry->mean_norm2;
	handle->routes = entry->routes;
	QvKeepUse(&entry->kept);
	entry->routes->users++;
	handle->release.func = release_handle;
	handle->release.arg = handle;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &handle->release);
	return handle;
}
