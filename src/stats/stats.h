/*
 * stats.h
 *		What searches of each index have read since statistics began.
 *
 * Where they are kept and who sees them: src/stats/README.md.
 */
#ifndef QV_STATS_STATS_H
#define QV_STATS_STATS_H

#include "postgres.h"

#include "space/scan.h"

/* What a scan counts beside its engine, over all searches since it was begun. */
typedef struct QvScanTotals
{
	int64		searches;
	int64		rounds;			/* times that rows were looked for: more than
								 * searches when these had to go on */
	int64		proposed;		/* heap TIDs, by the engine */
	int64		fetched;		/* of these, and by other ways, rows that the
								 * snapshot sees */
	int64		measured;		/* of these, those whose distance was computed */
} QvScanTotals;

/* Add a scan that ends; engine may be NULL.  Does nothing for one that never searched. */
extern void QvStatsAdd(Oid index, const QvScanTotals *totals, const QvScanCounters *engine);

/* At load: ask for shared memory while it can be had. */
extern void QvStatsInit(void);

#endif							/* QV_STATS_STATS_H */
