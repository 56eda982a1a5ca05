/*
 * pool.h
 *		The candidate pool of a best-first graph search: the ef nearest candidates in
 *		ascending order.  Each is either waiting or expanded.
 *
 * A sorted array beats a heap here: ef is small, most candidates fail the threshold, and
 * the next candidate to expand is a cursor.
 */
#ifndef QV_POOL_H
#define QV_POOL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct Candidate
{
	float		distance;
	uint32_t	id;				/* POOL_EXPANDED set once expanded */
} Candidate;

/* For qsort(): nearest first.  At equal distances the lower number comes first. */
static inline int
CompareCandidates(const void *a, const void *b)
{
	const Candidate *x = (const Candidate *) a;
	const Candidate *y = (const Candidate *) b;

	if (x->distance != y->distance)
		return x->distance < y->distance ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/*
 * The flag is in the sorted entry itself, so node numbers have 31 bits.  That suffices:
 * 2^31 nodes of at least 388 bytes are an index of 0.8 TB.
 */
#define POOL_EXPANDED UINT32_C(0x80000000)
#define POOL_MAX_ID (POOL_EXPANDED - 1)

typedef struct Pool
{
	Candidate  *items;			/* capacity + 1 entries, the caller's */
	uint32_t	capacity;
	uint32_t	count;
	uint32_t	cursor;			/* first entry that may be waiting */
} Pool;

static inline void
PoolReset(Pool *pool, Candidate *items, uint32_t capacity)
{
	pool->items = items;
	pool->capacity = capacity;
	pool->count = 0;
	pool->cursor = 0;
}

/* Candidates at or above this distance cannot enter. */
static inline float
PoolThreshold(const Pool *pool)
{
	return pool->count < pool->capacity ? INFINITY :
		pool->items[pool->count - 1].distance;
}

/*
 * Adds a candidate that is not in the pool.  Returns false, and leaves the pool
 * unchanged, if it is not near enough.  *dropped (unless NULL) gets the candidate that
 * had to make room.  It stays unchanged if none had to.
 */
static inline bool
PoolInsert(Pool *pool, float distance, uint32_t id, Candidate *dropped)
{
	uint32_t	lo = 0,
				hi = pool->count;

	if (!(distance < PoolThreshold(pool)))
		return false;
	while (lo < hi)
	{
		uint32_t	mid = (lo + hi) / 2;

		if (pool->items[mid].distance <= distance)
			lo = mid + 1;
		else
			hi = mid;
	}
	memmove(pool->items + lo + 1, pool->items + lo,
			(pool->count - lo) * sizeof(Candidate));
	pool->items[lo].distance = distance;
	pool->items[lo].id = id;
	if (pool->count == pool->capacity)
	{
		if (dropped)
			*dropped = pool->items[pool->count];
	}
	else
		pool->count++;
	if (lo < pool->cursor)
		pool->cursor = lo;
	return true;
}

/* Removes a waiting candidate that is in the pool with this distance. */
static inline void
PoolRemove(Pool *pool, float distance, uint32_t id)
{
	uint32_t	lo = pool->cursor,
				hi = pool->count;

	while (lo < hi)
	{
		uint32_t	mid = (lo + hi) / 2;

		if (pool->items[mid].distance < distance)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo < pool->count && pool->items[lo].id != id)
		lo++;
	if (lo == pool->count)
		return;
	pool->count--;
	memmove(pool->items + lo, pool->items + lo + 1,
			(pool->count - lo) * sizeof(Candidate));
	while (pool->cursor < pool->count &&
		   (pool->items[pool->cursor].id & POOL_EXPANDED))
		pool->cursor++;
}

static inline bool
PoolHasNext(const Pool *pool)
{
	return pool->cursor < pool->count;
}

/* Returns the nearest waiting candidate, and marks it as expanded. */
static inline Candidate
PoolPop(Pool *pool)
{
	Candidate	next = pool->items[pool->cursor];

	pool->items[pool->cursor].id |= POOL_EXPANDED;
	do
		pool->cursor++;
	while (pool->cursor < pool->count &&
		   (pool->items[pool->cursor].id & POOL_EXPANDED));
	return next;
}

#endif							/* QV_POOL_H */
