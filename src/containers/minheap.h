/*
 * minheap.h
 *		A binary min-heap of (double key, uint32 value).  The caller grows the memory.
 */
#ifndef QV_MINHEAP_H
#define QV_MINHEAP_H

#include <stdint.h>

typedef struct MinHeapItem
{
	double		key;
	uint32_t	value;
} MinHeapItem;

typedef struct MinHeap
{
	MinHeapItem *items;
	uint32_t	count;
	uint32_t	capacity;
} MinHeap;

/* Adds an item.  There must be room: count < capacity. */
static inline void
MinHeapPush(MinHeap *heap, double key, uint32_t value)
{
	uint32_t	pos = heap->count++;

	while (pos > 0)
	{
		uint32_t	parent = (pos - 1) / 2;

		if (heap->items[parent].key <= key)
			break;
		heap->items[pos] = heap->items[parent];
		pos = parent;
	}
	heap->items[pos].key = key;
	heap->items[pos].value = value;
}

/*
 * Takes the item with the least key.  The heap must not be empty.  The value is kept behind the
 * heap, where it is the first.
 */
static inline MinHeapItem
MinHeapPop(MinHeap *heap)
{
	MinHeapItem top = heap->items[0];
	MinHeapItem last = heap->items[--heap->count];
	uint32_t	pos = 0;

	for (;;)
	{
		uint32_t	child = 2 * pos + 1;

		if (child >= heap->count)
			break;
		if (child + 1 < heap->count &&
			heap->items[child + 1].key < heap->items[child].key)
			child++;
		if (last.key <= heap->items[child].key)
			break;
		heap->items[pos] = heap->items[child];
		pos = child;
	}
	if (heap->count > 0)
		heap->items[pos] = last;
	heap->items[heap->count].value = top.value;
	return top;
}

/* Places that MinHeapLeast() has room for, to find that many items. */
#define MinHeapRoom(n) (2 * (n) + 1)

/*
 * Finds the places of the n least items, in their order, without taking them.  places has
 * MinHeapRoom(n).  Returns how many there are.
 */
static inline uint32_t
MinHeapLeast(const MinHeap *heap, uint32_t n, uint32_t *places)
{
	uint32_t	found = 0;
	uint32_t	end = 0;		/* beyond those found: the roots of what is
								 * left */

	if (heap->count > 0)
		places[end++] = 0;
	while (found < n && found < end)
	{
		uint32_t	least = found;
		uint32_t	place;

		for (uint32_t i = found + 1; i < end; i++)
			if (heap->items[places[i]].key < heap->items[places[least]].key)
				least = i;
		place = places[least];
		places[least] = places[found];
		places[found++] = place;
		for (uint32_t child = 2 * place + 1; child <= 2 * place + 2 && child < heap->count; child++)
			places[end++] = child;
	}
	return found;
}

#endif							/* QV_MINHEAP_H */
