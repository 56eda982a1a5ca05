/*
 * stream.h
 *		Rows of a table in the order of their exact distances, from a search that proposes rows by
 *		lower bounds.
 *
 * A row that is proposed is fetched and tested at once.  It waits in a queue by its least possible
 * distance.  It is measured only where its place in the order is in doubt, and returned when no row
 * that waits, or is to come, can be nearer.
 *
 * The order is that of distances; rows of one distance come in the order in which they were
 * proposed.  A search that is approximate may propose a row that is nearer than one that was
 * returned.  It is left out, returned at once, or returned after all others.
 */
#ifndef QV_QUERY_STREAM_H
#define QV_QUERY_STREAM_H

#include "query/scan.h"
#include "table/row_reader.h"

/* What is known of a row before it is fetched. */
typedef enum QvAdmission
{
	QV_ROW_FAILS,
	QV_ROW_MAY_PASS,
	QV_ROW_PASSES				/* it is visible, and all conditions are met */
} QvAdmission;

/* What becomes of rows that are proposed when farther ones were returned. */
typedef enum QvLateRows
{
	QV_LATE_DROPPED,
	QV_LATE_LAST,				/* they are returned after all others */
	QV_LATE_NOW
} QvLateRows;

/* What the owner of a stream sets before it begins. */
typedef struct QvStreamSource
{
	RowReader  *rows;
	Snapshot	snapshot;
	const void *value;			/* as QvScanGoal.value, or one that is never
								 * indexed */
	QvAdmission (*admit) (void *arg, const ItemPointerData *tid);	/* of a row that was not
																	 * fetched yet; NULL: it
																	 * may pass */
	bool		(*fill) (void *arg, const ItemPointerData *tid);	/* have what is wanted
																	 * of such a row without
																	 * fetching it; false:
																	 * fetch it */
	bool		(*test) (void *arg);	/* of the row in rows->slot; NULL: all
										 * rows will do, and are not in the
										 * slot when they are returned */
	void		(*again) (void *arg);	/* have a search propose all rows a
										 * second time: memory did not do for
										 * the rows that wait */
	bool		(*early) (void *arg);	/* the search has ended early, and it
										 * is asked for before each row: true
										 * when another has been set; may be
										 * NULL */
	void	   *arg;
	QvLateRows	late;
	bool		unindexed;		/* and rows that are in no index: last */
	bool		guess;			/* nobody needs to know how far rows are */
	bool		(*beyond) (void *arg, double bound);	/* rows no nearer than
														 * that do not matter;
														 * may be NULL */
	bool		nulls_first;	/* rows without a value come first, not last */
	bool		nans_first;		/* and so do rows whose distance is NaN */
	Size		max_bytes;		/* for rows that wait, in memory */
} QvStreamSource;

typedef struct QvStream QvStream;

/* A row that is returned. */
typedef struct QvStreamRow
{
	double		distance;
	bool		measured;		/* else it is not farther than that */
	bool		filled;			/* by the source; it was not fetched */
	ItemPointerData tid;		/* as the index has it: the root of the row's
								 * chain */
} QvStreamRow;

/* Counters, since the stream was made. */
typedef struct QvStreamCounters
{
	int64		proposed;		/* heap TIDs */
	int64		looked_up;		/* rows that were looked for in the table */
	int64		fetched;		/* of these, rows that are visible */
	int64		passed;
	int64		measured;
	int64		returned;
} QvStreamCounters;

/* In CurrentMemoryContext. */
extern QvStream *QvStreamCreate(void);

/* Start over. */
extern void QvStreamStart(QvStream *stream, const QvStreamSource *source);

/*
 * Let rows come from a search from now on, which has been started; NULL: from nowhere.  Rows that
 * wait are forgotten: the new search proposes them again.  at_once: return rows as they come, in
 * any order.  The search is the last one then, and proposes no row twice.
 */
extern void QvStreamSetScan(QvStream *stream, QvScan *scan, bool at_once);

/*
 * The next row; false when there is none.  pause is called before the search is asked for more
 * rows.  It may change the search.  If it returns false, no more are proposed: rows that wait are
 * returned.
 */
extern bool QvStreamNext(QvStream *stream, bool (*pause) (void *arg), QvStreamRow *row);

/* Do rows wait that were proposed? */
extern bool QvStreamHasWaiting(const QvStream *stream);

/* How near the next row that is proposed may be; -INFINITY: not known. */
extern double QvStreamBound(const QvStream *stream);

extern const QvStreamCounters *QvStreamGetCounters(const QvStream *stream);

extern void QvStreamEnd(QvStream *stream);

#endif							/* QV_QUERY_STREAM_H */
