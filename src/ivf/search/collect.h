/*
 * collect.h
 *		A search of lists in progress, and how its window is filled.
 */
#ifndef QV_IVF_SEARCH_COLLECT_H
#define QV_IVF_SEARCH_COLLECT_H

#include "ivf/ivf.h"
#include "ivf/search/depth.h"
#include "ivf/search/nearest.h"
#include "ivf/search/reader.h"
#include "space/members.h"

typedef struct IvfScan
{
	QvScan		base;
	Relation	index;
	QvOpclassInfo opclass;
	MemoryContext context;		/* of one search */
	IvfScanParams params;
	IvfHandle  *handle;			/* NULL before the first search */
	bool		from_disk;		/* read all pages of a kind at once */
	IvfReader	reader;

	/* lists */
	IvfNearLists near;
	uint32		nnear;			/* read in this batch */
	uint32		probes;			/* that the first batch was to have */
	uint32		probed;			/* in all batches */
	IvfDepth	depth;			/* how deep the lists read are */
	uint8	   *done;			/* bitmap: lists of earlier batches */
	uint8	   *in_window;		/* with a set: lists read for this window, */
	int64		filled;			/* and rows looked up until it was full */

	/* filling the window, which may stop for a pause */
	bool		filling;
	bool		measuring;		/* for VACUUM, perhaps, which may be asked to
								 * sleep */
	uint32		next;			/* place of the list to read next */
	QvScanCounters before;		/* when the lists were first read for it */
	IvfReadAhead ahead;

	/* the reader's window */
	uint32		wanted;			/* rows it would take if enough were read */
	uint32		first;			/* of its first rows: the lists read are deep
								 * enough for these; 0: for all */
	uint32		position;		/* next to propose */
	uint32		prefetched;		/* end of the rows whose prefetch was asked
								 * for */
	bool		complete;		/* no rows after the window */
	bool		bound_sent;		/* the bound at its end has been returned */

	/* Rows proposed so far; from the second window on, the window knows them. */
	uint32		nproposed;
	ItemPointerData *proposed;	/* nkept of them that the window knows not */
	uint32		nkept;
	uint32		max_kept;
	IvfRest    *rest;			/* the rows left, once those were too many */
	ItemPointerData tid;		/* of the candidate */
	QvMemberSearch *members;	/* a sweep by codes in memory, or NULL */
} IvfScan;

/* Have the window take no row that was proposed. */
extern void IvfExcludeProposed(IvfScan *scan);

/* Remember the window's first n rows, which were proposed; false when memory does not do. */
extern bool IvfNoteProposed(IvfScan *scan, uint32 n);

/* The lists that it may read. */
extern uint32 IvfMostLists(const IvfScan *scan);

/*
 * Choose the nearest so many lists.  When a few were not enough, more are sorted than are
 * wanted now.
 */
extern void IvfChooseNear(IvfScan *scan, uint32 n, uint32 sorted);

/* Read so many times the lists, if there are; false when there are no more. */
/* Read so many times the lists, if there are; false when there are no more. */
extern bool IvfWiden(IvfScan *scan, double times);

/* The window that the lists read are deep enough for. */
extern double IvfScanDepth(const IvfScan *scan);

/* So many lists the window will likely take. */
extern uint32 IvfListsLikely(const IvfScan *scan);

/* Go on collecting the window, until it is there or the caller wants to be asked. */
extern void IvfGoOnFilling(IvfScan *scan);

/*
 * Does the caller want to be asked before another list is read?  Not while the counters
 * lack what was gathered to fill the window from.
 */
extern bool IvfIsPaused(const IvfScan *scan);

/* Collect the window anew. */
extern void IvfFillWindow(IvfScan *scan);

/* The largest window: half of the memory; the other is for rows proposed. */
extern Size IvfMostRows(const IvfScan *scan);

/* None of the rows after the first ones is nearer. */
extern float IvfBoundAfterFirst(IvfScan *scan);

/* Of the lists that were read, the next rows are first ones, too; false when there are none. */
extern bool IvfReadMoreFirst(IvfScan *scan);

/*
 * Read the lists that the others take, too.  The nearest rows of those that were read are in
 * the window.
 */
extern void IvfReadDeeper(IvfScan *scan);

/* As many rows as memory allows, else as are expected, or four times as many as before. */
extern void IvfGrowWindow(IvfScan *scan);

/*
 * There is no memory to remember the rows proposed, those of the window now: read all lists
 * that the scan may come to once more, and put the rows that are left into a sort.
 */
extern void IvfBeginRest(IvfScan *scan);

/* The next window of what is left. */
extern void IvfTakeRest(IvfScan *scan);

/* It is over, or there is none. */
/* It is over, or there is none. */
extern void IvfEndRest(IvfScan *scan);

#endif							/* QV_IVF_SEARCH_COLLECT_H */
