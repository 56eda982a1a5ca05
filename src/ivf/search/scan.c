/*
 * scan.c
 *		Searches of posting lists.
 *
 * A search reads the lists nearest to the query, nearest first.  Their rows are gathered by the
 * bounds of one-bit codes.  Rows that may be among the nearest have their records read, which
 * gives a distance.  They are proposed, and the caller measures them by the table.  When they are
 * used up the search goes deeper: for more rows, of more lists.
 *
 * When pages have to be read from disk, a search by sketches leaves the records alone: the two-bit
 * codes, an eighth as large, give a closer bound, and what they leave is judged by the row at
 * once.
 *
 * Searches hold one page lock at a time and no other, so lists can move under them (split,
 * vacuum): the page read then is of another generation.  The search begins again with the
 * directory as it is now.  So rows may be proposed twice.
 */
#include "postgres.h"

#include <math.h>

#include "ivf/ivf.h"
#include "ivf/page/cache.h"
#include "ivf/search/depth.h"
#include "ivf/search/nearest.h"
#include "ivf/search/reader.h"
#include "ivf/search/scan.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "utils/memutils.h"

/*
 * Rows below the limit of what is gathered, for each that is to be proposed, and at least: so that
 * the search can go deeper without reading the same lists again.
 */
#define GATHERED_PER_ROW 16
#define LEAST_GATHERED 2048

/*
 * Many lists are read in stages: the nearest FIRST_STAGE of them, then STAGE_GROWTH times as many,
 * and so on.  After each the rows read say how near others have to be.
 */
#define FIRST_STAGE 16
#define STAGE_GROWTH 16

/* Lists that the user has chosen are enough for a fourth of their rows. */
#define FIXED_SHARE 4

/* With little memory as many rows may be read before they are proposed, which take 0.75 MB. */
#define LEAST_READ 16384

/*
 * A search that has proposed a fourth of these forgets none: the nearest half, which stays, would
 * have been proposed soon, and all lists are read again for the others.
 */
#define FORGETTING_SHARE 4

/* The largest factor by which rows grow when it goes on, before they are rounded up to a depth. */
#define MOST_GROWTH 8

/* Scans that go on reading ahead after one found a page out of memory. */
#define COLD_SCANS 64

/*
 * Rows equal to one that is looked for to measure probes are in its own list,
 * and say nothing of other queries: of RANKED_ROWS times the rows wanted (or MOST_EQUAL more), rows
 * within this share of the farthest's squared distance do not count.
 */
#define RANKED_ROWS 4
#define MOST_EQUAL 500
#define EQUAL_SHARE 1e-3f

typedef struct IvfScan
{
	QvScan		base;
	Relation	index;
	const QvOpclassInfo *opclass;

	/* all below is zero when a search begins */
	IvfHandle  *handle;
	QvScanGoal	goal;
	IvfReader	reader;
	IvfDepth	depth;
	IvfNearLists near;
	uint32		nread;			/* lists of these that were read */
	uint32		most;			/* lists that the search may read at most */
	double		rows_per_list;	/* on average, at least 1 */

	uint32		fill_end;		/* the nearest have been read, up to the one
								 * of this number, */
	bool		crowded;		/* or as many as there is memory for, and none
								 * can be forgotten */
	uint32		nproposed;
	uint32		asked;			/* rows from that place on were not asked for
								 * ahead */
} IvfScan;

/* ---- reading lists ---- */

/* Lists to read to propose "rank" rows. */
static uint32
lists_for(const IvfScan *scan, double rank)
{
	return Max(1, Min(scan->most, IvfDepthLists(&scan->depth, rank, scan->rows_per_list)));
}

/* Rows that are to stay below the limit to propose "rank" rows: more than before. */
static uint32
gathered_for(const IvfScan *scan, double rank, double before)
{
	double		most = scan->reader.max_bytes / (2 * sizeof(IvfGathered)),
				rows = Max(rank, scan->goal.expected),
				wanted = Max(before, rows) * GATHERED_PER_ROW;

	if (scan->reader.any_order)
		return PG_UINT32_MAX;
	return Min(most, Max(LEAST_GATHERED, wanted));
}

/* Read the next list; false when it has moved.  end: of the ranks that are read with it. */
static bool
read_list(IvfScan *scan, uint32 end)
{
	uint32		rank = scan->nread;
	int64		misses = pgBufferUsage.shared_blks_read;
	const IvfListRef *refs = scan->handle->lists->refs;
	const IvfNear *near = scan->near.items;

	/* VACUUM, which measures probes by searches, may be asked to sleep */
	QvVacuumDelayPoint();
	if (scan->handle->cached.entry->cold > 0)
		IvfAskForLists(&scan->reader, end, rank);
	if (!IvfReadList(&scan->reader, rank, rank + 1 < end ? refs[near[rank + 1].list].head : InvalidBlockNumber))
		return false;
	if (pgBufferUsage.shared_blks_read != misses)
		scan->handle->cached.entry->cold = COLD_SCANS;
	scan->nread++;
	return true;
}

/* Have the n nearest lists in order. */
static void
sort_lists(IvfScan *scan, uint32 n)
{
	/* lists that it may read soon are sorted with them */
	if (n > scan->near.sorted)
		IvfSortNearest(scan->handle, &scan->reader.query, scan->nread, Min(2 * n, scan->most),
					   &scan->near);
}

/* Begin with the directory as it is now. */
static void
begin_lists(IvfScan *scan)
{
	uint32		count = scan->handle->lists->count;
	const QvSettings *settings = scan->goal.settings;

	if (scan->near.items)
		pfree(scan->near.items);
	scan->near = (IvfNearLists) {.items = MemoryContextAllocHuge(scan->base.context, count * sizeof(IvfNear))};
	scan->reader.lists = scan->near.items;
	scan->most = settings->max_probes > 0 && scan->goal.endless ?
		Min(count, Max(settings->probes, settings->max_probes)) : count;
	IvfDepthInit(&scan->depth, &scan->handle->meta, count, settings);

	/*
	 * inserts do not count the index's rows; lists that splits made say how
	 * many came, at least
	 */
	scan->rows_per_list = Max(1, Max(IvfListRows(scan->handle->lists), scan->handle->meta.tuples) / count);
	scan->nread = 0;
	scan->reader.asked = 0;
}

/* A list has moved: have the directory as it is now, and read the lists again. */
static void
read_again(IvfScan *scan)
{
	uint32		n = scan->nread;

	do
	{
		if (!IvfRefresh(scan->handle))
			QvReportCorruption(scan->index, QV_META_BLOCK,
							   "A page of a list does not belong to it, and nothing has changed.");
		begin_lists(scan);
		n = Min(scan->most, n);
		sort_lists(scan, n);
		IvfSetLimit(&scan->reader, -INFINITY, gathered_for(scan, scan->nproposed + IVF_FEW_ROWS, 0));
		while (scan->nread < n && read_list(scan, n))
			continue;
	} while (scan->nread < n);
}

/* ---- reading rows ---- */

/* Rows that have been read and not proposed, at most. */
static uint32
most_read(const IvfScan *scan)
{
	return Max(LEAST_READ, Min(PG_INT32_MAX, scan->reader.max_bytes / (sizeof(IvfRead) + sizeof(MinHeapItem))));
}

/*
 * A front has the distances, negated, of the nearest rows that were read and wait: as many as are
 * wanted.  Returns how far the farthest of them is; INFINITY while there are too few.
 */
static float
front_distance(const MinHeap *front, uint32 wanted)
{
	return front->count < wanted ? INFINITY : -front->items[0].key;
}

static void
note_front(MinHeap *front, uint32 wanted, float distance)
{
	if (!(distance < front_distance(front, wanted)))
		return;
	if (front->count == wanted)
		(void) MinHeapPop(front);
	MinHeapPush(front, -distance, 0);
}

/* Note the rows that were read and wait. */
static void
note_waiting(const IvfReader *reader, MinHeap *front, uint32 wanted)
{
	const MinHeap *heap = &reader->nearest;

	front->count = 0;
	for (uint32 i = 0; i < heap->count; i++)
		note_front(front, wanted, reader->rows[heap->items[i].value].distance);
}

/*
 * Read the rows that may be among the next "proposed" rows, and, after the first time, among twice
 * as many.  When "most" wait, the farthest are forgotten.  A stage and a search that has proposed
 * many stop there instead.  A row whose bound is wrong, as a few are, comes too late only where it
 * is beyond all of them.
 */
static void
fill(IvfScan *scan, uint32 proposed, uint32 most)
{
	IvfReader  *reader = &scan->reader;
	uint32		wanted = scan->nproposed > 0 ? 2 * proposed : proposed;

	MinHeap		front = {.items = palloc_extended(wanted * sizeof(MinHeapItem), MCXT_ALLOC_HUGE)};

	note_waiting(reader, &front, wanted);
	scan->crowded = false;
	while (!scan->crowded && IvfLeastGathered(reader) < Min(reader->limit, front_distance(&front, wanted)))
	{
		uint32		before = reader->nearest.count;

		if (before >= most)
		{
			scan->crowded = scan->nproposed > most / FORGETTING_SHARE || !IvfForgetFarthest(reader);
			continue;
		}
		if (!IvfReadNext(reader))
		{
			read_again(scan);
			note_waiting(reader, &front, wanted);
		}
		else if (reader->nearest.count > before)
			note_front(&front, wanted, reader->rows[reader->newest].distance);
	}
	/* of what lists that are read from now on have, rows as near will be read */
	if (front.count == wanted && IvfGathersRows(reader))
		reader->needed = nextafterf(front_distance(&front, wanted), INFINITY);
	pfree(front.items);
	scan->fill_end = scan->nproposed + proposed;
}

/* Rows that are proposed before others have to be read. */
static uint32
rows_together(const IvfScan *scan)
{
	double		rows = Max(IVF_FEW_ROWS, Min(most_read(scan) / 4, scan->nproposed / 2.0));

	return Max(1, Min(scan->base.allowed - scan->nproposed, rows));
}

/* ---- going deeper ---- */

/* Read the lists from "nread" to the nearest n, and rows that are needed while memory is short. */
static void
read_rest(IvfScan *scan, uint32 n)
{
	uint32		most = most_read(scan);

	for (;;)
	{
		/* when a list has moved, there are other lists */
		n = Min(n, scan->most);
		if (scan->nread >= n)
			return;
		sort_lists(scan, n);
		if (!read_list(scan, n))
			read_again(scan);
		if (IvfIsCrowded(&scan->reader))
		{
			/* rows that the depth is for stay needed, if that says how many */
			fill(scan, isinf(scan->base.allowed) ? rows_together(scan) :
				 Max(1, Min(scan->base.allowed - scan->nproposed, most / 4)), most);
			IvfMakeRoom(&scan->reader);
		}
	}
}

/* Read further lists, up to the nearest n. */
static void
read_more(IvfScan *scan, uint32 n)
{
	/* rows of other lists that are as near were not gathered before */
	if (scan->nread < n)
		scan->reader.low = -INFINITY;
	read_rest(scan, n);
}

/* Read the same lists again for rows of bounds from "low" on. */
static void
read_from(IvfScan *scan, float low, uint32 wanted)
{
	uint32		n = scan->nread;

	IvfSetLimit(&scan->reader, low, wanted);
	scan->nread = 0;
	read_rest(scan, n);
}

/* Have rows of the lists read that are beyond the limit gathered, too. */
static void
raise_limit(IvfScan *scan)
{
	const IvfReader *reader = &scan->reader;
	uint32		wanted = gathered_for(scan, scan->nproposed, reader->wanted);

	/* where all have one bound, memory is what it takes */
	if (reader->limit <= reader->low)
		wanted = Max(wanted, reader->wanted * GATHERED_PER_ROW);
	read_from(scan, reader->limit, wanted);
}

/*
 * Note how many rows the lists read are enough for: to be proposed, and to be returned.  Of lists
 * that the user has chosen that is a fourth of their rows, and all rows of all lists.
 */
static void
note_depth(IvfScan *scan)
{
	QvScan	   *base = &scan->base;

	if (scan->nread == scan->most)
		base->allowed = INFINITY;
	else if (scan->depth.fixed)
		base->allowed = Max(IVF_FEW_ROWS, scan->nread * scan->rows_per_list / FIXED_SHARE);
	base->returns = !scan->depth.fixed && base->allowed == IVF_FEW_ROWS && scan->goal.settings->probes == 0 ?
		IVF_MEASURED_ROWS : 0;
}

/*
 * Read the first lists, for "rank" rows, in stages, if their rows are gathered before they are
 * read.  The rows that stages have read leave room for those of the lists after them.
 */
static void
read_first(IvfScan *scan, double rank)
{
	uint32		n = lists_for(scan, rank);
	uint32		wanted = scan->reader.wanted;
	uint32		most = most_read(scan) / 4;

	for (uint32 stage = FIRST_STAGE; stage <= n / 2; stage *= STAGE_GROWTH)
	{
		if (!IvfGathersRows(&scan->reader) || scan->reader.nearest.count >= most)
			break;
		/* nothing is known before the first one: all its rows are gathered */
		if (scan->nread == 0)
			scan->reader.wanted = PG_UINT32_MAX;
		read_more(scan, stage);
		scan->reader.wanted = wanted;
		fill(scan, Max(1, Min(rank, most)), most);
	}
	read_more(scan, n);
	scan->fill_end = 0;
}

static void
begin_search(IvfScan *scan)
{
	double		rank = IvfDepthUp(Min(scan->goal.expected, IVF_FEW_ROWS * MOST_GROWTH));

	begin_lists(scan);
	scan->base.allowed = scan->reader.any_order || (scan->depth.fixed && !scan->goal.endless) ? INFINITY : rank;
	IvfSetLimit(&scan->reader, -INFINITY, gathered_for(scan, rank, 0));
	if (scan->reader.any_order)
		read_more(scan, 1);
	else
		read_first(scan, rank);
	if (scan->goal.endless)
		note_depth(scan);
}

/* Read as many lists more as were read at first, or as its rows call for. */
static void
read_next_lists(IvfScan *scan)
{
	QvScan	   *base = &scan->base;

	if (scan->depth.fixed)
		read_more(scan, Min(scan->most, scan->nread + scan->depth.probes));
	else
	{
		base->allowed = IvfDepthUp(Max(base->allowed + 1, Min(scan->goal.expected, base->allowed * MOST_GROWTH)));
		read_more(scan, lists_for(scan, base->allowed));
	}
	note_depth(scan);
}

/*
 * Go deeper, when what may be proposed is used up; false when that cannot be.
 */
static bool
go_deeper(IvfScan *scan)
{
	IvfReader  *reader = &scan->reader;
	const MinHeap *heap = &reader->nearest;
	bool		used_up = isinf(IvfLeastGathered(reader)) && heap->count == 0;

	/*
	 * rows of the lists read that were forgotten, or not gathered, are nearer
	 * than those of others
	 */
	if (isfinite(reader->forgot) && (heap->count == 0 || heap->items[0].key > reader->forgot))
		/* rows that were proposed come once more */
		read_from(scan, -INFINITY, gathered_for(scan, scan->nproposed, reader->wanted));
	else if (isfinite(reader->limit) && IvfLeastGathered(reader) >= reader->limit &&
			 (heap->count == 0 || heap->items[0].key >= reader->limit))
		raise_limit(scan);
	else if (isinf(scan->base.allowed))
	{
		if (!used_up || scan->nread == scan->most || !(scan->goal.endless || scan->reader.any_order))
			return false;
		read_more(scan, Min(scan->most, scan->nread + (scan->reader.any_order ? 1 : scan->depth.probes)));
	}
	else if (!scan->goal.endless)
		scan->base.allowed = INFINITY;
	else
		read_next_lists(scan);
	/* those of lists read now may be nearer */
	scan->fill_end = scan->nproposed;
	return true;
}

/* ---- proposing rows ---- */

/*
 * Is there a row to propose: no other that may be nearer was gathered and not read, or not
 * gathered?
 */
static bool
has_ready(IvfScan *scan)
{
	const MinHeap *heap = &scan->reader.nearest;

	if (heap->count == 0 || heap->items[0].key > scan->reader.forgot)
		return false;

	/*
	 * for want of memory the nearest one is proposed, and others may come
	 * late
	 */
	if (scan->crowded && scan->nproposed < scan->fill_end)
		return true;
	return scan->nproposed < scan->base.allowed &&
		(heap->items[0].key <= IvfLeastGathered(&scan->reader) || scan->nproposed < scan->fill_end) &&
		(heap->items[0].key < scan->reader.limit || isinf(scan->reader.limit));
}

static void
take_row(IvfScan *scan, QvCandidate *candidate)
{
	MinHeapItem top = MinHeapPop(&scan->reader.nearest);
	IvfRead    *row = &scan->reader.rows[top.value];

	QvNearestPrefetch(&scan->reader.nearest, scan->base.table_hints, scan->reader.rows, sizeof(IvfRead),
					  offsetof(IvfRead, tid));
	scan->nproposed++;
	QvSetCandidate(&scan->base, candidate, top.key, row->distance, row->error, &row->tid, 1);
}

static bool
ivf_scan_next(QvScan *base, QvCandidate *candidate)
{
	IvfScan    *scan = (IvfScan *) base;
	MemoryContext old = MemoryContextSwitchTo(scan->base.context);
	bool		found;

	if (scan->near.items == NULL)
		begin_search(scan);
	do
	{
		CHECK_FOR_INTERRUPTS();
		if (scan->nproposed < scan->base.allowed && scan->nproposed >= scan->fill_end)
			fill(scan, rows_together(scan), most_read(scan));
		found = has_ready(scan);
	} while (!found && go_deeper(scan));
	if (found)
		take_row(scan, candidate);
	else
		base->complete = scan->nread == scan->handle->lists->count;
	MemoryContextSwitchTo(old);
	return found;
}

/* ---- */

/*
 * Is the index too large to be in memory?  By the settings, not by what was met: answers depend on
 * it.
 */
static bool
is_on_disk(const IvfScan *scan)
{
	int			sketches = scan->goal.settings->sketches;

	if (sketches != SKETCHES_AUTO)
		return sketches == SKETCHES_ON;
	return RelationGetNumberOfBlocks(scan->index) > (BlockNumber) Max(effective_cache_size, NBuffers) / 2;
}

static void
ivf_scan_start(QvScan *base, const QvScanGoal *goal)
{
	IvfScan    *scan = (IvfScan *) base;
	IvfReader  *reader = &scan->reader;
	MemoryContext old;
	IvfHandle  *handle;
	const void *value;
	double		misses;

	MemoryContextReset(scan->base.context);
	memset(&scan->handle, 0, sizeof(IvfScan) - offsetof(IvfScan, handle));
	old = MemoryContextSwitchTo(scan->base.context);
	handle = scan->handle = IvfOpen(scan->index, scan->opclass);
	if (handle->cached.entry->cold > 0)
		handle->cached.entry->cold--;

	/*
	 * Pages of records of an index larger than half of shared buffers are
	 * read through a few of them: the pages of codes, which are read much
	 * more often, stay.
	 */
	if (handle->cached.entry->cold > 0 &&
		RelationGetNumberOfBlocks(scan->index) > (BlockNumber) NBuffers / 2)
		handle->record_strategy = GetAccessStrategy(BAS_BULKREAD);
	value = QvSearchedValue(scan->opclass, handle->meta.dims, goal->value);
	handle->hints->scarce = handle->cached.entry->table_hints.scarce = handle->cached.entry->cold > 0;
	scan->goal = *goal;
	reader->scan = base;
	reader->handle = handle;
	reader->any_order = value == NULL;
	reader->by_sketch = handle->layout.sketch_bytes > 0 && is_on_disk(scan);
	/* where all lists are read, none could make up for a row that is lost */
	misses = goal->settings->probes >= handle->lists->count ? 0 :
		QvCurveMisses(&handle->meta.curve, goal->settings);
	reader->misses = goal->settings->probes > 0 && misses > 0 ? 1 : misses;
	reader->max_bytes = goal->settings->memory / 2;
	handle->layout.codec->prepare(handle, value, IvfLutBits(handle), &reader->query);
	IvfBeginReading(reader);
	base->table_hints = &handle->cached.entry->table_hints;
	base->rows = QvRowsAreWhole(&handle->rows.meta) && value ? &handle->rows : NULL;
	QvScanSetQuery(base, &handle->space, handle->meta.form == QV_FORM_CODED ? &reader->query.base : NULL);
	/* the curve is one of lists */
	base->misses = Min(1 - goal->settings->recall, misses);
	base->certainty = QvCandidateCertainty(handle->meta.dims, handle->layout.bits);
	MemoryContextSwitchTo(old);
}

uint32
IvfSearchRanks(IvfHandle *handle, const IvfQuery *query, ItemPointer self, uint32 k,
			   uint32 lists, uint32 *ranks)
{
	IvfScan    *scan = (IvfScan *) IvfScanBegin(handle->index, &handle->space.opclass);
	MemoryContext old = MemoryContextSwitchTo(scan->base.context);
	QvSettings	settings = {.probes = lists, .fixed = true, .memory = (Size) work_mem * 1024};
	uint32		most = k + Min((RANKED_ROWS - 1) * k, MOST_EQUAL) + 1;
	IvfRead    *rows = palloc(most * sizeof(IvfRead));
	uint32		nrows;
	uint32		n = 0;
	float		least = -INFINITY;

	scan->handle = scan->reader.handle = handle;
	scan->goal.settings = &settings;
	scan->reader.query = *query;
	scan->reader.scan = &scan->base;
	scan->base.certainty = QvCandidateCertainty(handle->meta.dims, handle->layout.bits);
	scan->reader.misses = 1;
	scan->reader.max_bytes = settings.memory;
	IvfBeginReading(&scan->reader);
	scan->goal.expected = most;
	begin_search(scan);
	scan->base.allowed = most;
	fill(scan, most, most_read(scan));
	while (scan->nproposed < most && has_ready(scan))
		rows[scan->nproposed++] = scan->reader.rows[MinHeapPop(&scan->reader.nearest).value];
	nrows = scan->nproposed;
	if (handle->layout.space == QV_SPACE_L2 && nrows > 0)
		least = EQUAL_SHARE * rows[nrows - 1].distance;
	for (uint32 i = 0; i < nrows && n < k; i++)
		if (!ItemPointerEquals(&rows[i].tid, self) && rows[i].distance > least)
			ranks[n++] = rows[i].rank;
	MemoryContextSwitchTo(old);
	QvScanEnd(&scan->base);
	return n;
}

static int
ivf_scan_prefetch(QvScan *base, ItemPointerData tids[QV_ROWS_AHEAD])
{
	IvfScan    *scan = (IvfScan *) base;
	uint32		n;

	/* in runs, so that the reads overlap */
	if (scan->handle->cached.entry->cold == 0 || scan->asked > scan->nproposed)
		return 0;
	n = QvNearestTids(&scan->reader.nearest, scan->reader.rows, sizeof(IvfRead), offsetof(IvfRead, tid), tids);
	scan->asked = scan->nproposed + n;
	return n;
}

static bool
ivf_scan_measure(QvScan *base, const ItemPointerData *tid, QvRowPlace place, QvMeasured *measured)
{
	IvfReader  *reader = &((IvfScan *) base)->reader;

	return reader->ops->measure_place(reader, tid, place, measured);
}

static void
ivf_scan_prefetch_places(QvScan *base, const QvRowPlace *places, uint32 n)
{
	const IvfHandle *handle = ((IvfScan *) base)->handle;
	Size		size = handle->layout.items[IVF_RECORDS].size;

	for (uint32 i = 0; i < n; i++)
		QvPrefetchPin(handle->hints, places[i].block);
	for (uint32 i = 0; i < n; i++)
	{
		(void) QvPrefetchBlock(handle->index, handle->hints, places[i].block);
		QvPrefetchPage(handle->hints, places[i].block,
					   QV_PAGE_START + sizeof(IvfItemPageData) + places[i].slot * size, size);
	}
}

static const QvScanOps ivf_scan_ops = {
	.start = ivf_scan_start,
	.next = ivf_scan_next,
	.prefetch = ivf_scan_prefetch,
	.measure = ivf_scan_measure,
	.prefetch_places = ivf_scan_prefetch_places,
	.end = QvScanEnd
};

QvScan *
IvfScanBegin(Relation index, const QvOpclassInfo *opclass)
{
	IvfScan    *scan = palloc0(sizeof(IvfScan));

	scan->base.ops = &ivf_scan_ops;
	scan->index = index;
	scan->opclass = opclass;
	scan->base.context = AllocSetContextCreate(CurrentMemoryContext, "quiver ivf scan",
											   ALLOCSET_DEFAULT_SIZES);
	return &scan->base;
}
