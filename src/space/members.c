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

/*
 * When so many were looked at, and this share of them measured, the others are not looked at: the lower bits of
 * few dimensions tell little.
 */
#define REFINED_TRIAL 1024
#define USELESS_SHARE 0.75

/* So many are looked at, or measured, together, so that waiting for one is waiting for all. */
#define REFINED_TOGETHER 64
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
			QvBitCodePrefetch(codes, QvBitCodeOf(codes, member->number));
		else
		{
			member->number = QV_NOWHERE;
			use->unknown++;
		}
	}
}

/* Have n members from one on wait, in the order in which they may be near. */
static void
have_wait(QvMemberSearch *s, uint32 from, uint32 n)
{
	const QvBitCode *code[QV_BITS_TOGETHER];
	int32		sums[QV_BITS_TOGETHER];
	float		bounds[QV_BITS_TOGETHER];
	uint32		known = 0;

	for (uint32 i = 0; i < n; i++)
		if (s->members[from + i].number != QV_NOWHERE)
			code[known++] = QvBitCodeOf(&s->codes, s->members[from + i].number);
	QvBitBounds(&s->query, code, known, sums, bounds);
	known = 0;
	for (uint32 i = 0; i < n; i++)
	{
		QvMember   *member = &s->members[from + i];
		bool		is_known = member->number != QV_NOWHERE;

		member->sum = is_known ? sums[known] : 0;
		BacklogAdd(&s->waiting, is_known ? bounds[known++] : -INFINITY, from + i);
	}
}

bool
QvMemberSearchStart(QvMemberSearch *s, const QvKnownRows *known, const QvTidSet *only,
					const QvSpaceQuery *base, QvKnownUse *use)
{
	QvTidSetIterator it = {.set = only};
	Size		members = Max(1, only->members);
	uint32		soon;

	s->context = CurrentMemoryContext;
	s->codes = known->codes;
	s->members = MemoryContextAllocHuge(s->context, members * sizeof(QvMember));
	s->waiting.items = MemoryContextAllocHuge(s->context, members * sizeof(BacklogItem));
	s->waiting.capacity = members;
	s->refined.items = s->waiting.items;
	QvBitQueryInit(&s->query, &s->codes, base);
	/* some are measured, those after them looked for, and the next taken */
	soon = take_members(s, known, &it, 0, Min(QV_BITS_TOGETHER, members));
	for (uint32 n = 0, later; n + soon > 0; s->count += n, n = soon, soon = later)
	{
		CHECK_FOR_INTERRUPTS();
		later = take_members(s, known, &it, s->count + n + soon, Min(QV_BITS_TOGETHER, members - (s->count + n + soon)));
		find_codes(s, known, s->count + n, soon, use);
		have_wait(s, s->count, n);
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
	MinHeap    *heap = &s->nearest;
	Size		bytes;

	if (heap->count + more <= heap->capacity)
		return;
	heap->capacity = Max(heap->count + more, Min(Max(heap->capacity * 2, LEAST_RUN), s->count));
	bytes = heap->capacity * sizeof(MinHeapItem);
	heap->items = heap->items ? repalloc_huge(heap->items, bytes) : MemoryContextAllocHuge(s->context, bytes);
}

/* Sort out the nearest of those that wait; false when there are none. */
static bool
sort_waiting(QvMemberSearch *s)
{
	return BacklogSort(&s->waiting, Max(LEAST_RUN, s->count / RUN_SHARE));
}

/* How near the nearest of those that wait may be; INFINITY when there are none. */
static double
waits_at(QvMemberSearch *s)
{
	return sort_waiting(s) ? BacklogDistance(s->waiting.items[s->waiting.first]) : INFINITY;
}

/* How near the nearest of those that were looked at may be; INFINITY when there are none. */
static double
refined_at(QvMemberSearch *s)
{
	return s->refined.count > 0 ? BacklogDistance(s->refined.items[0]) : INFINITY;
}

/* Are there lower bits, and do they keep some from being measured? */
static bool
has_fine(const QvMemberSearch *s)
{
	uint32		refined = s->waiting.first;

	return s->codes.fine && (refined < REFINED_TRIAL || s->measured < USELESS_SHARE * refined);
}

/* Look at both bits of the nearest of those that wait. */
static void
refine_some(QvMemberSearch *s)
{
	Backlog    *waiting = &s->waiting;
	uint32		n = Min(REFINED_TOGETHER, waiting->sorted - waiting->first);
	bool		fine = has_fine(s);

	CHECK_FOR_INTERRUPTS();
	for (uint32 i = 0; fine && i < n; i++)
	{
		uint32		number = s->members[BacklogId(waiting->items[waiting->first + i])].number;

		if (number != QV_NOWHERE)
			QvBitCodePrefetch(&s->codes, QvFineCodeOf(&s->codes, number));
	}
	for (uint32 i = 0; i < n; i++)
	{
		BacklogItem item = BacklogTake(waiting);
		const QvMember *member = &s->members[BacklogId(item)];
		float		bound = BacklogDistance(item);

		if (fine && member->number != QV_NOWHERE)
			bound = Max(bound, QvFineBound(&s->query, QvFineCodeOf(&s->codes, member->number), member->sum));
		/* no more than were taken */
		ItemHeapPush(&s->refined, BacklogMake(bound, BacklogId(item)));
	}
}

/* Measure a member. */
static void
measure_one(QvMemberSearch *s, uint32 place)
{
	QvMember   *member = &s->members[place];
	QvMeasured	measured;
	double		bound;

	/* whoever asked will measure the row itself */
	if (member->number == QV_NOWHERE || !s->measure(s->arg, member, &measured))
	{
		measured.distance = -INFINITY;
		measured.error = 0;
	}
	/* an error may be zero, where float32 has rounded the distance */
	bound = measured.distance - measured.error * s->certainty - 4 * FLT_EPSILON * fabs(measured.distance);
	/* damaged factors: likewise */
	MinHeapPush(&s->nearest, isnan(bound) ? -INFINITY : bound, place);
	member->measured = measured;
	s->measured++;
}

/* Measure the nearest of those that were looked at, which none that waits may be nearer than. */
static void
measure_some(QvMemberSearch *s)
{
	uint32		places[MEASURED_TOGETHER];
	double		waits = waits_at(s);
	uint32		n = 0;

	while (n < MEASURED_TOGETHER && s->refined.count > 0 && refined_at(s) <= waits)
	{
		places[n] = BacklogId(ItemHeapPop(&s->refined));
		if (s->members[places[n]].number != QV_NOWHERE)
			s->prefetch(s->arg, &s->members[places[n]]);
		n++;
	}
	make_room(s, n);
	for (uint32 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		measure_one(s, places[i]);
	}
}

/* Is one that was measured nearer than any that was not may be?  False, too, when there is none. */
static bool
has_nearest(QvMemberSearch *s)
{
	double		key = s->nearest.count > 0 ? s->nearest.items[0].key : INFINITY;

	return s->nearest.count > 0 && key <= waits_at(s) && key <= refined_at(s);
}

bool
QvMemberSearchNext(QvMemberSearch *s, QvCandidate *candidate)
{
	MinHeapItem nearest;
	QvMember   *member;

	while (!has_nearest(s))
	{
		double		waits = waits_at(s);

		if (s->refined.count > 0 && refined_at(s) <= waits)
			measure_some(s);
		else if (BacklogHasRun(&s->waiting))
			refine_some(s);
		else
			return false;
	}
	nearest = MinHeapPop(&s->nearest);
	member = &s->members[nearest.value];
	candidate->distance = member->measured.distance;
	candidate->bound = nearest.key;
	candidate->error = QvSpaceQueryError(s->query.base, member->measured.distance, member->measured.error * s->certainty);
	candidate->same_node = false;
	candidate->ntids = 1;
	candidate->tids = &member->tid;
	return true;
}
