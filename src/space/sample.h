/*
 * sample.h
 *		A sample of the rows that an index build will see.
 */
#ifndef QV_SPACE_SAMPLE_H
#define QV_SPACE_SAMPLE_H

#include "postgres.h"

#include "nodes/execnodes.h"
#include "utils/rel.h"

/*
 * Store a value (not null, not detoasted) as sample row number slot, in place
 * of the one that may be there.  False: a row like this is not indexed, and
 * the slot stays as it was.  Called in a memory context that is reset after
 * every row.
 */
typedef bool (*QvSampleTake) (void *state, int slot, Datum value);

typedef struct QvSample
{
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	int			target;			/* rows wanted, at least 1 */
	uint64		seed;			/* the same table and seed: the same sample */
	QvSampleTake take;
	void	   *state;
} QvSample;

/* Rows in the table, roughly. */
extern double QvEstimateRows(Relation heap);

/*
 * Sample a table of about that many rows: reads some of its blocks when they
 * will do, else all.  Returns how many rows there are, in slots from 0 on; the
 * target, or fewer when the table (or what was read of it) has fewer.
 */
extern int	QvSampleRows(const QvSample *s, double rows);

/*
 * The mean of rows[n x pdim], without those whose squared length is more than limit
 * times the median (INFINITY: of all).
 */
extern void QvMeanOfRows(const float *rows, int n, uint32 pdim, float limit, float *mean);

/* The callback of src/cluster: answer Ctrl-C. */
extern void QvClusterInterrupt(void *arg);

#endif							/* QV_SPACE_SAMPLE_H */
