/*
 * load.h
 *		Loading the rows of the table into a new index, by one participant or by several.
 */
#ifndef QV_SPACE_LOAD_H
#define QV_SPACE_LOAD_H

#include "postgres.h"

#include "nodes/execnodes.h"
#include "port/atomics.h"
#include "space/space.h"
#include "storage/spin.h"

/* What the participants of a build share: the first member of an engine's own struct. */
typedef struct QvBuildShared
{
	Oid			heap;
	Oid			index;
	bool		concurrent;
	int			participants;	/* at most: they share the memory */
	pg_atomic_uint64 progress;	/* rows so far, in whole thousands of each
								 * participant */
	slock_t		mutex;			/* for the fields below */
	double		heap_tuples;
	double		index_tuples;
	int			left_out;		/* rows that are not indexed (pages/meta.h) */
	bool		broken_hot_chain;
} QvBuildShared;

extern void QvBuildSharedInit(QvBuildShared *shared, Relation heap, Relation index,
							  const IndexInfo *info, int participants);

/* The part of a participant in loading. */
typedef struct QvLoader
{
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	const QvSpace *space;
	QvBuildShared *shared;
	bool		leader;			/* it reports progress */

	/*
	 * Takes a value, detoasted, that is indexed.  It is called in a memory
	 * context that is reset after every row.
	 */
	void		(*add) (void *state, const void *value, ItemPointer tid);
	void	   *state;
} QvLoader;

/*
 * Loads the rows of a scan (NULL: all rows of the table), and adds their numbers to what is
 * shared.  Raises an error for a value of other dimensions than the column's.
 */
extern void QvLoadRows(const QvLoader *loader, TableScanDesc scan);

#endif							/* QV_SPACE_LOAD_H */
