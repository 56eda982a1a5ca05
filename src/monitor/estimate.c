/*
 * estimate.c
 *		quiver_estimate(): an index before it is built.
 */
#include "postgres.h"

#include <math.h>

#include "access/amapi.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/tableam.h"
#include "am/methods.h"
#include "graph/graph.h"
#include "ivf/ivf.h"
#include "am/opclass.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type_d.h"
#include "commands/defrem.h"
#include "compat.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "monitor/open_index.h"
#include "optimizer/paths.h"
#include "portability/instr_time.h"
#include "quant/quant.h"
#include "space/count.h"
#include "space/space.h"
#include "table/values.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

/* Rows whose mean size is used, for types whose values differ in size. */
#define SIZED_ROWS 2000

/* Bytes of these values that are kept, to estimate the number of neighbors of a node. */
#define KEPT_BYTES (16 * 1024 * 1024)

/* The most rows that a table can have. */
#define MOST_ROWS ((int64) MaxBlockNumber * MaxHeapTuplesPerPage)

/* The minimum of maintenance_work_mem. */
#define LEAST_MEMORY (1024 * 1024.0)

/* Kilobytes of maintenance_work_mem that each worker of a build must have. */
#define KILOBYTES_PER_WORKER 32768

/*
 * Build time, in distances between codes or values, which are timed when an estimate is
 * requested.  Fetching them from memory is added (README.md, "Build time").
 */
#define GRAPH_PER_CANDIDATE 30.0	/* per candidate of ef_construction, at
									 * 100,000 rows */
#define GRAPH_GROWTH 0.12		/* exponent of the number of rows */
#define IVF_PER_ROW 200.0		/* coding and sorting */
#define IVF_PER_SAMPLED 20.0	/* times the square root of the number of
								 * lists */
#define WORKER_SHARE 0.5		/* share of a process that a worker does */
#define MEMORY_SECONDS 50e-9

/* Values that are timed, and calls of a slice.  The fastest slice counts. */
#define TIMED_VALUES 64
#define TIMED_CALLS 2000
#define TIMED_SLICES 8

/* Dimensions that are timed at most: a sparse type has up to a billion. */
#define MOST_TIMED_DIMS 64000

/* The index to be built. */
typedef struct BuildPlan
{
	Relation	table;
	Relation	index;			/* NULL: there is none yet */
	IndexInfo  *info;			/* what is indexed, of which rows */
	const KnnMethod *method;
	QvOpclassInfo opclass;
	int			dims;
	bool		can_include;
	const bytea *options;		/* parsed, or NULL */
	double		rows;
	double		table_rows;
	Size		included;		/* bytes of a row's included columns */
} BuildPlan;

typedef enum EstimateColumn
{
	ESTIMATE_ROWS,
	ESTIMATE_DIMENSIONS,
	ESTIMATE_BYTES,
	ESTIMATE_MEMORY,
	ESTIMATE_WORKERS,
	ESTIMATE_SECONDS,
	ESTIMATE_COLUMNS
} EstimateColumn;

/* ---- what is asked for ---- */

/*
 * Returns the operator class of that name.  Without a name, returns the class of the type
 * for Euclidean or Hamming distances, in whatever schema, or the default class.
 */
static Oid
find_operator_class(Oid am, Oid type, const char *name)
{
	Oid			found = InvalidOid;
	CatCList   *classes;

	if (name)
		return get_opclass_oid(am, QvQualifiedNameList(name), false);
	classes = SearchSysCacheList1(CLAAMNAMENSP, ObjectIdGetDatum(am));
	for (int i = 0; i < classes->n_members && !OidIsValid(found); i++)
	{
		Form_pg_opclass class = (Form_pg_opclass) GETSTRUCT(&classes->members[i]->tuple);
		const char *end = strstr(NameStr(class->opcname), "_l2_ops");

		if (class->opcintype == type &&
			((end && strcmp(end, "_l2_ops") == 0) || strcmp(NameStr(class->opcname), "bit_hamming_ops") == 0))
			found = class->oid;
	}
	ReleaseCatCacheList(classes);
	return OidIsValid(found) ? found : GetDefaultOpClass(type, am);
}

/* Returns what an index on that column of all rows has. */
static IndexInfo *
column_info(AttrNumber column)
{
	IndexInfo  *info = makeNode(IndexInfo);

	info->ii_NumIndexAttrs = info->ii_NumIndexKeyAttrs = 1;
	info->ii_IndexAttrNumbers[0] = column;
	return info;
}

/* Plans an index of that access method on a column. */
static void
plan_column(BuildPlan *plan, const char *column, const char *am_name, Datum options,
			const char *operator_class)
{
	Oid			am = get_index_am_oid(am_name, false);
	const IndexAmRoutine *routine = GetIndexAmRoutineByAmId(am, false);
	AttrNumber	number;
	Oid			type,
				collation,
				class,
				family;
	int32		typmod;

	plan->method = KnnMethodOfRoutine(routine);
	if (plan->method == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("access method \"%s\" is not of Quiver", am_name)));
	number = get_attnum(RelationGetRelid(plan->table), column);
	if (number <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of relation \"%s\" does not exist",
						column, RelationGetRelationName(plan->table))));
	plan->info = column_info(number);
	get_atttypetypmodcoll(RelationGetRelid(plan->table), number, &type, &typmod, &collation);
	type = getBaseType(type);
	class = find_operator_class(am, type, operator_class);
	if (operator_class && get_opclass_input_type(class) != type)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("operator class \"%s\" does not accept data type %s",
						operator_class, format_type_be(type))));
	if (!OidIsValid(class) || get_opclass_input_type(class) != type)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("access method \"%s\" has no operator class for data type %s", am_name,
						format_type_be(type))));
	family = get_opclass_family(class);
	QvGetOpclassOf(get_opfamily_proc(family, type, type, HNSW_DISTANCE_PROC),
				   OidIsValid(get_opfamily_proc(family, type, type, HNSW_NORM_PROC)),
				   operator_class ? operator_class : "default", &plan->opclass);
	plan->dims = typmod;
	plan->can_include = routine->amcaninclude;
	plan->options = routine->amoptions(options, true);
}

/* Plans included columns, an array of their names; NULL: none. */
static void
plan_included(BuildPlan *plan, ArrayType *names)
{
	Datum	   *elements;
	bool	   *nulls;
	int			count;

	if (names == NULL)
		return;
	if (ArrayGetNItems(ARR_NDIM(names), ARR_DIMS(names)) >= INDEX_MAX_KEYS)
		ereport(ERROR,
				(errcode(ERRCODE_TOO_MANY_COLUMNS),
				 errmsg("cannot use more than %d columns in an index", INDEX_MAX_KEYS)));
	deconstruct_array(names, NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR, &elements, &nulls, &count);
	if (count > 0 && !plan->can_include)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"%s\" does not support included columns", plan->method->name)));
	for (int i = 0; i < count; i++)
	{
		const char *name = nulls[i] ? "" : NameStr(*DatumGetName(elements[i]));
		AttrNumber	number = get_attnum(RelationGetRelid(plan->table), name);

		if (number <= 0)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of relation \"%s\" does not exist",
							name, RelationGetRelationName(plan->table))));
		plan->included += QvIncludedLength(TupleDescAttr(RelationGetDescr(plan->table), number - 1));
	}
	if (count > 0)
		plan->included += QvIncludedBitsSize(count);
}

/* Plans the given index once more. */
static void
plan_index(BuildPlan *plan, Datum options)
{
	Relation	index = plan->index;
	const IndexAmRoutine *routine = index->rd_indam;

	/* rows are read with the rights of the table's owner */
	if (IndexRunsUsersCode(RelationGetRelid(index), true) &&
		!QvIsIndexOwner(RelationGetRelid(index), GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of index \"%s\"", RelationGetRelationName(index)),
				 errdetail("Its expression or condition may run a function that is not written in C.")));
	plan->method = KnnMethodOfRoutine(routine);
	plan->info = BuildIndexInfo(index);
	plan->included = QvIncludedSize(index);
	QvGetOpclass(index, &plan->opclass);
	plan->dims = QvColumnDims(index, &plan->opclass);
	if (DatumGetArrayTypeP(options)->ndim > 0)
		plan->options = routine->amoptions(options, true);
	else if (index->rd_options)
	{
		/* the relation's options may be freed when it is invalidated */
		bytea	   *copy = palloc(VARSIZE(index->rd_options));

		memcpy(copy, index->rd_options, VARSIZE(index->rd_options));
		plan->options = copy;
	}
}

static Relation
open_table(Oid oid, LOCKMODE lockmode)
{
	char		kind = get_rel_relkind(oid);
	Relation	table;

	/* these errors are raised before waiting for a lock */
	if (kind != '\0' && kind != RELKIND_RELATION && kind != RELKIND_MATVIEW)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table or an index", get_rel_name(oid)),
				 kind == RELKIND_PARTITIONED_TABLE ?
				 errhint("Each partition has an index of its own: name one of them.") : 0));
	if (kind != '\0' && pg_class_aclcheck(oid, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, get_rel_name(oid));
	/* policies do not apply to what is read of rows and of their statistics */
	if (kind != '\0' && check_enable_rls(oid, InvalidOid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("cannot estimate an index of table \"%s\", which has row-level security",
						get_rel_name(oid)),
				 errhint("Ask as a role that its policies do not apply to.")));
	table = try_relation_open(oid, lockmode);
	if (table == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("could not open relation with OID %u", oid)));
	if (RELATION_IS_OTHER_TEMP(table))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary tables of other sessions")));
	return table;
}

/* ---- values ---- */

/* Values as they would be indexed, and the mean size of these and more. */
typedef struct Values
{
	void	   *some[SIZED_ROWS];
	int			n;
	double		size;
} Values;

/* Reads the first rows of the table. */
static void
read_values(const BuildPlan *plan, Values *sample)
{
	MemoryContext context = CurrentMemoryContext;
	TableScanDesc scan = QvTableBeginScan(plan->table, GetActiveSnapshot());
	TupleTableSlot *slot = table_slot_create(plan->table, NULL);
	EState	   *estate = CreateExecutorState();
	ExprState  *predicate = ExecPrepareQual(plan->info->ii_Predicate, estate);
	double		bytes = 0;
	int			n = 0;

	sample->n = 0;
	GetPerTupleExprContext(estate)->ecxt_scantuple = slot;
	while (n < SIZED_ROWS && table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		Datum		values[INDEX_MAX_KEYS];
		bool		nulls[INDEX_MAX_KEYS];

		CHECK_FOR_INTERRUPTS();
		MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
		/* an expression of the index may not be defined for other rows */
		nulls[0] = !ExecQual(predicate, GetPerTupleExprContext(estate));
		if (!nulls[0])
			FormIndexDatum(plan->info, slot, estate, values, nulls);
		if (!nulls[0])
		{
			void	   *value = PG_DETOAST_DATUM(values[0]);

			bytes += plan->opclass.type->value_size(value);
			n++;
			MemoryContextSwitchTo(context);
			if (bytes < KEPT_BYTES && plan->opclass.type->dims(value) == plan->dims)
				sample->some[sample->n++] = PG_DETOAST_DATUM_COPY(values[0]);
		}
		MemoryContextSwitchTo(context);
		ResetPerTupleExprContext(estate);
	}
	ExecDropSingleTupleTableSlot(slot);
	table_endscan(scan);
	FreeExecutorState(estate);
	/* it was in the executor's memory */
	plan->info->ii_ExpressionsState = NIL;
	sample->size = n > 0 ? bytes / n : 0;
}

/*
 * Reads the table with the rights of its owner, as in a build: an index may have functions that
 * are not the user's.  Counts its rows, as a build does, unless their number is given.
 */
static void
read_table(BuildPlan *plan, bool counts, Values *sample)
{
	Oid			user;
	int			context;
	int			level;

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(plan->table->rd_rel->relowner, context | SECURITY_RESTRICTED_OPERATION);
	level = NewGUCNestLevel();
	QvRestrictSearchPath();
	if (counts)
	{
		/* others may write meanwhile: rows of a snapshot are counted */
		plan->info->ii_Concurrent = true;
		plan->rows = QvCountRows(plan->table, plan->info, &plan->opclass, &plan->table_rows);
	}
	if (sample)
		read_values(plan, sample);
	AtEOXact_GUC(false, level);
	SetUserIdAndSecContext(user, context);
}

/* ---- time ---- */

/*
 * Returns the seconds of one call of measure(arg, i), of many in a row.  The fastest
 * slice counts, in which the processor did little else.
 */
static double
time_calls(float (*measure) (const void *arg, uint32 i), const void *arg)
{
	double		best = INFINITY;
	static volatile float sink; /* keeps the calls from being left out */
	float		sum = 0;
	uint32		call = 0;

	for (int slice = 0; slice < TIMED_SLICES; slice++)
	{
		instr_time	started,
					now;

		INSTR_TIME_SET_CURRENT(started);
		for (int i = 0; i < TIMED_CALLS; i++)
			sum += measure(arg, call++);
		INSTR_TIME_SET_CURRENT(now);
		INSTR_TIME_SUBTRACT(now, started);
		best = Min(best, INSTR_TIME_GET_DOUBLE(now));
	}
	sink = sum;
	(void) sink;
	return best / TIMED_CALLS;
}

typedef struct Codes
{
	const uint8 *bytes;
	int			pdim;
} Codes;

static float
measure_code(const void *arg, uint32 i)
{
	const Codes *codes = arg;

	return QvCodePairIp(codes->bytes + (Size) (i % TIMED_VALUES) * codes->pdim, 1, 0,
						codes->bytes + (Size) (i * 7 % TIMED_VALUES) * codes->pdim, 1, 0,
						codes->pdim, 8);
}

/* Returns the seconds of a distance between two codes. */
static double
time_code(int dims)
{
	int			pdim = QvPaddedDim(Min(dims, MOST_TIMED_DIMS));
	uint8	   *bytes = palloc((Size) TIMED_VALUES * pdim);
	Codes		codes = {bytes, pdim};
	double		seconds;

	for (Size i = 0; i < (Size) TIMED_VALUES * pdim; i++)
		bytes[i] = i * 31;
	seconds = time_calls(measure_code, &codes);
	pfree(bytes);
	return seconds + MEMORY_SECONDS;
}

typedef struct TimedValues
{
	const QvOpclassInfo *opclass;
	const Values *values;
	int			n;				/* number of values that are timed */
} TimedValues;

static float
measure_value(const void *arg, uint32 i)
{
	const TimedValues *timed = arg;
	const Values *values = timed->values;

	return timed->opclass->type->distance(timed->opclass->metric, values->some[i % timed->n],
										  values->some[i * 7 % timed->n]);
}

/* Returns the seconds of a distance between two values; without values, between codes. */
static double
time_value(const BuildPlan *plan, const Values *values)
{
	TimedValues timed = {&plan->opclass, values, Min(values->n, TIMED_VALUES)};

	return values->n > 0 ? time_calls(measure_value, &timed) + MEMORY_SECONDS : time_code(plan->dims);
}

/*
 * Returns the workers that a build would have beside its process, with the memory that is
 * set.
 */
static int
build_workers(Relation table)
{
	int			workers = Min(max_parallel_maintenance_workers,
							  maintenance_work_mem / KILOBYTES_PER_WORKER - 1);
	BlockNumber blocks = RelationGetNumberOfBlocks(table);
	double		least = Max(1, min_parallel_table_scan_size);
	int			by_size = 0;

	if (table->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		return 0;
	/* as in the server: one more worker for each three times the size */
	for (; blocks >= least && by_size < workers; least *= 3)
		by_size++;
	return Max(0, Min(workers, RelationGetParallelWorkers(table, by_size)));
}

/* Rounds to the digits that mean something. */
static double
round_seconds(double seconds)
{
	return seconds < 10 ? rint(seconds * 10) / 10 : rint(seconds);
}

static void
estimate_graph(const BuildPlan *plan, const Values *sample, Datum *values)
{
	QvIndexOptions options;
	GraphEstimate estimate = {.table_rows = plan->table_rows, .included = plan->included};
	double		candidates;
	int			workers = build_workers(plan->table);

	KnnGetOptions(plan->method->options, plan->options, &options);
	GraphEstimateBuild(&plan->opclass, plan->dims, &options, plan->rows, sample->size,
					   sample->some, sample->n, &estimate);
	candidates = plan->rows * options.ef_construction * pow(Max(1, plan->rows) / 1e5, GRAPH_GROWTH);
	values[ESTIMATE_BYTES] = Int64GetDatum((int64) (estimate.blocks * BLCKSZ));
	values[ESTIMATE_MEMORY] = Int64GetDatum((int64) Max(estimate.memory, LEAST_MEMORY));
	values[ESTIMATE_WORKERS] = Int32GetDatum(workers);
	values[ESTIMATE_SECONDS] =
		Float8GetDatum(round_seconds(candidates * GRAPH_PER_CANDIDATE *
									 (estimate.coded ? time_code(plan->dims) : time_value(plan, sample)) /
									 (1 + WORKER_SHARE * workers)));
}

static void
estimate_ivf(const BuildPlan *plan, Datum *values)
{
	QvIndexOptions options;
	IvfEstimate estimate = {.table_rows = plan->table_rows, .included = plan->included};
	int			workers = build_workers(plan->table);
	double		distances;

	KnnGetOptions(plan->method->options, plan->options, &options);
	IvfEstimateBuild(&plan->opclass, plan->dims, &options, plan->rows, &estimate);
	distances = plan->rows * IVF_PER_ROW +
		Min(plan->rows, estimate.sampled) * IVF_PER_SAMPLED * sqrt(estimate.lists);
	values[ESTIMATE_BYTES] = Int64GetDatum((int64) (estimate.blocks * BLCKSZ));
	values[ESTIMATE_MEMORY] = Int64GetDatum((int64) Max(estimate.memory,
														(workers + 1) * KILOBYTES_PER_WORKER * 1024.0));
	values[ESTIMATE_WORKERS] = Int32GetDatum(workers);
	values[ESTIMATE_SECONDS] = Float8GetDatum(round_seconds(distances * time_code(plan->dims) /
															(1 + WORKER_SHARE * workers)));
}

/* ---- */

static char *
text_argument(FunctionCallInfo fcinfo, int i)
{
	return PG_ARGISNULL(i) ? NULL : pstrdup(NameStr(*PG_GETARG_NAME(i)));
}

/*
 * quiver_estimate(relation, column, access method, options, operator class, rows): size,
 * memory and build time of an index on a column, or of the given index built once more.
 */
PG_FUNCTION_INFO_V1(quiver_estimate);
Datum
quiver_estimate(PG_FUNCTION_ARGS)
{
	BuildPlan	plan = {0};
	Values		sample;
	bool		is_graph;
	TupleDesc	desc;
	Datum		values[ESTIMATE_COLUMNS];
	bool		nulls[ESTIMATE_COLUMNS] = {0};
	char		kind;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(2) || PG_ARGISNULL(3))
		PG_RETURN_NULL();
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE || desc->natts != ESTIMATE_COLUMNS)
		elog(ERROR, "return type must be a row type of %d columns", ESTIMATE_COLUMNS);
	kind = get_rel_relkind(PG_GETARG_OID(0));
	if (kind == RELKIND_INDEX || kind == RELKIND_PARTITIONED_INDEX)
	{
		plan.index = KnnOpenIndex(PG_GETARG_OID(0), AccessShareLock, KNN_RIGHT_SELECT);
		plan.table = open_table(plan.index->rd_index->indrelid, AccessShareLock);
		plan_index(&plan, PG_GETARG_DATUM(3));
	}
	else
	{
		plan.table = open_table(PG_GETARG_OID(0), AccessShareLock);
		if (PG_ARGISNULL(1))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("a column of table \"%s\" must be named",
							RelationGetRelationName(plan.table))));
		plan_column(&plan, text_argument(fcinfo, 1), text_argument(fcinfo, 2), PG_GETARG_DATUM(3),
					text_argument(fcinfo, 4));
		/* before version 1.0.0 there was no such argument */
		plan_included(&plan, PG_NARGS() > 6 && !PG_ARGISNULL(6) ? PG_GETARG_ARRAYTYPE_P(6) : NULL);
	}
	if (plan.dims <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("column does not have dimensions")));
	if (plan.dims > plan.opclass.type->max_dims)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("column cannot have more than %d dimensions for an index",
						plan.opclass.type->max_dims)));
	if (!PG_ARGISNULL(5) && (PG_GETARG_INT64(5) < 0 || PG_GETARG_INT64(5) > MOST_ROWS))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the number of rows must be between 0 and %lld", (long long) MOST_ROWS)));
	if (!PG_ARGISNULL(5))
		plan.rows = plan.table_rows = PG_GETARG_INT64(5);
	is_graph = plan.method->engine == &graph_engine;
	read_table(&plan, PG_ARGISNULL(5), is_graph ? &sample : NULL);
	values[ESTIMATE_ROWS] = Int64GetDatum((int64) plan.rows);
	values[ESTIMATE_DIMENSIONS] = Int32GetDatum(plan.dims);
	if (is_graph)
		estimate_graph(&plan, &sample, values);
	else
		estimate_ivf(&plan, values);
	relation_close(plan.table, AccessShareLock);
	if (plan.index)
		relation_close(plan.index, AccessShareLock);
	desc = BlessTupleDesc(desc);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}
