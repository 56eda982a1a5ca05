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

#include "containers/bitmap.h"
#include "ivf/page/cache.h"
#include "ivf/page/probes.h"
#include "ivf/search/collect.h"
#include "ivf/search/known.h"
#include "ivf/search/scan.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Rows of the first window when it is not known how many are wanted. */
#define FIRST_WINDOW 32

/*
 * The least first window when it is known: one for all small numbers, so that the pages of
 * LIMIT and OFFSET fit together.
 */
#define LEAST_FIRST_WINDOW IVF_FEW_ROWS

/*
 * Rows equal to one that is looked for to measure probes are in its own list,
 * and say nothing of other queries: of so many times the rows wanted (or so many more), those
 * within this share of the farthest's squared distance do not count.
 */
#define RANKED_ROWS 4
#define MOST_EQUAL 500
#define EQUAL_SHARE 1e-3f

/* Rows that a scan by sketches finds together when it is not known how many are wanted. */
#define FIRST_ROUND 10

/* Rows that such a scan takes, for each that is wanted. */
#define SKETCHED_PER_ROW 2

/* Rows asked for ahead of the one being judged, when more than usual are taken. */
#define FEW_AHEAD 4

/* Share of what scans by sketches usually take that is asked for at once. */
#define SURE_SHARE 0.8

/* Candidates ahead of the one proposed whose rows the CPU is asked for: where they are, and what is there. */
#define LINES_AHEAD 6
#define TUPLES_AHEAD 3

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
	IvfChooseNear(scan, probes, IvfListsLikely(scan));
	scan->probed = scan->nnear;
	IvfWindowInit(&scan->reader.window, window, QvCandidateCertainty(handle->meta.dims, handle->layout.bits));
	scan->proposed = NULL;
	scan->reader.rest = NULL;
	scan->nproposed = scan->nkept = scan->max_kept = 0;
	IvfFillWindow(scan);
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
		return false;
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
	IvfEndRest(scan);
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
	handle->hints->scarce = handle->cached->table_hints.scarce = handle->stats->cold > 0;
	if (handle->stats->cold > 0 &&
		RelationGetNumberOfBlocks(scan->index) > (BlockNumber) NBuffers / 2)
		handle->record_strategy = GetAccessStrategy(BAS_BULKREAD);
	if (value && scan->opclass.type->dims(value) != handle->meta.dims)
		scan->opclass.type->different_dims(handle->meta.dims, scan->opclass.type->dims(value));
	scan->handle = scan->reader.handle = handle;
	scan->base.table_hints = &handle->cached->table_hints;
	scan->base.scale = QvSpaceMetricScale(&handle->space);
	scan->base.expected = 0;
	scan->base.sample = 0;
	scan->base.limit = INFINITY;
	scan->params = *params;
	if (params->sweep)
	{
		/* all of them: by codes in memory there would be no limit either */
		scan->params.probes = PG_INT32_MAX;
		scan->params.max_probes = 0;
	}
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
	rows = Min(rows, IvfMostRows(scan));
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

/* Ask the CPU for the rows of the table that the next candidates lead to. */
static void
prefetch_rows(const IvfScan *scan)
{
	const IvfWindow *window = &scan->reader.window;

	if (scan->position + LINES_AHEAD < window->count)
		QvPrefetchLine(scan->base.table_hints, &window->rows[scan->position + LINES_AHEAD].tid);
	if (scan->position + TUPLES_AHEAD < window->count)
		QvPrefetchTuple(scan->base.table_hints, &window->rows[scan->position + TUPLES_AHEAD].tid);
}

/* The window is used up: collect the rows after it. */
static void
next_window(IvfScan *scan)
{
	if (scan->rest == NULL)
	{
		if (IvfNoteProposed(scan, scan->reader.window.count))
		{
			IvfExcludeProposed(scan);
			IvfGrowWindow(scan);
			/* else as many as the window wants */
			if (scan->params.widen && scan->params.rows == 0)
				(void) IvfWiden(scan, 2);
			IvfFillWindow(scan);
			return;
		}
		IvfBeginRest(scan);
	}
	IvfTakeRest(scan);
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
			if (IvfIsPaused(scan))
				return QV_SCAN_PAUSE;
			old = MemoryContextSwitchTo(scan->context);
			IvfGoOnFilling(scan);
			MemoryContextSwitchTo(old);
			continue;
		}
		if (scan->first > 0 && scan->position >= Min(scan->first, scan->reader.window.count))
		{
			if (!scan->bound_sent)
			{
				scan->bound_sent = true;
				candidate->distance = candidate->bound = IvfBoundAfterFirst(scan);
				return QV_SCAN_BOUND;
			}
			old = MemoryContextSwitchTo(scan->context);
			if (!IvfReadMoreFirst(scan))
				IvfReadDeeper(scan);
			MemoryContextSwitchTo(old);
			continue;
		}
		if (scan->position < scan->reader.window.count)
		{
			const IvfWindowRow *row = &scan->reader.window.rows[scan->position];

			prefetch_rows(scan);
			scan->position++;

			candidate->distance = row->distance;
			candidate->bound = row->bound;
			/* by a sketch it is a bound itself */
			candidate->error = scan->reader.by_sketch ? INFINITY :
				QvSpaceQueryError(&scan->reader.query.base, row->distance, row->error * scan->reader.window.certainty);
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
			base->depth = scan->params.sweep && scan->nnear == scan->handle->lists->count ? INFINITY : IvfScanDepth(scan);
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
	uint32		wanted = Min(IvfMostLists(scan), scan->probed + scan->probes);

	if (scan->params.widen)
	{
		IvfExcludeProposed(scan);
		IvfGrowWindow(scan);
		return IvfWiden(scan, 2);
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
		if (IvfNoteProposed(scan, scan->reader.window.count))
		{
			more = next_batch(scan);
			if (more)
				IvfFillWindow(scan);
		}
		else if (scan->probed < IvfMostLists(scan))
		{
			more = true;
			IvfBeginRest(scan);
			IvfTakeRest(scan);
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

	IvfEndRest(scan);
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
