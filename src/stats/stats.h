/*
 * stats.h
 *		What searches of each index have read since statistics began.
 *
 * src/stats/README.md says where counts are kept, and who sees them.
 */
#ifndef QV_STATS_STATS_H
#define QV_STATS_STATS_H

#include "postgres.h"

#include "query/scan.h"

/* Counts of a scan beside those of its engine, over all its searches. */
typedef struct QvScanTotals
{
	int64		searches;
	int64		proposed;		/* heap TIDs that the engine proposed */
	int64		fetched;		/* rows visible to the snapshot, of those
								 * proposed and of others */
	int64		measured;		/* rows whose distance was computed */
} QvScanTotals;

/*
 * Adds the counts of a scan that ends. engine may be NULL.  Does nothing for a scan that
 * never searched.
 */
extern void QvStatsAdd(Oid index, const QvScanTotals *totals, const QvScanCounters *engine);

/* Asks for shared memory, at load. */
extern void QvStatsInit(void);

#endif							/* QV_STATS_STATS_H */
