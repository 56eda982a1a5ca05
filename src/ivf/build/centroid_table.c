/*
 * centroid_table.c
 *		Reading centroids from a table when an index is built; see centroid_table.h.
 *
 * They are read by SQL, as the owner of the indexed table, who needs the privilege to
 * read them.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/objectaddress.h"
#include "compat.h"
#include "executor/spi.h"
#include "ivf/build/centroid_table.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

/* Rows fetched at a time. */
#define BATCH 256

/* Returns whether a type is vector or halfvec, in the schema of the indexed column's type. */
static bool
is_vector_type(Oid type, Oid like)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	HeapTuple	other = SearchSysCache1(TYPEOID, ObjectIdGetDatum(like));
	bool		result = false;

	if (HeapTupleIsValid(tuple) && HeapTupleIsValid(other))
	{
		Form_pg_type form = (Form_pg_type) GETSTRUCT(tuple);

		result = form->typnamespace == ((Form_pg_type) GETSTRUCT(other))->typnamespace &&
			(strcmp(NameStr(form->typname), "vector") == 0 ||
			 strcmp(NameStr(form->typname), "halfvec") == 0);
	}
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	if (HeapTupleIsValid(other))
		ReleaseSysCache(other);
	return result;
}

/* Checks the privilege before the table is locked, so that nobody locks what they may not read. */
static void
check_rights(const RangeVar *name, Oid oid, Oid before, void *arg)
{
	if (OidIsValid(oid) && pg_class_aclcheck(oid, GetUserId(), ACL_SELECT) != ACLCHECK_OK &&
		pg_attribute_aclcheck_all(oid, GetUserId(), ACL_SELECT, ACLMASK_ANY) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(get_rel_relkind(oid)), name->relname);
}

/* Returns the SQL query for the first column, cast to the indexed column's type. */
static char *
make_query(const char *name, Oid column_type)
{
	List	   *names = QvQualifiedNameList(name);
	Oid			relid;
	Relation	rel;
	Form_pg_attribute column = NULL;
	char	   *query;

	/* later builds may run with another search_path */
	if (list_length(names) < 2)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"centroids\" must name a table with its schema, not \"%s\"", name)));
	relid = RangeVarGetRelidExtended(makeRangeVarFromNameList(names), AccessShareLock, RVR_MISSING_OK,
									 check_rights, NULL);
	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table \"%s\" of option \"centroids\" does not exist", name)));
	/* the lock above is kept until the end of the transaction */
	rel = relation_open(relid, NoLock);
	if (rel->rd_rel->relkind != RELKIND_RELATION &&
		rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE &&
		rel->rd_rel->relkind != RELKIND_MATVIEW)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" of option \"centroids\" is not a table", name)));
	for (int i = 0; i < RelationGetNumberOfAttributes(rel) && column == NULL; i++)
		if (!TupleDescAttr(RelationGetDescr(rel), i)->attisdropped)
			column = TupleDescAttr(RelationGetDescr(rel), i);
	if (column == NULL || !is_vector_type(getBaseType(column->atttypid), column_type))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("first column of table \"%s\" of option \"centroids\" must be of type vector or halfvec",
						name)));
	query = psprintf("SELECT %s::%s FROM %s", quote_identifier(NameStr(column->attname)),
					 format_type_be_qualified(column_type),
					 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
												RelationGetRelationName(rel)));
	relation_close(rel, NoLock);
	return query;
}

typedef struct Reading
{
	const QvSpace *space;
	const char *name;
	float	   *value;			/* one centroid: dims */
	float	   *vectors;		/* room x pdim */
	uint32		count;			/* centroids so far */
	uint32		room;			/* centroids that there is room for */
} Reading;

static void
make_room(Reading *r)
{
	Size		limit = (Size) maintenance_work_mem * 1024;
	Size		bytes;

	if (r->count == IVF_MAX_LISTS)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("table \"%s\" has more than %d centroids", r->name, IVF_MAX_LISTS)));
	r->room = Min(2 * r->room, IVF_MAX_LISTS);
	bytes = (Size) r->room * r->space->pdim * sizeof(float);
	if (bytes > limit)
	{
		r->room = limit / (r->space->pdim * sizeof(float));
		bytes = (Size) r->room * r->space->pdim * sizeof(float);
	}
	if (r->room <= r->count)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("centroids of table \"%s\" do not fit into maintenance_work_mem", r->name),
				 errhint("Increase maintenance_work_mem, or have fewer centroids.")));
	r->vectors = repalloc_huge(r->vectors, bytes);
}

static void
add_centroid(Reading *r, Datum datum, bool isnull)
{
	void	   *value;

	if (isnull)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("table \"%s\" has a centroid that is null", r->name)));
	value = PG_DETOAST_DATUM(datum);
	if (r->space->opclass.type->dims(value) != r->space->dims)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_EXCEPTION),
				 errmsg("table \"%s\" has a centroid of %d dimensions, not %u", r->name,
						r->space->opclass.type->dims(value), r->space->dims)));
	if (!QvIsIndexed(&r->space->opclass, value))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_EXCEPTION),
				 errmsg("table \"%s\" has a centroid of length zero", r->name),
				 errdetail("The cosine distance to it is not defined.")));
	if (r->count == r->room)
		make_room(r);
	r->space->opclass.type->to_float(value, r->value);
	QvScaleAndRotate(&r->space->rotation, r->space->opclass.metric != QV_METRIC_L2, r->value,
					 r->vectors + (Size) r->count * r->space->pdim);
	r->count++;
	if (value != DatumGetPointer(datum))
		pfree(value);
}

static void
fetch_all(Reading *r, const char *query)
{
	SPIPlanPtr	plan;
	Portal		portal;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	plan = SPI_prepare(query, 0, NULL);
	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
	portal = SPI_cursor_open(NULL, plan, NULL, NULL, true);
	for (;;)
	{
		SPI_cursor_fetch(portal, true, BATCH);
		if (SPI_processed == 0)
			break;
		for (uint64 i = 0; i < SPI_processed; i++)
		{
			bool		isnull;
			Datum		datum = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1,
											  &isnull);

			CHECK_FOR_INTERRUPTS();
			add_centroid(r, datum, isnull);
		}
		SPI_freetuptable(SPI_tuptable);
	}
	SPI_cursor_close(portal);
	SPI_finish();
}

float *
IvfReadCentroids(const IvfBuildParams *build, uint32 *lists)
{
	const QvIndexOptions *options = build->options;
	const QvSpace *space = &build->space;
	Reading		r = {0};
	bool		pushed = false;
	const char *query;

	if (space->pdim == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("option \"centroids\" is not supported for this operator class")));
	query = make_query(options->centroids, TupleDescAttr(RelationGetDescr(build->index), 0)->atttypid);
	r.space = space;
	r.name = options->centroids;
	r.value = palloc(space->dims * sizeof(float));
	r.room = 16;
	r.vectors = MemoryContextAllocHuge(CurrentMemoryContext,
									   (Size) r.room * space->pdim * sizeof(float));
	if (!ActiveSnapshotSet())
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		pushed = true;
	}
	fetch_all(&r, query);
	if (pushed)
		PopActiveSnapshot();
	if (r.count == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("table \"%s\" of option \"centroids\" is empty", r.name)));
	if (options->lists > 0 && options->lists != r.count)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"lists\" is %d, but table \"%s\" has %u centroids",
						options->lists, r.name, r.count),
				 errhint("Leave out the option \"lists\".")));
	pfree(r.value);
	*lists = r.count;
	return r.vectors;
}
