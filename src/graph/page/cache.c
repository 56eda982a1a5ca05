/*
 * cache.c
 *		Opening a graph index; see cache.h.
 *
 * Entry points are the part of the index's cache entry (space/relcache.c).  They are replaced
 * when the metapage says so.  They never change, except that the values of a plain graph are
 * read when a search first needs them.
 */
#include "postgres.h"

#include "graph/page/cache.h"
#include "graph/page/entry_points.h"
#include "graph/page/meta.h"

GraphHandle *
GraphOpen(Relation index, const QvOpclassInfo *opclass)
{
	GraphHandle *handle = palloc0(sizeof(GraphHandle));
	GraphMetaData *meta = &handle->meta;
	QvRelCacheEntry *entry;
	GraphEntryPoints *entry_points;

	handle->index = index;
	handle->space.opclass = *opclass;
	GraphReadMeta(index, meta);
	if (!GraphLayoutFromMeta(&handle->layout, meta))
		QvReportCorruption(index, QV_META_BLOCK, "The metapage's sizes do not fit together.");
	if (meta->metric != opclass->metric ||
		meta->form != GraphChooseForm(opclass, meta->dims) ||
		(meta->form == QV_FORM_CODED && !QvSpaceKindFits(meta->space, opclass)))
		QvReportCorruption(index, QV_META_BLOCK, "The metapage is for another operator class.");
	entry = QvRelCacheOpen(index, opclass, meta->build_id, meta->dims, meta->pdim, meta->seed,
						   meta->space, meta->level, meta->mean_block);
	handle->hints = &entry->hints;
	handle->space = entry->space;
	QvRowsOpen(&handle->rows, index, handle->hints, &handle->space, &meta->rows,
			   offsetof(GraphMetaData, rows));
	entry_points = (GraphEntryPoints *) entry->part;
	if (entry_points == NULL || entry_points->version != meta->entry_version ||
		entry_points->count != meta->entry_count)
		QvRelCacheSetPart(entry, &GraphReadEntryPoints(handle)->part);
	handle->entry_points = QvRelCachePin(&handle->cached, entry);
	return handle;
}
