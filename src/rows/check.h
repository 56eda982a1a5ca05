/*
 * check.h
 *		Verifying row pages against what an index has.
 */
#ifndef QV_ROWS_CHECK_H
#define QV_ROWS_CHECK_H

#include "rows/rows.h"

typedef struct QvRowsChecked
{
	uint64		entries;
	uint64		pages;			/* of entries and of the directory */
	uint64		missing;		/* rows without an entry */
	uint64		moved;			/* rows that are in another place than their
								 * entry says */
} QvRowsChecked;

/*
 * Verify all row pages, and the entry of each row that the engine shows.  Raises
 * ERRCODE_INDEX_CORRUPTED.  VACUUM is kept out; inserts need not be.
 */
extern void QvRowsCheck(const QvRows *rows, QvVisitRows visit, void *engine,
						QvRowsChecked *checked);

#endif							/* QV_ROWS_CHECK_H */
