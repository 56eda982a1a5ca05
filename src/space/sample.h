/*
 * sample.h
 *		A sample of the rows that an index build will read.
 */
#ifndef QV_SPACE_SAMPLE_H
#define QV_SPACE_SAMPLE_H

#include "postgres.h"

#include "nodes/execnodes.h"
#include "space/space.h"

typedef struct QvSample
{
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	const QvSpace *space;
	int			target;			/* rows wanted, at least 1 */
	uint64		seed;			/* the same table and seed give the same
								 * sample */

	/*
	 * Stores a value, detoasted, that is indexed, as sample row number slot,
	 * in place of the one that may be there.  It is called in a memory
	 * context that is reset after every row.
	 */
	void		(*take) (void *state, int slot, const void *value);
	void	   *state;
} QvSample;

/*
 * Samples a table, of which the index will have about that many rows.  Reads some of its
 * blocks if they suffice, otherwise all.  Returns the number of rows in slots, from slot 0
 * on: the target, or fewer if the blocks read have fewer.
 */
extern int	QvSampleRows(const QvSample *s, double rows);

/* Computes the mean of rows[n x pdim] without outliers. */
extern void QvMeanOfRows(const float *rows, int n, uint32 pdim, float *mean);

/* The interrupt callback of src/cluster: it answers Ctrl-C. */
extern void QvClusterInterrupt(void *arg);

#endif							/* QV_SPACE_SAMPLE_H */
