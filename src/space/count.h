/*
 * count.h
 *		How many rows an index build will read, estimated from blocks of the table.
 */
#ifndef QV_SPACE_COUNT_H
#define QV_SPACE_COUNT_H

#include "postgres.h"

#include "nodes/execnodes.h"
#include "space/space.h"
#include "utils/rel.h"

/*
 * Returns the number of rows of a table, as its statistics and its size suggest.  Reads no
 * block.
 */
extern double QvEstimateRows(Relation heap);

/*
 * Estimates the rows of an index, which is returned, and of its table.  Needs no statistics.  Reads
 * some blocks of the table, and all if the rows of the index are few or uneven.  The same table
 * gives the same count.  Evaluates the index's condition and expressions, as the current user.
 */
extern double QvCountRows(Relation heap, IndexInfo *info, const QvOpclassInfo *opclass,
						  double *table_rows);

/*
 * Reports for how many rows an index was planned, and how many it has: as a notice if they
 * differ much.
 */
extern void QvReportCount(Relation index, double planned, double rows);

#endif							/* QV_SPACE_COUNT_H */
