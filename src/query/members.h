/*
 * members.h
 *		A search of the rows of a set, or of all rows, by row pages.
 *
 * Of rows whose distances have lower bounds, the nearest is found with the fewest distances
 * measured when they are taken in the order of their bounds (Seidl and Kriegel, SIGMOD 1998).
 * That is done twice here: by the one-bit codes of the row pages to what the index stores of a
 * row, and by that to the row itself.
 */
#ifndef QV_QUERY_MEMBERS_H
#define QV_QUERY_MEMBERS_H

#include "query/filter.h"
#include "query/scan.h"
#include "query/tidset.h"

/*
 * Begin, in CurrentMemoryContext.  engine: a search of the index that has row pages, started for
 * the value, and not started again before this one has ended.  set: NULL for all rows; it lives as
 * long.  filter: what entries must pass; NULL: nothing.  proposals: that are expected, of rows that
 * pass it.  max_bytes: for the rows that may be near; beyond that they are read in several passes.
 * What is read counts as read by the engine's search.
 */
extern QvScan *QvMembersBegin(QvScan *engine, Relation table, const QvTidSet *set, QvFilter *filter,
							  double proposals, Size max_bytes);

/* Distances by the codes of row pages that QvMembersSample() has at most. */
#define QV_MEMBERS_SAMPLE 1024

/*
 * Metric distances, estimated by one-bit codes, of rows from all over a table of that many blocks:
 * they are distributed as those of all rows, while each of them is off.  engine: as above.  Returns
 * how many; 0: there is no value, or no row page has a code.
 */
extern uint32 QvMembersSample(QvScan *engine, BlockNumber blocks, double distances[QV_MEMBERS_SAMPLE]);

#endif							/* QV_QUERY_MEMBERS_H */
