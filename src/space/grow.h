/*
 * grow.h
 *		Arrays that grow.
 */
#ifndef QV_SPACE_GROW_H
#define QV_SPACE_GROW_H

#include "postgres.h"

#include "utils/memutils.h"

/* Returns an array of that many bytes: items, resized, or a new one of a context. */
static inline void *
QvResize(MemoryContext context, void *items, Size bytes)
{
	return items ? repalloc_huge(items, bytes) : MemoryContextAllocHuge(context, bytes);
}

/*
 * Returns an array with twice the room, and at least that of "least" items.  *room: the items that
 * there is room for.
 */
static inline void *
QvGrow(MemoryContext context, void *items, uint32 *room, uint32 least, Size size)
{
	*room = Max(least, *room * 2);
	return QvResize(context, items, *room * size);
}

#endif							/* QV_SPACE_GROW_H */
