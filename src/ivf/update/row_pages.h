/*
 * row_pages.h
 *		Making the row pages of an index from its lists.
 */
#ifndef QV_IVF_UPDATE_ROW_PAGES_H
#define QV_IVF_UPDATE_ROW_PAGES_H

#include "ivf/codec/handle.h"

/* Returns whether an index can have row pages: coded, and of a format version with them. */
extern bool IvfCanHaveRows(const IvfMetaData *meta);

/* A QvVisitRows of an IvfHandle.  The lists cannot move. */
extern void IvfVisitRows(void *engine, const QvRowVisitor *visitor);

/*
 * Gives each row its entry.  Lists cannot move: in a build, or under IVF_MOVE_LOCK.  Uses at
 * most maintenance_work_mem, and goes through all lists twice or more.
 */
extern void IvfMergeRows(IvfHandle *handle, double table_rows);

#endif							/* QV_IVF_UPDATE_ROW_PAGES_H */
