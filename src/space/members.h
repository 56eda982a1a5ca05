/*
 * members.h
 *		Searching for the members of a set by what a backend knows of all rows: codes that say
 *		how near each may be (src/space/README.md, "Members").
 */
#ifndef QV_SPACE_MEMBERS_H
#define QV_SPACE_MEMBERS_H

#include "containers/item_heap.h"
#include "containers/minheap.h"
#include "space/bit_codes.h"
#include "space/tidmap.h"
#include "space/tidset.h"

/* What is kept of the rows of an index, until VACUUM has removed some. */
typedef struct QvKnownRows
{
	QvTidMap	numbers;		/* of rows, or QV_NOWHERE */
	QvBitCodes	codes;			/* by number; there may be none */
	uint32		vacuums;		/* the metapage's number when it was read */
	double		absent;			/* share of the members of the last searches
								 * that it does not know, at most */
} QvKnownRows;

/* What came of the members that were looked for. */
typedef struct QvKnownUse
{
	uint64		seen;
	uint64		unknown;		/* rows that have come since, or that it
								 * cannot know */
	uint64		stale;			/* not where it says */
} QvKnownUse;

/* Have too many rows come, or gone elsewhere, since it was read?  And what is usual from now on. */
extern bool QvKnownIsWorn(const QvKnownRows *known, const QvKnownUse *use);
extern void QvKnownNoteUse(QvKnownRows *known, const QvKnownUse *use);

/* The share of a set's members that it does not know. */
extern double QvShareAbsent(const QvKnownRows *known, const QvTidSet *only);

/* Of the members, more than this share that is unknown makes it good for nothing. */
#define QV_MOST_ABSENT 0.75

/* What measuring a member by what the index stores of it gives. */
typedef struct QvMeasured
{
	float		distance;
	float		error;			/* how far off that is, at most */
} QvMeasured;

typedef struct QvMember
{
	ItemPointerData tid;
	union
	{
		struct
		{
			uint32		number; /* QV_NOWHERE: not known */
			int32		sum;	/* of its code, QvBitBounds() */
		};
		QvMeasured	measured;	/* afterwards */
	};
} QvMember;

/* What a search takes for each member, at most. */
#define QV_MEMBER_BYTES (sizeof(QvMember) + sizeof(BacklogItem) + sizeof(MinHeapItem))

typedef struct QvMemberSearch
{
	/*
	 * by the engine: measure a member, false when it is not where it was;
	 * answer no Ctrl-C
	 */
	bool		(*measure) (void *arg, const QvMember *member, QvMeasured *measured);
	void		(*prefetch) (void *arg, const QvMember *member);
	void	   *arg;
	QvScanCounters *counters;
	double		certainty;

	MemoryContext context;
	QvBitCodes	codes;			/* that are known, */
	QvBitQuery	query;			/* and the query for them */
	QvMember   *members;
	uint32		count;
	Backlog		waiting;		/* places of those that were not looked at, by
								 * the upper bits of their codes; */
	ItemHeap	refined;		/* of those that were not measured, by both:
								 * in memory that the others have left; */
	uint32		measured;		/* and how many were, */
	MinHeap		nearest;		/* which are here, but for those returned */
} QvMemberSearch;

/*
 * Begin, in CurrentMemoryContext, with what the engine sets; the query belongs to codes.  The memory of what is
 * known stays until the last one is found.  False when it does not do for this set: nothing is found then.
 */
extern bool QvMemberSearchStart(QvMemberSearch *search, const QvKnownRows *known, const QvTidSet *only,
								const QvSpaceQuery *query, QvKnownUse *use);

/* The next member, nearest first; false when there is none.  Answers Ctrl-C. */
extern bool QvMemberSearchNext(QvMemberSearch *search, QvCandidate *candidate);

#endif							/* QV_SPACE_MEMBERS_H */
