/*
 * format.c
 *		Sizes of pages of posting lists.
 */
#include "postgres.h"

#include <math.h>

#include "ivf/format.h"

/* Codes and factors of 32 rows. */
#define BatchSize(scan_bits) (QvBatchBytes(scan_bits) + 2 * QV_BATCH * sizeof(uint16))

/*
 * With a block more on pages of so few, codes of this share of the coordinates
 * do: searches read a fifth fewer pages or less for estimates that are a quarter
 * less exact at most (src/ivf/README.md, "Bound").
 */
#define MAX_BATCHES_TO_SQUEEZE 4
#define LEAST_SCAN_SHARE 0.8

/* The largest record, so that four bits always fit; two do for the widest. */
#define RECORD_SPACE (QV_PAGE_SPACE - sizeof(IvfItemPageData))
#define ENTRY_SPACE (QV_PAGE_SPACE - sizeof(IvfDirectoryData))

/* Pages of records that the slots of one page can be spread over. */
static uint32
record_pages(uint32 slots, uint32 per_page)
{
	/* the first may begin anywhere in its page of records */
	return (slots + per_page - 2) / per_page + 1;
}

/* The head names its page of sketches, too, if there are any. */
static uint32
list_head_size(uint32 slots, uint32 per_page, bool sketches)
{
	return MAXALIGN(offsetof(IvfListPageData, item_pages) +
					(record_pages(slots, per_page) + sketches) * sizeof(BlockNumber));
}

static int
fitting_bits(int bits, uint32 pdim, Size fixed, Size space)
{
	while (bits > 2 && fixed + QvCodeBytes(pdim, bits) > space)
		bits /= 2;
	return bits;
}

/*
 * Sketches are for vectors whose records are so large that few of them stay in
 * memory.  Every page of codes has a page of sketches beside it, whose size is
 * what that page holds.
 */
#define LEAST_SKETCHED 256

/* They are worth it when so large a share of the coordinates gets its low bit. */
#define LEAST_SKETCH_SHARE 0.25

/* Coordinates whose low bit is in a sketch, with so many slots on a page; 0: no sketches. */
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

/* Coordinates in the codes of so many slots on a page. */
static uint32
scan_bits_that_fit(const IvfMetaData *meta, uint32 slots)
{
	int			room = QV_PAGE_SPACE - list_head_size(slots, meta->records_per_page, true);

	room = room / (int) (slots / QV_BATCH) - (int) BatchSize(0);
	return room <= 0 ? 0 : room / (QvBatchBytes(QV_DIM_ALIGN)) * QV_DIM_ALIGN;
}

static void
choose_coded(IvfMetaData *meta)
{
	uint32		slots;

	meta->centroid_bits = fitting_bits(8, meta->pdim, sizeof(IvfEntryData), ENTRY_SPACE);
	meta->bits = fitting_bits(meta->bits ? meta->bits : 8, meta->pdim,
							  sizeof(IvfRecordData), RECORD_SPACE);
	meta->record_size = TYPEALIGN(4, sizeof(IvfRecordData) +
								  QvCodeBytes(meta->pdim, meta->bits));
	meta->records_per_page = RECORD_SPACE / meta->record_size;
	meta->entry_size = TYPEALIGN(4, sizeof(IvfEntryData) +
								 QvCodeBytes(meta->pdim, meta->centroid_bits));
	meta->entries_per_page = ENTRY_SPACE / meta->entry_size;

	/* all coordinates; of very wide vectors what one block a page can hold */
	slots = QV_BATCH;
	meta->scan_bits = Min(meta->pdim, scan_bits_that_fit(meta, slots));
	while (scan_bits_that_fit(meta, slots + QV_BATCH) >= meta->scan_bits)
		slots += QV_BATCH;

	/* or somewhat fewer, when that makes much more of a page */
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

static void
choose_plain(IvfMetaData *meta)
{
	meta->bits = 0;
	meta->entry_size = MAXALIGN(sizeof(IvfEntryData) + meta->value_size);
	meta->entries_per_page = ENTRY_SPACE / meta->entry_size;
	meta->record_size = 0;
	meta->records_per_page = 0;
	meta->batches_per_page = 0;
	meta->sketches_per_page = 0;
}

void
IvfChooseLayout(IvfMetaData *meta)
{
	if (meta->form == QV_FORM_CODED)
		choose_coded(meta);
	else
		choose_plain(meta);
}

/* Their links follow those of the kinds before. */
static void
set_items(IvfLayout *layout, IvfItemKind which, QvPageKind kind, const char *what, uint32 size,
		 uint32 per_page, uint32 max_pages)
{
	IvfItems    *items = &layout->items[which];

	items->kind = kind;
	items->what = what;
	items->size = size;
	items->per_page = per_page;
	items->max_pages = max_pages;
	items->first_link = layout->links;
	layout->links += items->max_pages;
}

bool
IvfLayoutFromMeta(IvfLayout *layout, const IvfMetaData *meta)
{
	float		before = 0;

	/* shares of the lists, which do not fall */
	for (int i = 0; i < IVF_TARGETS; i++)
	{
		if (!(meta->probes[i] >= before && meta->probes[i] <= 1))
			return false;
		before = meta->probes[i];
	}
	if (!isfinite(meta->tuples) || meta->tuples < 0)
		return false;
	memset(layout, 0, sizeof(*layout));
	layout->form = meta->form;
	layout->space = meta->space;
	layout->dims = meta->dims;
	layout->pdim = meta->pdim;
	layout->entry_size = meta->entry_size;
	layout->entries_per_page = meta->entries_per_page;
	layout->value_size = meta->value_size;
	if (meta->dims == 0 || meta->entries_per_page == 0 ||
		(Size) meta->entries_per_page * meta->entry_size > ENTRY_SPACE ||
		meta->lists == 0 || meta->lists > IVF_MAX_LISTS || meta->tops > meta->lists)
		return false;
	if (meta->form == QV_FORM_PLAIN)
	{
		layout->centroid_bytes = meta->value_size;
		layout->row_size = MAXALIGN(sizeof(IvfPlainRowData) + meta->value_size);
		layout->batch_start = MAXALIGN(offsetof(IvfListPageData, item_pages));
		if (meta->value_size == 0 || meta->value_size > BLCKSZ ||
			sizeof(IvfEntryData) + meta->value_size > meta->entry_size ||
			layout->batch_start + layout->row_size > QV_PAGE_SPACE)
			return false;
		layout->slots = (QV_PAGE_SPACE - layout->batch_start) / layout->row_size;
		return true;
	}

	if (meta->form != QV_FORM_CODED ||
		(meta->space != QV_SPACE_L2 && meta->space != QV_SPACE_IP) ||
		(meta->bits != 8 && meta->bits != 4 && meta->bits != 2) ||
		(meta->centroid_bits != 8 && meta->centroid_bits != 4 && meta->centroid_bits != 2) ||
		meta->pdim != QvPaddedDim(meta->dims) || meta->pdim > QV_MAX_PDIM ||
		meta->scan_bits == 0 || meta->scan_bits > meta->pdim ||
		meta->scan_bits % QV_DIM_ALIGN != 0 ||
		meta->records_per_page == 0 || meta->batches_per_page == 0)
		return false;
	layout->bits = meta->bits;
	layout->centroid_bits = meta->centroid_bits;
	layout->centroid_bytes = QvCodeBytes(meta->pdim, meta->centroid_bits);
	layout->code_bytes = QvCodeBytes(meta->pdim, meta->bits);
	layout->scan_bits = meta->scan_bits;
	layout->batches = meta->batches_per_page;
	layout->slots = layout->batches * QV_BATCH;
	layout->batch_size = BatchSize(layout->scan_bits);
	set_items(layout, IVF_RECORDS, QV_PAGE_RECORDS, "records", meta->record_size,
			 meta->records_per_page, record_pages(layout->slots, meta->records_per_page));
	if (meta->sketches_per_page > 0)
	{
		layout->sketch_lows = sketch_lows(meta->pdim, meta->scan_bits, meta->bits, layout->slots);
		if (layout->sketch_lows == 0 || meta->sketches_per_page != layout->slots)
			return false;
		layout->sketch_bytes = TYPEALIGN(4, sizeof(IvfSketchData) +
										 (meta->pdim - meta->scan_bits + layout->sketch_lows) / 8);
		set_items(layout, IVF_SKETCHES, QV_PAGE_SKETCHES, "sketches", layout->sketch_bytes,
				 meta->sketches_per_page, 1);
	}
	layout->batch_start = list_head_size(layout->slots, meta->records_per_page,
										 meta->sketches_per_page > 0);
	return sizeof(IvfEntryData) + layout->centroid_bytes <= layout->entry_size &&
		sizeof(IvfRecordData) + layout->code_bytes <= meta->record_size &&
		(Size) meta->records_per_page * meta->record_size <= RECORD_SPACE &&
		(Size) meta->sketches_per_page * layout->sketch_bytes <= RECORD_SPACE &&
		layout->batch_start + (Size) layout->batches * layout->batch_size <= QV_PAGE_SPACE;
}

uint32
IvfChooseLists(const IvfLayout *layout, double rows)
{
	double		root = sqrt(Max(1, rows));
	double		lists = Max(root, Min(IVF_LISTS_PER_ROOT * root, rows / layout->slots));

	return Max(1, Min(IVF_MAX_LISTS, rint(lists)));
}

double
IvfListLength(const IvfLayout *layout, double lists)
{
	double		most = IVF_LISTS_PER_ROOT * IVF_LISTS_PER_ROOT;

	/* with r times the root of n, n / lists = lists / r^2 */
	return Max(lists / most, Min(lists, layout->slots));
}
