/*
 * plain.c
 *		The codec of whole values; see plain.h.
 */
#include "postgres.h"

#include "ivf/codec/handle.h"
#include "ivf/codec/plain.h"

static void
plain_choose(IvfMetaData *meta)
{
	meta->bits = 0;
	meta->entry_size = MAXALIGN(sizeof(IvfEntryData) + meta->value_size);
	meta->entries_per_page = IVF_ENTRY_SPACE / meta->entry_size;
}

static bool
plain_derive(IvfLayout *layout, const IvfMetaData *meta)
{
	layout->width = meta->dims;
	layout->centroid_bytes = layout->data_bytes = meta->value_size;
	layout->row_size = MAXALIGN(sizeof(IvfPlainRowData) + meta->value_size);
	layout->batch_start = MAXALIGN(offsetof(IvfListPageData, item_pages));
	if (meta->pdim != 0 || meta->value_size == 0 || meta->value_size > BLCKSZ ||
		sizeof(IvfEntryData) + meta->value_size > meta->entry_size ||
		layout->batch_start + layout->row_size > QV_PAGE_SPACE)
		return false;
	layout->slots = (QV_PAGE_SPACE - layout->batch_start) / layout->row_size;
	return true;
}

/* ---- values ---- */

static void
plain_coordinates(const QvSpace *space, const void *value, float *scratch, float *out)
{
	space->opclass.type->to_float(value, out);
}

static void
plain_prepare(const IvfHandle *handle, const void *value, uint32 nbits, IvfQuery *query)
{
	const QvSpace *space = &handle->space;

	if (value == NULL)
		value = space->opclass.type->from_float(palloc0(space->dims * sizeof(float)), space->dims);
	query->value = value;
}

static void
plain_prepare_row(const IvfHandle *handle, const float *centroid, const IvfRow *row,
				  uint32 nbits, IvfQuery *query)
{
	query->value = row->code;
}

/* ---- centroids ---- */

static void
plain_encode_centroid(const IvfLayout *layout, const QvOpclassInfo *opclass,
					  const float *centroid, IvfEntry entry)
{
	void	   *value = opclass->type->from_float(centroid, layout->dims);

	memcpy(IvfEntryCode(entry), value, layout->value_size);
	pfree(value);
}

static bool
plain_take_centroid(const IvfLayout *layout, const QvOpclassInfo *opclass, IvfEntry entry,
					IvfCentroids *centroids, uint32 i)
{
	void	   *value = centroids->codes + i * centroids->stride;

	memcpy(value, IvfEntryCode(entry), layout->value_size);
	return opclass->type->well_formed(value, layout->value_size, layout->dims);
}

static void
plain_decode_centroid(const IvfLayout *layout, const IvfCentroids *centroids, uint32 i, float *out)
{
	/* rows do not depend on it */
}

static const char *
plain_check_centroid(const IvfLayout *layout, const QvOpclassInfo *opclass, IvfEntry entry)
{
	return opclass->type->well_formed(IvfEntryCode(entry), layout->value_size, layout->dims) ? NULL :
		"The value of list %u is damaged.";
}

static void
plain_measure(const IvfHandle *handle, const IvfQuery *query, const IvfCentroids *centroids,
			  IvfMeasure what, IvfNear *near, uint32 n)
{
	const QvOpclassInfo *opclass = &handle->space.opclass;

	for (uint32 i = 0; i < n; i++)
		near[i].distance = opclass->type->distance(opclass->metric, query->value,
												   centroids->codes + near[i].list * centroids->stride);
}

/* ---- rows ---- */

static void
plain_encode(const IvfLayout *layout, const float *centroid, const IvfQuery *query,
			 const IvfRowRoom *room, IvfRow *row)
{
	memset(row, 0, sizeof(*row));
	memcpy(room->data, query->value, layout->value_size);
	row->code = room->data;
}

static void
plain_decode(const IvfHandle *handle, const float *centroid, const IvfRow *row, float *out)
{
	handle->space.opclass.type->to_float(row->code, out);
}

/* Does nothing: the zeros of a new page are no heap TIDs, and cost no WAL. */
static void
plain_clear_slots(const IvfLayout *layout, Page page)
{
}

static void
plain_put_slot(const IvfLayout *layout, Page page, uint32 slot, const IvfRow *row)
{
	IvfPlainRow at = IvfPagePlainRow(layout, page, slot);

	at->tid = row->tid;
	at->unused = 0;
	memcpy(IvfPlainValue(at), row->code, layout->value_size);
}

static ItemPointer
plain_slot_tid(const IvfLayout *layout, Page page, uint32 slot, Page records)
{
	return &IvfPagePlainRow(layout, page, slot)->tid;
}

static void
plain_mark_dead(const IvfLayout *layout, Page page, uint32 slot, Page records)
{
	ItemPointerSetInvalid(&IvfPagePlainRow(layout, page, slot)->tid);
}

void
IvfCheckValue(const IvfHandle *handle, BlockNumber block, uint32 slot, IvfPlainRow row)
{
	const IvfLayout *layout = &handle->layout;

	if (!handle->space.opclass.type->well_formed(IvfPlainValue(row), layout->value_size, layout->dims))
		QvReportCorruption(handle->index, block, "The value of row %u is damaged.", slot);
}

static void
plain_read(const IvfHandle *handle, const IvfPageImages *images, uint32 slot, uint8 *scan,
		   IvfRow *row)
{
	IvfPlainRow at = IvfPagePlainRow(&handle->layout, images->page, slot);

	IvfCheckValue(handle, images->block, slot, at);
	memset(row, 0, sizeof(*row));
	row->tid = at->tid;
	row->code = IvfPlainValue(at);
}

static bool
plain_check_slot(const IvfHandle *handle, const IvfPageImages *images, uint32 slot)
{
	IvfPlainRow row = IvfPagePlainRow(&handle->layout, images->page, slot);
	uint32		count = IvfPageList(images->page)->count;

	if (!ItemPointerIsValid(&row->tid))
		return false;
	if (slot >= count)
		QvReportCorruption(handle->index, images->block,
						   "Row %u has a heap TID, but the page has %u rows.", slot, count);
	if (!IvfTidPossible(&row->tid))
		QvReportCorruption(handle->index, images->block,
						   "Row %u holds an impossible heap TID.", slot);
	IvfCheckValue(handle, images->block, slot, row);
	return true;
}

const IvfCodec ivf_plain_codec = {
	.choose = plain_choose,
	.derive = plain_derive,
	.coordinates = plain_coordinates,
	.prepare = plain_prepare,
	.prepare_row = plain_prepare_row,
	.encode_centroid = plain_encode_centroid,
	.take_centroid = plain_take_centroid,
	.decode_centroid = plain_decode_centroid,
	.check_centroid = plain_check_centroid,
	.measure = plain_measure,
	.encode = plain_encode,
	.decode = plain_decode,
	.clear_slots = plain_clear_slots,
	.put_slot = plain_put_slot,
	.pack_slots = NULL,			/* there are no batches */
	.put_item = NULL,			/* there are no items */
	.slot_tid = plain_slot_tid,
	.mark_dead = plain_mark_dead,
	.read = plain_read,
	.check_slot = plain_check_slot
};
