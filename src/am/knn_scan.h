/*
 * knn_scan.h
 *		Index scans that return rows in the order of their exact distances,
 *		whatever engine proposes them.
 *
 * The engine proposes rows with approximate distances (space/scan.h); here they
 * are reranked, returned as soon as nothing nearer can come, and the engine is
 * asked to search on when a scan is iterative.  See src/am/README.md, "Exact
 * order" and "Iterative scans".
 */
#ifndef QV_AM_KNN_SCAN_H
#define QV_AM_KNN_SCAN_H

#include "postgres.h"

#include "access/genam.h"
#include "access/sdir.h"
#include "access/skey.h"
#include "space/scan.h"
#include "space/tidset.h"
#include "types/type_ops.h"
#include "utils/rel.h"

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

/* How an access method begins and starts scans of its engine. */
typedef struct KnnScanSource
{
	/*
	 * Called once, before the first start(), in a memory context that lives
	 * as long as the scan; so does opclass.
	 */
	QvScan	   *(*begin) (Relation index, const QvOpclassInfo *opclass);

	/*
	 * Start over for a query value (detoasted, lives until the next start;
	 * NULL: any order), with the settings as they are now for that index, and
	 * fill in rules.
	 */
	void		(*start) (QvScan *scan, Relation index, const void *query,
						  const KnnGoal *goal, KnnScanRules *rules);

	/*
	 * The nodes that a search reads whose last row wanted has that rank among
	 * all.  NULL: an engine that has no nodes.
	 */
	double		(*nodes) (Relation index, double rank);

	/*
	 * And of an engine that has none: the rows that such a search looks at.
	 */
	double		(*rows) (Relation index, double rank);

	/*
	 * What a search with goal->sweep takes, of a table of so many rows, as
	 * the planner has it.  NULL: there is no such search.
	 */
	void		(*sweep) (Relation index, double table_rows, KnnSweep *sweep);

	/*
	 * All members were measured by their rows, which cost so much.  NULL
	 * likewise.
	 */
	void		(*note_exact) (Relation index, double cost);
} KnnScanSource;

/* What it costs to look at a row of a list, by its code and its heap TID, in fetches of a row. */
#define KNN_LOOK_COST 0.04

/* ambeginscan */
extern IndexScanDesc KnnBeginScan(Relation index, int nkeys, int norderbys,
								  const KnnScanSource *source);

/* amrescan, amgettuple, amendscan */
extern void KnnRescan(IndexScanDesc scan, ScanKey keys, int nkeys,
					  ScanKey orderbys, int norderbys);
extern bool KnnGetTuple(IndexScanDesc scan, ScanDirection direction);
extern void KnnEndScan(IndexScanDesc scan);

#endif							/* QV_AM_KNN_SCAN_H */
