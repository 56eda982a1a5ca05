/*
 * writer.c
 *		Writing the pages of a list; see writer.h.
 */
#include "postgres.h"

#include <math.h>

#include "compat.h"
#include "ivf/page/pages.h"
#include "ivf/page/writer.h"
#include "miscadmin.h"
#include "pages/write.h"
#include "utils/memutils.h"

void
IvfSetScales(IvfListPage head, const IvfRow *row)
{
	float		a = fabsf(row->a),
				b = fabsf(row->b);

	/* a row that lies on its centroid says nothing about the others */
	head->a_scale = a > 1e-30f && a < 1e37f ? a : 1;
	head->b_scale = b > 1e-30f && b < 1e37f ? b : 1;
}

/* Policy: the least number of pages of codes in an extent.  Their records follow them. */
#define EXTENT_PAGES 16

struct IvfWriter
{
	IvfHandle  *handle;
	uint32		list;
	uint32		generation;
	uint32		extent_pages;	/* pages of codes in a full extent: their
								 * items fill whole pages */
	char	   *pages;			/* images of the extent's pages of codes */
	char	   *items[IVF_ITEM_KINDS];	/* images of its pages of items */
	BlockNumber *blocks;		/* where these pages go */
	uint32		npages;			/* pages of codes in the extent so far */
	uint32		slots_used;		/* on the last of them */
	uint32		total_pages;	/* pages of codes before the extent */
	uint32		rows;			/* of the list so far */
	BlockNumber head;			/* first page written, or invalid */
	BlockNumber tail;			/* last page of codes written, or invalid */
};

static uint32
common_divisor(uint32 a, uint32 b)
{
	return b == 0 ? a : common_divisor(b, a % b);
}

/* Returns how many pages of records or sketches nslots slots need. */
static uint32
item_pages_for(const IvfItems *items, uint32 nslots)
{
	return items->per_page == 0 ? 0 : (nslots + items->per_page - 1) / items->per_page;
}

IvfWriter *
IvfWriterBegin(IvfHandle *handle)
{
	const IvfLayout *layout = &handle->layout;
	IvfWriter  *writer = palloc0(sizeof(IvfWriter));
	uint32		per_page = layout->items[IVF_RECORDS].per_page;
	uint32		unit = 1;
	uint32		total;

	writer->handle = handle;
	/* each page of codes has one page of sketches */
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

/* Writes an image to its page, as one WAL record. */
static void
write_image(IvfWriter *writer, BlockNumber block, const char *image, QvPageKind kind,
			BlockNumber next)
{
	Buffer		buf = ReadBuffer(writer->handle->index, block);
	QvWrite		w;
	Page		page;

	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	QvWriteBegin(&w, writer->handle->index, writer->handle->building);
	page = QvWriteRegisterNew(&w, buf, kind);
	memcpy(QvPageGetData(page), image + QV_PAGE_START, QV_PAGE_SPACE);
	QvPageGetHeader(page)->next = next;
	QvWriteEnd(&w);
	QvInjectionPoint("quiver-ivf-page-written");
}

/* Links the last page of the extent before to the next page, as one WAL record. */
static void
link_tail(IvfWriter *writer, BlockNumber next)
{
	Buffer		buf = ReadBuffer(writer->handle->index, writer->tail);
	QvWrite		w;

	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	QvWriteBegin(&w, writer->handle->index, writer->handle->building);
	QvPageGetHeader(QvWriteRegister(&w, buf))->next = next;
	QvWriteEnd(&w);
	QvInjectionPoint("quiver-ivf-extent-linked");
}

/* Gives a free page another kind, so that no other backend takes it.  It is exclusively locked. */
static void
claim_page(IvfWriter *writer, Buffer buf)
{
	QvWrite		w;
	Page		page;

	/* a new page is not in the free space map */
	if (PageIsNew(BufferGetPage(buf)))
		return;
	QvWriteBegin(&w, writer->handle->index, writer->handle->building);
	page = QvWriteRegister(&w, buf);
	QvPageGetHeader(page)->kind = QV_PAGE_RECORDS;
	*IvfPageItems(page) = (IvfItemPageData)
	{
		.list = writer->list,
			.generation = writer->generation
	};
	QvWriteCommit(&w);
}

#define PageImage(images, i) ((Page) ((images) + (Size) (i) * BLCKSZ))

/* Sets the links of page i of the extent to its pages of records and sketches. */
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
			/* an extent begins with a new page of items */
			uint32		number = first / items->per_page + j;

			head->item_pages[items->first_link + j] =
				number * items->per_page < first + head->count ? blocks[which][number] :
				InvalidBlockNumber;
		}
	}
}

/* Writes the pages of the extent: items first, then codes. */
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
		buf = IvfAllocPage(writer->handle);
		writer->blocks[i] = BufferGetBlockNumber(buf);
		claim_page(writer, buf);
		UnlockReleaseBuffer(buf);
		QvInjectionPoint("quiver-ivf-page-claimed");
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

		/* a build logs whole pages, so raw codes would save no WAL */
		if (layout->raw && writer->handle->building)
			layout->codec->pack_slots(layout, PageImage(writer->pages, i));
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

/* Starts a page of codes, for a row. */
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
	IvfSetScales(head, row);
	layout->codec->clear_slots(layout, page);
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
	layout->codec->put_slot(layout, page, writer->slots_used, row);
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
			*IvfPageItems(image) = (IvfItemPageData)
			{
				.list = writer->list,
					.generation = writer->generation,
					.number = IvfItemPageNumber(layout, items, writer->total_pages, 0) +
						position / items->per_page
			};
		}
		layout->codec->put_item(layout, which, image, position % items->per_page, row);
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
