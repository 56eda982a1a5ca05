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

#endif							/* QV_QUERY_NEAREST_H */
