/*
 * backlog.h
 *		Candidates put aside by the ten thousands, of which a few are taken again,
 *		nearest first, in memory that the caller grows.
 *
 * They are sorted as far as they are asked for: a run of the nearest lies at the front in
 * order, the others behind it as they came.  A heap costs as much for each that is put
 * aside as this does for each that is taken (src/graph/README.md, "Search").
 */
#ifndef QV_BACKLOG_H
#define QV_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/*
 * A candidate as a number: the distance, so that numbers compare as distances do, then the
 * id.  What is no number comes after all that are.
 */
typedef uint64_t BacklogItem;

typedef struct Backlog
{
	BacklogItem *items;
	uint32_t	capacity;
	uint32_t	count;			/* end of those put aside */
	uint32_t	first;			/* the run: from here */
	uint32_t	sorted;			/* to here */
	uint32_t	known;			/* those from sorted to here are not nearer
								 * than any that was in a run */
	BacklogItem limit;			/* the last that was in one */
} Backlog;

/* So few are sorted by insertion. */
#define BACKLOG_SMALL 16

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

/* Nothing is put aside; the memory is kept. */
static inline void
BacklogClear(Backlog *log)
{
	log->count = log->first = log->sorted = log->known = 0;
	log->limit = 0;
}

/* There must be room: count < capacity. */
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

/* The middle one of three. */
static inline BacklogItem
BacklogMedian(BacklogItem a, BacklogItem b, BacklogItem c)
{
	if (a > b)
		BacklogSwap(&a, &b);
	return c <= a ? a : c < b ? c : b;
}

/*
 * Put the want least of n items in front, in order, by quicksort of the parts that they lie
 * in.  Unlucky choices of pivots make it slow, not wrong.
 */
static inline void
BacklogSortFront(BacklogItem *items, uint32_t n, uint32_t want)
{
	/* of parts to come, the larger ones are put off */
	struct
	{
		uint32_t	from,
					to;
	}			stack[64];
	int			depth = 0;
	uint32_t	from = 0,
				to = n;

	for (;;)
	{
		while (to - from > BACKLOG_SMALL && from < want)
		{
			BacklogItem pivot = BacklogMedian(items[from], items[from + (to - from) / 2], items[to - 1]);
			uint32_t	i = from,
						j = to - 1;

			/* Hoare's: both sides stop at the pivot's equals */
			for (;;)
			{
				while (items[i] < pivot)
					i++;
				while (items[j] > pivot)
					j--;
				if (i >= j)
					break;
				BacklogSwap(&items[i++], &items[j--]);
			}
			/* [from, i) is not above the pivot, [i, to) not below it */
			if (i == from)
				i++;
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
			for (uint32_t i = from + 1; i < to; i++)
			{
				BacklogItem item = items[i];
				uint32_t	at = i;

				for (; at > from && items[at - 1] > item; at--)
					items[at] = items[at - 1];
				items[at] = item;
			}
		if (depth == 0)
			return;
		depth--;
		from = stack[depth].from;
		to = stack[depth].to;
	}
}

/*
 * Have the nearest in a run, about want of them unless there is one; false when nothing is
 * put aside.
 */
static inline bool
BacklogSort(Backlog *log, uint32_t want)
{
	uint32_t	fresh = log->sorted;

	/* what was put aside since then and is nearer joins the run */
	for (uint32_t i = log->known; i < log->count; i++)
		if (log->items[i] < log->limit)
			BacklogSwap(&log->items[i], &log->items[fresh++]);
	log->known = log->count;
	if (fresh > log->sorted)
	{
		BacklogSortFront(log->items + log->first, fresh - log->first, fresh - log->first);
		log->sorted = fresh;
	}
	if (log->first == log->sorted)
	{
		uint32_t	rest = log->count - log->sorted;

		if (rest == 0)
			return false;
		if (want > rest)
			want = rest;
		BacklogSortFront(log->items + log->sorted, rest, want);
		log->sorted += want;
		log->limit = log->items[log->sorted - 1];
	}
	return true;
}

/* Take the nearest, of a run that has one. */
static inline BacklogItem
BacklogTake(Backlog *log)
{
	return log->items[log->first++];
}

/* Does the run have one? */
static inline bool
BacklogHasRun(const Backlog *log)
{
	return log->first < log->sorted;
}

#endif							/* QV_BACKLOG_H */
