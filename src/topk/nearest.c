/*
 * nearest.c
 *		The k nearest rows found so far; see nearest.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "space/tidhash.h"
#include "topk/nearest.h"
#include "utils/memutils.h"

/* Rows that there is room for at first. */
#define FIRST_ROWS 64

/* ... and in a set of heap TIDs. */
#define FEW_TIDS 8

void
TopkTidsReset(struct QvTids_hash **tids, MemoryContext context)
{
	/* a large one would have to be cleared each time */
	if (*tids && (*tids)->size > 4 * FEW_TIDS)
	{
		QvTids_destroy(*tids);
		*tids = NULL;
	}
	if (*tids == NULL)
		*tids = QvTids_create(context, FEW_TIDS, NULL);
	else if ((*tids)->members > 0)
		QvTids_reset(*tids);
}

bool
TopkTidsAdd(struct QvTids_hash *tids, ItemPointer tid)
{
	bool		found;

	(void) QvTids_insert(tids, *tid, &found);
	return !found;
}

bool
TopkTidsHas(struct QvTids_hash *tids, ItemPointer tid)
{
	return QvTids_lookup(tids, *tid) != NULL;
}

bool
TopkTidsFit(const struct QvTids_hash *tids, Size max_bytes)
{
	return tids->size * 2 * sizeof(QvTidEntry) <= max_bytes;
}

void
TopkNearestReset(TopkNearest *nearest, uint32 wanted, TopkMeasure measure, void *arg)
{
	MemoryContextReset(nearest->context);
	nearest->measure = measure;
	nearest->arg = arg;
	nearest->wanted = wanted;
	nearest->count = 0;
	nearest->allocated = Min(wanted, FIRST_ROWS);
	nearest->rows = MemoryContextAlloc(nearest->context, nearest->allocated * sizeof(TopkRow));
	nearest->kept = QvTids_create(nearest->context, nearest->allocated, NULL);
}

static int
compare_rows(const void *a, const void *b)
{
	const TopkRow *x = a,
			   *y = b;

	if (x->distance != y->distance)
		return x->distance < y->distance ? -1 : 1;
	return ItemPointerCompare((ItemPointer) &x->tid, (ItemPointer) &y->tid);
}

static bool
is_before(const TopkRow *a, const TopkRow *b)
{
	return compare_rows(a, b) < 0;
}

/* Put a row where position "at" is free, looking up. */
static TopkRow *
sift_up(TopkNearest *nearest, uint32 at, const TopkRow *row)
{
	TopkRow    *heap = nearest->rows;

	for (; at > 0 && is_before(&heap[(at - 1) / 2], row); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = *row;
	return &heap[at];
}

/* The same of the top, looking down. */
static TopkRow *
sift_down(TopkNearest *nearest, const TopkRow *row)
{
	TopkRow    *heap = nearest->rows;
	uint32		at = 0;

	for (;;)
	{
		uint32		child = 2 * at + 1;

		if (child >= nearest->count)
			break;
		if (child + 1 < nearest->count && is_before(&heap[child], &heap[child + 1]))
			child++;
		if (!is_before(row, &heap[child]))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = *row;
	return &heap[at];
}

/* ---- rows that were not measured ---- */

static bool
is_measured(const TopkRow *row)
{
	return row->least == row->distance;
}

void
TopkNearestMeasure(TopkNearest *nearest, uint32 from, uint32 to)
{
	for (uint32 i = from; i < to; i++)
		if (!is_measured(&nearest->rows[i]))
			nearest->measure(nearest->arg, &nearest->rows[i], false);
}

/*
 * Of the rows kept and one more, which is the farthest?  One that may be nearer than another surely
 * is is not.  Measure the others, unless it is one only; the one more first, since it was fetched last.
 */
static void
find_farthest(TopkNearest *nearest, TopkRow *row)
{
	double		least = row->least;
	uint32		others = 0;

	for (uint32 i = 0; i < nearest->count; i++)
		least = Max(least, nearest->rows[i].least);
	for (uint32 i = 0; i < nearest->count; i++)
		others += nearest->rows[i].distance >= least;
	if (others + (row->distance >= least) == 1)
		return;
	if (row->distance >= least && !is_measured(row))
		nearest->measure(nearest->arg, row, true);
	for (uint32 i = 0; i < nearest->count; i++)
		if (nearest->rows[i].distance >= least)
			TopkNearestMeasure(nearest, i, i + 1);
	/* they are a heap again */
	for (uint32 i = 1; i < nearest->count; i++)
	{
		TopkRow		moved = nearest->rows[i];

		(void) sift_up(nearest, i, &moved);
	}
}

static int
compare_least(const void *a, const void *b)
{
	const TopkRow *x = a,
			   *y = b;

	return x->least < y->least ? -1 : x->least > y->least;
}

/* Measure rows that lie where others may. */
static void
measure_doubtful(TopkNearest *nearest)
{
	TopkRow    *rows = nearest->rows;
	uint32		end;

	qsort(rows, nearest->count, sizeof(TopkRow), compare_least);
	for (uint32 start = 0; start < nearest->count; start = end)
	{
		double		farthest = rows[start].distance;

		for (end = start + 1; end < nearest->count && rows[end].least <= farthest; end++)
			farthest = Max(farthest, rows[end].distance);
		if (end - start > 1)
			TopkNearestMeasure(nearest, start, end);
	}
}

bool
TopkNearestIsFull(const TopkNearest *nearest, double least)
{
	return nearest->count == nearest->wanted && least > nearest->rows[0].distance;
}

HeapTuple *
TopkNearestOffer(TopkNearest *nearest, double least, double distance, ItemPointer tid)
{
	TopkRow		row = {.least = least, .distance = distance, .tid = *tid};

	if (TopkNearestIsFull(nearest, least) || !TopkTidsAdd(nearest->kept, tid))
		return NULL;
	if (nearest->count == nearest->wanted)
	{
		if (nearest->measure)
			find_farthest(nearest, &row);
		if (!is_before(&row, &nearest->rows[0]))
		{
			(void) QvTids_delete(nearest->kept, *tid);
			return NULL;
		}
		(void) QvTids_delete(nearest->kept, nearest->rows[0].tid);
		if (nearest->rows[0].tuple)
			heap_freetuple(nearest->rows[0].tuple);
		return &sift_down(nearest, &row)->tuple;
	}
	if (nearest->count == nearest->allocated)
	{
		nearest->allocated = Min(nearest->wanted, nearest->allocated * 2);
		nearest->rows = repalloc_huge(nearest->rows, nearest->allocated * sizeof(TopkRow));
	}
	return &sift_up(nearest, nearest->count++, &row)->tuple;
}

void
TopkNearestSort(TopkNearest *nearest)
{
	if (nearest->measure)
		measure_doubtful(nearest);
	qsort(nearest->rows, nearest->count, sizeof(TopkRow), compare_rows);
}
