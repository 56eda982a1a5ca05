/*
 * scan.c
 *		Searching posting lists.
 *
 * A search reads the lists nearest to the query, nearest first.  One-bit codes
 * give every row a lower bound of its distance; rows that may be among the
 * best have their finer code read, which gives a distance for the access
 * method to judge by the row itself.
 *
 * A search for the members of a set leaves out the others before it reads their codes,
 * and reads more lists until those who were tested tell that the members wanted are
 * found: how far it has to go depends on where they are.
 *
 * When pages have to be read from disk, a scan by sketches leaves the finer
 * codes alone: the two-bit codes, an eighth as large, give a closer bound of
 * the distance, and what they leave is judged by the row itself at once.
 *
 * The best so many rows are collected in a "window", as many as the caller expects to
 * take; when they are used up the lists are read again for the rows after them, as many
 * as it then expects, or four times as many.  Rows proposed before are known by their heap
 * TIDs: by its place a row that a bound kept out of the window before would be lost.  When
 * these are too many for the memory, all rows that are left are sorted (rest.h).
 *
 * A window that takes most rows of the lists read takes far rows while nearer
 * ones are in other lists.  With "widen" it has a small share of those rows,
 * and lists are added for the next.
 *
 * Scans hold one page lock at a time and no other, so lists can move under
 * them (split, vacuum): the page read then is of another generation.  The
 * window is collected again from the directory as it is now, without the rows
 * already proposed.
 */
#include "postgres.h"

#include <math.h>

#include "executor/instrument.h"
#include "containers/bitmap.h"
#include "ivf/known.h"
#include "ivf/cache.h"
#include "ivf/depth.h"
#include "ivf/ivf.h"
#include "ivf/nearest.h"
#include "ivf/probes.h"
#include "ivf/reader.h"
#include "ivf/scan.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Rows of the first window when it is not known how many are wanted, and the least. */
#define FIRST_WINDOW 32
#define LEAST_WINDOW 12

/*
 * The least first window when it is known: one for all small numbers, so that the pages of
 * LIMIT and OFFSET fit together.
 */
#define LEAST_FIRST_WINDOW IVF_FEW_ROWS
#define WINDOW_GROWTH 4

/* Lists read at a time, of those before: what is known of rows to come changes. */
#define LEAST_WIDER 0.1
#define MOST_WIDER 4

/*
 * Rows equal to one that is looked for to measure probes are in its own list,
 * and say nothing of other queries: of so many times the rows wanted (or so many more), those
 * within this share of the farthest's squared distance do not count.
 */
#define RANKED_ROWS 4
#define MOST_EQUAL 500
#define EQUAL_SHARE 1e-3f

/* Likewise, while rows of the next ones are near enough. */
#define WIDER_WHILE_NEAR 1.25
#define NEAR_SIGMAS 2

/* Candidates that the window is first filled from. */
#define FILL_FROM 512

/* Rows that a scan by sketches finds together when it is not known how many are wanted. */
#define FIRST_ROUND 10

/* Rows that such a scan takes, for each that is wanted. */
#define SKETCHED_PER_ROW 2

/* Rows asked for ahead of the one being judged, when more than usual are taken. */
#define FEW_AHEAD 4

/* Share of what scans by sketches usually take that is asked for at once. */
#define SURE_SHARE 0.8

/* Scans that go on reading ahead after one found a page out of memory. */
#define COLD_SCANS 64

typedef struct IvfScan
{
	QvScan		base;
	Relation	index;
	QvOpclassInfo opclass;
	MemoryContext context;		/* of one search */
	IvfScanParams params;
	IvfHandle  *handle;			/* NULL before the first search */
	bool		from_disk;		/* read all pages of a kind at once */
	IvfReader	reader;

	/* lists */
	IvfNearLists near;
	uint32		nnear;			/* read in this batch */
	uint32		probes;			/* that the first batch was to have */
	uint32		probed;			/* in all batches */
	IvfDepth	depth;			/* how deep the lists read are */
	uint8	   *done;			/* bitmap: lists of earlier batches */
	uint8	   *in_window;		/* with a set: lists read for this window, */
	int64		filled;			/* and rows looked up until it was full */

	/* filling the window, which may stop for a pause */
	bool		filling;
	bool		measuring;		/* for VACUUM, perhaps, which may be asked to
								 * sleep */
	uint32		next;			/* place of the list to read next */
	QvScanCounters before;		/* when the lists were first read for it */
	IvfReadAhead ahead;

	/* the reader's window */
	uint32		wanted;			/* rows it would take if enough were read */
	uint32		first;			/* of its first rows: the lists read are deep
								 * enough for these; 0: for all */
	uint32		position;		/* next to propose */
	uint32		prefetched;		/* end of the rows whose prefetch was asked
								 * for */
	bool		complete;		/* no rows after the window */
	bool		bound_sent;		/* the bound at its end has been returned */

	/* Rows proposed so far; from the second window on, the window knows them. */
	uint32		nproposed;
	ItemPointerData *proposed;	/* nkept of them that the window knows not */
	uint32		nkept;
	uint32		max_kept;
	IvfRest    *rest;			/* the rows left, once those were too many */
	ItemPointerData tid;		/* of the candidate */
	QvMemberSearch *members;	/* a sweep by codes in memory, or NULL */
} IvfScan;

/* Bytes for rows proposed; the other half is the window's. */
static Size
proposed_memory(const IvfScan *scan)
{
	return scan->params.max_memory / 2;
}

/* Have the window take no row that was proposed. */
static void
exclude_proposed(IvfScan *scan)
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

/* Remember the window's first n rows, which were proposed; false when memory does not do. */
static bool
note_proposed(IvfScan *scan, uint32 n)
{
	const IvfWindow *window = &scan->reader.window;
	Size		size = (Size) scan->nkept + n;

	if (n == 0)
		return true;
	if (window->seen == NULL && size * IVF_SEEN_BYTES > proposed_memory(scan))
		exclude_proposed(scan);
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

static uint32
most_lists(const IvfScan *scan)
{
	uint32		lists = scan->handle->lists->count;

	return scan->params.max_probes > 0 ? Min(lists, (uint32) scan->params.max_probes) : lists;
}

/*
 * Choose the nearest so many lists.  When a few were not enough, more are sorted than are
 * wanted now.
 */
static void
choose_lists(IvfScan *scan, uint32 n, uint32 sorted)
{
	n = Min(n, most_lists(scan));
	if (n > scan->near.sorted)
		IvfSortNearest(scan->handle, &scan->reader.query, Min(Max(n, sorted), most_lists(scan)), &scan->near);
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
	exclude_proposed(scan);
	/* there may be more lists than there were */
	wanted = all ? handle->lists->count : Max(scan->probed, (uint32) scan->params.probes);
	scan->probed = wanted = Min(wanted, most_lists(scan));
	old = MemoryContextSwitchTo(scan->context);
	scan->near.items = repalloc(scan->near.items, handle->lists->count * sizeof(IvfNear));
	scan->done = palloc0(BitmapBytes(handle->lists->count));
	if (scan->in_window)
		scan->in_window = palloc0(BitmapBytes(handle->lists->count));
	MemoryContextSwitchTo(old);
	scan->near.sorted = scan->near.measured = 0;
	choose_lists(scan, wanted, wanted);
}

/* Read so many lists, if there are; false when there are no more. */
static bool
widen_to(IvfScan *scan, double lists)
{
	uint32		probes = Min(most_lists(scan), ceil(lists));

	if (probes <= scan->nnear)
		return false;
	/* those that have been sorted already: it may have to read most */
	choose_lists(scan, probes, scan->near.sorted > scan->probes ? 4 * probes : 2 * probes);
	scan->probed = scan->nnear;
	return true;
}

static bool
widen(IvfScan *scan, double times)
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

/* The window that the lists read are deep enough for. */
static double
depth(const IvfScan *scan)
{
	return IvfDepthWindow(&scan->depth, rows_read(scan), scan->nnear, scan->handle->lists->count);
}

/* So many lists the window will likely take. */
static uint32
lists_likely(const IvfScan *scan)
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
		   widen(scan, Min(MOST_WIDER, times + LEAST_WIDER)))
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
	if (scan->nnear < most_lists(scan))
		scan->reader.window.size = Min(scan->wanted, Max(LEAST_WINDOW, depth(scan) - scan->nproposed));
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
	if (depth(scan) < rank && widen(scan, Min(MOST_WIDER, times_wanted(scan, rank) + LEAST_WIDER)))
		return true;
	return are_next_lists_near(scan) && widen(scan, WIDER_WHILE_NEAR);
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

/*
 * Does the caller want to be asked before another list is read?  Not while the counters
 * lack what was gathered to fill the window from.
 */
static bool
is_paused(const IvfScan *scan)
{
	const IvfReader *reader = &scan->reader;

	return scan->base.pause > 0 && scan->base.counters.rows >= scan->base.pause &&
		(reader->ngathered == 0 || reader->window.count >= reader->window.size);
}

/* Go on collecting the window, until it is there or the caller wants to be asked. */
static void
go_on_filling(IvfScan *scan)
{
	IvfHandle  *handle = scan->handle;
	int64		misses = pgBufferUsage.shared_blks_read;

	for (;;)
	{
		bool		more = next_list(scan);

		if (!more && scan->reader.nlooked == 0)
			break;
		if (more && is_paused(scan))
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

/* Collect the window anew. */
static void
fill_window(IvfScan *scan)
{
	fit_window(scan);
	scan->position = scan->prefetched = 0;
	scan->bound_sent = false;
	set_bounds(scan);
	if (scan->in_window)
		memset(scan->in_window, 0, BitmapBytes(scan->handle->lists->count));
	begin_filling(scan);
	go_on_filling(scan);
}

/* The largest window: half of the memory; the other is for rows proposed. */
static Size
most_rows(const IvfScan *scan)
{
	return Max(LEAST_WINDOW, scan->params.max_memory / 2 / sizeof(IvfWindowRow));
}

/* None of the rows after the first ones is nearer. */
static float
bound_after_first(const IvfScan *scan)
{
	const IvfReader *reader = &scan->reader;
	float		bound = scan->position < reader->window.count ?
		reader->window.rows[scan->position].bound : reader->window.left;

	return reader->order.count > 0 ? Min(bound, reader->order.items[0].key) : bound;
}

/*
 * The first rows were proposed, and did not do: they leave the window, and what was gathered
 * and not read is to be.  False when there is no memory for them: all that is left is sorted next.
 */
static bool
leave_first(IvfScan *scan)
{
	IvfWindow  *window = &scan->reader.window;
	float		bound = bound_after_first(scan);

	scan->bound_sent = false;
	if (!note_proposed(scan, scan->position))
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

/* Of the lists that were read, the next rows are first ones, too; false when there are none. */
static bool
read_more_first(IvfScan *scan)
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
	go_on_filling(scan);
	return true;
}

/*
 * Read the lists that the others take, too.  The nearest rows of those that were read are in
 * the window.
 */
static void
read_deeper(IvfScan *scan)
{
	IvfWindow  *window = &scan->reader.window;

	scan->first = scan->reader.first = 0;

	/*
	 * The caller has seen how many of them pass, and a window too many costs
	 * more than a larger one; but it must not have kept out any row yet.
	 */
	if (window->count < window->size)
		scan->wanted = Min(most_rows(scan), Max(scan->wanted, scan->nproposed + scan->base.expected));
	scan->base.expected = 0;
	(void) widen_for(scan, scan->wanted);
	if (!leave_first(scan))
		return;
	scan->next = 0;
	memset(&scan->ahead, 0, sizeof(scan->ahead));
	scan->filling = true;
	go_on_filling(scan);
}

/* As many rows as memory allows, else as are expected, or four times as many as before. */
static void
grow_window(IvfScan *scan)
{
	Size		most = most_rows(scan);
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

/*
 * There is no memory to remember the rows proposed, those of the window now: read all lists
 * that the scan may come to once more, and put the rows that are left into a sort.
 */
static void
begin_rest(IvfScan *scan)
{
	IvfReader  *reader = &scan->reader;

	exclude_proposed(scan);
	IvfWindowExcludeOwn(&reader->window);
	if (scan->params.widen || scan->params.iterative)
	{
		choose_lists(scan, most_lists(scan), most_lists(scan));
		scan->probed = scan->nnear;
	}
	set_bounds(scan);
	IvfDropGathered(reader);
	scan->rest = reader->rest = IvfRestBegin(scan->handle->layout.slots, scan->params.max_memory / 4);
	sort_rest(scan);
}

/* The next window of what is left. */
static void
take_rest(IvfScan *scan)
{
	IvfWindow  *window = &scan->reader.window;

	IvfRestNext(scan->rest, window);
	IvfWindowSetBounds(window);
	scan->position = scan->prefetched = 0;
	scan->bound_sent = false;
	scan->complete = window->count < window->size;
}

static void
end_rest(IvfScan *scan)
{
	if (scan->rest)
		IvfRestEnd(scan->rest);
	scan->rest = NULL;
}

/* ---- the interface ---- */

static IvfScan *
begin_scan(Relation index, const QvOpclassInfo *opclass)
{
	IvfScan    *scan = palloc0(sizeof(IvfScan));

	scan->index = index;
	scan->opclass = *opclass;
	scan->reader.counters = &scan->base.counters;
	scan->base.limit = INFINITY;
	scan->context = AllocSetContextCreate(CurrentMemoryContext, "quiver ivf scan",
										  ALLOCSET_DEFAULT_SIZES);
	return scan;
}

static uint32
choose_probes(const IvfScan *scan)
{
	double		lists = scan->handle->lists->count;

	if (scan->params.probes > 0)
		return Min(lists, scan->params.probes);
	return Max(1, Min(lists, ceil(lists * IvfProbesFor(&scan->handle->meta, scan->params.recall))));
}

/* Collect the first window of so many rows from so many lists. */
static void
start_search(IvfScan *scan, uint32 probes, uint32 window)
{
	IvfHandle  *handle = scan->handle;

	scan->near = (IvfNearLists) {.items = palloc(handle->lists->count * sizeof(IvfNear))};
	scan->reader.front = palloc(Max(1, scan->first) * sizeof(float));
	scan->done = palloc0(BitmapBytes(handle->lists->count));
	scan->in_window = scan->reader.only || scan->first > 0 ? palloc0(BitmapBytes(handle->lists->count)) : NULL;
	IvfDepthInit(&scan->depth, &handle->meta, &scan->params);
	scan->probes = probes;
	scan->wanted = window;
	choose_lists(scan, probes, lists_likely(scan));
	scan->probed = scan->nnear;
	IvfWindowInit(&scan->reader.window, window, QvCandidateCertainty(handle->meta.dims));
	scan->proposed = NULL;
	scan->reader.rest = NULL;
	scan->nproposed = scan->nkept = scan->max_kept = 0;
	fill_window(scan);
}

/* A window in which the nearest so many rows will be. */
static uint32
first_window(uint32 rows)
{
	return Max(LEAST_FIRST_WINDOW, rows + rows / 8 + 6);
}

/* Search for the members by what is known of all rows; false when lists are to be read. */
static bool
sweep_by_codes(IvfScan *scan)
{
	QvMemberSearch *members = palloc(sizeof(QvMemberSearch));

	if (!IvfSearchKnown(&scan->reader, scan->params.max_memory, members))
	{
		IvfNoteSpent(scan->handle, scan->handle->meta.tuples);
		return false;
	}
	scan->members = members;
	scan->base.depth = INFINITY;
	return true;
}

void
IvfScanStart(QvScan *base, const void *value, const IvfScanParams *params)
{
	IvfScan    *scan = (IvfScan *) base;
	MemoryContext old;
	IvfHandle  *handle;
	uint32		rows,
				first;

	scan->handle = NULL;
	end_rest(scan);
	MemoryContextReset(scan->context);
	old = MemoryContextSwitchTo(scan->context);
	handle = IvfOpen(scan->index, &scan->opclass);
	if (handle->stats->cold > 0)
		handle->stats->cold--;

	/*
	 * Of an index larger than shared buffers, pages of records are read
	 * through a few of them: the pages of codes, which are read much more
	 * often, stay.
	 */
	handle->hints->scarce = handle->stats->cold > 0;
	if (handle->stats->cold > 0 &&
		RelationGetNumberOfBlocks(scan->index) > (BlockNumber) NBuffers / 2)
		handle->record_strategy = GetAccessStrategy(BAS_BULKREAD);
	if (value && scan->opclass.type->dims(value) != handle->meta.dims)
		scan->opclass.type->different_dims(handle->meta.dims, scan->opclass.type->dims(value));
	scan->handle = scan->reader.handle = handle;
	scan->base.scale = QvSpaceMetricScale(&handle->space);
	scan->base.expected = 0;
	scan->base.sample = 0;
	scan->base.limit = INFINITY;
	scan->params = *params;
	if (params->sweep)
		scan->params.probes = PG_INT32_MAX;
	params = &scan->params;
	scan->members = NULL;
	scan->reader.any_order = value == NULL;
	scan->from_disk = RelationGetNumberOfBlocks(scan->index) > params->cached_blocks;
	scan->reader.by_sketch = scan->from_disk && handle->layout.sketch_bytes > 0;
	scan->reader.only = params->only;
	scan->reader.most_gathered = Min(IVF_MAX_LEFT, params->max_memory / 4 / IVF_GATHERED_BYTES);

	/*
	 * No further list could make up for a row that its bound keeps out, or
	 * one that comes in the next window would be too late.
	 */
	scan->reader.sure = !scan->reader.by_sketch &&
		(params->rows == 0 ||
		 (params->probes > 0 ? (uint32) params->probes >= handle->lists->count :
		  params->recall >= 1));
	handle->layout.codec->prepare(handle, value, IvfLutBits(handle, true), &scan->reader.query);
	IvfBeginReading(&scan->reader);
	if (params->sweep && sweep_by_codes(scan))
	{
		MemoryContextSwitchTo(old);
		return;
	}

	rows = params->rows == 0 ? FIRST_WINDOW : first_window(params->rows);
	first = first_window(params->first);
	/* in which those found together should be */
	if (scan->reader.by_sketch)
		rows = Max(rows, SKETCHED_PER_ROW * IvfScanRoundRows(&scan->base));
	rows = Min(rows, most_rows(scan));
	scan->first = params->first > 0 && params->only == NULL && params->deep && !scan->from_disk &&
		!scan->reader.sure && first < rows ? first : 0;
	start_search(scan, choose_probes(scan), rows);
	MemoryContextSwitchTo(old);
}

uint32
IvfSearchRanks(IvfHandle *handle, const IvfQuery *query, ItemPointer self, uint32 k,
			   uint32 lists, uint32 *ranks)
{
	IvfScan    *scan = begin_scan(handle->index, &handle->space.opclass);
	MemoryContext old = MemoryContextSwitchTo(scan->context);
	uint32		n = 0;
	float		least = -INFINITY;

	scan->handle = scan->reader.handle = handle;
	scan->measuring = true;
	scan->reader.query = *query;
	IvfBeginReading(&scan->reader);
	start_search(scan, lists, k + Min((RANKED_ROWS - 1) * k, MOST_EQUAL) + 1);
	if (handle->layout.space == QV_SPACE_L2 && scan->reader.window.count > 0)
		least = EQUAL_SHARE * scan->reader.window.rows[scan->reader.window.count - 1].distance;
	for (uint32 i = 0; i < scan->reader.window.count && n < k; i++)
		if (!ItemPointerEquals(&scan->reader.window.rows[i].tid, self) && scan->reader.window.rows[i].distance > least)
			ranks[n++] = scan->reader.window.rows[i].rank;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(scan->context);
	pfree(scan);
	return n;
}

/* The window is used up: collect the rows after it. */
static void
next_window(IvfScan *scan)
{
	if (scan->rest == NULL)
	{
		if (note_proposed(scan, scan->reader.window.count))
		{
			exclude_proposed(scan);
			grow_window(scan);
			/* else as many as the window wants */
			if (scan->params.widen && scan->params.rows == 0)
				(void) widen(scan, 2);
			fill_window(scan);
			return;
		}
		begin_rest(scan);
	}
	take_rest(scan);
}

static QvScanStep
ivf_scan_next(QvScan *base, QvCandidate *candidate)
{
	IvfScan    *scan = (IvfScan *) base;
	MemoryContext old;

	if (scan->members)
	{
		if (QvMemberSearchNext(scan->members, candidate))
			return QV_SCAN_CANDIDATE;
		candidate->distance = candidate->bound = INFINITY;
		return QV_SCAN_END;
	}
	for (;;)
	{
		if (scan->filling)
		{
			if (is_paused(scan))
				return QV_SCAN_PAUSE;
			old = MemoryContextSwitchTo(scan->context);
			go_on_filling(scan);
			MemoryContextSwitchTo(old);
			continue;
		}
		if (scan->first > 0 && scan->position >= Min(scan->first, scan->reader.window.count))
		{
			if (!scan->bound_sent)
			{
				scan->bound_sent = true;
				candidate->distance = candidate->bound = bound_after_first(scan);
				return QV_SCAN_BOUND;
			}
			old = MemoryContextSwitchTo(scan->context);
			if (!read_more_first(scan))
				read_deeper(scan);
			MemoryContextSwitchTo(old);
			continue;
		}
		if (scan->position < scan->reader.window.count)
		{
			const IvfWindowRow *row = &scan->reader.window.rows[scan->position++];

			candidate->distance = row->distance;
			candidate->bound = row->bound;
			candidate->same_node = false;
			candidate->ntids = 1;
			scan->tid = row->tid;
			candidate->tids = &scan->tid;
			scan->nproposed++;
			return QV_SCAN_CANDIDATE;
		}
		if (scan->complete)
		{
			candidate->distance = candidate->bound = INFINITY;
			base->depth = scan->params.sweep && scan->nnear == scan->handle->lists->count ? INFINITY : depth(scan);
			return QV_SCAN_END;
		}
		if (!scan->bound_sent)
		{
			scan->bound_sent = true;
			candidate->distance = scan->reader.window.rows[scan->reader.window.count - 1].distance;
			candidate->bound = scan->reader.window.left;
			return QV_SCAN_BOUND;
		}
		old = MemoryContextSwitchTo(scan->context);
		next_window(scan);
		MemoryContextSwitchTo(old);
	}
}

/* Choose lists that were in no batch yet, or more of them; false when there are none. */
static bool
next_batch(IvfScan *scan)
{
	uint32		wanted = Min(most_lists(scan), scan->probed + scan->probes);

	if (scan->params.widen)
	{
		exclude_proposed(scan);
		grow_window(scan);
		return widen(scan, 2);
	}
	for (uint32 i = 0; i < scan->nnear; i++)
		BitmapSet(scan->done, scan->near.items[i].list);
	scan->near.sorted = scan->near.measured = 0;
	IvfSortNearest(scan->handle, &scan->reader.query, wanted, &scan->near);
	scan->nnear = 0;
	for (uint32 i = 0; i < scan->near.sorted; i++)
		if (!BitmapHas(scan->done, scan->near.items[i].list))
			scan->near.items[scan->nnear++] = scan->near.items[i];
	/* it lacks lists now */
	scan->near.sorted = scan->near.measured = 0;
	scan->probed = wanted;
	return scan->nnear > 0;
}

static bool
ivf_scan_resume(QvScan *base)
{
	IvfScan    *scan = (IvfScan *) base;
	MemoryContext old = MemoryContextSwitchTo(scan->context);
	bool		more = false;

	/* the rest had all lists, or codes all rows */
	if (scan->rest == NULL && scan->members == NULL)
	{
		if (note_proposed(scan, scan->reader.window.count))
		{
			more = next_batch(scan);
			if (more)
				fill_window(scan);
		}
		else if (scan->probed < most_lists(scan))
		{
			more = true;
			begin_rest(scan);
			take_rest(scan);
		}
	}
	MemoryContextSwitchTo(old);
	return more;
}

static int
ivf_scan_prefetch(QvScan *base, ItemPointerData *tids, int max)
{
	IvfScan    *scan = (IvfScan *) base;
	int			n = 0;
	uint32		end = scan->reader.window.count;

	if (scan->members)
		return 0;
	Assert(!scan->filling);
	/* in runs, so that the reads overlap */
	if (scan->handle->stats->cold == 0 || scan->prefetched > scan->position + max / 2)
		return 0;

	/*
	 * what scans mostly take, then a few more at a time: none should be read
	 * in vain
	 */
	if (scan->reader.by_sketch)
	{
		if (scan->prefetched >= scan->position + FEW_AHEAD / 2)
			return 0;
		end = Min(end, Max(SURE_SHARE * SKETCHED_PER_ROW * IvfScanRoundRows(base),
						   scan->position + FEW_AHEAD));
	}
	if (scan->first > 0)
		end = Min(end, scan->first);
	for (uint32 i = Max(scan->prefetched, scan->position); i < end && n < max; i++)
		tids[n++] = scan->reader.window.rows[i].tid;
	scan->prefetched = Max(scan->prefetched, scan->position) + n;
	return n;
}

uint32
IvfScanRoundRows(const QvScan *base)
{
	const IvfScan *scan = (const IvfScan *) base;

	return !scan->reader.by_sketch ? 0 : scan->params.rows > 0 ? scan->params.rows : FIRST_ROUND;
}

static void
ivf_scan_end(QvScan *base)
{
	IvfScan    *scan = (IvfScan *) base;

	end_rest(scan);
	MemoryContextDelete(scan->context);
	pfree(scan);
}

static const QvScanOps ivf_scan_ops = {
	.what = "an index of posting lists",
	.next = ivf_scan_next,
	.resume = ivf_scan_resume,
	.prefetch = ivf_scan_prefetch,
	.end = ivf_scan_end
};

QvScan *
IvfScanBegin(Relation index, const QvOpclassInfo *opclass)
{
	IvfScan    *scan = begin_scan(index, opclass);

	scan->base.ops = &ivf_scan_ops;
	return &scan->base;
}
