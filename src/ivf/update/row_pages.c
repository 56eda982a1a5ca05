/*
 * row_pages.c
 *		The rows of an index, from its lists; see row_pages.h.
 */
#include "postgres.h"

#include "ivf/page/directory.h"
#include "ivf/page/pages.h"
#include "ivf/page/walk.h"
#include "ivf/update/row_pages.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Returns where the record of a slot of the walk's current page is. */
static QvRowPlace
place_of(const IvfWalk *walk, uint32 slot)
{
	const IvfLayout *layout = &walk->handle->layout;
	const IvfItems *items = &layout->items[IVF_RECORDS];
	IvfListPage head = IvfPageList(walk->images.page);

	return (QvRowPlace)
	{
		.block = IvfItemBlock(layout, items, head, slot),
			.slot = IvfItemPlace(layout, items, head->number, slot)
	};
}

/* Shows the live rows of the walk's current page to a visitor. */
static void
offer_page(IvfWalk *walk, const QvRowVisitor *visitor, const float *centroid, float *x)
{
	const IvfHandle *handle = walk->handle;

	for (uint32 slot = 0; slot < IvfPageList(walk->images.page)->count; slot++)
	{
		ItemPointer tid = IvfWalkTid(walk, slot);
		IvfRow		row;

		if (!ItemPointerIsValid(tid) || !visitor->wants(visitor->arg, tid) ||
			!IvfWalkRead(walk, slot, &row))
			continue;
		handle->layout.codec->decode(handle, centroid, &row, x);
		visitor->take(visitor->arg, &row.tid, place_of(walk, slot),
					  &(QvRowVector) {x, row.error, handle->layout.codec->norm2(handle, centroid, &row)});
	}
}

void
IvfVisitRows(void *engine, const QvRowVisitor *visitor)
{
	IvfHandle  *handle = engine;
	float	   *centroid = palloc(handle->layout.width * sizeof(float));
	float	   *x = palloc(handle->layout.width * sizeof(float));
	IvfWalk		walk;

	IvfWalkInit(&walk, handle);
	for (uint32 list = 0; list < handle->lists->count; list++)
	{
		IvfEntry	entry;
		Buffer		buf = IvfReadEntry(handle, list, BUFFER_LOCK_SHARE, &entry);
		BlockNumber head = entry->head;

		UnlockReleaseBuffer(buf);
		IvfDecodeCentroid(handle, list, centroid);
		IvfWalkStart(&walk, list, head);
		while (IvfWalkNextPage(&walk))
		{
			if (!handle->building)
				QvVacuumDelayPoint();
			offer_page(&walk, visitor, centroid, x);
		}
	}
	IvfWalkEnd(&walk);
	pfree(x);
	pfree(centroid);
}
