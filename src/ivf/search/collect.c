/*
 * collect.c
 *		Choosing lists and collecting the window of a search; see collect.h and scan.c.
 */
#include "postgres.h"

#include <math.h>

#include "containers/bitmap.h"
#include "executor/instrument.h"
#include "ivf/page/cache.h"
#include "ivf/search/collect.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Rows of a window, at least, and how many times more the next one has. */
#define LEAST_WINDOW 12
#define WINDOW_GROWTH 4

/* Lists read at a time, of those before: what is known of rows to come changes. */
#define LEAST_WIDER 0.1
#define MOST_WIDER 4

/* Likewise, while rows of the next ones are near enough. */
#define WIDER_WHILE_NEAR 1.25
#define NEAR_SIGMAS 2

/* Candidates that the window is first filled from. */
#define FILL_FROM 512

/* Scans that go on reading ahead after one found a page out of memory. */
#define COLD_SCANS 64

/* Bytes for rows proposed; the other half is the window's. */
static Size
proposed_memory(const IvfScan *scan)
{
	return scan->params.max_memory / 2;
}

void
IvfExcludeProposed(IvfScan *scan)
{
	IvfWindow  *window = &scan->reader.window;

	if (window->seen)
		return;
	window->seen = IvfSeenCreate(scan->context, proposed_memory(scan));
	if (!IvfSeenAdd(window->seen, scan->proposed, sizeof(ItemPointerData), scan->nkept))
		elog(ERROR, "a scan has kept too many rows");
	if (scan->proposed)
		pfree(scan->proposed);
	scan->proposed = NULL;
	scan->nkept = scan->max_kept = 0;
}

bool
IvfNoteProposed(IvfScan *scan, uint32 n)
{
	const IvfWindow *window = &scan->reader.window;
	Size		size = (Size) scan->nkept + n;

	if (n == 0)
		return true;
	if (window->seen == NULL && size * IVF_SEEN_BYTES > proposed_memory(scan))
		IvfExcludeProposed(scan);
	if (window->seen)
		return IvfSeenAdd(window->seen, &window->rows[0].tid, sizeof(IvfWindowRow), n);
	if (size > scan->max_kept)
	{
		size = Max(64, Max(size, (Size) scan->max_kept * 2));
		scan->proposed = scan->proposed ?
			repalloc_huge(scan->proposed, size * sizeof(ItemPointerData)) :
			MemoryContextAllocHuge(scan->context, size * sizeof(ItemPointerData));
		scan->max_kept = size;
	}
	for (uint32 i = 0; i < n; i++)
		scan->proposed[scan->nkept++] = window->rows[i].tid;
	return true;
}

uint32
IvfMostLists(const IvfScan *scan)
{
	uint32		lists = scan->handle->lists->count;

	return scan->params.max_probes > 0 ? Min(lists, (uint32) scan->params.max_probes) : lists;
}

void
IvfChooseNear(IvfScan *scan, uint32 n, uint32 sorted)
{
	n = Min(n, IvfMostLists(scan));
	if (n > scan->near.sorted)
		IvfSortNearest(scan->handle, &scan->reader.query, Min(Max(n, sorted), IvfMostLists(scan)), &scan->near);
	scan->nnear = Min(n, scan->near.sorted);
}

/* A page is not what it should be: have the directory as it is now, if it has changed. */
static void
report_damage_unless_moved(IvfScan *scan)
{
	if (!IvfRefresh(scan->handle))
		QvReportCorruption(scan->index, QV_META_BLOCK,
						   "A page of a list does not belong to it, and nothing has changed.");
}

/*
 * The lists have moved: have the directory as it is now, and the lists of this
 * batch again.  Lists of earlier batches may have been split: their rows are
 * known by their heap TIDs.
 */
static void
restart_batch(IvfScan *scan)
{
	IvfHandle  *handle = scan->handle;
	bool		all = scan->probed >= handle->lists->count;
	uint32		wanted;
	MemoryContext old;

	report_damage_unless_moved(scan);
	IvfExcludeProposed(scan);
	/* there may be more lists than there were */
	wanted = all ? handle->lists->count : Max(scan->probed, (uint32) scan->params.probes);
	scan->probed = wanted = Min(wanted, IvfMostLists(scan));
	old = MemoryContextSwitchTo(scan->context);
	scan->near.items = repalloc(scan->near.items, handle->lists->count * sizeof(IvfNear));
	scan->done = palloc0(BitmapBytes(handle->lists->count));
	if (scan->in_window)
		scan->in_window = palloc0(BitmapBytes(handle->lists->count));
	MemoryContextSwitchTo(old);
	scan->near.sorted = scan->near.measured = 0;
	IvfChooseNear(scan, wanted, wanted);
}

/* Read so many lists, if there are; false when there are no more. */
static bool
widen_to(IvfScan *scan, double lists)
{
	uint32		probes = Min(IvfMostLists(scan), ceil(lists));

	if (probes <= scan->nnear)
		return false;
	/* those that have been sorted already: it may have to read most */
	IvfChooseNear(scan, probes, scan->near.sorted > scan->probes ? 4 * probes : 2 * probes);
	scan->probed = scan->nnear;
	return true;
}

bool
IvfWiden(IvfScan *scan, double times)
{
	return widen_to(scan, scan->nnear * times);
}

/* Rows of the lists read. */
static uint64
rows_read(const IvfScan *scan)
{
	uint64		rows = 0;

	for (uint32 i = 0; i < scan->nnear; i++)
		rows += scan->handle->lists->refs[scan->near.items[i].list].rows;
	return rows;
}

/* ---- depth ---- */

/* How many times the lists a window of so many rows takes. */
static double
times_wanted(const IvfScan *scan, double window)
{
	return IvfDepthTimes(&scan->depth, window, rows_read(scan), scan->nnear,
						 scan->handle->lists->count);
}

double
IvfScanDepth(const IvfScan *scan)
{
	return IvfDepthWindow(&scan->depth, rows_read(scan), scan->nnear, scan->handle->lists->count);
}

uint32
IvfListsLikely(const IvfScan *scan)
{
	uint32		lists = scan->handle->lists->count;

	return scan->params.widen ?
		Min(lists, (1 + LEAST_WIDER) * IvfDepthTimes(&scan->depth, scan->wanted, PG_INT64_MAX, 1, lists)) : 0;
}

/* Read as many lists as a window of so many rows wants; false when they are read already. */
static bool
widen_for(IvfScan *scan, double window)
{
	bool		more = false;
	double		times;

	/* lists that lie farther are smaller, or larger: a few more */
	while ((times = times_wanted(scan, window)) > 1 &&
		   IvfWiden(scan, Min(MOST_WIDER, times + LEAST_WIDER)))
		more = true;
	return more;
}

/*
 * Read as many lists as the window wants; limit it to what they are deep enough for
 * when the user said how many are to be read.
 */
static void
fit_window(IvfScan *scan)
{
	scan->reader.window.size = scan->wanted;
	if (!scan->params.widen)
		return;
	if (scan->params.probes == 0 || scan->params.deep || scan->nproposed > 0)
	{
		/* those proposed before are nearer */
		(void) widen_for(scan, scan->first > 0 ? scan->first :
						 (double) scan->wanted + scan->nproposed);
		return;
	}
	if (scan->nnear < IvfMostLists(scan))
		scan->reader.window.size = Min(scan->wanted, Max(LEAST_WINDOW, IvfScanDepth(scan) - scan->nproposed));
}

/*
 * Would most rows of the next lists be nearer than the farthest row of the window?  They are as
 * far from their centroids as those whose codes were read.  The members found do not tell
 * that, where they become more with the distance.
 */
static bool
are_next_lists_near(const IvfScan *scan)
{
	const IvfReader *reader = &scan->reader;
	double		mean,
				spread;

	/* plain rows are looked up before they are measured, however far they are */
	if (reader->scored == 0 || scan->nnear == 0)
		return false;
	mean = reader->beyond_base / reader->scored;
	spread = sqrt(Max(0, reader->beyond_base2 / reader->scored - mean * mean));
	return scan->near.items[scan->nnear - 1].distance + mean - NEAR_SIGMAS * spread <
		IvfWindowThreshold(&reader->window);
}

/*
 * Have the members found said that lists not read may have nearer ones?  Then read more.
 * So many of the rows tested were members: that tells how far away the last one wanted
 * is, in rows of any kind, if these lie like all rows.  When they are far, there are none
 * at first, and then many at once: as many rows are nearer as were tested before.
 */
static bool
widen_for_members(IvfScan *scan)
{
	const QvScanCounters *now = &scan->base.counters;
	const QvScanCounters *before = &scan->before;
	double		rank;

	if (scan->reader.only == NULL || !scan->params.widen)
		return false;
	rank = ((double) scan->reader.window.size + scan->nproposed) * (now->tested - before->tested) /
		Max(1, now->members - before->members);
	rank = Max(rank, scan->filled - FILL_FROM);
	if (IvfScanDepth(scan) < rank && IvfWiden(scan, Min(MOST_WIDER, times_wanted(scan, rank) + LEAST_WIDER)))
		return true;
	return are_next_lists_near(scan) && IvfWiden(scan, WIDER_WHILE_NEAR);
}

/*
 * Find the next list to read; false when the window has what it wants.  Lists are chosen
 * anew when there are more of them, and then others may be among the nearest.
 */
static bool
next_list(IvfScan *scan)
{
	for (;;)
	{
		while (scan->next < scan->nnear && scan->in_window &&
			   BitmapHas(scan->in_window, scan->near.items[scan->next].list))
			scan->next++;
		if (scan->next < scan->nnear)
			return true;
		/* what is gathered will tell whether there have to be more */
		if (scan->reader.nlooked > 0 || !widen_for_members(scan))
			return false;
		scan->next = 0;
	}
}

/*
 * Read the next list, and what was gathered when it is time.  The window is filled
 * from enough rows that the best of them are good.  Then records are read at the end of
 * each list; with reads to wait for, of all lists at once.
 */
static bool
read_list(IvfScan *scan)
{
	IvfReader  *reader = &scan->reader;
	const IvfNear *near = &scan->near.items[scan->next];

	if (scan->next + 1 < scan->nnear)
		IvfPrefetchList(reader, near + 1);
	if (!IvfReadList(reader, near, scan->next))
		return false;
	if (scan->in_window)
	{
		BitmapSet(scan->in_window, near->list);
		if (reader->window.count < reader->window.size)
			scan->filled = scan->base.counters.tested - scan->before.tested;
	}
	if (reader->window.count < reader->window.size ? reader->nlooked < FILL_FROM : scan->from_disk)
		return true;
	return IvfReadGathered(reader);
}

/* What bounds keep out from now on. */
static void
set_bounds(IvfScan *scan)
{
	scan->reader.window.limit = scan->base.limit;
	/* what comes after the rows found together is too late */
	scan->reader.later = scan->nproposed > 0 && scan->reader.by_sketch;
}

/* Begin to collect the window from the first of the lists. */
static void
begin_filling(IvfScan *scan)
{
	IvfWindowClear(&scan->reader.window);
	IvfDropGathered(&scan->reader);
	scan->reader.first = scan->first;
	scan->reader.nfront = 0;
	scan->filled = 0;
	scan->next = 0;
	scan->before = scan->base.counters;
	/* more may be known by now */
	scan->reader.known.found.as_of = 0;
	scan->reader.scored = 0;
	scan->reader.beyond_base = scan->reader.beyond_base2 = 0;
	memset(&scan->ahead, 0, sizeof(scan->ahead));
	scan->filling = true;
}

bool
IvfIsPaused(const IvfScan *scan)
{
	const IvfReader *reader = &scan->reader;

	return scan->base.pause > 0 && scan->base.counters.rows >= scan->base.pause &&
		(reader->ngathered == 0 || reader->window.count >= reader->window.size);
}

void
IvfGoOnFilling(IvfScan *scan)
{
	IvfHandle  *handle = scan->handle;
	int64		misses = pgBufferUsage.shared_blks_read;

	for (;;)
	{
		bool		more = next_list(scan);

		if (!more && scan->reader.nlooked == 0)
			break;
		if (more && IvfIsPaused(scan))
			return;
		if (scan->measuring)
			QvVacuumDelayPoint();
		if (more && handle->stats->cold > 0)
			IvfAskForLists(&scan->reader, &scan->ahead, scan->near.items, scan->nnear, scan->next);
		if (!(more ? read_list(scan) : IvfReadGathered(&scan->reader)))
		{
			restart_batch(scan);
			/* rows proposed would take the places of the first ones */
			if (scan->nproposed > 0)
				scan->first = 0;
			fit_window(scan);
			begin_filling(scan);
			continue;
		}
		scan->next += more;
		if (pgBufferUsage.shared_blks_read != misses)
			handle->stats->cold = COLD_SCANS;
	}
	scan->filling = false;
	scan->complete = scan->first == 0 && scan->reader.window.count < scan->reader.window.size;
	IvfWindowSort(&scan->reader.window);
	IvfWindowSetBounds(&scan->reader.window);
}

void
IvfFillWindow(IvfScan *scan)
{
	fit_window(scan);
	scan->position = scan->prefetched = 0;
	scan->bound_sent = false;
	set_bounds(scan);
	if (scan->in_window)
		memset(scan->in_window, 0, BitmapBytes(scan->handle->lists->count));
	begin_filling(scan);
	IvfGoOnFilling(scan);
}

Size
IvfMostRows(const IvfScan *scan)
{
	return Max(LEAST_WINDOW, scan->params.max_memory / 2 / sizeof(IvfWindowRow));
}

float
IvfBoundAfterFirst(IvfScan *scan)
{
	IvfReader  *reader = &scan->reader;
	float		bound = scan->position < reader->window.count ?
		reader->window.rows[scan->position].bound : reader->window.left;

	return Min(bound, IvfLeastGathered(reader));
}

/*
 * The first rows were proposed, and did not do: they leave the window, and what was gathered
 * and not read is to be.  False when there is no memory for them: all that is left is sorted next.
 */
static bool
leave_first(IvfScan *scan)
{
	IvfWindow  *window = &scan->reader.window;
	float		bound = IvfBoundAfterFirst(scan);

	scan->bound_sent = false;
	if (!IvfNoteProposed(scan, scan->position))
	{
		scan->first = scan->reader.first = 0;
		window->count = scan->position;
		window->left = Min(window->left, bound);
		return false;
	}
	IvfWindowTakeOut(window, scan->position);
	scan->reader.nlooked = scan->reader.ngathered;

	/*
	 * no more: rows of the lists read that it had no room for are nearer than
	 * any others
	 */
	window->size = scan->wanted - scan->nproposed;
	scan->position = scan->prefetched = 0;
	return true;
}

bool
IvfReadMoreFirst(IvfScan *scan)
{
	IvfReader  *reader = &scan->reader;
	uint32		more = scan->base.sample;

	scan->base.sample = 0;
	if (more == 0 || scan->nproposed + more >= scan->wanted ||
		(scan->position == reader->window.count && reader->ngathered == 0))
		return false;
	if (!leave_first(scan))
		return true;
	if (more > scan->first)
		reader->front = repalloc(reader->front, more * sizeof(float));
	scan->first = reader->first = more;
	reader->nfront = 0;
	for (uint32 i = 0; i < reader->window.count; i++)
		IvfNoteFront(reader, reader->window.rows[i].distance);
	scan->base.expected = 0;
	scan->filling = true;
	IvfGoOnFilling(scan);
	return true;
}

void
IvfReadDeeper(IvfScan *scan)
{
	IvfWindow  *window = &scan->reader.window;

	scan->first = scan->reader.first = 0;

	/*
	 * The caller has seen how many of them pass, and a window too many costs
	 * more than a larger one; but it must not have kept out any row yet.
	 */
	if (window->count < window->size)
		scan->wanted = Min(IvfMostRows(scan), Max(scan->wanted, scan->nproposed + scan->base.expected));
	scan->base.expected = 0;
	(void) widen_for(scan, scan->wanted);
	if (!leave_first(scan))
		return;
	scan->next = 0;
	memset(&scan->ahead, 0, sizeof(scan->ahead));
	scan->filling = true;
	IvfGoOnFilling(scan);
}

void
IvfGrowWindow(IvfScan *scan)
{
	Size		most = IvfMostRows(scan);
	double		next = scan->base.expected > 0 ? Max(LEAST_WINDOW, scan->base.expected) :
		(double) scan->wanted * WINDOW_GROWTH;

	scan->wanted = Min(Min(most, PG_INT32_MAX), next);
	scan->base.expected = 0;
}

/* ---- the rest ---- */

/* Lists that were read: of which generation, by number. */
typedef struct ListsRead
{
	uint64	   *generations;	/* 1 more; 0: not read */
	uint32		count;
} ListsRead;

static void
make_room_for_lists(ListsRead *read, uint32 count)
{
	Size		size = count * sizeof(uint64);

	if (count <= read->count)
		return;
	read->generations = read->generations ? repalloc(read->generations, size) : palloc(size);
	memset(read->generations + read->count, 0, (count - read->count) * sizeof(uint64));
	read->count = count;
}

/*
 * Sort all rows of the lists chosen but those proposed.  A list that moved is read again, and
 * so are those that moved after they were read: the same rows may be in another list now.
 */
static void
sort_rest(IvfScan *scan)
{
	IvfReader  *reader = &scan->reader;
	ListsRead	read = {0};
	IvfReadAhead ahead = {0};
	bool		doubles = false;

	make_room_for_lists(&read, scan->handle->lists->count);
	for (uint32 i = 0; i < scan->nnear;)
	{
		const IvfNear *near = &scan->near.items[i];
		uint64		generation = (uint64) scan->handle->lists->refs[near->list].generation + 1;

		if (read.generations[near->list] == generation)
		{
			i++;
			continue;
		}
		if (scan->handle->stats->cold > 0)
			IvfAskForLists(reader, &ahead, scan->near.items, scan->nnear, i);
		if (IvfReadList(reader, near, i) && IvfReadGathered(reader))
		{
			read.generations[near->list] = generation;
			i++;
			continue;
		}
		IvfDropGathered(reader);
		doubles = true;
		restart_batch(scan);
		make_room_for_lists(&read, scan->handle->lists->count);
		memset(&ahead, 0, sizeof(ahead));
		i = 0;
	}
	pfree(read.generations);
	/* from now on the sort knows */
	IvfWindowForget(&reader->window);
	IvfRestSort(scan->rest, doubles);
	reader->rest = NULL;
}

void
IvfBeginRest(IvfScan *scan)
{
	IvfReader  *reader = &scan->reader;

	IvfExcludeProposed(scan);
	IvfWindowExcludeOwn(&reader->window);
	if (scan->params.widen || scan->params.iterative)
	{
		IvfChooseNear(scan, IvfMostLists(scan), IvfMostLists(scan));
		scan->probed = scan->nnear;
	}
	set_bounds(scan);
	IvfDropGathered(reader);
	scan->rest = reader->rest = IvfRestBegin(scan->handle->layout.slots, scan->params.max_memory / 4);
	sort_rest(scan);
}

void
IvfTakeRest(IvfScan *scan)
{
	IvfWindow  *window = &scan->reader.window;

	IvfRestNext(scan->rest, window);
	IvfWindowSetBounds(window);
	scan->position = scan->prefetched = 0;
	scan->bound_sent = false;
	scan->complete = window->count < window->size;
}

void
IvfEndRest(IvfScan *scan)
{
	if (scan->rest)
		IvfRestEnd(scan->rest);
	scan->rest = NULL;
}
