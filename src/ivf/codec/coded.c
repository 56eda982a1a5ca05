/*
 * coded.c
 *		The codec of quantized rows; see coded.h.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "ivf/codec/coded.h"
#include "ivf/codec/handle.h"

/* ---- sizes ---- */

/* Bytes of a batch: codes and factors of 32 rows. */
#define BatchSize(scan_bits) (QvBatchBytes(scan_bits) + 2 * QV_BATCH * sizeof(uint16))

/*
 * Policy: codes cover at least this share of the coordinates, if that adds a batch to pages
 * of at most MAX_BATCHES_TO_SQUEEZE batches.  Searches read a fifth fewer pages at most, by
 * estimates that are a quarter less exact at most (src/ivf/codec/README.md, "Bound").
 */
#define MAX_BATCHES_TO_SQUEEZE 4
#define LEAST_SCAN_SHARE 0.8

/* Bytes of a page for records or sketches. */
#define RECORD_SPACE (QV_PAGE_SPACE - sizeof(IvfItemPageData))

/* Returns how many pages of records the slots of one page can be spread over. */
static uint32
record_pages(uint32 slots, uint32 per_page)
{
	/* the first slot's record may be anywhere on its page of records */
	return (slots + per_page - 2) / per_page + 1;
}

/* Returns the size of the head of a page of codes, which names its pages of items. */
static uint32
list_head_size(uint32 slots, uint32 per_page, bool sketches)
{
	return MAXALIGN(offsetof(IvfListPageData, item_pages) +
					(record_pages(slots, per_page) + sketches) * sizeof(BlockNumber));
}

/* Returns the most bits per coordinate, up to bits, with which a code fits. */
static int
fitting_bits(int bits, uint32 pdim, Size fixed, Size space)
{
	while (bits > 2 && fixed + QvCodeBytes(pdim, bits) > space)
		bits /= 2;
	return bits;
}

/*
 * Policy: vectors of at least this number of coordinates have sketches.  Their records are
 * so large that few of them stay in memory.  Each page of codes has one page of sketches.
 * The size of a sketch is what that page has room for.
 */
#define LEAST_SKETCHED 256

/* Policy: the least share of the coordinates that must get their low bits. */
#define LEAST_SKETCH_SHARE 0.25

/* Returns the coordinates whose low bits are in a sketch; 0: there are no sketches. */
static uint32
sketch_lows(uint32 pdim, uint32 scan_bits, int bits, uint32 slots)
{
	uint32		bytes = RECORD_SPACE / slots / 4 * 4;
	uint32		others = sizeof(IvfSketchData) + (pdim - scan_bits) / 8;
	uint32		lows;

	if (pdim < LEAST_SKETCHED || bits < 8 || bytes <= others)
		return 0;
	lows = Min(pdim, (bytes - others) * 8 / QV_DIM_ALIGN * QV_DIM_ALIGN);
	return lows < LEAST_SKETCH_SHARE * pdim ? 0 : lows;
}

/* Returns how many coordinates the one-bit codes have room for, by the slots on a page. */
static uint32
scan_bits_that_fit(const IvfMetaData *meta, uint32 slots)
{
	int			room = QV_PAGE_SPACE - list_head_size(slots, meta->records_per_page, true);

	room = room / (int) (slots / QV_BATCH) - (int) BatchSize(0);
	return room <= 0 ? 0 : room / (QvBatchBytes(QV_DIM_ALIGN)) * QV_DIM_ALIGN;
}

static void
coded_choose(IvfMetaData *meta)
{
	uint32		slots;

	meta->centroid_bits = fitting_bits(8, meta->pdim, sizeof(IvfEntryData), IVF_ENTRY_SPACE);
	meta->bits = fitting_bits(meta->bits ? meta->bits : 8, meta->pdim,
							  sizeof(IvfRecordData), RECORD_SPACE);
	meta->record_size = TYPEALIGN(4, sizeof(IvfRecordData) +
								  QvCodeBytes(meta->pdim, meta->bits));
	meta->records_per_page = RECORD_SPACE / meta->record_size;
	meta->entry_size = TYPEALIGN(4, sizeof(IvfEntryData) +
								 QvCodeBytes(meta->pdim, meta->centroid_bits));
	meta->entries_per_page = IVF_ENTRY_SPACE / meta->entry_size;

	/* all coordinates; fewer if a page cannot hold a batch of all */
	slots = QV_BATCH;
	meta->scan_bits = Min(meta->pdim, scan_bits_that_fit(meta, slots));
	while (scan_bits_that_fit(meta, slots + QV_BATCH) >= meta->scan_bits)
		slots += QV_BATCH;

	/* fewer, if that adds a batch to the page */
	if (slots / QV_BATCH <= MAX_BATCHES_TO_SQUEEZE &&
		scan_bits_that_fit(meta, slots + QV_BATCH) >= LEAST_SCAN_SHARE * meta->pdim)
	{
		slots += QV_BATCH;
		meta->scan_bits = scan_bits_that_fit(meta, slots);
	}
	meta->batches_per_page = slots / QV_BATCH;
	if (sketch_lows(meta->pdim, meta->scan_bits, meta->bits, slots) > 0)
		meta->sketches_per_page = slots;
}

/* Sets the sizes of items.  Their links follow the links of the kinds before. */
static void
add_items(IvfLayout *layout, IvfItemKind which, IvfItems items)
{
	items.first_link = layout->links;
	layout->links += items.max_pages;
	layout->items[which] = items;
}

static bool
coded_derive(IvfLayout *layout, const IvfMetaData *meta)
{
	IvfItems	records = {0};
	IvfItems	sketches = {0};

	if ((meta->space != QV_SPACE_L2 && meta->space != QV_SPACE_IP && meta->space != QV_SPACE_POWER) ||
		(meta->space == QV_SPACE_POWER && !isfinite(meta->level)) ||
		(meta->bits != 8 && meta->bits != 4 && meta->bits != 2) ||
		(meta->centroid_bits != 8 && meta->centroid_bits != 4 && meta->centroid_bits != 2) ||
		meta->pdim != QvPaddedDim(meta->dims) || meta->pdim > QV_MAX_PDIM ||
		meta->scan_bits == 0 || meta->scan_bits > meta->pdim ||
		meta->scan_bits % QV_DIM_ALIGN != 0 ||
		meta->records_per_page == 0 || meta->batches_per_page == 0 || meta->value_size != 0)
		return false;
	layout->width = meta->pdim;
	layout->bits = meta->bits;
	layout->centroid_bits = meta->centroid_bits;
	layout->centroid_bytes = QvCodeBytes(meta->pdim, meta->centroid_bits);
	layout->code_bytes = QvCodeBytes(meta->pdim, meta->bits);
	layout->scan_bits = meta->scan_bits;
	layout->batches = meta->batches_per_page;
	layout->slots = layout->batches * QV_BATCH;
	layout->batch_size = BatchSize(layout->scan_bits);
	layout->raw = meta->version >= IVF_META_WITH_RAW;
	records.kind = QV_PAGE_RECORDS;
	records.what = "records";
	records.size = meta->record_size;
	records.per_page = meta->records_per_page;
	records.max_pages = record_pages(layout->slots, meta->records_per_page);
	add_items(layout, IVF_RECORDS, records);
	if (meta->sketches_per_page > 0)
	{
		layout->sketch_lows = sketch_lows(meta->pdim, meta->scan_bits, meta->bits, layout->slots);
		if (layout->sketch_lows == 0 || meta->sketches_per_page != layout->slots)
			return false;
		layout->sketch_bytes = TYPEALIGN(4, sizeof(IvfSketchData) +
										 (meta->pdim - meta->scan_bits + layout->sketch_lows) / 8);
		sketches.kind = QV_PAGE_SKETCHES;
		sketches.what = "sketches";
		sketches.size = layout->sketch_bytes;
		sketches.per_page = meta->sketches_per_page;
		sketches.max_pages = 1;
		add_items(layout, IVF_SKETCHES, sketches);
	}
	layout->data_bytes = layout->code_bytes + layout->scan_bits / 8 + layout->sketch_bytes;
	layout->batch_start = list_head_size(layout->slots, meta->records_per_page,
										 meta->sketches_per_page > 0);
	return sizeof(IvfEntryData) + layout->centroid_bytes <= layout->entry_size &&
		sizeof(IvfRecordData) + layout->code_bytes <= meta->record_size &&
		(Size) meta->records_per_page * meta->record_size <= RECORD_SPACE &&
		(Size) meta->sketches_per_page * layout->sketch_bytes <= RECORD_SPACE &&
		layout->batch_start + (Size) layout->batches * layout->batch_size <= QV_PAGE_SPACE;
}

/* ---- values ---- */

static void
coded_prepare(const IvfHandle *handle, const void *value, uint32 nbits, IvfQuery *query)
{
	const QvSpace *space = &handle->space;
	float	   *scratch = palloc(space->dims * sizeof(float));
	float	   *rotated = palloc(space->pdim * sizeof(float));

	QvSpaceRotateValue(space, value, scratch, rotated);
	QvSpaceQueryInit(&query->base, space, rotated, nbits);
	query->value = NULL;
	pfree(rotated);
	pfree(scratch);
}

static void
coded_decode(const IvfHandle *handle, const float *centroid, const IvfRow *row, float *out)
{
	const IvfLayout *layout = &handle->layout;
	const uint8 *code = row->code;
	uint8	   *unpacked = NULL;

	if (layout->bits < 8)
	{
		unpacked = palloc(layout->pdim);
		qv_kernels.unpack_bits(code, layout->bits, unpacked, layout->pdim);
		code = unpacked;
	}
	qv_kernels.decode_u8(code, row->scale, QvCodeOffset(layout->bits), out, layout->pdim);
	qv_kernels.add_f32(out, centroid, layout->pdim);
	if (unpacked)
		pfree(unpacked);
}

/* Returns QvSpaceNorm2() of a row that was decoded. */
static float
coded_norm2(const IvfHandle *handle, const float *centroid, const IvfRow *row)
{
	return row->add + qv_kernels.norm2_f32(centroid, handle->layout.pdim);
}

static void
coded_prepare_row(const IvfHandle *handle, const float *centroid, const IvfRow *row,
				  uint32 nbits, IvfQuery *query)
{
	uint32		pdim = handle->layout.pdim;
	float	   *rotated = palloc(pdim * sizeof(float));

	/* a query is made from the vector as it is before it is centered */
	coded_decode(handle, centroid, row, rotated);
	qv_kernels.add_f32(rotated, handle->space.mean, pdim);
	QvSpaceQueryInit(&query->base, &handle->space, rotated, nbits);
	query->base.row_norm2 = coded_norm2(handle, centroid, row);
	query->value = NULL;
	pfree(rotated);
}

/* ---- centroids ---- */

static void
coded_encode_centroid(const IvfLayout *layout, const QvOpclassInfo *opclass,
					  const float *centroid, IvfEntry entry)
{
	uint8	   *bytes = palloc(layout->pdim);
	float	   *decoded = palloc(layout->pdim * sizeof(float));
	QvCodeFactors factors;

	QvEncode(centroid, layout->pdim, layout->centroid_bits, bytes, &factors);
	QvPackCode(bytes, layout->pdim, layout->centroid_bits, IvfEntryCode(entry));
	qv_kernels.decode_u8(bytes, factors.scale, QvCodeOffset(layout->centroid_bits),
						 decoded, layout->pdim);
	/* rows are coded relative to the decoded centroid */
	entry->scale = factors.scale;
	entry->norm2 = qv_kernels.norm2_f32(decoded, layout->pdim);
	pfree(bytes);
	pfree(decoded);
}

static bool
coded_take_centroid(const IvfLayout *layout, const QvOpclassInfo *opclass, IvfEntry entry,
					IvfCentroids *centroids, uint32 i)
{
	uint8	   *code = centroids->codes + i * centroids->stride;

	if (layout->centroid_bits < 8)
		qv_kernels.unpack_bits(IvfEntryCode(entry), layout->centroid_bits, code, layout->pdim);
	else
		memcpy(code, IvfEntryCode(entry), layout->centroid_bytes);
	centroids->scale[i] = entry->scale;
	centroids->norm2[i] = entry->norm2;
	return true;
}

static void
coded_decode_centroid(const IvfLayout *layout, const IvfCentroids *centroids, uint32 i, float *out)
{
	qv_kernels.decode_u8(centroids->codes + i * centroids->stride, centroids->scale[i],
						 QvCodeOffset(layout->centroid_bits), out, layout->pdim);
}

/* Relative: another kernel may have summed up |centroid|^2. */
#define NORM_TOLERANCE 1e-4f

static const char *
coded_check_centroid(const IvfLayout *layout, const QvOpclassInfo *opclass, IvfEntry entry)
{
	float		scale = entry->scale;
	float		norm2 = entry->norm2;
	float	   *decoded;
	float		length2;
	IvfCentroids one = {.scale = &scale, .norm2 = &norm2};

	if (!isfinite(scale) || scale < 0 || !isfinite(norm2) || norm2 < 0)
		return "List %u has factors that are not finite or negative.";
	one.codes = palloc(layout->pdim);
	decoded = palloc(layout->pdim * sizeof(float));
	(void) coded_take_centroid(layout, opclass, entry, &one, 0);
	coded_decode_centroid(layout, &one, 0, decoded);
	length2 = qv_kernels.norm2_f32(decoded, layout->pdim);
	pfree(one.codes);
	pfree(decoded);
	return fabsf(length2 - norm2) <= NORM_TOLERANCE * length2 + FLT_MIN ? NULL :
		"The centroid of list %u is not as long as the list says.";
}

static void
coded_measure(const IvfHandle *handle, const IvfQuery *query, const IvfCentroids *centroids,
			  IvfMeasure what, IvfNear *near, uint32 n)
{
	const IvfLayout *layout = &handle->layout;
	bool		l2 = layout->space != QV_SPACE_IP;

	for (uint32 i = 0; i < n; i++)
	{
		uint32		list = near[i].list;
		float		norm2 = centroids->norm2[list];
		float		ip = QvCodeIp(&query->base.q, centroids->codes + list * centroids->stride,
								  layout->centroid_bits, centroids->scale[list]);

		if (l2)
			near[i].distance = query->base.q.norm2 + norm2 - 2 * ip;
		else if (what == IVF_TO_SEARCH)
			near[i].distance = -ip;
		else
			near[i].distance = norm2 > 0 ? -ip / sqrtf(norm2) : 0;
	}
}

/* ---- rows ---- */

/* Returns <bits - 1/2, centroid> of the one-bit code of a residual, over n coordinates. */
static float
sign_ip(const float *residual, const float *centroid, uint32 n)
{
	float		sum = 0;

	for (uint32 i = 0; i < n; i++)
		sum += residual[i] >= 0 ? centroid[i] : -centroid[i];
	return 0.5f * sum;
}

/* Packs the low bits of n codes, a multiple of 8. */
static void
pack_low_bits(const uint8 *codes, uint32 n, uint8 *bits)
{
	for (uint32 i = 0; i < n; i += 8)
	{
		uint8		byte = 0;

		for (int j = 0; j < 8; j++)
			byte |= (codes[i + j] & 1) << j;
		bits[i / 8] = byte;
	}
}

/*
 * Makes the sketch of a residual, of a two-bit code.  The values of the code are -3/2,
 * -1/2, 1/2 and 3/2.  Past sketch_lows only the high bit is kept, and the values are -1
 * and 1.  residual is the first half of the room's scratch.
 */
static void
encode_sketch(const IvfLayout *layout, const float *residual, const float *centroid, float weight,
			  const IvfRowRoom *room, uint8 *out)
{
	uint32		pdim = layout->pdim;
	uint8	   *bytes = room->data; /* the row's own code overwrites it later */
	float	   *values = room->scratch + pdim;
	IvfSketchData sketch = {0};
	QvCodeFactors factors;
	float		yr,
				yy,
				f = 0,
				spread = 0;
	uint8	   *lows = out + sizeof(sketch);
	uint8	   *highs = lows + layout->sketch_lows / 8;
	uint8	   *end = highs + (pdim - layout->scan_bits) / 8;

	QvEncode(residual, pdim, 2, bytes, &factors);
	qv_kernels.decode_u8(bytes, 1, QvCodeOffset(2), values, layout->sketch_lows);
	for (uint32 i = layout->sketch_lows; i < pdim; i++)
		values[i] = bytes[i] >= 2 ? 1 : -1;
	yr = qv_kernels.ip_f32(values, residual, pdim);
	yy = qv_kernels.norm2_f32(values, pdim);
	/* see src/ivf/codec/README.md, "Factors" and "Bound" */
	if (yr > 0 && factors.norm2 > 0 && isfinite(factors.norm2 / yr))
	{
		f = factors.norm2 / yr;
		spread = sqrtf(Max(0, yy - yr / factors.norm2 * yr) / pdim);
	}
	/* squares leave float32: the row is always judged by itself */
	if (f == 0 && qv_kernels.maxabs_f32(residual, pdim) > 0)
		sketch.a = -FLT_MAX;
	else if (layout->space != QV_SPACE_IP)
	{
		sketch.a = factors.norm2 - weight + 2 * f * qv_kernels.ip_f32(values, centroid, pdim);
		sketch.b = -2 * f;
	}
	else
		sketch.b = -f;
	qv_kernels.f32_to_f16(&spread, &sketch.spread, 1);
	ItemPointerSetInvalid(&sketch.tid);
	memcpy(out, &sketch, sizeof(sketch));
	pack_low_bits(bytes, layout->sketch_lows, lows);
	/* the high bit of a code is the sign, as in one-bit codes */
	(void) qv_kernels.sign_bits_f32(residual + layout->scan_bits, pdim - layout->scan_bits, highs);
	memset(end, 0, out + layout->sketch_bytes - end);
}

/* The error of a row whose code says nothing.  It is finite, and so are sums of a few. */
#define NOT_CERTAIN (FLT_MAX / 2)

static void
coded_encode(const IvfLayout *layout, const float *centroid, const IvfQuery *query,
			 const IvfRowRoom *room, IvfRow *row)
{
	uint32		pdim = layout->pdim;
	const float *x = query->base.row;
	float	   *residual = room->scratch;
	float	   *spare = room->scratch + pdim;
	uint8	   *scan = room->data + layout->code_bytes;
	uint8	   *bytes = room->data;
	float		norm2 = qv_kernels.norm2_f32(x, pdim);
	float		weight = layout->space == QV_SPACE_POWER ? norm2 - query->base.row_norm2 : 0;
	QvCodeFactors factors;
	float		f;

	IvfSetRowData(layout, row, room->data);
	for (uint32 i = 0; i < pdim; i++)
		residual[i] = x[i] - centroid[i];

	/* a code needs more room before it is packed */
	if (layout->sketch_bytes > 0)
		encode_sketch(layout, residual, centroid, weight, room, (uint8 *) row->sketch);
	else if (layout->bits < 8)
		bytes = (uint8 *) spare;
	f = QvEncodeBits(residual, pdim, layout->scan_bits, scan);
	QvEncode(residual, pdim, layout->bits, bytes, &factors);
	row->scale = factors.scale;
	row->error = QvIsShortened(layout->space, norm2) ? NOT_CERTAIN : factors.residual;
	if (layout->space != QV_SPACE_IP)
	{
		float	   *decoded = residual;
		float		yc = sign_ip(residual, centroid, layout->scan_bits);

		qv_kernels.decode_u8(bytes, factors.scale, QvCodeOffset(layout->bits), decoded, pdim);
		row->a = factors.norm2 - weight + 2 * f * yc;
		row->b = -2 * f;
		row->add = factors.norm2 - weight + 2 * qv_kernels.ip_f32(decoded, centroid, pdim);
	}
	else
	{
		row->a = 0;
		row->b = -f;
		row->add = 0;
	}
	if (bytes != room->data)
		QvPackCode(bytes, pdim, layout->bits, room->data);
}

/* ---- slots and items ---- */

/* Makes all slots of a batch empty. */
static void
clear_batch(const IvfLayout *layout, Page page, uint32 batch)
{
	for (int i = 0; i < QV_BATCH; i++)
		IvfBatchA(IvfPageBatch(layout, page, batch))[i] = QV_EMPTY_FACTOR;
}

/*
 * Makes all slots of a page empty.  If batches can be raw, each is cleared when it begins,
 * since WAL has all bytes that are not zero.
 */
static void
coded_clear_slots(const IvfLayout *layout, Page page)
{
	if (!layout->raw)
		for (uint32 batch = 0; batch < layout->batches; batch++)
			clear_batch(layout, page, batch);
}

/* Bytes of a one-bit code, and of the codes of a batch. */
#define ScanBytes(layout) ((layout)->scan_bits / 8)
#define BatchBytes(layout) QvBatchBytes((layout)->scan_bits)

/* Packs the raw codes of a batch, as FastScan reads them. */
static void
pack_codes(const IvfLayout *layout, uint8 *codes)
{
	uint8		raw[BLCKSZ];

	memcpy(raw, codes, BatchBytes(layout));
	qv_kernels.fastscan_pack(raw, ScanBytes(layout), ScanBytes(layout), codes);
}

/* Makes packed codes raw again: the first n, and zeros after them. */
static void
unpack_codes(const IvfLayout *layout, uint8 *codes, uint32 n)
{
	uint8		packed[BLCKSZ];

	memcpy(packed, codes, BatchBytes(layout));
	memset(codes, 0, BatchBytes(layout));
	for (uint32 i = 0; i < n; i++)
		QvUnpackSlot(packed, layout->scan_bits, i, codes + i * ScanBytes(layout));
}

/*
 * Policy: rows that a batch must have room for to be made raw again.  Writing both forms of
 * the batch costs as much WAL as seven rows, since generic WAL has five bytes for each
 * nibble that changes [M42].
 */
#define LEAST_TO_UNPACK 8

/* Puts the one-bit code of the next row on its page. */
static void
put_code(const IvfLayout *layout, Page page, uint32 slot, const uint8 *scan)
{
	IvfListPage head = IvfPageList(page);
	uint8	   *codes = IvfBatchCodes(IvfPageBatch(layout, page, slot / QV_BATCH));
	uint32		place = slot % QV_BATCH;

	if (layout->raw && !IvfHasRaw(head) && QV_BATCH - place >= LEAST_TO_UNPACK)
	{
		unpack_codes(layout, codes, place);
		head->dead |= IVF_RAW;
	}
	if (!IvfHasRaw(head))
	{
		QvPackSlot(codes, layout->scan_bits, place, scan);
		return;
	}
	memcpy(codes + place * ScanBytes(layout), scan, ScanBytes(layout));
	if (place == QV_BATCH - 1)
	{
		pack_codes(layout, codes);
		head->dead &= ~IVF_RAW;
	}
}

static void
coded_pack_slots(const IvfLayout *layout, Page page)
{
	IvfListPage head = IvfPageList(page);

	if (!IvfHasRaw(head))
		return;
	pack_codes(layout, IvfBatchCodes(IvfPageBatch(layout, page, head->count / QV_BATCH)));
	head->dead &= ~IVF_RAW;
}

/* The largest finite float16.  Infinity means an empty slot. */
#define MAX_F16 65504.0f

/*
 * Puts a row's factors and one-bit code into a slot.  Factors are relative to the page's
 * scales, which the first row on the page has set.  If they do not fit float16, the
 * estimate is made lower than any distance.  The row's finer code is then always read.
 */
static void
coded_put_slot(const IvfLayout *layout, Page page, uint32 slot, const IvfRow *row)
{
	IvfListPage head = IvfPageList(page);
	uint16	   *batch = IvfPageBatch(layout, page, slot / QV_BATCH);
	float		factors[2];

	if (layout->raw && slot % QV_BATCH == 0)
		clear_batch(layout, page, slot / QV_BATCH);
	factors[0] = row->a / head->a_scale;
	factors[1] = row->b / head->b_scale;
	if (!(fabsf(factors[0]) < MAX_F16) || !(fabsf(factors[1]) < MAX_F16))
	{
		factors[0] = -MAX_F16;
		factors[1] = 0;
	}
	qv_kernels.f32_to_f16(factors, IvfBatchA(batch) + slot % QV_BATCH, 1);
	qv_kernels.f32_to_f16(factors + 1, IvfBatchB(batch) + slot % QV_BATCH, 1);
	put_code(layout, page, slot, row->scan);
}

static void
coded_put_item(const IvfLayout *layout, IvfItemKind which, Page page, uint32 place,
			   const IvfRow *row)
{
	void	   *item = IvfPageItem(&layout->items[which], page, place);
	IvfRecord	record = item;

	if (which == IVF_SKETCHES)
	{
		memcpy(item, row->sketch, layout->sketch_bytes);
		memcpy((char *) item + offsetof(IvfSketchData, tid), &row->tid, sizeof(row->tid));
		return;
	}
	record->scale = row->scale;
	record->add = row->add;
	record->error = row->error;
	record->tid = row->tid;
	record->unused = 0;
	memcpy(IvfRecordCode(record), row->code, layout->code_bytes);
}

static IvfRecord
slot_record(const IvfLayout *layout, Page page, uint32 slot, Page records)
{
	const IvfItems *items = &layout->items[IVF_RECORDS];

	return IvfPageItem(items, records,
					   IvfItemPlace(layout, items, IvfPageList(page)->number, slot));
}

static IvfSketchData *
slot_sketch(const IvfLayout *layout, Page page, uint32 slot, Page sketches)
{
	const IvfItems *items = &layout->items[IVF_SKETCHES];

	return IvfPageItem(items, sketches,
					   IvfItemPlace(layout, items, IvfPageList(page)->number, slot));
}

static ItemPointer
coded_slot_tid(const IvfLayout *layout, Page page, uint32 slot, Page records)
{
	static ItemPointerData none = {{0xFFFF, 0xFFFF}, InvalidOffsetNumber};

	if (*IvfSlotFactor(layout, page, slot) == QV_EMPTY_FACTOR)
		return &none;
	return &slot_record(layout, page, slot, records)->tid;
}

static void
coded_mark_dead(const IvfLayout *layout, Page page, uint32 slot, Page records)
{
	*IvfSlotFactor(layout, page, slot) = QV_EMPTY_FACTOR;
	ItemPointerSetInvalid(&slot_record(layout, page, slot, records)->tid);
}

static void
coded_read(const IvfHandle *handle, const IvfPageImages *images, uint32 slot, uint8 *scan,
		   IvfRow *row)
{
	const IvfLayout *layout = &handle->layout;
	IvfListPage head = IvfPageList(images->page);
	uint16	   *batch = IvfPageBatch(layout, images->page, slot / QV_BATCH);
	IvfRecord	record = slot_record(layout, images->page, slot, images->items[IVF_RECORDS]);

	row->tid = record->tid;
	row->scale = record->scale;
	row->add = record->add;
	row->error = record->error;
	row->code = IvfRecordCode(record);
	/* nothing is known of it on a page of another scale either */
	row->a = IvfBatchA(batch)[slot % QV_BATCH] == IVF_UNKNOWN_FACTOR ? -INFINITY :
		QvFactorUnpack(IvfBatchA(batch)[slot % QV_BATCH]) * head->a_scale;
	row->b = QvFactorUnpack(IvfBatchB(batch)[slot % QV_BATCH]) * head->b_scale;
	if (IvfIsRaw(head, slot / QV_BATCH))
		memcpy(scan, IvfBatchCodes(batch) + slot % QV_BATCH * ScanBytes(layout), ScanBytes(layout));
	else
		QvUnpackSlot(IvfBatchCodes(batch), layout->scan_bits, slot % QV_BATCH, scan);
	row->scan = scan;
	row->sketch = layout->sketch_bytes == 0 ? NULL :
		(const uint8 *) slot_sketch(layout, images->page, slot, images->items[IVF_SKETCHES]);
}

/* ---- checks ---- */

/* Verifies the record of a slot that is in use. */
static void
check_record(const IvfHandle *handle, const IvfPageImages *images, uint32 slot, bool live)
{
	IvfRecord	record = slot_record(&handle->layout, images->page, slot, images->items[IVF_RECORDS]);
	BlockNumber block = images->item_blocks[IVF_RECORDS];

	if (ItemPointerIsValid(&record->tid) != live)
		QvReportCorruption(handle->index, images->block, "Row %u is %s, but its record is %s.", slot,
						   live ? "live" : "dead", live ? "dead" : "live");
	if (!live)
		return;
	if (!IvfTidPossible(&record->tid))
		QvReportCorruption(handle->index, block, "The record of row %u of block %u holds an impossible heap TID.",
						   slot, images->block);
	if (!isfinite(record->scale) || record->scale < 0 || !isfinite(record->add) ||
		!isfinite(record->error) || record->error < 0)
		QvReportCorruption(handle->index, block,
						   "The record of row %u of block %u has factors that are not finite or negative.",
						   slot, images->block);
}

/* Verifies the sketch of a live slot, whose record is sound. */
static void
check_sketch(const IvfHandle *handle, const IvfPageImages *images, uint32 slot)
{
	const IvfLayout *layout = &handle->layout;
	BlockNumber block = images->item_blocks[IVF_SKETCHES];
	IvfRecord	record = slot_record(layout, images->page, slot, images->items[IVF_RECORDS]);
	IvfSketchData sketch;

	memcpy(&sketch, slot_sketch(layout, images->page, slot, images->items[IVF_SKETCHES]),
		   sizeof(sketch));
	if (!IvfTidPossible(&sketch.tid) || !ItemPointerEquals(&sketch.tid, &record->tid))
		QvReportCorruption(handle->index, block,
						   "The sketch of row %u of block %u is not of the row that its record is of.",
						   slot, images->block);
	if (!isfinite(sketch.a) || !isfinite(sketch.b) || !QvFactorIsFinite(sketch.spread) ||
		(sketch.spread & 0x8000) != 0)
		QvReportCorruption(handle->index, block,
						   "The sketch of row %u of block %u has factors that are not finite or negative.",
						   slot, images->block);
}

static bool
coded_check_slot(const IvfHandle *handle, const IvfPageImages *images, uint32 slot)
{
	const IvfLayout *layout = &handle->layout;
	uint32		count = IvfPageList(images->page)->count;
	uint16	   *batch = IvfPageBatch(layout, images->page, slot / QV_BATCH);
	uint16		factor = IvfBatchA(batch)[slot % QV_BATCH];
	bool		live = factor != QV_EMPTY_FACTOR;

	if (slot >= count)
	{
		bool		begun = slot / QV_BATCH < (count + QV_BATCH - 1) / QV_BATCH;

		if (factor != (begun || !layout->raw ? QV_EMPTY_FACTOR : 0))
			QvReportCorruption(handle->index, images->block,
							   "Row %u has a factor, but the page has %u rows.", slot, count);
		return false;
	}
	if (live && (!QvFactorIsFinite(factor) ||
				 !QvFactorIsFinite(IvfBatchB(batch)[slot % QV_BATCH])))
		QvReportCorruption(handle->index, images->block, "Row %u has a factor that is not finite.", slot);
	check_record(handle, images, slot, live);
	if (live && layout->sketch_bytes > 0)
		check_sketch(handle, images, slot);
	return live;
}

const IvfCodec ivf_coded_codec = {
	.choose = coded_choose,
	.derive = coded_derive,
	.coordinates = QvSpaceRotateValue,
	.prepare = coded_prepare,
	.prepare_row = coded_prepare_row,
	.norm2 = coded_norm2,
	.encode_centroid = coded_encode_centroid,
	.take_centroid = coded_take_centroid,
	.decode_centroid = coded_decode_centroid,
	.check_centroid = coded_check_centroid,
	.measure = coded_measure,
	.encode = coded_encode,
	.decode = coded_decode,
	.clear_slots = coded_clear_slots,
	.put_slot = coded_put_slot,
	.pack_slots = coded_pack_slots,
	.put_item = coded_put_item,
	.slot_tid = coded_slot_tid,
	.mark_dead = coded_mark_dead,
	.read = coded_read,
	.check_slot = coded_check_slot
};
