/*
 * plain_scan.c
 *		Scanning lists of whole values: IvfReadingOps of plain indexes.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "ivf/codec/plain.h"
#include "ivf/search/reader.h"

static void
plain_begin_reading(IvfReader *reader)
{
	/* values are measured as they are */
}

static void
plain_begin_list(IvfReader *reader, IvfListScan *list)
{
}

/* Offer the rows of a page. */
static void
plain_scan_page(IvfReader *reader, IvfListScan *list, BlockNumber block, Page page)
{
	const IvfHandle *handle = reader->handle;
	const QvOpclassInfo *opclass = &handle->space.opclass;

	reader->counters->codes += IvfPageList(page)->count;
	for (uint32 slot = 0; slot < IvfPageList(page)->count; slot++)
	{
		IvfPlainRow at = IvfPagePlainRow(&handle->layout, page, slot);
		IvfWindowRow row = {0};

		if (!ItemPointerIsValid(&at->tid) || !IvfWantsRow(reader, &at->tid))
			continue;
		IvfCheckValue(handle, block, slot, at);
		row.distance = reader->any_order ? 0 :
			opclass->type->distance(opclass->metric, reader->query.value, IvfPlainValue(at));
		if (isfinite(reader->window.limit) && row.distance >= reader->window.limit)
			continue;
		row.tid = at->tid;
		row.rank = list->rank;
		if (isnan(row.distance))
			row.distance = FLT_MAX;
		IvfOfferRow(reader, &row);
	}
}

const struct IvfReadingOps ivf_plain_reading = {
	.begin_reading = plain_begin_reading,
	.begin_list = plain_begin_list,
	.scan_page = plain_scan_page,
	.find_members = NULL,
	.find_dead = NULL,
	.keep_members = NULL,		/* nothing is gathered */
	.read_gathered = NULL
};
