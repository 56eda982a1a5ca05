/*
 * state.c
 *		What the view quiver_indexes shows and the catalogs do not have.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "am/methods.h"
#include "am/opclass.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "compat.h"
#include "fmgr.h"
#include "funcapi.h"
#include "ivf/ivf.h"
#include "miscadmin.h"
#include "space/count.h"
#include "storage/buf_internals.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/tuplestore.h"

/* Pages of an index that are examined: a share is then off by about 2 %. */
#define GLANCE_PAGES 500

typedef enum StateColumn
{
	STATE_BYTES,
	STATE_READABLE,
	STATE_EF_SEARCH,
	STATE_RECALL,
	STATE_CALIBRATED,
	STATE_PROBES,
	STATE_LISTS,
	STATE_DEAD_ENTRIES,
	STATE_LOST_PAGES,
	STATE_MEASURED,
	STATE_OLD_FORMAT,
	STATE_SKETCHES,
	STATE_ERROR,
	STATE_COLUMNS
} StateColumn;

typedef struct StateRow
{
	Datum		values[STATE_COLUMNS];
	bool		nulls[STATE_COLUMNS];
} StateRow;

/* May the user read the table?  The pages of an index depend on its rows. */
static bool
may_read(Oid table)
{
	bool		gone = false;

	return pg_class_aclcheck_ext(table, GetUserId(), ACL_SELECT, &gone) == ACLCHECK_OK;
}

static void
set_state(StateRow *row, StateColumn column, Datum value)
{
	row->values[column] = value;
	row->nulls[column] = false;
}

/* Says what the recall decides: the effort, as measured on rows or on queries. */
static void
describe_recall(Relation index, const QvSettings *settings, StateRow *row)
{
	QvCurve		curve;

	KnnMethodOf(index)->engine->get_curve(index, &curve);
	set_state(row, STATE_RECALL, Float8GetDatum(settings->recall));
	set_state(row, STATE_CALIBRATED, CStringGetTextDatum(curve.queries > 0 ? "queries" : "rows"));
}

static void
describe_graph(Relation index, const QvSettings *settings, StateRow *row)
{
	GraphGlanced glanced;

	set_state(row, STATE_EF_SEARCH, Int32GetDatum(settings->ef_search > 0 ? settings->ef_search : GraphEfFor(index, settings)));
	if (settings->ef_search == 0)
		describe_recall(index, settings, row);
	GraphGlance(index, GLANCE_PAGES, &glanced);
	set_state(row, STATE_DEAD_ENTRIES, Int64GetDatum((int64) glanced.deleted));
	set_state(row, STATE_OLD_FORMAT, BoolGetDatum(glanced.old_format));
}

/*
 * Returns about how many rows a table has, by its size; 0: not known.  The statistics of the server
 * count rows twice that a session has not reported yet when it analyzes them.
 */
static double
rows_of_table(Oid oid)
{
	Relation	table;
	double		rows = 0;

	if (!ConditionalLockRelationOid(oid, AccessShareLock))
		return 0;
	table = try_relation_open(oid, NoLock);
	if (table == NULL)
		return 0;
	if (table->rd_rel->reltuples > 0 && table->rd_rel->relpages > 0)
		rows = QvEstimateRows(table);
	relation_close(table, AccessShareLock);
	return rows;
}

static void
describe_ivf(Relation index, const QvSettings *settings, StateRow *row)
{
	QvOpclassInfo opclass;
	IvfProbed	probed;
	IvfGlanced	glanced;

	if (settings->probes == 0)
		describe_recall(index, settings, row);
	IvfGetProbed(index, settings, &probed);
	set_state(row, STATE_PROBES, Int32GetDatum((int32) probed.probes));
	set_state(row, STATE_LISTS, Int32GetDatum((int32) probed.lists));
	QvGetOpclass(index, &opclass);
	IvfGlance(index, &opclass, GLANCE_PAGES, rows_of_table(index->rd_index->indrelid), &glanced);
	set_state(row, STATE_DEAD_ENTRIES, Int64GetDatum((int64) glanced.dead));
	set_state(row, STATE_LOST_PAGES, Int64GetDatum((int64) glanced.lost_pages));
	set_state(row, STATE_MEASURED, BoolGetDatum(glanced.measured));
	set_state(row, STATE_OLD_FORMAT, BoolGetDatum(glanced.old_format));
	set_state(row, STATE_SKETCHES, BoolGetDatum(glanced.sketches));
}

/* Fills in the answer for an index, which is locked. */
static void
describe(Oid oid, StateRow *row)
{
	Relation	index = try_relation_open(oid, NoLock);
	const KnnMethod *method;

	if (index == NULL)
		return;
	if (index->rd_rel->relkind == RELKIND_INDEX)
	{
		bool		readable = may_read(index->rd_index->indrelid);

		set_state(row, STATE_READABLE, BoolGetDatum(readable));
		/* a standby has no files of unlogged relations */
		if (index->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED && RecoveryInProgress())
		{
			relation_close(index, NoLock);
			return;
		}
		set_state(row, STATE_BYTES, Int64GetDatum((int64) RelationGetNumberOfBlocks(index) * BLCKSZ));
		method = KnnMethodOf(index);
		if (method && index->rd_index->indisvalid && !RELATION_IS_OTHER_TEMP(index) && readable)
		{
			QvSettings	settings;

			KnnSettingsOf(index, &settings);
			if (method->engine == &graph_engine)
				describe_graph(index, &settings, row);
			else
				describe_ivf(index, &settings, row);
		}
	}
	relation_close(index, NoLock);
}

/* Is an error about the index, not about the session or the server? */
static bool
is_of_index(int sqlerrcode)
{
	return sqlerrcode == ERRCODE_INDEX_CORRUPTED || sqlerrcode == ERRCODE_DATA_CORRUPTED ||
		sqlerrcode == ERRCODE_UNDEFINED_FILE || sqlerrcode == ERRCODE_FEATURE_NOT_SUPPORTED ||
		sqlerrcode == ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
}

/*
 * Fills in the answer in a subtransaction.  An error about the index, such as damage, is
 * part of the answer.
 */
static void
try_to_describe(Oid oid, StateRow *row)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		describe(oid, row);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		if (!is_of_index(error->sqlerrcode))
			ReThrowError(error);
		set_state(row, STATE_ERROR, CStringGetTextDatum(error->message));
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
}

/*
 * _quiver_index_state(oid): an index's size.  If the user may read its table, also the
 * settings of its searches, and what an examination of some of its pages shows.  Null
 * while it is locked.
 */
PG_FUNCTION_INFO_V1(quiver_index_state);
Datum
quiver_index_state(PG_FUNCTION_ARGS)
{
	Oid			oid = PG_GETARG_OID(0);
	TupleDesc	desc;
	StateRow	row;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE || desc->natts != STATE_COLUMNS)
		elog(ERROR, "return type must be a row type of %d columns", STATE_COLUMNS);
	memset(row.nulls, true, sizeof(row.nulls));
	if (ConditionalLockRelationOid(oid, AccessShareLock))
	{
		try_to_describe(oid, &row);
		UnlockRelationOid(oid, AccessShareLock);
	}
	desc = BlessTupleDesc(desc);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, row.values, row.nulls)));
}

/* ---- shared buffers ---- */

typedef struct BufferedKey
{
	Oid			tablespace;
	Oid			number;
} BufferedKey;

typedef struct Buffered
{
	BufferedKey key;
	int64		buffers;
} Buffered;

/*
 * Returns the index of that relation file if the user may read its table, otherwise an
 * invalid OID.
 */
static Oid
find_index(const BufferedKey *key)
{
	Oid			oid = QvRelationByNumber(key->tablespace, key->number);
	Oid			table = OidIsValid(oid) ? IndexGetRelation(oid, true) : InvalidOid;

	return OidIsValid(table) && may_read(table) ? oid : InvalidOid;
}

/*
 * _quiver_buffers(): the number of pages in shared buffers, for each index of this
 * database on tables that the user may read.  Tags are read without their locks, so a few
 * counts may be stale.
 */
PG_FUNCTION_INFO_V1(quiver_buffers);
Datum
quiver_buffers(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	HASHCTL		control = {
		.keysize = sizeof(BufferedKey),
		.entrysize = sizeof(Buffered),
		.hcxt = CurrentMemoryContext
	};
	HTAB	   *counts = hash_create("quiver buffers", 256, &control,
									 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	HASH_SEQ_STATUS all;
	Buffered   *entry;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < NBuffers; i++)
	{
		BufferDesc *buffer = GetBufferDescriptor(i);
		BufferTag	tag = buffer->tag;
		BufferedKey key = {QvBufferTagTablespace(tag), QvBufferTagRelNumber(tag)};
		bool		found;

		if (i % 65536 == 0)
			CHECK_FOR_INTERRUPTS();
		if (!(QvReadBufferState(buffer) & BM_VALID) ||
			QvBufferTagDatabase(tag) != MyDatabaseId || tag.forkNum != MAIN_FORKNUM)
			continue;
		entry = hash_search(counts, &key, HASH_ENTER, &found);
		entry->buffers = found ? entry->buffers + 1 : 1;
	}
	hash_seq_init(&all, counts);
	while ((entry = hash_seq_search(&all)) != NULL)
	{
		Oid			index = find_index(&entry->key);
		Datum		values[] = {ObjectIdGetDatum(index), Int64GetDatum(entry->buffers)};
		bool		nulls[lengthof(values)] = {0};

		CHECK_FOR_INTERRUPTS();
		if (OidIsValid(index))
			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	hash_destroy(counts);
	return (Datum) 0;
}
