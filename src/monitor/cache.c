/*
 * cache.c
 *		What this session has cached of indexes.
 */
#include "postgres.h"

#include "catalog/index.h"
#include "compat.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "space/relcache.h"
#include "utils/acl.h"
#include "utils/tuplestore.h"

/*
 * May the user read the index's table?  The index may have been searched by a function of
 * another user.
 */
static bool
may_read(Oid index)
{
	Oid			table = IndexGetRelation(index, true);
	bool		gone = false;

	return OidIsValid(table) &&
		pg_class_aclcheck_ext(table, GetUserId(), ACL_SELECT, &gone) == ACLCHECK_OK;
}

/*
 * quiver_cache(): a row for each cached index, the one used last first: its bytes, and
 * whether a scan uses it.  The index is NULL if the user may not read its table, or if
 * the index is gone.
 */
PG_FUNCTION_INFO_V1(quiver_cache);
Datum
quiver_cache(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	QvRelCacheEntry *entry = NULL;

	InitMaterializedSRF(fcinfo, 0);
	while ((entry = QvRelCacheNext(entry)) != NULL)
	{
		Datum		values[] = {ObjectIdGetDatum(entry->relid), Int64GetDatum((int64) entry->bytes),
		BoolGetDatum(entry->pins > 0)};
		bool		nulls[lengthof(values)] = {0};

		nulls[0] = !may_read(entry->relid);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
