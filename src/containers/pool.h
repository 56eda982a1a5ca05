/*
 * pool.h
 *		The candidate pool of a best-first graph search: the ef nearest candidates.  Each is
 *		either waiting or expanded.
 *
 * The waiting ones are in sorted chunks, so that an insertion moves few of thousands [M106].  The
 * expanded ones are in a sorted array, since most are expanded in ascending order.
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
	uint32_t	id;
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

/* Candidates of a chunk. */
#define POOL_CHUNK 256

/* Chunks of a pool: three times what full ones need, so that they are seldom packed. */
#define PoolChunks(capacity) ((capacity) * 3 / POOL_CHUNK + 2)

/* Size of the memory of a pool of that capacity, in candidates.  A PoolChunk has that of two. */
#define PoolEntries(capacity) (PoolChunks(capacity) * (POOL_CHUNK + 2) + (capacity))

/* A chunk: where its candidates are. */
typedef struct PoolChunk
{
	float		least;			/* at most the first distance */
	uint16_t	number;			/* place of its POOL_CHUNK entries */
	uint16_t	first;
	uint16_t	end;
} PoolChunk;

typedef struct Pool
{
	Candidate  *entries;		/* of all chunks */
	Candidate  *expanded;		/* [capacity], ascending */
	PoolChunk  *chunks;			/* [nchunks] are ascending; those behind are
								 * free */
	uint32_t	capacity;
	uint32_t	nchunks;
	uint32_t	nwaiting;
	uint32_t	nexpanded;
	float		threshold;		/* see PoolThreshold() */
} Pool;

/* memory: PoolEntries(capacity) candidates, the caller's. */
static inline void
PoolReset(Pool *pool, Candidate *memory, uint32_t capacity)
{
	pool->entries = memory;
	pool->expanded = memory + PoolChunks(capacity) * POOL_CHUNK;
	pool->chunks = (PoolChunk *) (pool->expanded + capacity);
	pool->capacity = capacity;
	pool->nchunks = pool->nwaiting = pool->nexpanded = 0;
	pool->threshold = INFINITY;
	for (uint32_t i = 0; i < PoolChunks(capacity); i++)
		pool->chunks[i].number = i;
}

static inline Candidate *
PoolChunkEntries(const Pool *pool, const PoolChunk *chunk)
{
	return pool->entries + (size_t) chunk->number * POOL_CHUNK;
}

static inline uint32_t
PoolCount(const Pool *pool)
{
	return pool->nwaiting + pool->nexpanded;
}

static inline bool
PoolHasNext(const Pool *pool)
{
	return pool->nwaiting > 0;
}

/* Returns the candidate that waits for its turn as number i, or NULL. */
static inline const Candidate *
PoolPeek(const Pool *pool, uint32_t i)
{
	for (const PoolChunk *chunk = pool->chunks; chunk < pool->chunks + pool->nchunks; chunk++)
	{
		uint32_t	n = chunk->end - chunk->first;

		if (i < n)
			return PoolChunkEntries(pool, chunk) + chunk->first + i;
		i -= n;
	}
	return NULL;
}

/* Copies the candidates that wait, ascending.  Returns how many there are. */
static inline uint32_t
PoolCopyWaiting(const Pool *pool, Candidate *to)
{
	for (uint32_t i = 0; i < pool->nchunks; i++)
		for (uint32_t j = pool->chunks[i].first; j < pool->chunks[i].end; j++)
			*to++ = PoolChunkEntries(pool, &pool->chunks[i])[j];
	return pool->nwaiting;
}

/*
 * The farthest candidate of a pool that has any, and whether it waits.  At equal distances
 * one that waits is farther.
 */
static inline Candidate
PoolFarthest(const Pool *pool, bool *waits)
{
	Candidate	farthest;

	*waits = pool->nwaiting > 0;
	if (*waits)
	{
		const PoolChunk *chunk = &pool->chunks[pool->nchunks - 1];

		farthest = PoolChunkEntries(pool, chunk)[chunk->end - 1];
		*waits = pool->nexpanded == 0 ||
			farthest.distance >= pool->expanded[pool->nexpanded - 1].distance;
	}
	return *waits ? farthest : pool->expanded[pool->nexpanded - 1];
}

/* Candidates at or above this distance cannot enter. */
static inline float
PoolThreshold(const Pool *pool)
{
	return pool->threshold;
}

static inline void
PoolSetThreshold(Pool *pool)
{
	bool		waits;

	pool->threshold = PoolCount(pool) < pool->capacity ? INFINITY :
		PoolFarthest(pool, &waits).distance;
}

/* Moves a pool to other memory, for a larger capacity. */
static inline void
PoolGrow(Pool *pool, Candidate *memory, uint32_t capacity)
{
	Pool		old = *pool;

	PoolReset(pool, memory, capacity);
	pool->nchunks = old.nchunks;
	pool->nwaiting = old.nwaiting;
	pool->nexpanded = old.nexpanded;
	memcpy(pool->expanded, old.expanded, old.nexpanded * sizeof(Candidate));
	for (uint32_t i = 0; i < old.nchunks; i++)
	{
		pool->chunks[i] = old.chunks[i];
		pool->chunks[i].number = i;
		memcpy(PoolChunkEntries(pool, &pool->chunks[i]), PoolChunkEntries(&old, &old.chunks[i]),
			   POOL_CHUNK * sizeof(Candidate));
	}
	PoolSetThreshold(pool);
}

/* Returns the first place from lo to hi whose distance is above this one. */
static inline uint32_t
PoolPlace(const Candidate *items, uint32_t lo, uint32_t hi, float distance)
{
	/*
	 * which half is taken cannot be predicted, and of a product compilers
	 * make no branch
	 */
	for (uint32_t n = hi - lo; n > 0; n /= 2)
		lo += (items[lo + n / 2].distance <= distance) * ((n + 1) / 2);
	return lo;
}

/* Returns the last chunk whose least distance is not above this one, or the first of all. */
static inline uint32_t
PoolChunkOf(const Pool *pool, float distance)
{
	uint32_t	lo = 1,
				hi = pool->nchunks;

	while (lo < hi)
	{
		uint32_t	mid = (lo + hi) / 2;

		if (pool->chunks[mid].least <= distance)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo - 1;
}

/* Makes room for a chunk, which takes the number of a free one. */
static inline PoolChunk *
PoolAddChunk(Pool *pool, uint32_t at)
{
	PoolChunk	chunk = {.number = pool->chunks[pool->nchunks].number};

	memmove(pool->chunks + at + 1, pool->chunks + at, (pool->nchunks - at) * sizeof(PoolChunk));
	pool->nchunks++;
	pool->chunks[at] = chunk;
	return &pool->chunks[at];
}

/* Frees a chunk if it is empty. */
static inline void
PoolFreeIfEmpty(Pool *pool, uint32_t at)
{
	PoolChunk	chunk = pool->chunks[at];

	if (chunk.first < chunk.end)
		return;
	pool->nchunks--;
	memmove(pool->chunks + at, pool->chunks + at + 1, (pool->nchunks - at) * sizeof(PoolChunk));
	pool->chunks[pool->nchunks] = chunk;
}

/* Fills the chunks from the first on.  No entry is overwritten before it has moved. */
static inline void
PoolPack(Pool *pool)
{
	uint32_t	n = 0;

	for (uint32_t i = 0; i < pool->nchunks; i++)
	{
		PoolChunk	from = pool->chunks[i];

		for (uint32_t j = from.first; j < from.end; j++, n++)
		{
			PoolChunk  *to = &pool->chunks[n / POOL_CHUNK];
			Candidate	moved = PoolChunkEntries(pool, &from)[j];

			if (n % POOL_CHUNK == 0)
			{
				to->least = moved.distance;
				to->first = 0;
			}
			PoolChunkEntries(pool, to)[n % POOL_CHUNK] = moved;
			to->end = n % POOL_CHUNK + 1;
		}
	}
	pool->nchunks = (n + POOL_CHUNK - 1) / POOL_CHUNK;
}

/* Halves a full chunk. */
static inline void
PoolSplit(Pool *pool, uint32_t at)
{
	PoolChunk  *upper = PoolAddChunk(pool, at + 1);
	PoolChunk  *lower = &pool->chunks[at];
	Candidate  *from = PoolChunkEntries(pool, lower) + POOL_CHUNK / 2;

	lower->end = upper->end = POOL_CHUNK / 2;
	upper->least = from->distance;
	memcpy(PoolChunkEntries(pool, upper), from, POOL_CHUNK / 2 * sizeof(Candidate));
}

/* Returns the chunk where a candidate of that distance belongs.  It is not full. */
static inline PoolChunk *
PoolRoom(Pool *pool, float distance)
{
	uint32_t	at;

	if (pool->nchunks == 0)
		return PoolAddChunk(pool, 0);
	while (at = PoolChunkOf(pool, distance),
		   pool->chunks[at].end - pool->chunks[at].first == POOL_CHUNK)
	{
		if (pool->nchunks == PoolChunks(pool->capacity))
			PoolPack(pool);
		else
			PoolSplit(pool, at);
	}
	return &pool->chunks[at];
}

/* Removes the farthest candidate.  Returns whether it waited. */
static inline bool
PoolDrop(Pool *pool, Candidate *dropped)
{
	bool		waits;

	*dropped = PoolFarthest(pool, &waits);
	if (waits)
	{
		pool->nwaiting--;
		pool->chunks[pool->nchunks - 1].end--;
		PoolFreeIfEmpty(pool, pool->nchunks - 1);
	}
	else
		pool->nexpanded--;
	return waits;
}

/* What PoolInsert() does with a candidate that is near enough. */
static inline void
PoolPut(Pool *pool, float distance, uint32_t id, Candidate *dropped)
{
	PoolChunk  *chunk;
	Candidate  *items;
	Candidate	farthest;
	uint32_t	place;

	if (PoolCount(pool) == pool->capacity && PoolDrop(pool, &farthest) && dropped)
		*dropped = farthest;
	chunk = PoolRoom(pool, distance);
	items = PoolChunkEntries(pool, chunk);
	place = PoolPlace(items, chunk->first, chunk->end, distance);
	if (place == chunk->first)
		chunk->least = distance;
	/* the shorter side moves, if it has room */
	if (chunk->first == 0 ||
		(chunk->end < POOL_CHUNK && chunk->end - place < place - chunk->first))
	{
		memmove(items + place + 1, items + place, (chunk->end - place) * sizeof(Candidate));
		chunk->end++;
	}
	else
	{
		memmove(items + chunk->first - 1, items + chunk->first,
				(place - chunk->first) * sizeof(Candidate));
		chunk->first--;
		place--;
	}
	items[place] = (Candidate) {distance, id};
	pool->nwaiting++;
	PoolSetThreshold(pool);
}

/*
 * Adds a candidate that is not in the pool.  Returns false, and leaves the pool
 * unchanged, if it is not near enough.  *dropped (unless NULL) gets the waiting candidate
 * that had to make room.  It stays unchanged if none had to.
 */
static inline bool
PoolInsert(Pool *pool, float distance, uint32_t id, Candidate *dropped)
{
	if (!(distance < pool->threshold))
		return false;
	PoolPut(pool, distance, id, dropped);
	return true;
}

/* Removes a waiting candidate that is in the pool with this distance. */
static inline void
PoolRemove(Pool *pool, float distance, uint32_t id)
{
	uint32_t	at = PoolChunkOf(pool, distance) + 1;

	while (at-- > 0 && at < pool->nchunks)
	{
		PoolChunk  *chunk = &pool->chunks[at];
		Candidate  *items = PoolChunkEntries(pool, chunk);
		uint32_t	place = PoolPlace(items, chunk->first, chunk->end, distance);

		while (place > chunk->first && items[place - 1].id != id)
			place--;
		if (place == chunk->first)
			continue;
		memmove(items + place - 1, items + place, (chunk->end - place) * sizeof(Candidate));
		chunk->end--;
		pool->nwaiting--;
		PoolFreeIfEmpty(pool, at);
		PoolSetThreshold(pool);
		return;
	}
}

/* Returns the nearest waiting candidate, and counts it as expanded. */
static inline Candidate
PoolPop(Pool *pool)
{
	PoolChunk  *chunk = &pool->chunks[0];
	Candidate	next = PoolChunkEntries(pool, chunk)[chunk->first++];
	uint32_t	place = pool->nexpanded++;

	pool->nwaiting--;
	PoolFreeIfEmpty(pool, 0);
	if (place > 0 && pool->expanded[place - 1].distance > next.distance)
	{
		uint32_t	end = place;

		place = PoolPlace(pool->expanded, 0, end, next.distance);
		memmove(pool->expanded + place + 1, pool->expanded + place,
				(end - place) * sizeof(Candidate));
	}
	pool->expanded[place] = next;
	return next;
}

#endif							/* QV_POOL_H */
