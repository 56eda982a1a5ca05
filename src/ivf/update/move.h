/*
 * move.h
 *		Writing lists anew: without their dead rows, or as several.
 *
 * The new pages are complete before the directory leads to them, in one WAL
 * record; the old ones are freed after that.  A crash or an error in between leaves
 * pages that nothing leads to, and the metapage's IVF_MOVING, by which the next
 * vacuum frees them.
 */
#ifndef QV_IVF_UPDATE_MOVE_H
#define QV_IVF_UPDATE_MOVE_H

#include "ivf/codec/handle.h"
#include "ivf/ivf.h"
#include "table/values.h"

/* Should a list of so many rows be split? */
extern bool IvfWantsSplit(const IvfHandle *handle, uint32 list, uint64 rows);

/*
 * Split a list of that generation, which has about so many rows, unless
 * somebody moves rows already or adds some to it.  The caller holds no lock of
 * this index.
 */
extern void IvfTrySplit(Relation index, const QvOpclassInfo *opclass, uint32 list,
						uint32 generation, uint64 rows, TableValues *table);

/*
 * Write a list anew without its dead rows.  The caller holds IVF_MOVE_LOCK, and
 * has set IVF_MOVING; this takes and releases the list's lock, for no longer than
 * it takes to copy what was added meanwhile.
 */
extern void IvfCompactList(IvfHandle *handle, uint32 list);

#endif							/* QV_IVF_UPDATE_MOVE_H */
