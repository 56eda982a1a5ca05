/*
 * write.h
 *		Changing row pages: by inserts, by VACUUM, and all of them from the index itself.
 *
 * Locks: a root page, then a directory page, then a row page.  No other lock of the index is
 * taken while one of these is held.  README.md says what a crash between two records leaves.
 */
#ifndef QV_ROWS_WRITE_H
#define QV_ROWS_WRITE_H

#include "access/genam.h"
#include "rows/rows.h"

/*
 * Put the entry of a row that an insert has added to the index.  included: its included columns.
 * A row of a line beyond those that have entries gets none.  rows->meta may be of other row pages
 * after that.
 */
extern void QvRowsPut(QvRows *rows, const ItemPointerData *tid, QvRowPlace place,
					  const QvRowVector *row, const QvIncludedRow *included);

/*
 * Clear the entries of dead rows.  VACUUM does that before it removes the rows from the engine, so
 * that an entry is always of a row that the index has.  If callback is NULL, all entries stay, and
 * their included columns are forgotten.
 */
extern void QvRowsClear(const QvRows *rows, IndexBulkDeleteCallback callback, void *state,
						BufferAccessStrategy strategy);

/* So many more rows have no entry, or one with another place than theirs. */
extern void QvRowsNoteMissing(QvRows *rows, uint32 count);

/* Are they so many that they should be merged?  Or may row pages be worth it now? */
extern bool QvRowsWantMerge(const QvRowsMeta *meta, double table_rows);

/*
 * Give each row of an index the entry that it lacks, and the place that has changed.  The engine
 * shows its rows once to count them, then once for each part of the entries for which
 * QvMaintenanceWorkMem() has room, mostly one.  No row is removed meanwhile.
 *
 * An index without row pages gets some, and rows->meta says where they are; unless it has no rows, or
 * so few of the table's that most entries would be empty.  Row pages begin again where others would
 * have entries for many more rows.  The metapage says that entries are
 * missing from before the first is written until all are.  building: a build does it, without WAL.
 * table_rows: about.
 *
 * Included columns are read from the table, as a new snapshot sees it.  Entries of rows that it
 * does not see do not have them.
 */
extern void QvRowsMerge(QvRows *rows, bool building, double table_rows, QvVisitRows visit,
						void *engine);

#endif							/* QV_ROWS_WRITE_H */
