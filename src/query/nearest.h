/*
 * nearest.h
 *		Rows that wait to be proposed: an array, and a heap of places in it, the nearest row first.
 *
 * The items of the heap's memory that are not in the heap have the places that are free.
 */
#ifndef QV_QUERY_NEAREST_H
#define QV_QUERY_NEAREST_H

#include "postgres.h"

#include <math.h>

#include "containers/minheap.h"
#include "query/scan.h"
#include "space/grow.h"

/*
 * Has room for "more" rows in a heap, and in the array of rows, which it returns.  Both are in that
 * context.  size: of a row.
 */
static inline void *
QvNearestRoom(MinHeap *heap, uint32 more, MemoryContext context, void *rows, Size size)
{
	uint32		room = Max(heap->capacity * 2, heap->count + more);

	if (heap->count + more <= heap->capacity)
		return rows;
	heap->items = QvResize(context, heap->items, room * sizeof(MinHeapItem));
	for (; heap->capacity < room; heap->capacity++)
		heap->items[heap->capacity].value = heap->capacity;
	return QvResize(context, rows, room * size);
}

/* Adds a row by its bound, and returns its place.  There must be room. */
static inline uint32
QvNearestAdd(MinHeap *heap, double bound)
{
	uint32		place = heap->items[heap->count].value;

	/* damaged factors: the row itself will tell */
	MinHeapPush(heap, isnan(bound) ? -INFINITY : bound, place);
	return place;
}

/* The TID of a row in a heap's array of rows of that size, which have it "at" that place. */
static inline ItemPointer
QvNearestTid(const MinHeap *heap, uint32 item, const void *rows, Size size, Size at)
{
	return (ItemPointer) ((const char *) rows + heap->items[item].value * size + at);
}

/* Rows ahead of the one proposed that the CPU is asked for. */
#define QV_NEAREST_AHEAD 4

/*
 * Asks the CPU for the rows of the table that the next ones lead to, where they are and what is
 * there: the heap's first items are near them.
 */
static inline void
QvNearestPrefetch(const MinHeap *heap, const QvBufferHints *hints, const void *rows, Size size, Size at)
{
	for (uint32 i = 0; i < Min(heap->count, QV_NEAREST_AHEAD); i++)
		if (i == 0)
			QvPrefetchTuple(hints, QvNearestTid(heap, i, rows, size, at));
		else
			QvPrefetchLine(hints, QvNearestTid(heap, i, rows, size, at));
}

/* Copies the TIDs of the next rows, and returns how many. */
static inline uint32
QvNearestTids(const MinHeap *heap, const void *rows, Size size, Size at, ItemPointerData tids[QV_ROWS_AHEAD])
{
	uint32		places[MinHeapRoom(QV_ROWS_AHEAD)];
	uint32		n = MinHeapLeast(heap, QV_ROWS_AHEAD, places);

	for (uint32 i = 0; i < n; i++)
		tids[i] = *QvNearestTid(heap, places[i], rows, size, at);
	return n;
}

#endif							/* QV_QUERY_NEAREST_H */
