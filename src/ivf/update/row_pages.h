/*
 * row_pages.h
 *		Showing all rows of an index, from its lists: row pages are made from them.
 */
#ifndef QV_IVF_UPDATE_ROW_PAGES_H
#define QV_IVF_UPDATE_ROW_PAGES_H

#include "ivf/codec/handle.h"

/*
 * Shows all rows of an index: a QvVisitRows of an IvfHandle.  The lists cannot move: in a build,
 * or under IVF_MOVE_LOCK.
 */
extern void IvfVisitRows(void *engine, const QvRowVisitor *visitor);

#endif							/* QV_IVF_UPDATE_ROW_PAGES_H */
