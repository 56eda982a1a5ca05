/*
 * reader.h
 *		Reading posting lists for a search: the nearest rows of the lists asked for
 *		come into its window.  Pages are locked one at a time.
 */
#ifndef QV_IVF_SEARCH_READER_H
#define QV_IVF_SEARCH_READER_H

#include "containers/backlog.h"
#include "ivf/codec/handle.h"
#include "ivf/search/rest.h"
#include "ivf/search/tid_map.h"
#include "ivf/search/window.h"
#include "quant/quant.h"
#include "space/scan.h"
#include "space/tidset.h"

/* Where a record or a sketch is. */
typedef struct IvfItemAt
{
	BlockNumber block;
	uint32		number;			/* of that page in the list */
	uint16		slot;
} IvfItemAt;

/* A row whose record, or sketch, may be worth reading. */
typedef struct IvfGathered
{
	float		bound;			/* its distance is hardly less */
	float		base;			/* distance of its centroid */
	float		ip;				/* by sketches: of its one-bit code and the
								 * query */
	uint32		list;
	uint16		rank;			/* of its list */
	bool		asked;			/* to be read ahead */
	bool		member;			/* of the set: its heap TID was looked up */
	IvfItemAt	item;			/* its record, or sketch */
	IvfItemAt	tid;			/* with a set: where its heap TID is looked up */
} IvfGathered;

/* Its memory is that of the context it was begun in. */
typedef struct IvfReader IvfReader;
typedef struct IvfListScan IvfListScan;

struct IvfReader
{
	IvfHandle  *handle;
	const struct IvfReadingOps *ops;	/* of the index's form */
	IvfQuery	query;
	bool		any_order;		/* the query is null: plain rows are not
								 * measured */
	bool		by_sketch;		/* coded: finer codes are left alone */
	bool		later;			/* wider bounds: see LATER_BOUND */
	bool		sure;			/* bounds that hold: see SURE_BOUND */
	IvfRest    *rest;			/* where all rows go instead of the window, or
								 * NULL */
	const QvTidSet *only;		/* rows that the window takes; NULL: any */
	QvScanCounters *counters;
	IvfWindow	window;

	/* coded: */
	float		code_deviation; /* of <y, q>, as a share of the query's
								 * distance from the centroid */
	float		lut_deviation;	/* of <y, q> by the look-up table */
	float		lut_bias;		/* of the one-bit codes */
	float		sketch_bias;	/* of an inner product with a sketch's bits */
	IvfGathered *gathered;
	uint32		ngathered;
	uint32		room;			/* for so many; */
	uint32		most_gathered;	/* while only the first rows are wanted it may
								 * become so large */
	uint32		nlooked;		/* rows that were gathered, or looked up and
								 * found not to be members */
	IvfListPage head;			/* of the page that find_members() was given */
	uint32	   *members;		/* and which of its rows are: a word for each
								 * batch; */
	uint32	   *dead;			/* and which are dead */
	ItemPointerData *tids;		/* of all that were looked up, invalid of
								 * those */
	uint32		nordered;		/* of those gathered: they are in, or were
								 * taken from, */
	Backlog		order;			/* nearest bound first */
	uint32		first;			/* so many rows of the window are enough for
								 * now; 0: all that it has room for */
	float	   *front;			/* a heap of the distances of the nearest so
								 * many, farthest first */
	uint32		nfront;
	uint8	   *scratch;		/* an unpacked code */
	float	   *centroid;		/* a decoded one */

	/* coded, with a set: */
	int64		rows_before;	/* of the lists read before this search */
	double		beyond_base;	/* sum of how much farther than their
								 * centroids rows may be, */
	double		beyond_base2;	/* and of its squares */
	int64		scored;			/* whose codes were read for this window */
	IvfKnowledge known;
};

/* What does not change while a list is read. */
struct IvfListScan
{
	uint32		list;
	uint16		rank;			/* among those nearest to the query */
	float		base;			/* distance of its centroid */
	bool		members_known;	/* of the page to be scanned: reader->members */

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
	void		(*begin_reading) (IvfReader *reader);
	void		(*begin_list) (IvfReader *reader, IvfListScan *list);

	/*
	 * Which rows of a page are members of the set.  reader->head is a copy of
	 * the page's head.  Sets *any to false when there are none.  Returns
	 * false when the list has moved.  NULL: scan_page() looks at the set by
	 * itself.
	 */
	bool		(*find_members) (IvfReader *reader, IvfListScan *list,
								 BlockNumber block, bool *any);

	/*
	 * Which rows of a page are dead, in reader->dead.  Comes before
	 * find_members().
	 */
	void		(*find_dead) (IvfReader *reader, Page page);

	/* Gather the rows of a page that may matter, or offer them to the window. */
	void		(*scan_page) (IvfReader *reader, IvfListScan *list,
							  BlockNumber block, Page page);

	/*
	 * Drop the gathered rows that are not members; false when the list has
	 * moved.
	 */
	bool		(*keep_members) (IvfReader *reader);

	/* Read one gathered row and offer it; false when the list has moved. */
	bool		(*read_gathered) (IvfReader *reader, const IvfGathered *g);
};

extern const struct IvfReadingOps ivf_coded_reading;	/* coded_scan.c */
extern const struct IvfReadingOps ivf_plain_reading;	/* plain_scan.c */

/*
 * Candidates gathered before their records are read: more than fit a page; and, where most of
 * them are left until later, so many.
 */
#define IVF_MAX_GATHERED Max(4096, BLCKSZ / 4)
#define IVF_MAX_LEFT (8 * IVF_MAX_GATHERED)
#define IVF_GATHERED_BYTES (sizeof(IvfGathered) + sizeof(BacklogItem))

/* Blocks asked for ahead of those being read. */
#define IVF_READ_AHEAD 32

/* Begin with handle, query, any_order, by_sketch, only and counters set. */
extern void IvfBeginReading(IvfReader *reader);

/* Is the row one that the search is for? */
static inline bool
IvfWantsRow(IvfReader *reader, const ItemPointerData *tid)
{
	if (reader->only == NULL)
		return true;
	reader->counters->tested++;
	if (!QvTidSetHas(reader->only, tid))
		return false;
	reader->counters->members++;
	return true;
}

/* Have the lists read so many rows that to find all members takes less? */
static inline bool
IvfHasReadMuch(const IvfReader *reader)
{
	return reader->only->words > 0 &&
		reader->counters->rows - reader->rows_before >= (int64) reader->only->members / 4;
}

/* Note the distance of a row that was read. */
extern void IvfNoteFront(IvfReader *reader, float distance);

/* Put a row of a list into the window, unless it was proposed; a page may be locked. */
static inline void
IvfOfferRow(IvfReader *reader, const IvfWindowRow *row)
{
	if (reader->first > 0)
		IvfNoteFront(reader, row->distance);
	if (reader->rest == NULL)
		IvfWindowOffer(&reader->window, row);
	else if (!IvfWindowExcludes(&reader->window, &row->tid))
		IvfRestAdd(reader->rest, row);
}

/*
 * Read one list, the one of that rank: its rows that may matter are gathered
 * (coded), or put in the window (plain).  False when the list has moved.
 */
extern bool IvfReadList(IvfReader *reader, const IvfNear *near, uint32 rank);

/* Ask the CPU for a list that will be read soon. */
extern void IvfPrefetchList(IvfReader *reader, const IvfNear *near);

/* Forget the rows gathered. */
static inline void
IvfDropGathered(IvfReader *reader)
{
	reader->ngathered = reader->nordered = reader->nlooked = 0;
	BacklogClear(&reader->order);
}

/*
 * Put the rows gathered into the window that still may matter; false likewise.  While its
 * first rows are enough, those that cannot be among them stay gathered.
 */
extern bool IvfReadGathered(IvfReader *reader);

/* Not less than this are the bounds of the rows gathered whose records were not read. */
extern float IvfLeastGathered(IvfReader *reader);

/*
 * The blocks of lists, a few lists ahead of the one being read.  Pages of a
 * list that was built or compacted follow one another.
 */
typedef struct IvfReadAhead
{
	uint32		near;			/* next list to ask for */
	uint32		page;			/* next page of it */
} IvfReadAhead;

/* Ask for blocks of the n nearest lists after the one of rank reading. */
extern void IvfAskForLists(IvfReader *reader, IvfReadAhead *ahead, const IvfNear *near,
						   uint32 n, uint32 reading);

#endif							/* QV_IVF_SEARCH_READER_H */
