/*
 * goal.h
 *		What a search is asked for, and by which rules it goes on and ends.
 */
#ifndef QV_AM_GOAL_H
#define QV_AM_GOAL_H

#include "postgres.h"

#include "space/tidset.h"

/* What the settings say about a scan; fixed when it starts over. */
typedef struct KnnScanRules
{
	bool		iterative;		/* search on when a batch is used up */
	bool		restart;		/* it cannot, for the goal is not filtered,
								 * but may start over with one that is */
	bool		strict;			/* leave out what is nearer than a row
								 * returned */
	bool		relaxed;		/* the user wants it, late as it is */
	int64		max_tuples;		/* rows after which an iterative scan stops */
	bool		limited;		/* by the user, not by a default: what was not
								 * found until then is not wanted */
	int64		first_rows;		/* rows of a strict scan's first batch that
								 * wait for nothing */

	/*
	 * So many rows, likely all that are wanted, are found before the first is
	 * returned, then four times as many together, and so on; 0: none waits.
	 * For an engine whose candidates may be nearer than it says: such a row
	 * would come too late.
	 */
	int64		round_rows;
} KnnScanRules;

/* What is known of the rows that a scan is for; NULL where nothing is. */
typedef struct KnnGoal
{
	uint32		rows;			/* so many rows are wanted */
	uint32		proposals;		/* and likely so many will have to be proposed
								 * for them */
	uint32		rank;			/* of the last of these among all rows, which
								 * is more when "only" leaves some out */
	bool		filtered;		/* some that the scan proposes will not do: it
								 * may have to go on, whatever the settings
								 * say */
	const QvTidSet *only;		/* no others need be proposed; NULL: any.
								 * Lives as long as the search */
	bool		sweep;			/* then: by looking at all of them, */
	bool		known_only;		/* where they are known to be: if that does
								 * not do, the search finds none */
} KnnGoal;

/* What a sweep takes, with the settings as they are. */
typedef struct KnnSweep
{
	BlockNumber pages;			/* of the index, that it reads; 0: this index
								 * cannot be swept */
	uint32		kept;			/* the nearest members that it has memory for,
								 * at least */
	double		waiting;		/* of members whose codes are known it has
								 * memory for so many */
	double		learns;			/* it makes known where they are, in a table
								 * of so many lines at most, and does not read
								 * from disk for that; 0: not */
	double		learns_codes;	/* and how near they may be, beside a table of
								 * so many lines; 0: not */
	bool		knows_codes;	/* the backend does */
	double		known;			/* of this share the backend knows where they
								 * are: it reads their nodes only.  0: */
	double		spent;			/* what note_exact() was told of, where a
								 * sweep would have found out for later ones */
} KnnSweep;

/* What it costs to look at a row of a list, by its code and its heap TID, in fetches of a row. */
#define KNN_LOOK_COST 0.04

#endif							/* QV_AM_GOAL_H */
