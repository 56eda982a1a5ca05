/*
 * scan.h
 *		The state of a search of posting lists: scan.c leads it, read_lists.c
 *		reads the lists.  Private to these two.
 */
#ifndef QV_IVF_SCAN_H
#define QV_IVF_SCAN_H

#include "ivf/ivf.h"
#include "ivf/route.h"
#include "ivf/window.h"
#include "containers/minheap.h"

/* A row whose record may be worth reading. */
typedef struct IvfGathered
{
	float		bound;			/* its distance is hardly less */
	float		base;			/* distance of its centroid */
	float		ip;				/* by sketches: of its one-bit code and the query */
	uint32		list;
	BlockNumber block;			/* of its record or sketch */
	uint32		number;			/* of that page in the list */
	uint16		slot;
	uint16		rank;			/* of its list */
	bool		asked;			/* to be read ahead */
} IvfGathered;

typedef struct IvfScan
{
	QvScan		base;
	Relation	index;
	QvOpclassInfo opclass;
	MemoryContext context;		/* of one search */
	IvfScanParams params;
	IvfHandle  *handle;
	IvfQuery	query;
	const void *value;			/* NULL: any order */
	float		bound_factor;	/* of the query's distance from the centroid */
	float		lut_bias;		/* of the one-bit codes */
	bool		by_sketch;		/* finer codes are left alone */
	float		sketch_bias;	/* of an inner product with a sketch's bits */

	/* lists */
	IvfNear    *near;			/* room for all */
	uint32		nnear;			/* read in this batch */
	uint32		probes;			/* that the first batch was to have */
	uint32		probed;			/* in all batches */
	uint8	   *done;			/* bitmap: lists of earlier batches */

	IvfWindow	window;
	uint32		wanted;			/* rows it would take if enough were read */
	uint32		position;		/* next to propose */
	uint32		prefetched;			/* rows that ivf_scan_prefetch() has told */
	bool		complete;		/* no rows after the window */
	bool		bound_sent;		/* its end has been */

	/* rows proposed so far; from the second window on, the window knows them */
	ItemPointerData *proposed;
	uint32		nproposed;
	uint32		max_proposed;

	IvfGathered   *gathered;
	uint32		ngathered;
	MinHeap		order;			/* of those gathered, nearest bound first */
	uint8	   *scratch;		/* an unpacked code */
	ItemPointerData tid;		/* of the candidate */
} IvfScan;

/*
 * The blocks of lists, a few lists ahead of the one being read.  Pages of a
 * list that was built or compacted follow one another.
 */
typedef struct IvfReadAhead
{
	uint32		near;			/* next list to ask for */
	uint32		page;			/* next page of it */
	uint32		pages;			/* asked for, ahead of the list being read */
} IvfReadAhead;

/* Have what measuring rows of lists wants, for a rotated query. */
extern void IvfPrepareReading(IvfScan *scan, const float *rotated);

/*
 * Read one list: its rows that may matter are gathered (coded), or put in the
 * window (plain).  False when the list has moved.
 */
extern bool IvfReadList(IvfScan *scan, const IvfNear *near);

/* Put the rows gathered into the window that still may matter; false likewise. */
extern bool IvfReadGathered(IvfScan *scan);

/* Ask for blocks of the lists after the one being read. */
extern void IvfAskForLists(IvfScan *scan, IvfReadAhead *ahead, uint32 reading);

#endif							/* QV_IVF_SCAN_H */
