/*
 * reader.c
 *		Reading posting lists for a search; see reader.h.
 */
#include "postgres.h"

#include "ivf/pages.h"
#include "ivf/reader.h"
#include "miscadmin.h"

void
IvfBeginReading(IvfReader *reader)
{
	reader->ngathered = 0;
	reader->later = false;
	reader->handle->layout.codec->begin_reading(reader);
}

/*
 * Ask for the records that are likely to be read next, IVF_READ_AHEAD of them: the
 * heap's first entries, which are not in order but near it.
 */
static void
ask_ahead(IvfReader *reader)
{
	uint32		n = Min(IVF_READ_AHEAD, reader->order.count);

	for (uint32 i = 0; i < n; i++)
	{
		IvfGathered *g = &reader->gathered[reader->order.items[i].value];

		if (!g->asked && g->bound < IvfWindowThreshold(&reader->window))
		{
			(void) QvPrefetchBlock(reader->handle->index, reader->handle->hints, g->item.block);
			g->asked = true;
		}
	}
}

/* Read the records gathered that may still matter, likely ones first. */
bool
IvfReadGathered(IvfReader *reader)
{
	bool		ahead = reader->handle->stats->cold > 0;

	/* as always of plain lists */
	if (reader->ngathered == 0)
		return true;
	if (reader->only && !reader->handle->layout.codec->keep_members(reader))
		return false;
	reader->order.count = 0;
	for (uint32 i = 0; i < reader->ngathered; i++)
		if (reader->gathered[i].bound < IvfWindowThreshold(&reader->window))
			MinHeapPush(&reader->order, reader->gathered[i].bound, i);
	for (uint32 taken = 0; reader->order.count > 0; taken++)
	{
		MinHeapItem next;

		CHECK_FOR_INTERRUPTS();
		if (ahead && taken % (IVF_READ_AHEAD / 2) == 0)
			ask_ahead(reader);
		next = MinHeapPop(&reader->order);
		if (next.key >= IvfWindowThreshold(&reader->window))
			break;
		if (!reader->handle->layout.codec->read_gathered(reader, &reader->gathered[next.value]))
			return false;
		if (reader->rest)
			IvfRestKeep(reader->rest);
	}
	reader->ngathered = 0;
	return true;
}

bool
IvfReadList(IvfReader *reader, const IvfNear *near, uint32 rank)
{
	IvfHandle  *handle = reader->handle;
	const IvfCodec *codec = handle->layout.codec;
	const IvfListRef *ref = &handle->lists->refs[near->list];
	BlockNumber block = ref->head;
	uint32		number = 0;
	IvfListScan list = {.list = near->list, .rank = rank, .base = near->distance};

	reader->counters->lists++;
	codec->begin_list(reader, &list);
	while (BlockNumberIsValid(block))
	{
		Buffer		buf;
		Page		page;
		BlockNumber next;

		CHECK_FOR_INTERRUPTS();
		/* before the page is locked: this locks others */
		if (reader->ngathered + handle->layout.slots > IVF_MAX_GATHERED &&
			!IvfReadGathered(reader))
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
		codec->scan_page(reader, &list, block, page);
		UnlockReleaseBuffer(buf);
		if (reader->rest)
			IvfRestKeep(reader->rest);
		block = next;
	}
	return true;
}

void
IvfAskForLists(IvfHandle *handle, IvfReadAhead *ahead, const IvfNear *near, uint32 n,
			   uint32 reading)
{
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

		if (!BlockNumberIsValid(ref->head) || ahead->page >= pages ||
			ahead->page >= IVF_READ_AHEAD || ahead->near > reading + IVF_READ_AHEAD)
		{
			if (ahead->near > reading + IVF_READ_AHEAD)
				return;
			ahead->near++;
			ahead->page = 0;
			continue;
		}
		(void) QvPrefetchBlock(handle->index, handle->hints, ref->head + ahead->page);
		ahead->page++;
		asked++;
	}
}
