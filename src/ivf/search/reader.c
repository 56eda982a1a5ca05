/*
 * reader.c
 *		Reading posting lists for a search; see reader.h.
 */
#include "postgres.h"

#include <math.h>

#include "ivf/page/pages.h"
#include "ivf/search/reader.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Rows gathered are sorted as far as they will likely be read, at least LEAST_RUN of them. */
#define RUN_SHARE 16
#define LEAST_RUN 12

/* What the disk is asked for ahead: lists, the first pages of each, and records. */
#define LISTS_AHEAD 32
#define PAGES_AHEAD 32
#define FAR_AHEAD 32

/* Records ahead of the one that is read the CPU is asked for, and for where those are. */
#define RECORDS_AHEAD 2
#define GATHERED_AHEAD 4

#define FIRST_ROOM 2048

/* What a row gathered takes. */
#define GATHERED_BYTES (sizeof(IvfGathered) + sizeof(BacklogItem))

void
IvfBeginReading(IvfReader *reader)
{
	reader->ops = reader->handle->meta.form == QV_FORM_CODED ? &ivf_coded_reading : &ivf_plain_reading;
	reader->needed = -INFINITY;
	reader->forgot = INFINITY;
	if (reader->ops->begin_reading)
		reader->ops->begin_reading(reader);
}

/* ---- rows gathered ---- */

/* Keep the rows gathered that were not read and have a bound below the limit. */
static void
compact(IvfReader *reader)
{
	Backlog    *order = &reader->order;
	uint32		n = 0;

	for (uint32 i = 0; i < order->count; i++)
	{
		float		bound = reader->gathered[i].bound;

		if (!(bound < reader->limit))
			continue;
		reader->gathered[n] = reader->gathered[i];
		order->items[n] = BacklogMake(bound, n);
		n++;
	}
	BacklogClear(order);
	order->count = n;
}

/*
 * Keep the rows read that were not taken, were gathered by a bound below that and have no greater
 * key than that.
 */
static void
keep_read(IvfReader *reader, float bound, double key)
{
	MinHeap    *heap = &reader->nearest;
	uint32		n = heap->count;

	heap->count = 0;
	for (uint32 i = 0; i < n; i++)
	{
		MinHeapItem item = heap->items[i];

		if (!(reader->rows[item.value].gathered < bound && item.key <= key))
			continue;
		/* places of rows that are forgotten come behind the heap */
		heap->items[i] = heap->items[heap->count];
		MinHeapPush(heap, item.key, item.value);
	}
}

void
IvfSetLimit(IvfReader *reader, float low, uint32 wanted)
{
	reader->limit = low;
	compact(reader);
	keep_read(reader, low, INFINITY);
	if (isinf(low))
		reader->forgot = INFINITY;
	reader->low = low;
	reader->limit = INFINITY;
	reader->wanted = wanted;
}

/* The middle of a sample of the rows read, which there are: of their keys, or bounds. */
static float
middle_read(const IvfReader *reader, bool of_keys)
{
	BacklogItem sample[BACKLOG_SAMPLE];
	Backlog		rows = {.items = sample, .count = BACKLOG_SAMPLE};
	const MinHeap *heap = &reader->nearest;

	for (uint32 i = 0; i < BACKLOG_SAMPLE; i++)
	{
		const MinHeapItem *item = &heap->items[(uint64) heap->count * i / BACKLOG_SAMPLE];

		sample[i] = BacklogMake(of_keys ? item->key : reader->rows[item->value].gathered, i);
	}
	return BacklogMiddle(&rows);
}

/*
 * Lower the limit, not below "least", so that about the nearer half stays.  Where all have one
 * bound, all do.
 */
static void
halve(IvfReader *reader, float least)
{
	const Backlog *order = &reader->order;
	float		middle = Max(order->count > order->first ? BacklogMiddle(order) : middle_read(reader, false), least);

	if (middle <= reader->low)
		return;
	reader->limit = Min(reader->limit, middle);
	compact(reader);
	if (reader->order.count == 0)
		keep_read(reader, reader->limit, INFINITY);
}

/* Have room to gather "more" rows.  No page may be locked. */
static void
make_room(IvfReader *reader, uint32 more)
{
	uint32		room = reader->order.capacity;

	if (reader->order.count + more <= room)
		return;
	compact(reader);
	while (reader->order.count + more > room / 4 * 3 || room == 0)
	{
		room = Max(FIRST_ROOM, room * 2);
		if (room * GATHERED_BYTES <= reader->max_bytes || reader->order.count <= more)
			continue;
		/* where all have one bound, memory is what it takes */
		halve(reader, -INFINITY);
		if (reader->order.count + more <= reader->order.capacity)
			return;
	}
	reader->gathered = QvResize(reader->scan->context, reader->gathered, room * sizeof(IvfGathered));
	reader->order.items = QvResize(reader->scan->context, reader->order.items, room * sizeof(BacklogItem));
	reader->order.capacity = room;
}

/* Rows that there is memory to gather. */
static uint32
most_gathered(const IvfReader *reader)
{
	return Max(FIRST_ROOM, Min(PG_INT32_MAX, reader->max_bytes / GATHERED_BYTES));
}

bool
IvfIsCrowded(const IvfReader *reader)
{
	return reader->order.count > most_gathered(reader) / 2;
}

void
IvfMakeRoom(IvfReader *reader)
{
	uint32		before = 0;

	compact(reader);
	while (reader->order.count > most_gathered(reader) / 4 && reader->order.count != before)
	{
		before = reader->order.count;
		halve(reader, reader->needed);
	}
}

/* ---- rows read ---- */

void
IvfAddRow(IvfReader *reader, const IvfRead *row)
{
	reader->rows = QvNearestRoom(&reader->nearest, 1, reader->scan->context, reader->rows, sizeof(IvfRead));
	/* what its distance is not below, whatever its code has lost */
	reader->newest = QvNearestAdd(&reader->nearest, row->distance - row->error * reader->scan->certainty);
	reader->rows[reader->newest] = *row;
}

bool
IvfForgetFarthest(IvfReader *reader)
{
	uint32		before = reader->nearest.count;

	/* keys are more precise: all that round to it stay */
	float		middle = nextafterf(middle_read(reader, true), INFINITY);

	keep_read(reader, INFINITY, middle);
	if (reader->nearest.count == before)
		return false;
	reader->forgot = Min(reader->forgot, middle);
	return true;
}

float
IvfLeastGathered(IvfReader *reader)
{
	Backlog    *order = &reader->order;

	/* in order, as far as they will likely be read */
	return BacklogSort(order, Max(LEAST_RUN, order->count / RUN_SHARE)) ?
		BacklogDistance(order->items[order->first]) : INFINITY;
}

/* The row gathered that comes n after the nearest; NULL when it is not known. */
static IvfGathered *
gathered_after(const IvfReader *reader, uint32 n)
{
	const Backlog *order = &reader->order;

	return order->first + n < order->sorted ?
		&reader->gathered[BacklogId(order->items[order->first + n])] : NULL;
}

/* Ask for the records that are read soon: of the disk while it was waited for, else of the CPU. */
static void
prefetch_records(const IvfReader *reader)
{
	const IvfHandle *handle = reader->handle;
	const IvfItems *items = &handle->layout.items[reader->by_sketch ? IVF_SKETCHES : IVF_RECORDS];
	const IvfGathered *soon = gathered_after(reader, RECORDS_AHEAD);
	const IvfGathered *later = gathered_after(reader, GATHERED_AHEAD);
	const IvfGathered *far = handle->cached.entry->cold > 0 ? gathered_after(reader, FAR_AHEAD) : NULL;

	if (far)
		(void) QvPrefetchBlock(handle->index, handle->hints, far->block);
	if (later)
		__builtin_prefetch(later);
	if (soon)
		QvPrefetchPage(handle->hints, soon->block,
					   QV_PAGE_START + sizeof(IvfItemPageData) + (Size) soon->slot * items->size, items->size);
}

bool
IvfReadNext(IvfReader *reader)
{
	IvfGathered *next = gathered_after(reader, 0);
	bool		there;

	CHECK_FOR_INTERRUPTS();
	prefetch_records(reader);
	(void) BacklogTake(&reader->order);
	reader->scan->counters.pages++;
	reader->scan->counters.records++;
	there = reader->ops->read_gathered(reader, next);
	/* it is not gathered any more */
	next->bound = INFINITY;
	return there;
}

/* ---- lists ---- */

/* Rows below the limit that were not taken: a form gathers them, or reads them at once. */
static uint32
rows_below(const IvfReader *reader)
{
	uint32		gathered = reader->order.count - reader->order.first;

	return gathered > 0 ? gathered : reader->nearest.count;
}

/* Ask the CPU for what finding a page needs.  Returns where it is, as far as that is known. */
static const char *
ask_for_page(const IvfHandle *handle, BlockNumber block)
{
	Buffer		buf = BlockNumberIsValid(block) ? QvHintedBuffer(handle->hints, block) : InvalidBuffer;

	if (buf <= 0)
		return NULL;
	QvPrefetchPin(handle->hints, block);
	return BufferGetBlock(buf);
}

bool
IvfReadList(IvfReader *reader, uint32 rank, BlockNumber after)
{
	IvfHandle  *handle = reader->handle;
	const IvfNear *near = &reader->lists[rank];
	const IvfListRef *ref = &handle->lists->refs[near->list];
	BlockNumber block = ref->head;
	uint32		number = 0;
	IvfListScan list = {.rank = rank};

	reader->scan->counters.lists++;
	if (reader->ops->begin_list)
		reader->ops->begin_list(reader, &list);
	while (BlockNumberIsValid(block))
	{
		Buffer		buf;
		Page		page;
		BlockNumber next;

		CHECK_FOR_INTERRUPTS();
		if (rows_below(reader) / 2 > reader->wanted && reader->limit > reader->needed)
			halve(reader, reader->needed);
		make_room(reader, handle->layout.slots);
		buf = IvfReadListPage(handle, block, near->list, ref->generation, BUFFER_LOCK_SHARE);
		if (!BufferIsValid(buf))
			return false;
		page = BufferGetPage(buf);
		if (IvfPageList(page)->number != number)
			QvReportCorruption(handle->index, block, "The page is number %u of list %u, not %u.",
							   IvfPageList(page)->number, near->list, number);
		number++;
		next = QvPageGetHeader(page)->next;
		list.ahead = ask_for_page(handle, BlockNumberIsValid(next) ? next : after);
		reader->scan->counters.pages++;
		reader->scan->counters.codes += IvfPageList(page)->count;
		reader->ops->scan_page(reader, &list, block, page);
		UnlockReleaseBuffer(buf);
		block = next;
	}
	return true;
}

void
IvfAskForLists(IvfReader *reader, uint32 n, uint32 rank)
{
	IvfHandle  *handle = reader->handle;
	uint32		slots = handle->layout.slots;

	for (reader->asked = Max(reader->asked, rank); reader->asked < Min(n, rank + LISTS_AHEAD); reader->asked++)
	{
		const IvfListRef *ref = &handle->lists->refs[reader->lists[reader->asked].list];
		uint32		pages = BlockNumberIsValid(ref->head) ? (ref->rows + slots - 1) / slots : 0;

		for (uint32 i = 0; i < Min(pages, PAGES_AHEAD); i++)
			(void) QvPrefetchBlock(handle->index, handle->hints, ref->head + i);
	}
}
