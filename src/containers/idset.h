/*
 * idset.h
 *		A set of 32-bit numbers, each with a float, by open addressing: the nodes that
 *		a search has examined.
 *
 * It is emptied in O(1), because each entry has the generation that wrote it.  The caller
 * passes the memory, and doubles it by IdSetMove() when IdSetFull() says so.
 */
#ifndef QV_IDSET_H
#define QV_IDSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct IdSetEntry
{
	uint32_t	id;
	uint32_t	generation;
	float		value;			/* the caller's */
} IdSetEntry;

typedef struct IdSet
{
	IdSetEntry *entries;
	uint32_t	mask;			/* capacity - 1; capacity a power of two */
	uint32_t	count;
	uint32_t	generation;
} IdSet;

#define IdSetBytes(capacity) ((size_t) (capacity) * sizeof(IdSetEntry))

static inline void
IdSetInit(IdSet *set, void *mem, uint32_t capacity)
{
	set->entries = mem;
	set->mask = capacity - 1;
	set->count = 0;
	set->generation = 1;
	memset(mem, 0, IdSetBytes(capacity));
}

static inline void
IdSetClear(IdSet *set)
{
	set->count = 0;
	if (++set->generation == 0)
	{
		memset(set->entries, 0, IdSetBytes(set->mask + 1));
		set->generation = 1;
	}
}

/* Must the set grow?  It is more than half full. */
static inline bool
IdSetFull(const IdSet *set)
{
	return set->count > set->mask / 2;
}

static inline IdSetEntry *
IdSetFind(const IdSet *set, uint32_t id)
{
	/* Fibonacci hashing spreads consecutive numbers over the table */
	uint32_t	pos = (uint32_t) ((id * UINT64_C(11400714819323198485)) >> 32) & set->mask;

	while (set->entries[pos].generation == set->generation &&
		   set->entries[pos].id != id)
		pos = (pos + 1) & set->mask;
	return &set->entries[pos];
}

static inline bool
IdSetHas(const IdSet *set, uint32_t id)
{
	return IdSetFind(set, id)->generation == set->generation;
}

/* Returns the entry of id.  If there is none, adds one with the given value. */
static inline IdSetEntry *
IdSetPut(IdSet *set, uint32_t id, float value, bool *added)
{
	IdSetEntry *e = IdSetFind(set, id);

	*added = e->generation != set->generation;
	if (*added)
	{
		e->id = id;
		e->generation = set->generation;
		e->value = value;
		set->count++;
	}
	return e;
}

/*
 * Rehashes into mem, which has a larger capacity.  The old memory is the caller's again.
 */
static inline void
IdSetMove(IdSet *set, void *mem, uint32_t capacity)
{
	IdSet		old = *set;
	bool		added;

	IdSetInit(set, mem, capacity);
	for (uint32_t i = 0; i <= old.mask; i++)
		if (old.entries[i].generation == old.generation)
			(void) IdSetPut(set, old.entries[i].id, old.entries[i].value, &added);
}

#endif							/* QV_IDSET_H */
