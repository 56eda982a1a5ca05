/*
 * move.h
 *		Writing lists again: without their dead rows, or as several lists.
 *
 * The new pages are complete before the directory leads to them.  It does so by one WAL
 * record.  The old pages are freed after that.  A crash or an error in between leaves pages
 * that nothing leads to, and IVF_MOVING in the metapage.  The next VACUUM then frees them.
 */
#ifndef QV_IVF_UPDATE_MOVE_H
#define QV_IVF_UPDATE_MOVE_H

#include "ivf/codec/handle.h"
#include "ivf/ivf.h"
#include "table/values.h"

/* Returns whether a list that has this number of rows should be split. */
extern bool IvfWantsSplit(const IvfHandle *handle, uint32 list, uint64 rows);

/*
 * Splits a list of that generation, which has about "rows" rows.  Leaves it alone if another
 * backend moves rows, or adds rows to it.  The caller holds no lock of this index.
 */
extern void IvfTrySplit(Relation index, const QvOpclassInfo *opclass, uint32 list,
						uint32 generation, uint64 rows, TableValues *table);

/*
 * Writes a list again without its dead rows.  The caller holds IVF_MOVE_LOCK, and has set
 * IVF_MOVING.  The list's lock is taken and released here, only while the list's last page
 * and what was added meanwhile are copied.
 */
extern void IvfCompactList(IvfHandle *handle, uint32 list);

#endif							/* QV_IVF_UPDATE_MOVE_H */
