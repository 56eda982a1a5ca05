/*
 * members.c
 *		Searching for the members of a set by codes in memory; see members.h.
 *
 * Of rows whose distances have lower bounds, the nearest is found with the fewest distances
 * measured when they are taken in the order of their bounds (Seidl and Kriegel, SIGMOD 1998); here
 * twice: by one-bit codes to what the index stores, and by that to the row.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "miscadmin.h"
#include "space/members.h"
#include "utils/memutils.h"

/*
 * Too many are lost when more members than so many, and this share of all, are not where they
 * were, or as many more than usual are not known.
 */
#define FEW_LOST 64
#define LOST_SHARE 0.125

/* What is usual is the most of the last searches. */
#define ABSENT_DECAY 0.9

/* So many codes ahead of the one that is read the CPU is asked for. */
#define CODES_AHEAD 12

/* Members are sorted as far as they will likely be measured, at least so many. */
#define RUN_SHARE 16
#define LEAST_RUN 64

/* They are measured so many together, so that waiting for one page is waiting for all. */
#define MEASURED_TOGETHER 16

bool
QvKnownIsWorn(const QvKnownRows *known, const QvKnownUse *use)
{
	double		usual = FEW_LOST + LOST_SHARE * use->seen;

	return use->stale > usual ||
		(use->unknown > usual + known->absent * use->seen && known->absent < 1 - LOST_SHARE);
}

void
QvKnownNoteUse(QvKnownRows *known, const QvKnownUse *use)
{
	known->absent = Max(known->absent * ABSENT_DECAY, use->unknown / (double) Max(1, use->seen));
}

double
QvShareAbsent(const QvKnownRows *known, const QvTidSet *only)
{
	QvTidSetIterator it = {.set = only};
	ItemPointerData tid;
	uint64		members = 0,
				absent = 0;

	for (; QvTidSetNext(&it, &tid); members++)
		absent += QvTidMapFind(&known->numbers, &tid) == QV_NOWHERE;
	return absent / (double) Max(1, members);
}

/* Ask the CPU for a code. */
static inline void
prefetch_code(const QvBitCodes *codes, uint32 number)
{
	const char *code = (const char *) QvBitCodeOf(codes, number);

	for (Size at = 0; at < codes->stride; at += 64)
		__builtin_prefetch(code + at);
	__builtin_prefetch(code + codes->stride - 1);
}

/* Have the members from one to another wait, in the order in which they may be near. */
static inline void
have_wait(QvMemberSearch *s, const QvBitCodes *codes, const QvBitQuery *query, uint32 from, uint32 to)
{
	for (uint32 i = from; i < to; i++)
	{
		uint32		number = s->members[i].number;

		BacklogAdd(&s->waiting, number == QV_NOWHERE ? -INFINITY : QvBitBound(query, QvBitCodeOf(codes, number)), i);
	}
}

bool
QvMemberSearchStart(QvMemberSearch *s, QvKnownRows *known, const QvTidSet *only,
					const QvSpaceQuery *base, QvKnownUse *use)
{
	QvTidSetIterator it = {.set = only};
	const QvBitCodes *codes = &known->codes;
	Size		members = Max(1, only->members);
	QvBitQuery	query;
	uint32		n = 0;
	uint32		done = 0;

	s->context = CurrentMemoryContext;
	s->query = base;
	s->members = MemoryContextAllocHuge(s->context, members * sizeof(QvMember));
	s->waiting.items = MemoryContextAllocHuge(s->context, members * sizeof(BacklogItem));
	s->waiting.capacity = members;
	QvBitQueryInit(&query, codes, base);
	while (n < members && QvTidSetNext(&it, &s->members[n].tid))
	{
		QvMember   *member = &s->members[n++];

		member->number = QvTidMapFind(&known->numbers, &member->tid);
		if (member->number < codes->count)
			prefetch_code(codes, member->number);
		else
		{
			member->number = QV_NOWHERE;
			use->unknown++;
		}
		if (n - done <= CODES_AHEAD)
			continue;
		have_wait(s, codes, &query, done, done + 1);
		if (++done % 4096 == 0)
			CHECK_FOR_INTERRUPTS();
	}
	have_wait(s, codes, &query, done, n);
	s->count = n;
	use->seen = n;
	s->counters->tested += n;
	s->counters->codes += n - use->unknown;
	s->counters->members += n - use->unknown;
	if (!QvKnownIsWorn(known, use))
		return true;
	pfree(s->members);
	pfree(s->waiting.items);
	return false;
}

/* Have room for so many that are measured. */
static void
make_room(QvMemberSearch *s, uint32 more)
{
	MinHeap    *heap = &s->measured;
	uint32		size = Min(Max(heap->capacity * 2, LEAST_RUN + more), Max(s->count, more));

	if (heap->count + more <= heap->capacity)
		return;
	size = Max(size, heap->count + more);
	heap->items = heap->items ? repalloc_huge(heap->items, size * sizeof(MinHeapItem)) :
		MemoryContextAllocHuge(s->context, size * sizeof(MinHeapItem));
	heap->capacity = size;
}

/* Measure the nearest of those that wait. */
static void
measure_some(QvMemberSearch *s)
{
	uint32		places[MEASURED_TOGETHER];
	uint32		n = 0;

	while (n < MEASURED_TOGETHER && BacklogSort(&s->waiting, Max(LEAST_RUN, s->count / RUN_SHARE)))
	{
		places[n] = BacklogId(BacklogTake(&s->waiting));
		if (s->members[places[n]].number != QV_NOWHERE)
			s->prefetch(s->arg, &s->members[places[n]]);
		n++;
	}
	make_room(s, n);
	for (uint32 i = 0; i < n; i++)
	{
		QvMember   *member = &s->members[places[i]];
		double		bound;

		CHECK_FOR_INTERRUPTS();
		/* whoever asked will measure the row itself */
		if (member->number == QV_NOWHERE || !s->measure(s->arg, member))
		{
			member->distance = -INFINITY;
			member->error = 0;
		}
		/* an error may be zero, where float32 has rounded the distance */
		bound = member->distance - member->error * s->certainty - 4 * FLT_EPSILON * fabs(member->distance);
		/* damaged factors: likewise */
		MinHeapPush(&s->measured, isnan(bound) ? -INFINITY : bound, places[i]);
	}
}

/* Is one that was measured nearer than any that was not may be? */
static bool
has_nearest(const QvMemberSearch *s)
{
	const Backlog *waiting = &s->waiting;

	if (s->measured.count == 0)
		return false;
	if (BacklogHasRun(waiting))
		return s->measured.items[0].key <= BacklogDistance(waiting->items[waiting->first]);
	return waiting->sorted == waiting->count;
}

bool
QvMemberSearchNext(QvMemberSearch *s, QvCandidate *candidate)
{
	MinHeapItem nearest;
	QvMember   *member;

	while (!has_nearest(s))
	{
		if (s->waiting.first == s->waiting.count)
			return false;
		measure_some(s);
	}
	nearest = MinHeapPop(&s->measured);
	member = &s->members[nearest.value];
	candidate->distance = member->distance;
	candidate->bound = nearest.key;
	candidate->error = QvSpaceQueryError(s->query, member->distance, member->error * s->certainty);
	candidate->same_node = false;
	candidate->ntids = 1;
	candidate->tids = &member->tid;
	return true;
}
