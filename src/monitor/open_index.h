/*
 * open_index.h
 *		Opening an index that an SQL function is given.
 */
#ifndef QV_MONITOR_OPEN_INDEX_H
#define QV_MONITOR_OPEN_INDEX_H

#include "storage/lockdefs.h"
#include "utils/rel.h"

/* What the user must be allowed to. */
typedef enum KnnRight
{
	KNN_RIGHT_SOME,				/* SELECT on the table or a column of it: the
								 * caller's queries need the rest */
	KNN_RIGHT_SELECT,			/* on the table */
	KNN_RIGHT_OWNER				/* of the index */
} KnnRight;

/*
 * Open an index of Quiver that can be searched.  Raises an error for any other relation,
 * temporary indexes of other sessions and invalid indexes, and without the right: before
 * it waits for a lock.
 */
extern Relation KnnOpenIndex(Oid oid, LOCKMODE lockmode, KnnRight right);

#endif							/* QV_MONITOR_OPEN_INDEX_H */
