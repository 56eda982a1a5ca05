/*
 * window.c
 *		The nearest rows of a scan; see window.h.
 */
#include "postgres.h"

#include "ivf/search/window.h"
#include "utils/memutils.h"

/* Rows that memory is got for at first. */
#define FIRST_ROWS 1024

void
IvfWindowInit(IvfWindow *window, uint32 size, double certainty)
{
	window->size = size;
	window->certainty = certainty;
	window->allocated = Min(size, FIRST_ROWS);
	window->rows = palloc(window->allocated * sizeof(IvfWindowRow));
	IvfWindowClear(window);
	window->limit = INFINITY;
	window->seen = NULL;
	window->by_tid = false;
}

#define ST_SORT sort_rows
#define ST_ELEMENT_TYPE IvfWindowRow
#define ST_COMPARE(a, b) (IvfWindowRowBefore(a, b) ? -1 : IvfWindowRowBefore(b, a))
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

static int
compare_tids(const void *a, const void *b)
{
	return ItemPointerCompare((ItemPointer) &((const IvfWindowRow *) a)->tid,
							  (ItemPointer) &((const IvfWindowRow *) b)->tid);
}

bool
IvfWindowExcludes(const IvfWindow *window, const ItemPointerData *tid)
{
	IvfWindowRow key = {.tid = *tid};

	if (window->seen && IvfSeenHas(window->seen, tid))
		return true;
	return window->by_tid &&
		bsearch(&key, window->rows, window->count, sizeof(IvfWindowRow), compare_tids) != NULL;
}

void
IvfWindowExcludeOwn(IvfWindow *window)
{
	qsort(window->rows, window->count, sizeof(IvfWindowRow), compare_tids);
	window->by_tid = true;
	/* it keeps nothing out by its farthest row */
	window->size = window->count + 1;
}

void
IvfWindowForget(IvfWindow *window)
{
	if (window->seen)
		IvfSeenFree(window->seen);
	window->seen = NULL;
	window->by_tid = false;
	IvfWindowClear(window);
	window->allocated = Min(window->allocated, FIRST_ROWS);
	window->size = window->allocated;
	window->rows = repalloc(window->rows, window->allocated * sizeof(IvfWindowRow));
}

/* The row does not stay; an error without end is a damaged one. */
static void
leave_row(IvfWindow *window, const IvfWindowRow *row)
{
	if (isfinite(row->error))
		window->left = Min(window->left, IvfWindowRowBound(window, row));
}

void
IvfWindowOffer(IvfWindow *window, const IvfWindowRow *row)
{
	IvfWindowRow *heap;
	uint32		at;

	if (window->count == window->size && !IvfWindowRowBefore(row, &window->rows[0]))
	{
		leave_row(window, row);
		return;
	}
	if (IvfWindowExcludes(window, &row->tid))
		return;
	if (window->count < window->size)
	{
		if (window->count == window->allocated)
		{
			window->allocated = Min(window->size, window->allocated * 2);
			window->rows = repalloc_huge(window->rows, window->allocated * sizeof(IvfWindowRow));
		}
		/* sift up */
		heap = window->rows;
		for (at = window->count++; at > 0 && IvfWindowRowBefore(&heap[(at - 1) / 2], row); at = (at - 1) / 2)
			heap[at] = heap[(at - 1) / 2];
		heap[at] = *row;
		return;
	}
	/* replace the farthest, sift down */
	heap = window->rows;
	leave_row(window, &heap[0]);
	at = 0;
	for (;;)
	{
		uint32		child = 2 * at + 1;

		if (child >= window->count)
			break;
		if (child + 1 < window->count && IvfWindowRowBefore(&heap[child], &heap[child + 1]))
			child++;
		if (!IvfWindowRowBefore(row, &heap[child]))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = *row;
}

void
IvfWindowSort(IvfWindow *window)
{
	sort_rows(window->rows, window->count);
}

void
IvfWindowSetBounds(IvfWindow *window)
{
	double		bound = window->left;

	for (uint32 i = window->count; i-- > 0;)
	{
		double		own = IvfWindowRowBound(window, &window->rows[i]);

		bound = isnan(own) ? -INFINITY : Min(bound, own);
		window->rows[i].bound = bound;
	}
}

void
IvfWindowTakeOut(IvfWindow *window, uint32 n)
{
	IvfWindowRow *rows = window->rows;

	window->count -= n;
	memmove(rows, rows + n, window->count * sizeof(IvfWindowRow));
	/* farthest first is a heap */
	for (uint32 i = 0, j = window->count; i < j; i++)
	{
		IvfWindowRow row = rows[--j];

		rows[j] = rows[i];
		rows[i] = row;
	}
}
