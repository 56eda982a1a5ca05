/*
 * nulls.h
 *		Rows without a value, which an index leaves out: VACUUM finds that there are none any more.
 */
#ifndef QV_AM_NULLS_H
#define QV_AM_NULLS_H

#include "postgres.h"

#include "access/genam.h"

/*
 * Looks for a row without a value, if one was left out, but none between the last two VACUUMs, and
 * a query has read the table for it.  Where there is none, such queries use the index again.
 */
extern void KnnLookForNulls(const IndexVacuumInfo *info);

#endif							/* QV_AM_NULLS_H */
