/*
 * table_scan.h
 *		A "search" that proposes rows of a table in their order: those of a set, or all.
 *
 * Nothing is known of how near they are.
 */
#ifndef QV_QUERY_TABLE_SCAN_H
#define QV_QUERY_TABLE_SCAN_H

#include "query/scan.h"
#include "query/tidset.h"

/*
 * Begin, in CurrentMemoryContext.  set: NULL for the whole table, whose pages are then read through
 * a few buffers.  hints: where the table's pages were found; may be NULL.
 */
extern QvScan *QvTableScanBegin(Relation table, struct QvBufferHints *hints, const QvTidSet *set);

#endif							/* QV_QUERY_TABLE_SCAN_H */
