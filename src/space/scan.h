/*
 * scan.h
 *		What a search of an engine and the access method say to each other.
 *
 * The engine proposes rows by approximate distances, batch by batch; the access
 * method reads the rows, orders them by their exact distances and decides how far to
 * go (src/am/README.md).
 */
#ifndef QV_SPACE_SCAN_H
#define QV_SPACE_SCAN_H

#include "postgres.h"

#include <math.h>

#include "storage/itemptr.h"

/* What comes next. */
typedef enum QvScanStep
{
	QV_SCAN_CANDIDATE,			/* rows, the ones that may be nearest first */
	QV_SCAN_BOUND,				/* none to come is nearer than this */
	QV_SCAN_END,				/* the end of the batch: likewise, of rows
								 * that QvScanOps.resume() may still find */
	QV_SCAN_PAUSE				/* not known yet: as much has been read as
								 * QvScan.pause says */
} QvScanStep;

/* Distances are search distances: see QvScanDistance(). */
typedef struct QvCandidate
{
	float		distance;
	float		bound;			/* neither its rows nor those to come are
								 * nearer (NaN: nothing is known) */
	float		error;			/* its rows are hardly farther from "distance"
								 * than this; not finite: not known */
	bool		same_node;		/* more rows of the node of the last candidate */
	double		others_bound;	/* then: what rows of other nodes are not
								 * below, error and all; they come after these */
	int			ntids;
	ItemPointerData *tids;		/* valid until the scan's next step */
} QvCandidate;

typedef struct QvScan QvScan;

/* The functions of an engine that take part in a scan once it was started. */
typedef struct QvScanOps
{
	const char *what;			/* "a graph index", in error messages */

	/*
	 * The next step.  Of a bound or the end only the candidate's distance and
	 * bound are set (INFINITY: there are no more), of a pause nothing.  At
	 * the end it may be asked again.
	 */
	QvScanStep	(*next) (QvScan *scan, QvCandidate *candidate);

	/* Search on for another batch; false when there is none. */
	bool		(*resume) (QvScan *scan);

	/*
	 * May be NULL: rows that are likely to be proposed soon and whose pages
	 * of the table are worth reading in the background; each row once.
	 * Returns how many.
	 */
	int			(*prefetch) (QvScan *scan, ItemPointerData *tids, int max);

	/* The scan is over: free what it has. */
	void		(*end) (QvScan *scan);
} QvScanOps;

/*
 * What a search has read, since it was begun: zeroed by whoever counts.  Of a kind of index
 * the counters of the other stay zero.
 */
typedef struct QvScanCounters
{
	int64		nodes;			/* of a graph */
	int64		neighbors;		/* scored, from their nodes */
	int64		lists;			/* of posting lists */
	int64		rows;			/* of these lists, scored or not */
	int64		codes;			/* one-bit codes, or whole values, scored */
	int64		records;		/* or sketches */
	int64		tested;			/* heap TIDs looked up in the set that a
								 * search is for, */
	int64		members;		/* and found */
} QvScanCounters;

/* The first member of an engine's own struct; set when a scan is started. */
struct QvScan
{
	const QvScanOps *ops;
	QvScanCounters counters;
	struct QvBufferHints *table_hints;	/* where pages of the table were
										 * found; until it is started again */
	double		scale;			/* metric distance = scale * (search distance
								 * + offset) */
	double		offset;
	double		expected;		/* set by the caller at a bound or the end: so
								 * many more rows are likely to be taken; 0:
								 * it does not know */
	uint32		sample;			/* set by the caller at a bound: so many more
								 * of the rows read are wanted before others
								 * are read, to see whether they pass */
	float		limit;			/* set by the caller likewise: no row of this
								 * search distance or more is wanted */
	int64		pause;			/* set by the caller before it starts and at a
								 * pause: with so many counters.rows posting
								 * lists stop before the next list, to be told
								 * to go on by the next step; 0: they never do */
	double		depth;			/* set at the end of a batch: the search has
								 * been as deep as one for so many rows;
								 * INFINITY: it has looked at all, and
								 * proposed every one that it is for.  If it
								 * follows the rank, at any time */
	int64		taken;			/* nodes whose rows were proposed, or were not
								 * of the set; 0: this engine has none */
	bool		follows;		/* the next batch will be as deep as a search
								 * for so many rows as rank says: this one was
								 * for those wanted, as if all rows would do */
	double		reach;			/* then, of a search for so many rows at most,
								 * what is nearer than settled has been */
	double		settled;		/* proposed, but for a share as small */
	double		rank;			/* set by the caller at the end of a batch:
								 * the last row wanted has likely this rank
								 * among all */
};

/* A search distance in the units of VectorTypeOps.distance. */
static inline double
QvScanDistance(const QvScan *scan, double distance)
{
	return scan->scale * (distance + scan->offset);
}

/* And back. */
static inline double
QvScanSearchDistance(const QvScan *scan, double distance)
{
	return distance / scan->scale - scan->offset;
}

/*
 * How much of a candidate's error counts.  The certain bound is the product of
 * two norms; after a random rotation the error is their inner product, which
 * exceeds 6 / sqrt(dimensions) of that with a probability below 1e-8.  Rows then
 * come in an order that is off by that much, no more.
 *
 * But a code e away from its row x is e^2 short along x itself (src/quant/README.md: its scale is
 * least squares), and the query may be near x: e / |x| of the product besides, .107 and .34 for 4
 * and 2 bits a coordinate.  Of 8 it is .008.
 */
static inline double
QvCandidateCertainty(int dims, int bits)
{
	return Min(1, 6 / sqrt(dims) + (bits == 4 ? 0.12 : bits == 2 ? 0.4 : 0));
}

/* What a search costs before the first row comes. */
typedef struct QvSearchCost
{
	double		pages;			/* touched */
	double		tuples;			/* rows a search yields; more take more
								 * searches */
	double		evaluations;	/* distances computed or estimated */
} QvSearchCost;

#endif							/* QV_SPACE_SCAN_H */
