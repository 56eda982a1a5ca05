/*
 * rows.c
 *		Coding rows for a list, and putting them on pages; see rows.h.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "ivf/pages.h"
#include "ivf/rows.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* ---- codes ---- */

void
IvfDecodeCentroid(const IvfHandle *handle, uint32 list, float *out)
{
	const IvfLists *lists = handle->lists;

	qv_kernels.decode_u8(lists->codes + list * lists->stride, lists->scale[list],
						 QvCodeOffset(handle->layout.centroid_bits), out,
						 handle->layout.pdim);
}

/* <bits - 1/2, centroid> of the one-bit code of a residual, over n coordinates. */
static float
sign_ip(const float *residual, const float *centroid, uint32 n)
{
	float		sum = 0;

	for (uint32 i = 0; i < n; i++)
		sum += residual[i] >= 0 ? centroid[i] : -centroid[i];
	return 0.5f * sum;
}

/* Pack the low bits of n codes, a multiple of 8. */
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
 * The sketch of a residual: a two-bit code, whose values are -3/2, -1/2, 1/2
 * and 3/2; past sketch_lows only its high bit is kept, and the values are -1
 * and 1.  bytes has room for pdim codes, values for as many floats.
 */
static void
make_sketch(const IvfLayout *layout, const float *residual, const float *centroid,
			uint8 *bytes, float *values, uint8 *out)
{
	uint32		pdim = layout->pdim;
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
	/* as for one-bit codes: see src/ivf/README.md, "Factors" and "Bound" */
	if (yr > 0 && factors.norm2 > 0 && isfinite(factors.norm2 / yr))
	{
		f = factors.norm2 / yr;
		spread = sqrtf(Max(0, yy - yr / factors.norm2 * yr) / pdim);
	}
	/* squares outside float32 say nothing: the row is always judged by itself */
	if (f == 0 && qv_kernels.maxabs_f32(residual, pdim) > 0)
		sketch.a = -FLT_MAX;
	else if (layout->space == QV_SPACE_L2)
	{
		sketch.a = factors.norm2 + 2 * f * qv_kernels.ip_f32(values, centroid, pdim);
		sketch.b = -2 * f;
	}
	else
		sketch.b = -f;
	qv_kernels.f32_to_f16(&spread, &sketch.spread, 1);
	ItemPointerSetInvalid(&sketch.tid);
	memcpy(out, &sketch, sizeof(sketch));
	pack_low_bits(bytes, layout->sketch_lows, lows);
	/* a code's high bit is the sign, as in one-bit codes */
	(void) qv_kernels.sign_bits_f32(residual + layout->scan_bits, pdim - layout->scan_bits, highs);
	memset(end, 0, out + layout->sketch_bytes - end);
}

void
IvfSetRowData(const IvfLayout *layout, IvfRow *row, const uint8 *data)
{
	row->code = data;
	row->scan = data + layout->code_bytes;
	row->sketch = layout->sketch_bytes > 0 ? row->scan + layout->scan_bits / 8 : NULL;
}

void
IvfEncode(const IvfHandle *handle, uint32 list, const float *x,
		  uint8 *data, float *scratch, IvfRow *row)
{
	const IvfLayout *layout = &handle->layout;
	uint32		pdim = layout->pdim;
	float	   *centroid = scratch;
	float	   *residual = scratch + pdim;
	float	   *third = scratch + 2 * pdim;
	uint8	   *scan = data + layout->code_bytes;
	uint8	   *bytes = data;
	QvCodeFactors factors;
	float		f;

	IvfSetRowData(layout, row, data);
	IvfDecodeCentroid(handle, list, centroid);
	for (uint32 i = 0; i < pdim; i++)
		residual[i] = x[i] - centroid[i];

	/* bytes not packed yet need more room than the code */
	if (layout->sketch_bytes > 0)
		make_sketch(layout, residual, centroid, data, third, (uint8 *) row->sketch);
	else if (layout->bits < 8)
		bytes = (uint8 *) third;
	f = QvEncodeBits(residual, pdim, layout->scan_bits, scan);
	QvEncode(residual, pdim, layout->bits, bytes, &factors);
	row->scale = factors.scale;
	row->error = factors.residual;
	if (layout->space == QV_SPACE_L2)
	{
		float	   *decoded = residual;
		float		yc = sign_ip(residual, centroid, layout->scan_bits);

		qv_kernels.decode_u8(bytes, factors.scale, QvCodeOffset(layout->bits), decoded, pdim);
		row->a = factors.norm2 + 2 * f * yc;
		row->b = -2 * f;
		row->add = factors.norm2 + 2 * qv_kernels.ip_f32(decoded, centroid, pdim);
	}
	else
	{
		row->a = 0;
		row->b = -f;
		row->add = 0;
	}
	if (bytes != data)
		QvPackCode(bytes, pdim, layout->bits, data);
}

void
IvfDecodeRecord(const IvfHandle *handle, const float *centroid,
				const IvfRecordData *record, uint8 *scratch, float *out)
{
	const IvfLayout *layout = &handle->layout;
	const uint8 *code = IvfRecordCode(record);

	if (layout->bits < 8)
	{
		qv_kernels.unpack_bits(code, layout->bits, scratch, layout->pdim);
		code = scratch;
	}
	qv_kernels.decode_u8(code, record->scale, QvCodeOffset(layout->bits), out, layout->pdim);
	qv_kernels.add_f32(out, centroid, layout->pdim);
}

/* ---- slots ---- */

/* The largest float16, short of infinity, which means an empty slot. */
#define MAX_F16 65504.0f

/*
 * Factors are kept relative to the page's scales.  A row that is so much
 * larger than the first on its page that its factors do not fit is always
 * looked at by its finer code: its estimate is below any distance.
 */
void
IvfPutSlot(const IvfLayout *layout, Page page, uint32 slot, const IvfRow *row)
{
	IvfListPage head = IvfPageList(page);
	uint16	   *block;
	float		factors[2];

	if (layout->form == QV_FORM_PLAIN)
	{
		IvfPlainRow at = IvfPagePlainRow(layout, page, slot);

		at->tid = row->tid;
		at->unused = 0;
		memcpy(IvfPlainValue(at), row->code, layout->value_size);
		return;
	}
	block = IvfPageBatch(layout, page, slot / QV_BATCH);
	factors[0] = row->a / head->a_scale;
	factors[1] = row->b / head->b_scale;
	if (!(fabsf(factors[0]) < MAX_F16) || !(fabsf(factors[1]) < MAX_F16))
	{
		factors[0] = -MAX_F16;
		factors[1] = 0;
	}
	qv_kernels.f32_to_f16(factors, IvfBatchA(block) + slot % QV_BATCH, 1);
	qv_kernels.f32_to_f16(factors + 1, IvfBatchB(block) + slot % QV_BATCH, 1);
	QvPackSlot(IvfBatchCodes(block), layout->scan_bits, slot % QV_BATCH, row->scan);
}

void
IvfPutItem(const IvfLayout *layout, IvfItemKind which, Page page, uint32 place,
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

void
IvfInitItemPage(Page page, uint32 list, uint32 generation, uint32 number)
{
	IvfItemPage head = IvfPageItems(page);

	head->list = list;
	head->generation = generation;
	head->number = number;
}

void
IvfSetScales(IvfListPage head, const IvfRow *rows, int nrows)
{
	float		a = 0,
				b = 0;

	for (int i = 0; i < nrows; i++)
	{
		a = Max(a, fabsf(rows[i].a));
		b = Max(b, fabsf(rows[i].b));
	}
	/* rows that lie on their centroid say nothing about others */
	head->a_scale = a > 1e-30f && a < 1e37f ? a : 1;
	head->b_scale = b > 1e-30f && b < 1e37f ? b : 1;
}

void
IvfClearSlots(const IvfLayout *layout, Page page)
{
	if (layout->form == QV_FORM_PLAIN)
	{
		for (uint32 slot = 0; slot < layout->slots; slot++)
			ItemPointerSetInvalid(&IvfPagePlainRow(layout, page, slot)->tid);
		return;
	}
	for (uint32 block = 0; block < layout->batches; block++)
		for (int i = 0; i < QV_BATCH; i++)
			IvfBatchA(IvfPageBatch(layout, page, block))[i] = QV_EMPTY_FACTOR;
}

bool
IvfSlotLive(const IvfLayout *layout, Page page, uint32 slot)
{
	if (layout->form == QV_FORM_PLAIN)
		return ItemPointerIsValid(&IvfPagePlainRow(layout, page, slot)->tid);
	return IvfBatchA(IvfPageBatch(layout, page, slot / QV_BATCH))[slot % QV_BATCH] != QV_EMPTY_FACTOR;
}

/* ---- writing a whole list ---- */

/* Pages of a list written in one go: their records follow them. */
#define EXTENT_PAGES 16

struct IvfWriter
{
	IvfHandle  *handle;
	bool		building;
	uint32		list;
	uint32		generation;
	uint32		extent_pages;	/* whole pages of records and sketches belong to so many */
	char	   *pages;			/* images of pages of the list */
	char	   *items[IVF_ITEM_KINDS];	/* and of its records, its sketches */
	BlockNumber *blocks;		/* where they go */
	uint32		npages;			/* of the list, in the extent */
	uint32		slots_used;		/* on the last of them */
	uint32		total_pages;	/* before the extent */
	uint32		rows;
	BlockNumber head;
	BlockNumber tail;
};

static uint32
common_divisor(uint32 a, uint32 b)
{
	return b == 0 ? a : common_divisor(b, a % b);
}

/* Pages of records or sketches that so many slots take. */
static uint32
item_pages_for(const IvfItems *items, uint32 nslots)
{
	return items->per_page == 0 ? 0 : (nslots + items->per_page - 1) / items->per_page;
}

IvfWriter *
IvfWriterBegin(IvfHandle *handle, bool building)
{
	const IvfLayout *layout = &handle->layout;
	IvfWriter  *writer = palloc0(sizeof(IvfWriter));
	uint32		per_page = layout->items[IVF_RECORDS].per_page;
	uint32		unit = 1;
	uint32		total;

	writer->handle = handle;
	writer->building = building;
	/* pages of sketches come out even with those of codes */
	if (per_page > 0)
		unit = per_page / common_divisor(layout->slots, per_page);
	writer->extent_pages = total = (EXTENT_PAGES + unit - 1) / unit * unit;
	writer->pages = MemoryContextAllocHuge(CurrentMemoryContext,
										   (Size) writer->extent_pages * BLCKSZ);
	for (int i = 0; i < IVF_ITEM_KINDS; i++)
	{
		uint32		npages = item_pages_for(&layout->items[i], writer->extent_pages * layout->slots);

		total += npages;
		if (npages > 0)
			writer->items[i] = MemoryContextAllocHuge(CurrentMemoryContext, (Size) npages * BLCKSZ);
	}
	writer->blocks = palloc(total * sizeof(BlockNumber));
	return writer;
}

void
IvfWriterStart(IvfWriter *writer, uint32 list, uint32 generation)
{
	writer->list = list;
	writer->generation = generation;
	writer->npages = writer->slots_used = writer->total_pages = writer->rows = 0;
	writer->head = writer->tail = InvalidBlockNumber;
}

/* Copy an image to its page. */
static void
write_image(IvfWriter *writer, BlockNumber block, const char *image, QvPageKind kind,
			BlockNumber next)
{
	Buffer		buf = ReadBuffer(writer->handle->index, block);
	QvWrite		w;
	Page		page;

	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	QvWriteBegin(&w, writer->handle->index, writer->building);
	page = QvWriteRegisterNew(&w, buf, kind);
	memcpy(QvPageGetData(page), image + QV_PAGE_START, QV_PAGE_SPACE);
	QvPageGetHeader(page)->next = next;
	QvWriteCommit(&w);
	UnlockReleaseBuffer(buf);
}

/* Let the page written last lead to the next. */
static void
link_tail(IvfWriter *writer, BlockNumber next)
{
	Buffer		buf = ReadBuffer(writer->handle->index, writer->tail);
	QvWrite		w;

	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	QvWriteBegin(&w, writer->handle->index, writer->building);
	QvPageGetHeader(QvWriteRegister(&w, buf))->next = next;
	QvWriteCommit(&w);
	UnlockReleaseBuffer(buf);
}

/* Let a page that was free be taken by nobody else; it is exclusively locked. */
static void
claim_page(IvfWriter *writer, Buffer buf)
{
	QvWrite		w;
	Page		page;

	/* one just added is in no map */
	if (PageIsNew(BufferGetPage(buf)))
		return;
	QvWriteBegin(&w, writer->handle->index, writer->building);
	page = QvWriteRegister(&w, buf);
	QvPageGetHeader(page)->kind = QV_PAGE_RECORDS;
	IvfInitItemPage(page, writer->list, writer->generation, 0);
	QvWriteCommit(&w);
}

#define PageImage(images, i) ((Page) ((images) + (Size) (i) * BLCKSZ))

/* Name the pages of records and sketches of a page of the extent. */
static void
link_items(const IvfWriter *writer, uint32 i, BlockNumber *const *blocks)
{
	const IvfLayout *layout = &writer->handle->layout;
	IvfListPage head = IvfPageList(PageImage(writer->pages, i));
	uint32		first = i * layout->slots;

	for (int which = 0; which < IVF_ITEM_KINDS; which++)
	{
		const IvfItems *items = &layout->items[which];

		for (uint32 j = 0; j < items->max_pages; j++)
		{
			/* an extent begins with a page of its own */
			uint32		number = first / items->per_page + j;

			head->item_pages[items->first_link + j] =
				number * items->per_page < first + head->count ? blocks[which][number] :
				InvalidBlockNumber;
		}
	}
}

static void
flush_extent(IvfWriter *writer)
{
	const IvfLayout *layout = &writer->handle->layout;
	uint32		nslots = (writer->npages - 1) * layout->slots + writer->slots_used;
	BlockNumber *item_blocks[IVF_ITEM_KINDS];
	uint32		total = writer->npages;

	if (writer->npages == 0)
		return;
	for (int which = 0; which < IVF_ITEM_KINDS; which++)
	{
		item_blocks[which] = writer->blocks + total;
		total += item_pages_for(&layout->items[which], nslots);
	}
	for (uint32 i = 0; i < total; i++)
	{
		Buffer		buf;

		CHECK_FOR_INTERRUPTS();
		buf = IvfAllocPage(writer->handle, writer->building);
		writer->blocks[i] = BufferGetBlockNumber(buf);
		claim_page(writer, buf);
		UnlockReleaseBuffer(buf);
	}
	for (int which = 0; which < IVF_ITEM_KINDS; which++)
		for (uint32 i = 0; i < item_pages_for(&layout->items[which], nslots); i++)
		{
			CHECK_FOR_INTERRUPTS();
			write_image(writer, item_blocks[which][i], PageImage(writer->items[which], i),
						layout->items[which].kind, InvalidBlockNumber);
		}
	for (uint32 i = 0; i < writer->npages; i++)
	{
		CHECK_FOR_INTERRUPTS();
		link_items(writer, i, item_blocks);
		write_image(writer, writer->blocks[i], PageImage(writer->pages, i), QV_PAGE_CODES,
					i + 1 < writer->npages ? writer->blocks[i + 1] : InvalidBlockNumber);
	}
	if (BlockNumberIsValid(writer->tail))
		link_tail(writer, writer->blocks[0]);
	else
		writer->head = writer->blocks[0];
	writer->tail = writer->blocks[writer->npages - 1];
	writer->total_pages += writer->npages;
	writer->npages = 0;
	writer->slots_used = 0;
}

static void
start_page(IvfWriter *writer, const IvfRow *row)
{
	const IvfLayout *layout = &writer->handle->layout;
	Page		page;
	IvfListPage head;

	if (writer->npages == writer->extent_pages)
		flush_extent(writer);
	page = PageImage(writer->pages, writer->npages++);
	memset(page, 0, BLCKSZ);
	head = IvfPageList(page);
	head->list = writer->list;
	head->generation = writer->generation;
	head->number = writer->total_pages + writer->npages - 1;
	IvfSetScales(head, row, 1);
	IvfClearSlots(layout, page);
	writer->slots_used = 0;
}

void
IvfWriterAdd(IvfWriter *writer, const IvfRow *row)
{
	const IvfLayout *layout = &writer->handle->layout;
	Page		page;
	uint32		position;

	if (writer->npages == 0 || writer->slots_used == layout->slots)
		start_page(writer, row);
	page = PageImage(writer->pages, writer->npages - 1);
	position = (writer->npages - 1) * layout->slots + writer->slots_used;
	IvfPutSlot(layout, page, writer->slots_used, row);
	IvfPageList(page)->count = ++writer->slots_used;
	writer->rows++;
	for (int which = 0; which < IVF_ITEM_KINDS; which++)
	{
		const IvfItems *items = &layout->items[which];
		Page		image;

		if (items->per_page == 0)
			continue;
		image = PageImage(writer->items[which], position / items->per_page);
		if (position % items->per_page == 0)
		{
			memset(image, 0, BLCKSZ);
			IvfInitItemPage(image, writer->list, writer->generation,
							IvfItemPageNumber(layout, items, writer->total_pages, 0) +
							position / items->per_page);
		}
		IvfPutItem(layout, which, image, position % items->per_page, row);
	}
}

void
IvfWriterFinish(IvfWriter *writer, BlockNumber *head, BlockNumber *tail, uint32 *rows)
{
	flush_extent(writer);
	*head = writer->head;
	*tail = writer->tail;
	*rows = writer->rows;
}

void
IvfWriterEnd(IvfWriter *writer)
{
	pfree(writer->pages);
	for (int which = 0; which < IVF_ITEM_KINDS; which++)
		if (writer->items[which])
			pfree(writer->items[which]);
	pfree(writer->blocks);
	pfree(writer);
}
