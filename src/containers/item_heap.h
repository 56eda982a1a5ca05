/*
 * item_heap.h
 *		A binary min-heap of backlog items: a distance and an id in one number.  The
 *		caller grows the memory.
 */
#ifndef QV_ITEM_HEAP_H
#define QV_ITEM_HEAP_H

#include "containers/backlog.h"

typedef struct ItemHeap
{
	BacklogItem *items;
	uint32_t	count;
} ItemHeap;

/* Adds an item.  There must be room for it. */
static inline void
ItemHeapPush(ItemHeap *heap, BacklogItem item)
{
	uint32_t	pos = heap->count++;

	while (pos > 0 && heap->items[(pos - 1) / 2] > item)
	{
		heap->items[pos] = heap->items[(pos - 1) / 2];
		pos = (pos - 1) / 2;
	}
	heap->items[pos] = item;
}

/* Takes the least item.  The heap must not be empty. */
static inline BacklogItem
ItemHeapPop(ItemHeap *heap)
{
	BacklogItem top = heap->items[0];
	BacklogItem last = heap->items[--heap->count];
	uint32_t	pos = 0;

	for (uint32_t child = 1; child < heap->count; child = 2 * pos + 1)
	{
		if (child + 1 < heap->count && heap->items[child + 1] < heap->items[child])
			child++;
		if (last <= heap->items[child])
			break;
		heap->items[pos] = heap->items[child];
		pos = child;
	}
	if (heap->count > 0)
		heap->items[pos] = last;
	return top;
}

#endif							/* QV_ITEM_HEAP_H */
