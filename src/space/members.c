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
		__builtin_prefetch(code + at, 0, 2);
	/* not where a line begins */
	if (codes->stride % 64 != 0)
		__builtin_prefetch(code + codes->stride - 1, 0, 2);
}

/* Take the next members of a set, and ask the CPU for what tells their numbers; returns how many. */
static uint32
take_members(QvMemberSearch *s, const QvKnownRows *known, QvTidSetIterator *it, uint32 from, uint32 room)
{
	uint32		n = 0;

	while (n < room && QvTidSetNext(it, &s->members[from + n].tid))
		QvTidMapPrefetch(&known->numbers, &s->members[from + n++].tid);
	return n;
}

/* Find where n of them have their codes, and ask the CPU for these. */
static void
find_codes(QvMemberSearch *s, const QvKnownRows *known, uint32 from, uint32 n, QvKnownUse *use)
{
	const QvBitCodes *codes = &known->codes;

	for (uint32 i = from; i < from + n; i++)
	{
		QvMember   *member = &s->members[i];

		member->number = QvTidMapFind(&known->numbers, &member->tid);
		if (member->number < codes->count)
			prefetch_code(codes, member->number);
		else
		{
			member->number = QV_NOWHERE;
			use->unknown++;
		}
	}
}

/* Have n members from one on wait, in the order in which they may be near. */
static void
have_wait(QvMemberSearch *s, const QvBitCodes *codes, const QvBitQuery *query, uint32 from, uint32 n)
{
	const QvBitCode *code[QV_BITS_TOGETHER];
	float		bounds[QV_BITS_TOGETHER];
	uint32		known = 0;

	for (uint32 i = 0; i < n; i++)
		if (s->members[from + i].number != QV_NOWHERE)
			code[known++] = QvBitCodeOf(codes, s->members[from + i].number);
	QvBitBounds(query, code, known, bounds);
	known = 0;
	for (uint32 i = 0; i < n; i++)
		BacklogAdd(&s->waiting, s->members[from + i].number != QV_NOWHERE ? bounds[known++] : -INFINITY, from + i);
}

bool
QvMemberSearchStart(QvMemberSearch *s, QvKnownRows *known, const QvTidSet *only,
					const QvSpaceQuery *base, QvKnownUse *use)
{
	QvTidSetIterator it = {.set = only};
	const QvBitCodes *codes = &known->codes;
	Size		members = Max(1, only->members);
	QvBitQuery	query;
	uint32		soon;

	s->context = CurrentMemoryContext;
	s->query = base;
	s->members = MemoryContextAllocHuge(s->context, members * sizeof(QvMember));
	s->waiting.items = MemoryContextAllocHuge(s->context, members * sizeof(BacklogItem));
	s->waiting.capacity = members;
	s->count = 0;
	QvBitQueryInit(&query, codes, base);
	/* some are measured, those after them looked for, and the next taken */
	soon = take_members(s, known, &it, 0, Min(QV_BITS_TOGETHER, members));
	for (uint32 n = 0, later; n + soon > 0; s->count += n, n = soon, soon = later)
	{
		CHECK_FOR_INTERRUPTS();
		later = take_members(s, known, &it, s->count + n + soon, Min(QV_BITS_TOGETHER, members - (s->count + n + soon)));
		find_codes(s, known, s->count + n, soon, use);
		have_wait(s, codes, &query, s->count, n);
	}
	use->seen = s->count;
	s->counters->tested += s->count;
	s->counters->codes += s->count - use->unknown;
	s->counters->members += s->count - use->unknown;
	if (!QvKnownIsWorn(known, use))
		return true;
	pfree(s->members);
	pfree(s->waiting.items);
	return false;
}

/* Have room for so many more that are measured. */
static void
make_room(QvMemberSearch *s, uint32 more)
{
	uint32		room = s->nearest.capacity;

	if (s->nmeasured + more <= room)
		return;
	room = Max(s->nmeasured + more, Min(Max(room * 2, LEAST_RUN), s->count));
	if (s->measured == NULL)
	{
		s->measured = MemoryContextAllocHuge(s->context, room * sizeof(QvMeasured));
		s->nearest.items = MemoryContextAllocHuge(s->context, room * sizeof(MinHeapItem));
	}
	else
	{
		s->measured = repalloc_huge(s->measured, room * sizeof(QvMeasured));
		s->nearest.items = repalloc_huge(s->nearest.items, room * sizeof(MinHeapItem));
	}
	s->nearest.capacity = room;
}

/* Ask the CPU for what it takes to measure those of the run up to the n-th. */
static void
prefetch_run(QvMemberSearch *s, uint32 n)
{
	const Backlog *waiting = &s->waiting;
	uint32		end = Min(waiting->first + n, waiting->sorted);

	for (s->asked = Max(s->asked, waiting->first); s->asked < end; s->asked++)
	{
		const QvMember *member = &s->members[BacklogId(waiting->items[s->asked])];

		if (member->number != QV_NOWHERE)
			s->prefetch(s->arg, member);
	}
}

/* Measure a member. */
static void
measure_one(QvMemberSearch *s, uint32 place)
{
	const QvMember *member = &s->members[place];
	QvMeasured *measured = &s->measured[s->nmeasured];
	double		bound;

	measured->place = place;
	/* whoever asked will measure the row itself */
	if (member->number == QV_NOWHERE || !s->measure(s->arg, member, measured))
	{
		measured->distance = -INFINITY;
		measured->error = 0;
	}
	/* an error may be zero, where float32 has rounded the distance */
	bound = measured->distance - measured->error * s->certainty - 4 * FLT_EPSILON * fabs(measured->distance);
	/* damaged factors: likewise */
	MinHeapPush(&s->nearest, isnan(bound) ? -INFINITY : bound, s->nmeasured++);
}

/* Sort out the nearest of those that wait; false when there are none. */
static bool
sort_nearest(QvMemberSearch *s)
{
	return BacklogSort(&s->waiting, Max(LEAST_RUN, s->count / RUN_SHARE));
}

/* Measure some of those that wait, the nearest, while the CPU fetches the next. */
static void
measure_some(QvMemberSearch *s)
{
	Backlog    *waiting = &s->waiting;
	uint32		n = Min(MEASURED_TOGETHER, waiting->sorted - waiting->first);

	prefetch_run(s, MEASURED_TOGETHER);
	make_room(s, n);
	for (uint32 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		measure_one(s, BacklogId(BacklogTake(waiting)));
	}
}

/* Is one that was measured nearer than any that was not may be? */
static bool
has_nearest(QvMemberSearch *s)
{
	return s->nearest.count > 0 &&
		(!sort_nearest(s) || s->nearest.items[0].key <= BacklogDistance(s->waiting.items[s->waiting.first]));
}

bool
QvMemberSearchNext(QvMemberSearch *s, QvCandidate *candidate)
{
	MinHeapItem nearest;
	const		QvMeasured *measured;

	while (!has_nearest(s))
	{
		if (!sort_nearest(s))
			return false;
		measure_some(s);
	}
	nearest = MinHeapPop(&s->nearest);
	measured = &s->measured[nearest.value];
	candidate->distance = measured->distance;
	candidate->bound = nearest.key;
	candidate->error = QvSpaceQueryError(s->query, measured->distance, measured->error * s->certainty);
	candidate->same_node = false;
	candidate->ntids = 1;
	candidate->tids = &s->members[measured->place].tid;
	return true;
}
