/*
 * reader.h
 *		Reading posting lists for a search.  Pages are locked one at a time.
 *
 * Lists are read in two steps.  The one-bit codes of a list give each row a lower bound of its
 * distance, and rows that may be near are gathered.  Then those of the least bounds have their
 * records, or sketches, read, which gives a distance.
 *
 * Of the rows of the lists read, those of a bound below "limit" are gathered.  The limit falls
 * while lists are read, so that about as many rows as wanted stay below it, and all that are
 * needed.
 */
#ifndef QV_IVF_SEARCH_READER_H
#define QV_IVF_SEARCH_READER_H

#include "containers/backlog.h"
#include "ivf/codec/handle.h"
#include "quant/quant.h"
#include "query/nearest.h"
#include "query/scan.h"

/* A row whose record, or sketch, may be worth reading. */
typedef struct IvfGathered
{
	float		bound;			/* its distance is hardly less */
	float		ip;				/* by sketches: of its one-bit code and the
								 * query */
	BlockNumber block;			/* of its record or sketch, */
	uint32		number;			/* number of that page in the list, */
	uint16		slot;			/* and place there */
	uint16		rank;			/* of its list */
} IvfGathered;

/* A row that was read. */
typedef struct IvfRead
{
	float		distance;
	float		error;			/* how far that may be off */
	float		gathered;		/* the bound by which it was gathered */
	ItemPointerData tid;
	uint16		rank;			/* of its list among those nearest to the
								 * query */
} IvfRead;

StaticAssertDecl(IVF_MAX_LISTS <= PG_UINT16_MAX + 1, "rank of a list is too narrow");

typedef struct IvfReader IvfReader;
typedef struct IvfListScan IvfListScan;

struct IvfReader
{
	/* set by the caller */
	QvScan	   *scan;			/* has the counters, the certainty and the
								 * memory */
	IvfHandle  *handle;
	IvfQuery	query;
	IvfNear    *lists;			/* the nearest, by rank; when one is read, its
								 * distance becomes precise */
	bool		any_order;		/* the query is null: all distances are 0 */
	bool		by_sketch;		/* coded: finer codes are left alone */
	double		misses;			/* share of rows that bounds may miss */
	float		sigmas;			/* standard deviations that a bound is below
								 * its estimate; set by begin_reading() */
	Size		max_bytes;		/* for rows gathered */

	const struct IvfReadingOps *ops;	/* of the index's form */
	uint32		asked;			/* lists that IvfAskForLists() has asked for */

	/* rows gathered */
	float		low;			/* those of a lesser bound were gathered
								 * before */
	float		limit;			/* no others than of a lesser bound are */
	float		needed;			/* those of a lesser bound will be read: they
								 * stay, while there is memory */
	uint32		wanted;			/* that number of them, or up to twice that;
								 * UINT32_MAX: no limit */
	IvfGathered *gathered;
	Backlog		order;			/* of their places, by bound; its first are
								 * rows that were read */

	/* rows read */
	IvfRead    *rows;
	MinHeap		nearest;		/* by bound; value: place in rows */
	uint32		newest;			/* place of the row read last */
	double		forgot;			/* rows of a greater key may have been
								 * forgotten */

	/* coded: */
	float		code_deviation; /* of <y, q>, as a share of the query's
								 * distance from the centroid */
	float		lut_deviation;	/* of <y, q> by the look-up table */
	float		lut_bias;		/* of the one-bit codes */
	float		sketch_bias;	/* of an inner product with a sketch's bits */
	float	   *bases;			/* distances of the centroids of lists; NaN:
								 * not known */
	uint8	   *scratch;		/* an unpacked code */
	float	   *centroid;		/* a decoded one */
};

/* What does not change while a list is read. */
struct IvfListScan
{
	uint16		rank;			/* among those nearest to the query */
	const char *ahead;			/* the page that is read next, for the CPU's
								 * cache only; NULL: not known */

	/* coded: */
	float		shift;			/* what makes estimates bounds */
	QvEstimateParams estimate;
};

/*
 * How lists of a form are read: one table for codes (coded_scan.c), one for whole values
 * (plain_scan.c).
 */
struct IvfReadingOps
{
	/* NULL: values are measured as they are */
	void		(*begin_reading) (IvfReader *reader);
	void		(*begin_list) (IvfReader *reader, IvfListScan *list);

	/*
	 * Gather the rows of a page that may matter, for which there is room;
	 * whole values are read at once.
	 */
	void		(*scan_page) (IvfReader *reader, IvfListScan *list, BlockNumber block, Page page);

	/* Read one gathered row; false when the list has moved. */
	bool		(*read_gathered) (IvfReader *reader, const IvfGathered *g);

	/*
	 * Measure a row that row pages say to have its record in a place; false
	 * when it is not there any more.  Plain lists have no row pages: NULL.
	 */
	bool		(*measure_place) (IvfReader *reader, const ItemPointerData *tid, QvRowPlace place,
								  QvMeasured *measured);
};

extern const struct IvfReadingOps ivf_coded_reading;	/* coded_scan.c */
extern const struct IvfReadingOps ivf_plain_reading;	/* plain_scan.c */

/*
 * Begin, with no rows, in the scan's context, which is the current one.  What the caller does not
 * set is zero.  IvfSetLimit() comes next.
 */
extern void IvfBeginReading(IvfReader *reader);

/*
 * Gather rows of bounds from "low" on again, so that about "wanted" rows stay below the limit.
 * Rows that were gathered by such bounds before are forgotten, also if they have been read: all, if
 * low is -INFINITY.
 */
extern void IvfSetLimit(IvfReader *reader, float low, uint32 wanted);

/*
 * Read one list, the one of that rank.  False when the list has moved.  after: the block that is
 * read after it, or InvalidBlockNumber.
 */
extern bool IvfReadList(IvfReader *reader, uint32 rank, BlockNumber after);

/* Not less than this are the bounds of the rows gathered that were not read; INFINITY: none. */
extern float IvfLeastGathered(IvfReader *reader);

/* Read the row gathered of the least bound; false when its list has moved. */
extern bool IvfReadNext(IvfReader *reader);

/* For the ops: have a row read. */
extern void IvfAddRow(IvfReader *reader, const IvfRead *row);

/*
 * Do rows gathered take half of their memory?  Rows that are needed should be read before others
 * are gathered, or the limit falls below them.  Then room is made, if others take it.
 */
extern bool IvfIsCrowded(const IvfReader *reader);
extern void IvfMakeRoom(IvfReader *reader);

/* Forget about half of the rows read, those of the greatest keys.  False where all have one key. */
extern bool IvfForgetFarthest(IvfReader *reader);

/*
 * Ask for pages of the n nearest lists, from the one of a rank to a few lists after it.  Pages of a
 * list that was built or compacted follow one another.
 */
extern void IvfAskForLists(IvfReader *reader, uint32 n, uint32 rank);

/* Are rows gathered before they are read?  Whole values are read at once. */
static inline bool
IvfGathersRows(const IvfReader *reader)
{
	return reader->ops->read_gathered != NULL;
}

#endif							/* QV_IVF_SEARCH_READER_H */
