/*
 * check.c
 *		SQL functions of extension quiver that describe and verify an index.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xlog.h"
#include "am/methods.h"
#include "am/opclass.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "compat.h"
#include "fmgr.h"
#include "funcapi.h"
#include "graph/graph.h"
#include "ivf/ivf.h"
#include "kernels/kernels.h"
#include "miscadmin.h"
#include "monitor/open_index.h"
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

PG_FUNCTION_INFO_V1(quiver_pgvector_version);
Datum
quiver_pgvector_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(QUIVER_PGVECTOR_VERSION));
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

/* Columns of quiver_index_info(). */
typedef enum InfoColumn
{
	INFO_ACCESS_METHOD,
	INFO_ROW_COUNT,
	INFO_DIMENSIONS,
	INFO_BYTES,
	INFO_CODE_BITS,
	INFO_OWN_CODE_BITS,
	/* graphs */
	INFO_NODES,
	INFO_DELETED_NODES,
	INFO_FREE_SLOTS,
	INFO_MAX_DEGREE,
	INFO_MEAN_DEGREE,
	INFO_NODES_PER_PAGE,
	INFO_ENTRY_POINTS,
	/* posting lists */
	INFO_LISTS,
	INFO_SMALLEST_LIST,
	INFO_MEDIAN_LIST,
	INFO_LARGEST_LIST,
	INFO_BALANCE,
	INFO_PROBES,
	INFO_DEAD_ROWS,
	INFO_FREE_PAGES,
	INFO_LOST_PAGES,
	INFO_COLUMNS
} InfoColumn;

typedef struct InfoRow
{
	Datum		values[INFO_COLUMNS];
	bool		nulls[INFO_COLUMNS];
} InfoRow;

static void
set_info(InfoRow *row, InfoColumn column, Datum value)
{
	row->values[column] = value;
	row->nulls[column] = false;
}

static void
describe_graph(Relation index, const QvOpclassInfo *opclass, InfoRow *row)
{
	GraphInfo	info;

	GraphCheck(index, opclass, false, &info);
	set_info(row, INFO_ROW_COUNT, Int64GetDatum(info.tuples));
	set_info(row, INFO_DIMENSIONS, Int32GetDatum(info.dims));
	set_info(row, INFO_CODE_BITS, Int32GetDatum(info.code_bits));
	set_info(row, INFO_OWN_CODE_BITS, Int32GetDatum(info.own_bits));
	set_info(row, INFO_NODES, Int64GetDatum(info.nodes));
	set_info(row, INFO_DELETED_NODES, Int64GetDatum(info.deleted));
	set_info(row, INFO_FREE_SLOTS, Int64GetDatum(info.free_slots));
	set_info(row, INFO_MAX_DEGREE, Int32GetDatum(info.max_degree));
	set_info(row, INFO_MEAN_DEGREE, Float8GetDatum(info.nodes ? (double) info.edges / info.nodes : 0));
	set_info(row, INFO_NODES_PER_PAGE, Int32GetDatum(info.nodes_per_page));
	set_info(row, INFO_ENTRY_POINTS, Int32GetDatum(info.entries));
}

static void
describe_ivf(Relation index, const QvOpclassInfo *opclass, InfoRow *row)
{
	IvfInfo		info;

	IvfCheck(index, opclass, false, &info);
	set_info(row, INFO_ROW_COUNT, Int64GetDatum(info.tuples));
	set_info(row, INFO_DIMENSIONS, Int32GetDatum(info.dims));
	set_info(row, INFO_CODE_BITS, Int32GetDatum(info.scan_bits));
	set_info(row, INFO_OWN_CODE_BITS, Int32GetDatum(info.bits));
	set_info(row, INFO_LISTS, Int32GetDatum(info.lists));
	set_info(row, INFO_SMALLEST_LIST, Int64GetDatum(info.smallest));
	set_info(row, INFO_MEDIAN_LIST, Int64GetDatum(info.median));
	set_info(row, INFO_LARGEST_LIST, Int64GetDatum(info.largest));
	set_info(row, INFO_BALANCE, Float8GetDatum(info.balance));
	set_info(row, INFO_PROBES, Int32GetDatum(info.probes));
	set_info(row, INFO_DEAD_ROWS, Int64GetDatum(info.dead));
	set_info(row, INFO_FREE_PAGES, Int64GetDatum(info.free_pages));
	set_info(row, INFO_LOST_PAGES, Int64GetDatum(info.lost_pages));
}

/*
 * quiver_index_info(regclass): one row about an index.  Columns of the other engine are
 * null.  Reads the whole index.
 */
PG_FUNCTION_INFO_V1(quiver_index_info);
Datum
quiver_index_info(PG_FUNCTION_ARGS)
{
	Relation	index = KnnOpenIndex(PG_GETARG_OID(0), AccessShareLock, KNN_RIGHT_OWNER);
	QvOpclassInfo opclass;
	TupleDesc	desc;
	InfoRow		row;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE || desc->natts != INFO_COLUMNS)
		elog(ERROR, "return type must be a row type of %d columns", INFO_COLUMNS);
	memset(row.nulls, true, sizeof(row.nulls));
	QvGetOpclass(index, &opclass);
	set_info(&row, INFO_ACCESS_METHOD, CStringGetTextDatum(get_am_name(index->rd_rel->relam)));
	set_info(&row, INFO_BYTES, Int64GetDatum((int64) RelationGetNumberOfBlocks(index) * BLCKSZ));
	if (KnnMethodOf(index)->engine == &graph_engine)
		describe_graph(index, &opclass, &row);
	else
		describe_ivf(index, &opclass, &row);
	relation_close(index, AccessShareLock);
	desc = BlessTupleDesc(desc);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, row.values, row.nulls)));
}

static int64
check_graph(Relation index, const QvOpclassInfo *opclass)
{
	GraphInfo	info;

	GraphCheck(index, opclass, true, &info);
	if (info.unreached > 0)
		ereport(NOTICE,
				(errmsg("a search cannot reach " INT64_FORMAT " of " INT64_FORMAT " nodes of index \"%s\"",
						info.unreached, info.nodes, RelationGetRelationName(index)),
				 errdetail("Nothing is damaged, but rows of them that were committed are "
						   "found by exact search only."),
				 errhint("VACUUM the table.")));
	return info.tuples;
}

static int64
check_ivf(Relation index, const QvOpclassInfo *opclass)
{
	IvfInfo		info;

	IvfCheck(index, opclass, true, &info);
	return info.tuples;
}

/*
 * quiver_check(regclass): verifies an index.  Raises ERRCODE_INDEX_CORRUPTED, or returns
 * the number of heap TIDs found.  It excludes VACUUM, and for moments inserts into the
 * pages that it reads.  On a standby, replay waits for no lock: check an idle standby.
 */
PG_FUNCTION_INFO_V1(quiver_check);
Datum
quiver_check(PG_FUNCTION_ARGS)
{
	LOCKMODE	lockmode = RecoveryInProgress() ? AccessShareLock : ShareUpdateExclusiveLock;
	Oid			oid = PG_GETARG_OID(0);
	Oid			table = IndexGetRelation(oid, true);
	Relation	index;
	QvOpclassInfo opclass;
	int64		tuples;

	/*
	 * rights are checked before waiting for a lock on another user's table,
	 * and again once the lock is held
	 */
	if (OidIsValid(table) && !QvIsIndexOwner(oid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, get_rel_name(oid));
	if (OidIsValid(table))
		LockRelationOid(table, lockmode);
	index = KnnOpenIndex(oid, AccessShareLock, KNN_RIGHT_OWNER);
	QvGetOpclass(index, &opclass);
	tuples = KnnMethodOf(index)->engine == &graph_engine ? check_graph(index, &opclass) : check_ivf(index, &opclass);
	relation_close(index, AccessShareLock);
	if (OidIsValid(table))
		UnlockRelationOid(table, lockmode);
	PG_RETURN_INT64(tuples);
}
