/*
 * reader.c
 *		Reading posting lists for a search; see reader.h.
 */
#include "postgres.h"

#include "ivf/page/pages.h"
#include "ivf/search/reader.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"

/* Of the first page of a list: the processor foresees the rest. */
#define PREFETCHED_BYTES 256

/* Those gathered are sorted as far as they will likely be read, at least so many. */
#define RUN_SHARE 16
#define LEAST_RUN 12

/* Records ahead of the one that is read the CPU is asked for, and for where those are. */
#define RECORDS_AHEAD 2
#define GATHERED_AHEAD 4

void
IvfBeginReading(IvfReader *reader)
{
	IvfDropGathered(reader);
	reader->room = IVF_MAX_GATHERED;
	reader->later = false;
	reader->rows_before = reader->counters->rows;
	IvfBeginKnowing(&reader->known, reader->handle, reader->only);
	reader->ops = reader->handle->meta.form == QV_FORM_CODED ? &ivf_coded_reading : &ivf_plain_reading;
	reader->ops->begin_reading(reader);
}

/*
 * Sort out the nearest that were gathered; false when there are none.  All, where records have to be
 * asked for long before they are read.
 */
static bool
sort_nearest(IvfReader *reader)
{
	uint32		count = reader->order.count;

	return BacklogSort(&reader->order,
					   reader->handle->stats->cold > 0 ? count : Max(LEAST_RUN, count / RUN_SHARE));
}

/* Is it known which is the nearest of them?  False when there is none. */
static bool
has_nearest(IvfReader *reader)
{
	return BacklogHasRun(&reader->order) || sort_nearest(reader);
}

static float
nearest_bound(const IvfReader *reader)
{
	return BacklogDistance(reader->order.items[reader->order.first]);
}

/* The one that comes so many after it, NULL when that is not known. */
static IvfGathered *
gathered_after(const IvfReader *reader, uint32 n)
{
	const Backlog *order = &reader->order;

	return order->first + n < order->sorted ?
		&reader->gathered[BacklogId(order->items[order->first + n])] : NULL;
}

float
IvfLeastGathered(IvfReader *reader)
{
	return has_nearest(reader) ? nearest_bound(reader) : INFINITY;
}

/* Ask for the records that are likely to be read next, IVF_READ_AHEAD of them. */
static void
ask_ahead(IvfReader *reader)
{
	IvfGathered *g;

	for (uint32 i = 0; i < IVF_READ_AHEAD && (g = gathered_after(reader, i)) != NULL; i++)
	{

		if (!g->asked && g->bound < IvfWindowThreshold(&reader->window))
		{
			(void) QvPrefetchBlock(reader->handle->index, reader->handle->hints, g->item.block);
			g->asked = true;
		}
	}
}

/* Ask the CPU for a record that is read soon, and for where one after it is. */
static void
prefetch_records(const IvfReader *reader)
{
	const IvfItems *items = &reader->handle->layout.items[reader->by_sketch ? IVF_SKETCHES : IVF_RECORDS];
	const IvfGathered *soon = gathered_after(reader, RECORDS_AHEAD);
	const IvfGathered *later = gathered_after(reader, GATHERED_AHEAD);

	if (later)
		__builtin_prefetch(&later->item);
	if (soon)
		QvPrefetchPage(reader->handle->hints, soon->item.block,
					   QV_PAGE_START + sizeof(IvfItemPageData) + (Size) soon->item.slot * items->size, items->size);
}

void
IvfNoteFront(IvfReader *reader, float distance)
{
	float	   *heap = reader->front;
	uint32		at;

	if (reader->nfront < reader->first)
	{
		for (at = reader->nfront++; at > 0 && heap[(at - 1) / 2] < distance; at = (at - 1) / 2)
			heap[at] = heap[(at - 1) / 2];
		heap[at] = distance;
		return;
	}
	if (distance >= heap[0])
		return;
	for (at = 0; 2 * at + 1 < reader->nfront;)
	{
		uint32		child = 2 * at + 1;

		if (child + 1 < reader->nfront && heap[child + 1] > heap[child])
			child++;
		if (distance >= heap[child])
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = distance;
}

/* Is no row gathered nearer than the first ones of the window? */
static bool
is_front_settled(const IvfReader *reader)
{
	return reader->first > 0 && reader->nfront == reader->first &&
		nearest_bound(reader) >= reader->front[0];
}

/* Read the records gathered that may still matter, likely ones first. */
bool
IvfReadGathered(IvfReader *reader)
{
	bool		ahead = reader->handle->stats->cold > 0;

	/* as always of plain lists */
	if (reader->ngathered == 0)
	{
		reader->nlooked = 0;
		return true;
	}
	if (reader->only && !reader->ops->keep_members(reader))
		return false;
	for (uint32 i = reader->nordered; i < reader->ngathered; i++)
		if (reader->gathered[i].bound < IvfWindowThreshold(&reader->window))
			BacklogAdd(&reader->order, reader->gathered[i].bound, i);
	reader->nordered = reader->ngathered;
	/* those that came since then may be nearer than the run */
	(void) sort_nearest(reader);
	for (uint32 taken = 0; has_nearest(reader); taken++)
	{
		IvfGathered *next = gathered_after(reader, 0);

		CHECK_FOR_INTERRUPTS();
		if (ahead && taken % (IVF_READ_AHEAD / 2) == 0)
			ask_ahead(reader);
		if (nearest_bound(reader) >= IvfWindowThreshold(&reader->window))
			break;
		if (is_front_settled(reader))
		{
			reader->nlooked = 0;
			return true;
		}
		prefetch_records(reader);
		(void) BacklogTake(&reader->order);
		if (!reader->ops->read_gathered(reader, next))
			return false;
		if (reader->rest)
			IvfRestKeep(reader->rest);
	}
	IvfDropGathered(reader);
	return true;
}

/*
 * Are the rows of a list to be looked up before their codes are read?  While the window
 * keeps out none, all would be gathered.  And once many rows have been read, many lists may
 * have none.
 */
static bool
looks_first(const IvfReader *reader)
{
	return reader->only && reader->ops->find_members &&
		(isinf(IvfWindowThreshold(&reader->window)) || IvfHasReadMuch(reader));
}

/* Have room for the rows of a page; false when a list has moved.  No page may be locked. */
static bool
make_room_for_page(IvfReader *reader)
{
	uint32		room = reader->room;

	if (reader->ngathered + reader->handle->layout.slots <= (reader->first > 0 ? room : IVF_MAX_GATHERED))
		return true;
	if (reader->first > 0 && 2 * room <= reader->most_gathered)
	{
		reader->gathered = repalloc(reader->gathered, 2 * room * sizeof(IvfGathered));
		reader->order.items = repalloc(reader->order.items, 2 * room * sizeof(BacklogItem));
		reader->room = 2 * room;
		return true;
	}
	reader->first = 0;
	return IvfReadGathered(reader);
}

/* Members of a page that were known are looked up, so to speak. */
static void
count_known_members(IvfReader *reader, uint32 rows)
{
	reader->counters->tested += rows;
	reader->nlooked += rows;
	for (uint32 i = 0; i < reader->handle->layout.batches; i++)
	{
		reader->members[i] &= ~reader->dead[i];
		reader->counters->members += pg_popcount32(reader->members[i]);
	}
}

/* Pass over a list without members as if it had been read; false when that is not known. */
static bool
pass_over(IvfReader *reader, uint32 list)
{
	uint32		rows = IvfRowsToPassOver(&reader->known, list);

	reader->counters->rows += rows;
	reader->counters->tested += rows;
	reader->nlooked += rows;
	return rows > 0;
}

bool
IvfReadList(IvfReader *reader, const IvfNear *near, uint32 rank)
{
	IvfHandle  *handle = reader->handle;
	const IvfListRef *ref = &handle->lists->refs[near->list];
	BlockNumber block = ref->head;
	uint32		number = 0;
	IvfListScan list = {.list = near->list, .rank = rank, .base = near->distance};
	bool		known;

	if (!make_room_for_page(reader))
		return false;

	/*
	 * once they are known for a search, its rows are looked up first to the
	 * end
	 */
	known = looks_first(reader) && IvfKnowsMembers(&reader->known, near->list, IvfHasReadMuch(reader));
	if (known && pass_over(reader, near->list))
		return true;
	reader->counters->lists++;
	reader->ops->begin_list(reader, &list);
	IvfBeginLesson(&reader->known, near->list);
	while (BlockNumberIsValid(block))
	{
		Buffer		buf;
		Page		page;
		BlockNumber next;

		CHECK_FOR_INTERRUPTS();
		if (!make_room_for_page(reader))
			return false;
		buf = IvfReadListPage(handle, block, near->list, ref->generation, BUFFER_LOCK_SHARE);
		if (!BufferIsValid(buf))
			return false;
		page = BufferGetPage(buf);
		if (IvfPageList(page)->number != number)
			QvReportCorruption(handle->index, block, "The page is number %u of list %u, not %u.",
							   IvfPageList(page)->number, near->list, number);
		number++;
		next = QvPageGetHeader(page)->next;
		reader->counters->rows += IvfPageList(page)->count;
		list.members_known = looks_first(reader);
		if (!list.members_known)
			IvfDropLesson(&reader->known.lesson);
		else
		{
			bool		learns = IvfLearnPage(&reader->known.lesson, block, IvfPageList(page));

			reader->ops->find_dead(reader, page);
			if (known && IvfFindKnownMembers(&reader->known, near->list, IvfPageList(page), reader->members))
				count_known_members(reader, IvfPageList(page)->count);
			else
			{
				bool		any;

				memcpy(reader->head, IvfPageList(page), IvfListHeadSize(&handle->layout));
				UnlockReleaseBuffer(buf);
				if (!reader->ops->find_members(reader, &list, block, &any))
					return false;
				if (learns)
					IvfLearnRows(&reader->known.lesson, reader->head->number * handle->layout.slots,
								 reader->tids, reader->head->count);
				buf = any ? IvfReadListPage(handle, block, near->list, ref->generation, BUFFER_LOCK_SHARE) :
					InvalidBuffer;
				if (any && !BufferIsValid(buf))
					return false;
			}
		}
		if (BufferIsValid(buf))
		{
			reader->ops->scan_page(reader, &list, block, BufferGetPage(buf));
			UnlockReleaseBuffer(buf);
		}
		if (reader->rest)
			IvfRestKeep(reader->rest);
		block = next;
	}
	IvfEndLesson(&reader->known.lesson);
	return true;
}

void
IvfPrefetchList(IvfReader *reader, const IvfNear *near)
{
	const IvfHandle *handle = reader->handle;
	BlockNumber last;
	bool		passed = reader->only && IvfKnowsNone(&reader->known, near->list, &last);

	QvPrefetchPage(handle->hints, passed ? last : handle->lists->refs[near->list].head, QV_PAGE_START,
				   passed ? sizeof(IvfListPageData) : PREFETCHED_BYTES);
}

void
IvfAskForLists(IvfReader *reader, IvfReadAhead *ahead, const IvfNear *near, uint32 n,
			   uint32 reading)
{
	IvfHandle  *handle = reader->handle;
	const IvfLayout *layout = &handle->layout;

	if (ahead->near < reading)
	{
		ahead->near = reading;
		ahead->page = 0;
	}
	for (int asked = 0; asked < IVF_READ_AHEAD && ahead->near < n;)
	{
		const IvfListRef *ref = &handle->lists->refs[near[ahead->near].list];
		uint32		pages = (ref->rows + layout->slots - 1) / layout->slots;
		BlockNumber last;

		if (!BlockNumberIsValid(ref->head) || ahead->page >= pages ||
			ahead->page >= IVF_READ_AHEAD || ahead->near > reading + IVF_READ_AHEAD)
		{
			if (ahead->near > reading + IVF_READ_AHEAD)
				return;
			ahead->near++;
			ahead->page = 0;
			continue;
		}
		if (reader->only && IvfKnowsNone(&reader->known, near[ahead->near].list, &last))
		{
			(void) QvPrefetchBlock(handle->index, handle->hints, last);
			ahead->near++;
			ahead->page = 0;
			asked++;
			continue;
		}
		(void) QvPrefetchBlock(handle->index, handle->hints, ref->head + ahead->page);
		ahead->page++;
		asked++;
	}
}
