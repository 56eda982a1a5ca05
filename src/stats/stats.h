/*
 * stats.h
 *		What searches of each index have read since statistics began.
 *
 * src/stats/README.md says where counts are kept, and who sees them.
 */
#ifndef QV_STATS_STATS_H
#define QV_STATS_STATS_H

#include "postgres.h"

#include "query/stream.h"

/* Adds the counts of a scan that ends, over all its searches. */
extern void QvStatsAdd(Oid index, int64 searches, const QvStreamCounters *rows,
					   const QvScanCounters *read);

/* Asks for shared memory, at load. */
extern void QvStatsInit(void);

#endif							/* QV_STATS_STATS_H */
