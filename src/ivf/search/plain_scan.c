/*
 * plain_scan.c
 *		Scanning lists of whole values: IvfReadingOps of plain indexes.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "ivf/codec/plain.h"
#include "ivf/search/reader.h"

/* Read the rows of a page that may matter. */
static void
plain_scan_page(IvfReader *reader, IvfListScan *list, BlockNumber block, Page page)
{
	const IvfHandle *handle = reader->handle;
	const QvOpclassInfo *opclass = &handle->space.opclass;

	for (uint32 slot = 0; slot < IvfPageList(page)->count; slot++)
	{
		IvfPlainRow at = IvfPagePlainRow(&handle->layout, page, slot);
		IvfRead		row = {.rank = list->rank};

		if (!ItemPointerIsValid(&at->tid))
			continue;
		IvfCheckValue(handle, block, slot, at);
		row.distance = reader->any_order ? 0 :
			opclass->type->distance(opclass->metric, reader->query.value, IvfPlainValue(at));
		if (isnan(row.distance))
			row.distance = FLT_MAX;
		if (!(row.distance < reader->limit) || row.distance < reader->low)
			continue;
		row.tid = at->tid;
		row.gathered = row.distance;
		IvfAddRow(reader, &row);
	}
}

const struct IvfReadingOps ivf_plain_reading = {
	.scan_page = plain_scan_page
};
