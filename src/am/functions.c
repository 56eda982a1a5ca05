/*
 * functions.c
 *		SQL functions of extension quiver.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xlog.h"
#include "am/graph_am.h"
#include "am/opclass.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "compat.h"
#include "fmgr.h"
#include "funcapi.h"
#include "graph/rows.h"
#include "kernels/kernels.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "version.h"

PG_FUNCTION_INFO_V1(quiver_version);
Datum
quiver_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(QUIVER_VERSION));
}

/* The level in use. */
PG_FUNCTION_INFO_V1(quiver_simd_level);
Datum
quiver_simd_level(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(qv_kernels.level));
}

/* The levels this CPU can run, best first, as text[]. */
PG_FUNCTION_INFO_V1(quiver_simd_levels);
Datum
quiver_simd_levels(PG_FUNCTION_ARGS)
{
	Datum		levels[16];
	int			n = 0;

	for (const char *const *level = QvKernelsAvailable(); *level && n < lengthof(levels); level++)
		levels[n++] = CStringGetTextDatum(*level);
	PG_RETURN_ARRAYTYPE_P(construct_array(levels, n, TEXTOID, -1, false, TYPALIGN_INT));
}

/*
 * Open an index of ours.  Locks the table first, as everybody does.
 */
static Relation
open_graph_index(Oid oid, LOCKMODE lockmode)
{
	Relation	index = relation_open(oid, lockmode);

	if (!IsGraphIndex(index))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an hnsw or quiver_graph index",
						RelationGetRelationName(index))));
	if (RELATION_IS_OTHER_TEMP(index))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary indexes of other sessions")));
	if (!index->rd_index->indisvalid)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is not valid", RelationGetRelationName(index)),
				 errdetail("Its build did not finish."),
				 errhint("Drop it, or REINDEX it.")));
	if (!QvIsIndexOwner(RelationGetRelid(index), GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, RelationGetRelationName(index));
	return index;
}

/*
 * quiver_index_info(regclass): one row about a graph index.  Reads the whole
 * index.
 */
PG_FUNCTION_INFO_V1(quiver_index_info);
Datum
quiver_index_info(PG_FUNCTION_ARGS)
{
	Relation	index = open_graph_index(PG_GETARG_OID(0), AccessShareLock);
	QvOpclassInfo opclass;
	GraphInfo	info;
	TupleDesc	desc;
	Datum		values[13];
	bool		nulls[13] = {0};
	int			i = 0;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	QvGetOpclass(index, &opclass);
	GraphGetInfo(index, &opclass, &info);
	values[i++] = CStringGetTextDatum(get_am_name(index->rd_rel->relam));
	values[i++] = Int64GetDatum(info.tuples);
	values[i++] = Int32GetDatum(info.dims);
	values[i++] = Int64GetDatum((int64) RelationGetNumberOfBlocks(index) * BLCKSZ);
	values[i++] = Int64GetDatum(info.nodes);
	values[i++] = Int64GetDatum(info.deleted);
	values[i++] = Int64GetDatum(info.free_slots);
	values[i++] = Int32GetDatum(info.slots);
	values[i++] = Float8GetDatum(info.nodes ? (double) info.edges / info.nodes : 0);
	values[i++] = Int32GetDatum(info.code_bits);
	values[i++] = Int32GetDatum(info.own_bits);
	values[i++] = Int32GetDatum(info.nodes_per_page);
	values[i++] = Int32GetDatum(info.entries);
	relation_close(index, AccessShareLock);
	desc = BlessTupleDesc(desc);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}

/*
 * quiver_check(regclass): verify an index; raises ERRCODE_INDEX_CORRUPTED, or
 * returns the number of row pointers found.  Keeps VACUUM and inserts out
 * meanwhile (on a standby replay waits for nothing: check one that is idle).
 */
PG_FUNCTION_INFO_V1(quiver_check);
Datum
quiver_check(PG_FUNCTION_ARGS)
{
	bool		standby = RecoveryInProgress();
	LOCKMODE	lockmode = standby ? AccessShareLock : ShareUpdateExclusiveLock;
	Oid			oid = PG_GETARG_OID(0);
	Oid			table = IndexGetRelation(oid, true);
	Relation	index;

	/* before waiting for a lock on somebody else's table; again once it is had */
	if (OidIsValid(table) && !QvIsIndexOwner(oid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, get_rel_name(oid));
	QvOpclassInfo opclass;
	GraphInfo	info;

	if (OidIsValid(table))
		LockRelationOid(table, lockmode);
	index = open_graph_index(oid, AccessShareLock);
	QvGetOpclass(index, &opclass);
	if (!standby)
		LockPage(index, GRAPH_UPDATE_LOCK, ExclusiveLock);
	GraphCheck(index, &opclass, &info);
	if (!standby)
		UnlockPage(index, GRAPH_UPDATE_LOCK, ExclusiveLock);
	relation_close(index, AccessShareLock);
	if (OidIsValid(table))
		UnlockRelationOid(table, lockmode);
	PG_RETURN_INT64(info.tuples);
}
