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
static void
sift_up(TopkNearest *nearest, uint32 at, const TopkRow *row)
{
	TopkRow    *heap = nearest->rows;

	for (; at > 0 && is_before(&heap[(at - 1) / 2], row); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = *row;
}

/* The same of the top, looking down. */
static void
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
 * Measure the row on top, when there are k, until it is one that was: then it is the farthest, for none is
 * farther than it may be, and how far the k-th is is known as if all were measured.
 */
static void
settle_top(TopkNearest *nearest)
{
	while (nearest->count == nearest->wanted && !is_measured(&nearest->rows[0]))
	{
		TopkRow		top = nearest->rows[0];

		nearest->measure(nearest->arg, &top, false);
		sift_down(nearest, &top);
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

bool
TopkNearestOffer(TopkNearest *nearest, TopkRow *row)
{
	if (TopkNearestIsFull(nearest, row->least) || !TopkTidsAdd(nearest->kept, &row->tid))
		return false;
	if (nearest->count < nearest->wanted)
	{
		if (nearest->count == nearest->allocated)
		{
			nearest->allocated = Min(nearest->wanted, nearest->allocated * 2);
			nearest->rows = repalloc_huge(nearest->rows, nearest->allocated * sizeof(TopkRow));
		}
		sift_up(nearest, nearest->count++, row);
		settle_top(nearest);
		return true;
	}
	/* may it be nearer than the top, or farther? */
	if (row->distance >= nearest->rows[0].distance && !is_measured(row))
		nearest->measure(nearest->arg, row, true);
	if (!is_before(row, &nearest->rows[0]))
	{
		(void) QvTids_delete(nearest->kept, row->tid);
		return false;
	}
	(void) QvTids_delete(nearest->kept, nearest->rows[0].tid);
	if (nearest->rows[0].tuple)
		heap_freetuple(nearest->rows[0].tuple);
	sift_down(nearest, row);
	settle_top(nearest);
	return true;
}

void
TopkNearestSort(TopkNearest *nearest)
{
	if (nearest->measure)
		measure_doubtful(nearest);
	qsort(nearest->rows, nearest->count, sizeof(TopkRow), compare_rows);
}
