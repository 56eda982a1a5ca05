/*
 * open_index.h
 *		Opening an index that an SQL function is given.
 */
#ifndef QV_MONITOR_OPEN_INDEX_H
#define QV_MONITOR_OPEN_INDEX_H

#include "storage/lockdefs.h"
#include "utils/rel.h"

/* The right that the user must have. */
typedef enum KnnRight
{
	KNN_RIGHT_SOME,				/* SELECT on the table or on a column of it;
								 * the caller's queries check the rest */
	KNN_RIGHT_SELECT,			/* SELECT on the table */
	KNN_RIGHT_OWNER				/* owner of the index */
} KnnRight;

/*
 * Opens an index of Quiver that can be searched.  Raises an error for any other relation,
 * for temporary indexes of other sessions, and for invalid indexes.  Checks the right
 * before it waits for a lock.
 */
extern Relation KnnOpenIndex(Oid oid, LOCKMODE lockmode, KnnRight right);

/* Opens an index of Quiver or of a stock pgvector, under the same conditions. */
extern Relation KnnOpenAnyIndex(Oid oid, LOCKMODE lockmode, KnnRight right);

#endif							/* QV_MONITOR_OPEN_INDEX_H */
