/*
 * rows.c
 *		Coding rows for a list, and putting them on pages; see rows.h.
 */
#include "postgres.h"

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

void
IvfEncode(const IvfHandle *handle, uint32 list, const float *x,
		  uint8 *code, uint8 *scan, float *scratch, IvfRow *row)
{
	const IvfLayout *layout = &handle->layout;
	uint32		pdim = layout->pdim;
	float	   *centroid = scratch;
	float	   *residual = scratch + pdim;
	uint8	   *bytes = layout->bits == 8 ? code : (uint8 *) (scratch + 2 * pdim);
	QvCodeFactors factors;
	float		f,
				yc = 0;

	IvfDecodeCentroid(handle, list, centroid);
	for (uint32 i = 0; i < pdim; i++)
		residual[i] = x[i] - centroid[i];
	QvEncode(residual, pdim, layout->bits, bytes, &factors);
	f = QvEncodeBits(residual, pdim, layout->scan_bits, scan);
	row->scale = factors.scale;
	row->error = factors.residual;
	if (layout->space == IVF_SPACE_L2)
	{
		/* <bits - 1/2, centroid>, and the same with the decoded residual */
		float	   *decoded = residual;

		for (uint32 i = 0; i < layout->scan_bits; i++)
			yc += residual[i] >= 0 ? centroid[i] : -centroid[i];
		yc *= 0.5f;
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
	if (bytes != code)
		QvPackCode(bytes, pdim, layout->bits, code);
	row->code = code;
	row->scan = scan;
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

	if (layout->form == IVF_PLAIN)
	{
		IvfPlainRow at = IvfPagePlainRow(layout, page, slot);

		at->tid = row->tid;
		at->unused = 0;
		memcpy(IvfPlainValue(at), row->code, layout->value_size);
		return;
	}
	block = IvfPageBlock(layout, page, slot / QV_BLOCK);
	factors[0] = row->a / head->a_scale;
	factors[1] = row->b / head->b_scale;
	if (!(fabsf(factors[0]) < MAX_F16) || !(fabsf(factors[1]) < MAX_F16))
	{
		factors[0] = -MAX_F16;
		factors[1] = 0;
	}
	qv_kernels.f32_to_f16(factors, IvfBlockA(block) + slot % QV_BLOCK, 1);
	qv_kernels.f32_to_f16(factors + 1, IvfBlockB(block) + slot % QV_BLOCK, 1);
	QvPackSlot(IvfBlockCodes(block), layout->scan_bits, slot % QV_BLOCK, row->scan);
}

void
IvfPutRecord(const IvfLayout *layout, Page page, uint32 slot, const IvfRow *row)
{
	IvfRecord	record = IvfPageRecord(layout, page, slot);

	record->scale = row->scale;
	record->add = row->add;
	record->error = row->error;
	record->tid = row->tid;
	record->unused = 0;
	memcpy(IvfRecordCode(record), row->code, layout->code_bytes);
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
	if (layout->form == IVF_PLAIN)
	{
		for (uint32 slot = 0; slot < layout->slots; slot++)
			ItemPointerSetInvalid(&IvfPagePlainRow(layout, page, slot)->tid);
		return;
	}
	for (uint32 block = 0; block < layout->blocks; block++)
		for (int i = 0; i < QV_BLOCK; i++)
			IvfBlockA(IvfPageBlock(layout, page, block))[i] = IVF_EMPTY_A;
}

bool
IvfSlotLive(const IvfLayout *layout, Page page, uint32 slot)
{
	if (layout->form == IVF_PLAIN)
		return ItemPointerIsValid(&IvfPagePlainRow(layout, page, slot)->tid);
	return IvfBlockA(IvfPageBlock(layout, page, slot / QV_BLOCK))[slot % QV_BLOCK] != IVF_EMPTY_A;
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
	uint32		extent_pages;	/* whole pages of records belong to so many */
	uint32		extent_records;
	char	   *pages;			/* images of pages of the list */
	char	   *records;		/* and of its records */
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

IvfWriter *
IvfWriterBegin(IvfHandle *handle, bool building)
{
	const IvfLayout *layout = &handle->layout;
	IvfWriter  *writer = palloc0(sizeof(IvfWriter));
	uint32		unit = 1;

	writer->handle = handle;
	writer->building = building;
	if (layout->form == IVF_CODED)
		unit = layout->records_per_page / common_divisor(layout->slots, layout->records_per_page);
	writer->extent_pages = (EXTENT_PAGES + unit - 1) / unit * unit;
	if (layout->form == IVF_CODED)
		writer->extent_records = writer->extent_pages * layout->slots / layout->records_per_page;
	writer->pages = MemoryContextAllocHuge(CurrentMemoryContext,
										   (Size) writer->extent_pages * BLCKSZ);
	writer->records = MemoryContextAllocHuge(CurrentMemoryContext,
											 (Size) Max(1, writer->extent_records) * BLCKSZ);
	writer->blocks = palloc((writer->extent_pages + writer->extent_records) * sizeof(BlockNumber));
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
	IvfPageRecords(page)->list = writer->list;
	IvfPageRecords(page)->generation = writer->generation;
	QvWriteCommit(&w);
}

#define PageImage(images, i) ((Page) ((images) + (Size) (i) * BLCKSZ))

static void
flush_extent(IvfWriter *writer)
{
	const IvfLayout *layout = &writer->handle->layout;
	uint32		nslots = (writer->npages - 1) * layout->slots + writer->slots_used;
	uint32		nrecords = layout->form == IVF_CODED ?
		(nslots + layout->records_per_page - 1) / layout->records_per_page : 0;
	BlockNumber *record_blocks = writer->blocks + writer->npages;

	if (writer->npages == 0)
		return;
	for (uint32 i = 0; i < writer->npages + nrecords; i++)
	{
		Buffer		buf;

		CHECK_FOR_INTERRUPTS();
		buf = IvfAllocPage(writer->handle, writer->building);
		writer->blocks[i] = BufferGetBlockNumber(buf);
		claim_page(writer, buf);
		UnlockReleaseBuffer(buf);
	}
	for (uint32 i = 0; i < nrecords; i++)
		write_image(writer, record_blocks[i], PageImage(writer->records, i),
					QV_PAGE_RECORDS, InvalidBlockNumber);
	for (uint32 i = 0; i < writer->npages; i++)
	{
		IvfListPage head = IvfPageList(PageImage(writer->pages, i));
		uint32		first = i * layout->slots;

		CHECK_FOR_INTERRUPTS();
		if (layout->form == IVF_CODED)
			for (uint32 j = 0; j < layout->max_records; j++)
			{
				/* an extent begins with a page of records of its own */
				uint32		record = first / layout->records_per_page + j;

				head->records[j] = record * layout->records_per_page < first + head->count ?
					record_blocks[record] : InvalidBlockNumber;
			}
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
	if (layout->form == IVF_CODED)
	{
		uint32		number = position / layout->records_per_page;
		Page		records = PageImage(writer->records, number);

		if (position % layout->records_per_page == 0)
		{
			IvfRecordPage head = IvfPageRecords(records);

			memset(records, 0, BLCKSZ);
			head->list = writer->list;
			head->generation = writer->generation;
			head->number = IvfRecordPageNumber(layout, writer->total_pages, 0) + number;
		}
		IvfPutRecord(layout, records, position % layout->records_per_page, row);
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
	pfree(writer->records);
	pfree(writer->blocks);
	pfree(writer);
}
