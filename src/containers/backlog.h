/*
 * backlog.h
 *		Candidates put aside by the ten thousands.  A few of them are taken again,
 *		nearest first.  The caller grows the memory.
 *
 * Candidates are sorted only as far as they are needed.  A sorted run of the nearest lies
 * at the front.  Behind it are near ones, of which the next runs are made without a look at
 * the others.  A heap would cost as much for each candidate put aside as this costs for each
 * candidate taken.
 */
#ifndef QV_BACKLOG_H
#define QV_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/*
 * A candidate as a number: the distance above the id.  Numbers compare as their distances
 * do, then as their ids do.  A NaN comes after all distances.
 */
typedef uint64_t BacklogItem;

typedef struct Backlog
{
	BacklogItem *items;
	uint32_t	capacity;
	uint32_t	count;			/* end of the candidates */
	uint32_t	first;			/* start of the run */
	uint32_t	sorted;			/* end of the run */
	uint32_t	near;			/* end of the near ones behind it */
	uint32_t	known;			/* end of the candidates whose place is right */
	BacklogItem limit;			/* the farthest that was in a run */
	BacklogItem near_limit;		/* near ones are less, those behind are not */
} Backlog;

/* Runs that the near ones are enough for. */
#define BACKLOG_NEAR_RUNS 8

/* Up to this many items are sorted by insertion. */
#define BACKLOG_SMALL 16

/* Size of the random sample that a pivot is taken from, when there are many items. */
#define BACKLOG_SAMPLE 32

static inline BacklogItem
BacklogMake(float distance, uint32_t id)
{
	uint32_t	bits;

	if (distance != distance)
		return ((BacklogItem) UINT32_MAX << 32) | id;
	memcpy(&bits, &distance, sizeof(bits));
	bits ^= (bits & UINT32_C(0x80000000)) ? UINT32_MAX : UINT32_C(0x80000000);
	return ((BacklogItem) bits << 32) | id;
}

static inline uint32_t
BacklogId(BacklogItem item)
{
	return (uint32_t) item;
}

static inline float
BacklogDistance(BacklogItem item)
{
	uint32_t	bits = item >> 32;
	float		distance;

	bits ^= (bits & UINT32_C(0x80000000)) ? UINT32_C(0x80000000) : UINT32_MAX;
	memcpy(&distance, &bits, sizeof(distance));
	return distance;
}

/* Empties the backlog, and keeps its memory. */
static inline void
BacklogClear(Backlog *log)
{
	log->count = log->first = log->sorted = log->near = log->known = 0;
	log->limit = log->near_limit = 0;
}

/* Adds a candidate.  There must be room: count < capacity. */
static inline void
BacklogAdd(Backlog *log, float distance, uint32_t id)
{
	log->items[log->count++] = BacklogMake(distance, id);
}

static inline void
BacklogSwap(BacklogItem *a, BacklogItem *b)
{
	BacklogItem t = *a;

	*a = *b;
	*b = t;
}

/* Sorts a few items by insertion. */
static inline void
BacklogSortFew(BacklogItem *items, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
	{
		BacklogItem item = items[i];
		uint32_t	at = i;

		for (; at > 0 && items[at - 1] > item; at--)
			items[at] = items[at - 1];
		items[at] = item;
	}
}

/*
 * Returns an item to partition n items by, from random places.  No order of the items can
 * therefore make every pivot bad.  If the "want" least items are few of many, the pivot
 * is a little above them: by at most a tenth of n.  Otherwise it is near the middle.
 */
static inline BacklogItem
BacklogPivot(const BacklogItem *items, uint32_t n, uint32_t want, uint32_t *random)
{
	BacklogItem sample[BACKLOG_SAMPLE];
	uint32_t	size = n < BACKLOG_SAMPLE * BACKLOG_SAMPLE / 4 ? 3 : BACKLOG_SAMPLE;
	uint32_t	at = size / 2;

	for (uint32_t i = 0; i < size; i++)
	{
		*random = *random * UINT32_C(1664525) + UINT32_C(1013904223);
		sample[i] = items[(uint64_t) *random * n >> 32];
	}
	BacklogSortFew(sample, size);
	if (size == BACKLOG_SAMPLE && (uint64_t) want * size / n + 2 < at)
		at = (uint64_t) want * size / n + 2;
	return sample[at];
}

/*
 * Moves the items less than the pivot to the front, or with "equals" those not greater.
 * Returns their number.  The loop has no branch on the comparison, which a processor
 * could not predict.
 */
static inline uint32_t
BacklogPartition(BacklogItem *items, uint32_t n, BacklogItem pivot, bool equals)
{
	uint32_t	less = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		BacklogItem item = items[i];

		items[i] = items[less];
		items[less] = item;
		less += equals ? item <= pivot : item < pivot;
	}
	return less;
}

/*
 * Puts the "want" least of n items in front, in order.  This is a quicksort of the parts
 * that contain them.  Bad pivots make it slow, not wrong.
 */
static inline void
BacklogSortFront(BacklogItem *items, uint32_t n, uint32_t want)
{
	/* the larger parts are put off */
	struct
	{
		uint32_t	from,
					to;
	}			stack[64];
	int			depth = 0;
	uint32_t	random = n;
	uint32_t	from = 0,
				to = n;

	for (;;)
	{
		while (to - from > BACKLOG_SMALL && from < want)
		{
			BacklogItem pivot = BacklogPivot(items + from, to - from, want - from, &random);
			uint32_t	i = from + BacklogPartition(items + from, to - from, pivot, false);

			/* the pivot is the least of all: its equals are in order */
			if (i == from)
			{
				from += BacklogPartition(items + from, to - from, pivot, true);
				continue;
			}
			if (i >= want)
				to = i;
			else if (i - from < to - i)
			{
				stack[depth].from = i;
				stack[depth++].to = to;
				to = i;
			}
			else
			{
				stack[depth].from = from;
				stack[depth++].to = i;
				from = i;
			}
		}
		if (from < want)
			BacklogSortFew(items + from, to - from);
		if (depth == 0)
			return;
		depth--;
		from = stack[depth].from;
		to = stack[depth].to;
	}
}

/* Leaves few more than four times "want" near ones, the least, if values differ. */
static inline void
BacklogChooseNear(Backlog *log, uint32_t want)
{
	uint32_t	random = log->count;

	if (log->near == log->sorted)
	{
		log->near = log->count;
		log->near_limit = UINT64_MAX;
	}
	while (log->near - log->sorted > 4 * want)
	{
		BacklogItem *items = log->items + log->sorted;
		BacklogItem pivot = BacklogPivot(items, log->near - log->sorted, want, &random);
		uint32_t	less = BacklogPartition(items, log->near - log->sorted, pivot, false);

		/* so many that are equal, or a bad sample */
		if (less < want)
			return;
		log->near = log->sorted + less;
		log->near_limit = pivot;
	}
}

/*
 * Makes a run of about "want" nearest candidates, unless there is one and no nearer candidates
 * were added.  Returns false if nothing is put aside.
 */
static inline bool
BacklogSort(Backlog *log, uint32_t want)
{
	uint32_t	fresh = log->sorted;

	/*
	 * candidates added since then that are nearer join the run, or the near
	 * ones
	 */
	for (uint32_t i = log->known; i < log->count; i++)
		if (log->items[i] < log->near_limit)
		{
			BacklogSwap(&log->items[i], &log->items[log->near]);
			if (log->items[log->near] < log->limit)
				BacklogSwap(&log->items[log->near], &log->items[fresh++]);
			log->near++;
		}
	log->known = log->count;
	if (fresh > log->sorted)
	{
		if (want > fresh - log->first)
			want = fresh - log->first;
		BacklogSortFront(log->items + log->first, fresh - log->first, want);
		log->sorted = log->first + want;
		log->limit = log->items[log->sorted - 1];
	}
	if (log->first == log->sorted)
	{
		uint32_t	rest;

		if (log->count == log->sorted)
			return false;
		BacklogChooseNear(log, BACKLOG_NEAR_RUNS * want);
		rest = log->near - log->sorted;
		if (want > rest)
			want = rest;
		BacklogSortFront(log->items + log->sorted, rest, want);
		log->sorted += want;
		log->limit = log->items[log->sorted - 1];
	}
	return true;
}

/* Returns a distance near the middle of those put aside, of which there must be some. */
static inline float
BacklogMiddle(const Backlog *log)
{
	BacklogItem sample[BACKLOG_SAMPLE];
	uint32_t	n = log->count - log->first;
	uint32_t	random = n;

	for (int i = 0; i < BACKLOG_SAMPLE; i++)
	{
		random = random * UINT32_C(1664525) + UINT32_C(1013904223);
		sample[i] = log->items[log->first + ((uint64_t) random * n >> 32)];
	}
	BacklogSortFew(sample, BACKLOG_SAMPLE);
	return BacklogDistance(sample[BACKLOG_SAMPLE / 2]);
}

/* Takes the nearest candidate of the run, which must not be empty. */
static inline BacklogItem
BacklogTake(Backlog *log)
{
	return log->items[log->first++];
}

/* Is the run not empty? */
static inline bool
BacklogHasRun(const Backlog *log)
{
	return log->first < log->sorted;
}

#endif							/* QV_BACKLOG_H */
