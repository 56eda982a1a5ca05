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
TopkNearestReset(TopkNearest *nearest, uint32 wanted)
{
	MemoryContextReset(nearest->context);
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

HeapTuple *
TopkNearestOffer(TopkNearest *nearest, double distance, ItemPointer tid)
{
	TopkRow		row = {.distance = distance, .tid = *tid};

	if (nearest->count == nearest->wanted && !is_before(&row, &nearest->rows[0]))
		return NULL;
	if (!TopkTidsAdd(nearest->kept, tid))
		return NULL;
	if (nearest->count == nearest->wanted)
	{
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
	qsort(nearest->rows, nearest->count, sizeof(TopkRow), compare_rows);
}
