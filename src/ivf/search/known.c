/*
 * known.c
 *		Searching for members by codes in memory; see known.h.
 */
#include "postgres.h"

#include <math.h>

#include "ivf/page/cache.h"
#include "ivf/page/pages.h"
#include "ivf/search/coded_scan.h"
#include "ivf/search/known.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Where the record of a row is. */
typedef struct RecordPlace
{
	uint32		list;
	BlockNumber block;
	uint32		number;			/* of that page of records in its list */
	uint16		slot;
} RecordPlace;

/* What a backend keeps of the rows of an index. */
struct IvfKnownRows
{
	QvRelCachePart part;
	QvKnownRows rows;
	RecordPlace *places;		/* by the rows' numbers */
	uint32	   *generations;	/* of the lists when they were read */
	uint32		nlists;
	uint32		count;			/* rows, of which there is room for */
	uint32		room;			/* so many; further ones are not known */
};

/* Room for rows that have come since they were counted. */
#define MORE_ROWS 1.0625
#define FEW_MORE 1024

bool
IvfCanKnow(const IvfLayout *layout)
{
	return layout->items[IVF_RECORDS].size > 0;
}

static double
rows_with_room(double rows)
{
	return Min(Max(0, rows) * MORE_ROWS + FEW_MORE, PG_INT32_MAX);
}

/* The rows of an index: the metapage does not know of those that have come since the last build or vacuum. */
static double
rows_of(const IvfHandle *handle)
{
	double		rows = 0;

	for (uint32 i = 0; i < handle->lists->count; i++)
		rows += handle->lists->refs[i].rows;
	return Max(rows, handle->meta.tuples);
}

Size
IvfKnownSize(const IvfLayout *layout, BlockNumber table_blocks, double rows)
{
	return rows_with_room(rows) * (QvBitCodesSize(layout->pdim, 1) + sizeof(RecordPlace)) +
		QvTidMapSize(table_blocks, rows);
}

/* ---- reading all rows ---- */

typedef struct Lesson
{
	IvfHandle  *handle;
	struct IvfKnownRows *known;
	IvfPageImages images;
	float	   *centroid;		/* of the list in hand, */
	float	   *x;				/* and of a row */
} Lesson;

/* Have the record of a slot of the page in hand; NULL when its list has moved. */
static IvfRecord
slot_record(Lesson *lesson, uint32 slot, RecordPlace *place)
{
	const IvfLayout *layout = &lesson->handle->layout;
	const IvfItems *items = &layout->items[IVF_RECORDS];
	IvfListPage head = IvfPageList(lesson->images.page);
	IvfItemPageData wanted = IvfItemPageWanted(layout, items, head, slot);

	place->list = head->list;
	place->block = IvfItemBlock(layout, items, head, slot);
	place->number = wanted.number;
	place->slot = IvfItemPlace(layout, items, head->number, slot);
	if (!BlockNumberIsValid(place->block))
		QvReportCorruption(lesson->handle->index, lesson->images.block, "Row %u has no page of %s.", slot, items->what);
	if (lesson->images.item_blocks[IVF_RECORDS] != place->block)
	{
		Buffer		buf = IvfReadItemPage(lesson->handle, IVF_RECORDS, place->block, &wanted, BUFFER_LOCK_SHARE);

		if (!BufferIsValid(buf))
			return NULL;
		memcpy(lesson->images.items[IVF_RECORDS], BufferGetPage(buf), BLCKSZ);
		UnlockReleaseBuffer(buf);
		lesson->images.item_blocks[IVF_RECORDS] = place->block;
	}
	return IvfPageItem(items, lesson->images.items[IVF_RECORDS], place->slot);
}

/* Note a row; false when there is no memory for its heap TID. */
static bool
learn_row(Lesson *lesson, IvfRecord record, const RecordPlace *place)
{
	const IvfLayout *layout = &lesson->handle->layout;
	struct IvfKnownRows *known = lesson->known;
	IvfRow		row = {.scale = record->scale, .code = IvfRecordCode(record)};
	float		norm2;

	if (known->count == known->room)
		return true;
	layout->codec->decode(lesson->handle, lesson->centroid, &row, lesson->x);
	norm2 = qv_kernels.norm2_f32(lesson->x, layout->pdim);

	/*
	 * this is of what the record says; the row may be nearer to the mean, by
	 * what an error in a direction by chance takes
	 */
	if (layout->space == QV_SPACE_L2)
		norm2 -= 2 * known->rows.codes.certainty * sqrtf(norm2) * record->error;
	QvBitCodesPut(&known->rows.codes, known->count, lesson->x, norm2, record->error);
	known->places[known->count] = *place;
	return QvTidMapPut(&known->rows.numbers, known->count++, &record->tid);
}

/* Note the rows of the page in hand; false when its list has moved, or there is no memory. */
static bool
learn_page(Lesson *lesson)
{
	uint32		count = IvfPageList(lesson->images.page)->count;

	lesson->images.item_blocks[IVF_RECORDS] = InvalidBlockNumber;
	for (uint32 slot = 0; slot < count; slot++)
	{
		RecordPlace place;
		IvfRecord	record = slot_record(lesson, slot, &place);

		if (record == NULL || (ItemPointerIsValid(&record->tid) && !learn_row(lesson, record, &place)))
			return false;
	}
	return true;
}

/* A damaged page may lead to one before it. */
static void
check_number(const IvfHandle *handle, BlockNumber block, Page page, uint32 list, uint32 number)
{
	if (IvfPageList(page)->number != number)
		QvReportCorruption(handle->index, block, "The page is number %u of list %u, not %u.",
						   IvfPageList(page)->number, list, number);
}

/* Add the slots in use of a list; false when it has moved. */
static bool
count_rows(IvfHandle *handle, uint32 list, double *rows)
{
	const IvfListRef *ref = &handle->lists->refs[list];
	BlockNumber block = ref->head;
	uint32		number = 0;

	while (BlockNumberIsValid(block))
	{
		Buffer		buf;

		CHECK_FOR_INTERRUPTS();
		buf = IvfReadListPage(handle, block, list, ref->generation, BUFFER_LOCK_SHARE);
		if (!BufferIsValid(buf))
			return false;
		check_number(handle, block, BufferGetPage(buf), list, number++);
		*rows += IvfPageList(BufferGetPage(buf))->count;
		block = QvPageGetHeader(BufferGetPage(buf))->next;
		UnlockReleaseBuffer(buf);
	}
	return true;
}

static bool
learn_list(Lesson *lesson, uint32 list)
{
	const IvfListRef *ref = &lesson->handle->lists->refs[list];
	BlockNumber block = ref->head;
	uint32		number = 0;

	lesson->known->generations[list] = ref->generation;
	IvfDecodeCentroid(lesson->handle, list, lesson->centroid);
	while (BlockNumberIsValid(block))
	{
		Buffer		buf;

		CHECK_FOR_INTERRUPTS();
		buf = IvfReadListPage(lesson->handle, block, list, ref->generation, BUFFER_LOCK_SHARE);
		if (!BufferIsValid(buf))
			return false;
		check_number(lesson->handle, block, BufferGetPage(buf), list, number++);
		memcpy(lesson->images.page, BufferGetPage(buf), BLCKSZ);
		UnlockReleaseBuffer(buf);
		lesson->images.block = block;
		if (!learn_page(lesson))
			return false;
		block = QvPageGetHeader(lesson->images.page)->next;
	}
	return true;
}

/* Room for what there is to know of so many rows, below CurrentMemoryContext; NULL when there is none. */
static struct IvfKnownRows *
make_known(const IvfHandle *handle, BlockNumber table_blocks, double rows)
{
	const IvfLayout *layout = &handle->layout;
	Size		size = IvfKnownSize(layout, table_blocks, rows);
	Size		map = QvTidMapSize(table_blocks, rows);
	struct IvfKnownRows *known;

	if (size > QvTidMapMemory())
		return NULL;
	known = QvRelCacheNewPart(sizeof(struct IvfKnownRows));
	known->room = rows_with_room(rows);
	known->nlists = handle->lists->count;
	known->generations = MemoryContextAllocHuge(known->part.context, Max(1, known->nlists) * sizeof(uint32));
	known->places = MemoryContextAllocExtended(known->part.context, known->room * sizeof(RecordPlace),
											   MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	QvBitCodesInit(&known->rows.codes, layout->space, layout->dims, layout->pdim, known->room,
				   known->part.context);
	if (known->places && known->rows.codes.codes &&
		QvTidMapInit(&known->rows.numbers, known->part.context, table_blocks, rows,
					 QvTidMapMemory() - (size - map)))
		return known;
	MemoryContextDelete(known->part.context);
	return NULL;
}

/* Read all rows and keep what is to be known of them; false when that cannot be. */
static bool
learn(IvfHandle *handle, const QvTidSet *only, QvScanCounters *counters)
{
	Lesson		lesson = {.handle = handle};
	const IvfLayout *layout = &handle->layout;
	bool		done = true;
	double		rows = 0;

	for (uint32 list = 0; list < handle->lists->count && done; list++)
		done = count_rows(handle, list, &rows);
	lesson.known = done ? make_known(handle, only->nblocks, rows) : NULL;
	if (lesson.known == NULL)
	{
		/* not again soon */
		IvfForgetKnown(handle);
		return false;
	}
	lesson.known->rows.vacuums = handle->meta.vacuums;
	lesson.images.page = palloc(BLCKSZ);
	lesson.images.items[IVF_RECORDS] = palloc(BLCKSZ);
	lesson.centroid = palloc(layout->pdim * sizeof(float));
	lesson.x = palloc(layout->pdim * sizeof(float));
	for (uint32 list = 0; list < lesson.known->nlists && done; list++)
		done = learn_list(&lesson, list);
	counters->lists += lesson.known->nlists;
	counters->records += lesson.known->count;
	pfree(lesson.images.page);
	pfree(lesson.images.items[IVF_RECORDS]);
	pfree(lesson.centroid);
	pfree(lesson.x);
	if (done)
	{
		/* rows without a value are no reason to read all of them again */
		lesson.known->rows.absent = QvShareAbsent(&lesson.known->rows, only);
		IvfKeepKnown(handle, &lesson.known->part, lesson.known, &lesson.known->rows.codes);
	}
	else
	{
		MemoryContextDelete(lesson.known->part.context);
		IvfForgetKnown(handle);
	}
	return done;
}

/* ---- searching ---- */

typedef struct RecordReader
{
	IvfReader  *reader;
	struct IvfKnownRows *known; /* pinned */
	float	   *bases;			/* distances of centroids; NaN: not known yet */
} RecordReader;

static void
prefetch_record(void *arg, const QvMember *member)
{
	const RecordReader *r = arg;
	const IvfHandle *handle = r->reader->handle;
	const IvfItems *items = &handle->layout.items[IVF_RECORDS];
	const RecordPlace *place = &r->known->places[member->number];

	QvPrefetchPin(handle->hints, place->block);
	QvPrefetchPage(handle->hints, place->block,
				   QV_PAGE_START + sizeof(IvfItemPageData) + (Size) place->slot * items->size, items->size);
}

static float
base_of(RecordReader *r, uint32 list)
{
	if (isnan(r->bases[list]))
		r->bases[list] = coded_exact_base(r->reader, list);
	return r->bases[list];
}

/* Measure a record; false when the row is not there, for its list has moved. */
static bool
measure_record(void *arg, const QvMember *member, QvMeasured *measured)
{
	RecordReader *r = arg;
	IvfHandle  *handle = r->reader->handle;
	const RecordPlace *place = &r->known->places[member->number];
	IvfItemPageData wanted = {
		.list = place->list,
		.generation = r->known->generations[place->list],
		.number = place->number
	};
	Buffer		buf;
	IvfRecord	record;
	bool		found;
	float		base;

	/*
	 * pages of a list that was split may be there still, and its centroid is
	 * another
	 */
	if (place->list >= handle->lists->count ||
		handle->lists->refs[place->list].generation != wanted.generation)
		return false;
	base = base_of(r, place->list);
	r->reader->counters->records++;
	buf = IvfReadItemPage(handle, IVF_RECORDS, place->block, &wanted, BUFFER_LOCK_SHARE);
	if (!BufferIsValid(buf))
		return false;
	record = IvfPageItem(&handle->layout.items[IVF_RECORDS], BufferGetPage(buf), place->slot);
	found = ItemPointerEquals(&record->tid, (ItemPointer) &member->tid);
	if (found)
		measured->distance = coded_record_distance(r->reader, record, base, &measured->error);
	UnlockReleaseBuffer(buf);
	return found;
}

/* What is kept, if it is good still. */
static struct IvfKnownRows *
still_known(IvfHandle *handle)
{
	struct IvfKnownRows *known = IvfKeptKnown(handle);

	/* rows have gone, and others may have come to their heap TIDs */
	if (known && known->rows.vacuums != handle->meta.vacuums)
	{
		IvfForgetKnown(handle);
		known = NULL;
	}
	return known;
}

static bool
start_search(IvfReader *reader, struct IvfKnownRows *known, QvMemberSearch *search)
{
	IvfHandle  *handle = reader->handle;
	RecordReader *r = palloc(sizeof(RecordReader));
	QvKnownUse	use = {0};

	r->reader = reader;
	r->known = known;
	r->bases = palloc(Max(1, handle->lists->count) * sizeof(float));
	for (uint32 i = 0; i < handle->lists->count; i++)
		r->bases[i] = NAN;
	memset(search, 0, sizeof(*search));
	search->measure = measure_record;
	search->prefetch = prefetch_record;
	search->arg = r;
	search->counters = reader->counters;
	search->certainty = QvCandidateCertainty(handle->meta.dims, handle->layout.bits);
	if (!QvMemberSearchStart(search, &known->rows, reader->only, &reader->query.base, &use))
	{
		IvfForgetKnown(handle);
		return false;
	}
	QvKnownNoteUse(&known->rows, &use);
	QvRelCachePinPartHere(&known->part);
	return true;
}

bool
IvfSearchKnown(IvfReader *reader, Size max_memory, QvMemberSearch *search)
{
	IvfHandle  *handle = reader->handle;
	struct IvfKnownRows *known;

	if (!IvfCanKnow(&handle->layout) || reader->only->words == 0 ||
		reader->only->members > Min(max_memory / QV_MEMBER_BYTES, PG_INT32_MAX))
		return false;
	known = still_known(handle);
	if (known == NULL || known->rows.absent >= QV_MOST_ABSENT)
	{
		double		rows = rows_of(handle);

		/* all of them will be looked at */
		IvfNoteSpent(handle, rows);
		if (IvfSpent(handle) > IVF_LEARNING_ROWS(rows) && learn(handle, reader->only, reader->counters))
			known = IvfKeptKnown(handle);
	}
	return known && known->rows.absent < QV_MOST_ABSENT && start_search(reader, known, search);
}

double
IvfShareKnown(const struct IvfKnownRows *known, const IvfMetaData *meta)
{
	return known->rows.vacuums == meta->vacuums ? 1 - known->rows.absent : 0;
}
