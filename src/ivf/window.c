/*
 * window.c
 *		The nearest rows of a scan; see window.h.
 */
#include "postgres.h"

#include "ivf/window.h"
#include "space/tidhash.h"
#include "utils/memutils.h"

/* Rows that memory is got for at first. */
#define FIRST_ROWS 1024

void
IvfWindowInit(IvfWindow *window, uint32 size)
{
	window->size = size;
	window->allocated = Min(size, FIRST_ROWS);
	window->rows = palloc(window->allocated * sizeof(IvfWindowRow));
	window->count = 0;
	window->limit = INFINITY;
	window->seen = NULL;
}

static int
compare_rows(const void *a, const void *b)
{
	return IvfWindowRowBefore(a, b) ? -1 : IvfWindowRowBefore(b, a) ? 1 : 0;
}

void
IvfWindowOffer(IvfWindow *window, const IvfWindowRow *row)
{
	IvfWindowRow *heap;
	uint32		at;

	if (window->count == window->size && !IvfWindowRowBefore(row, &window->rows[0]))
		return;
	if (window->seen && QvTids_lookup(window->seen, row->tid) != NULL)
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
	qsort(window->rows, window->count, sizeof(IvfWindowRow), compare_rows);
}

void
IvfWindowExclude(IvfWindow *window, const ItemPointerData *tids, uint32 n,
				 MemoryContext context)
{
	bool		found;

	if (window->seen == NULL)
		window->seen = QvTids_create(context, Max(256, n), NULL);
	for (uint32 i = 0; i < n; i++)
		(void) QvTids_insert(window->seen, tids[i], &found);
}

void
IvfWindowInclude(IvfWindow *window)
{
	if (window->seen)
		QvTids_destroy(window->seen);
	window->seen = NULL;
}
