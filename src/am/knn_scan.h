/*
 * knn_scan.h
 *		Index scans that return rows in the order of their exact distances,
 *		whatever engine proposes them.
 *
 * The engine proposes rows with approximate distances (KnnScanOps); here they
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
#include "space/candidate.h"
#include "types/type_ops.h"
#include "utils/rel.h"

/* What the settings say about a scan; fixed when it starts over. */
typedef struct KnnScanRules
{
	bool		iterative;		/* search on when a batch is used up */
	bool		strict;			/* leave out what is nearer than a row returned */
	int64		max_tuples;		/* rows after which an iterative scan stops */
	int64		first_rows;		/* rows of a strict scan's first batch that wait for nothing */

	/*
	 * So many rows, likely all that are wanted, are found before the first is
	 * returned, then four times as many together, and so on; 0: none waits.
	 * For an engine whose candidates may be nearer than it says: such a row
	 * would come too late.
	 */
	int64		round_rows;
} KnnScanRules;

/*
 * An engine's scans.  An engine_scan is what begin() returned.  "Search units"
 * are the engine's own: those of QvRowCandidate.
 */
typedef struct KnnScanOps
{
	const char *what;			/* "a graph index", in error messages */

	/*
	 * Called once, before the first start(), in a memory context that lives as
	 * long as the scan; so does opclass.
	 */
	void	   *(*begin) (Relation index, const QvOpclassInfo *opclass);

	/*
	 * Start over for a query value (detoasted, lives until the next start; NULL:
	 * any order).  The engine takes what it needs of the access method's live
	 * settings and fills in rules.
	 */
	void		(*start) (void *engine_scan, const void *query,
						  const void *settings, KnnScanRules *rules);

	/* The next candidate of the batch, the one that may be nearest first; false at its end. */
	bool		(*next) (void *engine_scan, QvRowCandidate *candidate);

	/* Search on for another batch; false when there is none. */
	bool		(*more) (void *engine_scan);

	/*
	 * May be NULL.  At the end of a batch, in search units: no row that is still
	 * to come is expected to be nearer.
	 */
	double		(*bound) (const void *engine_scan);

	/* Search units to the units of VectorTypeOps.distance. */
	double		(*distance) (const void *engine_scan, double distance);

	/* Coordinates over which the error of a candidate spreads. */
	int			(*dims) (const void *engine_scan);

	/*
	 * May be NULL: rows that are likely to be proposed soon and whose pages of
	 * the table are worth asking for now; each row once.  Returns how many.
	 */
	int			(*ahead) (void *engine_scan, ItemPointerData *tids, int max);

	/* May be NULL: so many rows were returned since the last start. */
	void		(*returned) (void *engine_scan, int64 rows);

	/* May be NULL: the scan ends.  Not called unless begin() was. */
	void		(*end) (void *engine_scan);
} KnnScanOps;

/* ambeginscan: settings are read at each start. */
extern IndexScanDesc KnnBeginScan(Relation index, int nkeys, int norderbys,
								  const KnnScanOps *ops, const void *settings);

/* amrescan, amgettuple, amendscan */
extern void KnnRescan(IndexScanDesc scan, ScanKey keys, int nkeys,
					  ScanKey orderbys, int norderbys);
extern bool KnnGetTuple(IndexScanDesc scan, ScanDirection direction);
extern void KnnEndScan(IndexScanDesc scan);

#endif							/* QV_AM_KNN_SCAN_H */
