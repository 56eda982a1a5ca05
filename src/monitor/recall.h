/*
 * recall.h
 *		Measuring the recall of an index on the user's queries, for quiver_calibrate().
 */
#ifndef QV_MONITOR_RECALL_H
#define QV_MONITOR_RECALL_H

#include "utils/rel.h"

typedef struct QvRecall QvRecall;

/*
 * Reads at most "sample" queries, the first column of a SELECT, and finds the k nearest rows
 * of each by reading the table.  Checks the user's rights.  SPI must be connected.
 */
extern QvRecall *QvRecallBegin(Relation index, int k, int sample, const char *queries);

/* Returns the number of queries that have a row to find. */
extern int	QvRecallQueries(const QvRecall *recall);

/* Searches for all queries, and returns the share of their nearest rows that was found. */
extern double QvRecallMeasure(QvRecall *recall);

extern void QvRecallEnd(QvRecall *recall);

/* Sets a setting until the level of settings ends that the caller has begun. */
extern void QvSetForNow(const char *setting, const char *value);

#endif							/* QV_MONITOR_RECALL_H */
