/*
 * calibrate.h
 *		Measuring how many lists a search must read for a recall.
 *
 * See src/ivf/update/README.md, "Calibration".
 */
#ifndef QV_IVF_UPDATE_CALIBRATE_H
#define QV_IVF_UPDATE_CALIBRATE_H

#include "ivf/codec/handle.h"

/*
 * Measures probes with rows of the index as queries, and writes them into the metapage.
 * Lists cannot move: in a build, or under IVF_MOVE_LOCK.
 *
 * max_rows bounds the rows that are read; 0: no bound.  With a bound, probes are less exact, or
 * stay as they are.  Those for many rows always stay.  IVF_MEASURE is set then.
 *
 * table_rows: rows of the table, about.  Without a bound, the metapage has the rows of the index.
 */
extern void IvfMeasureProbes(IvfHandle *handle, uint64 max_rows, double table_rows);

/* Returns whether the lists have become many more, so that an insert should measure probes. */
extern bool IvfHasManyMoreLists(const IvfMetaData *meta);

/* Returns the rows of the index, about: as large a share of the table's as when it was measured. */
extern double IvfRowsOf(const IvfMetaData *meta, double table_rows);

/*
 * Returns whether VACUUM should measure probes, if the index has that number of rows.  It should
 * also if an insert left that to it.
 */
extern bool IvfWantsMeasuring(const IvfMetaData *meta, double rows);

/* Returns whether that is overdue: autovacuum, as it is set by default, would have come. */
extern bool IvfIsOverdue(const IvfMetaData *meta, double rows);

#endif							/* QV_IVF_UPDATE_CALIBRATE_H */
