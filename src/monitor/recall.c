/*
 * recall.c
 *		quiver_recall(): the share of the rows of an exact search that an index finds.
 *
 * Rows are read by queries as the user would write them.  The server therefore applies
 * permissions, row security, expressions and conditions of the index.  The exact side
 * reads the table once for all searches (src/monitor/README.md, "Recall").
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/relation.h"
#include "am/opclass.h"
#include "catalog/pg_index.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "monitor/monitor.h"
#include "monitor/open_index.h"
#include "monitor/recall.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "optimizer/plancat.h"
#include "portability/instr_time.h"
#include "space/space.h"
#include "table/values.h"
#include "topk/topk.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/ruleutils.h"
#include "utils/syscache.h"

/*
 * Limits of k and of the searches.  The distances of all searches need at most 80 MB,
 * beside their values.
 */
#define MAX_K 1000
#define MAX_SAMPLE 10000

/* Rows of the table fetched at a time. */
#define ROWS_AT_A_TIME 500

/* Searches without the index that are timed.  Each reads the table once more. */
#define EXACT_TIMED 3

/* The number of standard deviations of 95 % of the normal distribution. */
#define CONFIDENCE_Z 1.959964

/* ---- which index queries use ---- */

/*
 * While forced_table is set, a statement that is being planned sees this index of the
 * table and no other (invalid: none).
 */
static Oid	forced_table = InvalidOid;
static Oid	forced_index = InvalidOid;

static QvRelationHook previous_hook;

static void
force_index(QV_RELATION_HOOK_PARAMETERS)
{
	List	   *left = NIL;
	ListCell   *lc;

	if (previous_hook)
		previous_hook(QV_RELATION_HOOK_ARGUMENTS);
	if (!OidIsValid(forced_table) || QV_RELATION_HOOK_TABLE != forced_table)
		return;
	foreach(lc, rel->indexlist)
		if (((IndexOptInfo *) lfirst(lc))->indexoid == forced_index)
		left = lappend(left, lfirst(lc));
	rel->indexlist = left;
}

void
QvMonitorInit(void)
{
	if (qv_relation_hook != force_index)
	{
		previous_hook = qv_relation_hook;
		qv_relation_hook = force_index;
	}
}

void
QvSetForNow(const char *setting, const char *value)
{
	(void) set_config_option(setting, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
							 true, 0, false);
}

/* Is a plan's order that of the index? */
static bool
plan_uses(const Plan *plan, Oid index)
{
	if (plan == NULL)
		return false;
	if (IsA(plan, IndexScan))
		return ((const IndexScan *) plan)->indexid == index;
	if (IsA(plan, CustomScan))
	{
		const CustomScan *scan = (const CustomScan *) plan;

		return scan->methods == &qv_topk_scan_methods &&
			TopkGetPlanned(scan).index == index;
	}
	if (IsA(plan, SubqueryScan))
		return plan_uses(((const SubqueryScan *) plan)->subplan, index);
	return plan_uses(plan->lefttree, index);
}

/* ---- a measurement ---- */

/* One search: its value, and its nearest rows. */
typedef struct Search
{
	void	   *value;			/* detoasted */
	ItemPointerData self;		/* the row that the value is from, which does
								 * not count */
	double	   *nearest;		/* distances of the k nearest rows: a max-heap */
	int			count;
	int			hits;			/* returned rows that are as near as these */
	int			ranked;			/* of these, rows that have a rank of their
								 * own among the k */
} Search;

typedef struct Measurement
{
	Relation	index;
	QvOpclassInfo opclass;
	MemoryContext context;
	MemoryContext row_context;
	int			k;
	bool		of_rows;		/* searches are for values of rows of the
								 * table */
	Search	   *searches;
	int			nsearches;
	double		index_ms;		/* mean of a search */
	double		exact_ms;
} Measurement;

/* ---- what may run ---- */

/*
 * Does the user trust code of that role?  The code of the server and of extensions is a
 * superuser's.
 */
static bool
is_trusted(Oid owner)
{
	return owner == GetUserId() || superuser_arg(owner);
}

static bool
is_foreign_function(Oid function, void *owner)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	*(Oid *) owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);
	return !is_trusted(*(Oid *) owner);
}

/* A domain's constraints are code of its owner. */
static bool
is_foreign_domain(Oid type, Oid *owner)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for type %u", type);
	*owner = ((Form_pg_type) GETSTRUCT(tuple))->typowner;
	ReleaseSysCache(tuple);
	return !is_trusted(*owner);
}

/* Does an expression run code that the user does not trust?  Stores its owner. */
static bool
runs_foreign_code(Node *node, void *owner)
{
	if (node == NULL)
		return false;
	if (check_functions_in_node(node, is_foreign_function, owner))
		return true;
	if (IsA(node, CoerceToDomain) && is_foreign_domain(((CoerceToDomain *) node)->resulttype, owner))
		return true;
	return expression_tree_walker(node, runs_foreign_code, owner);
}

/*
 * Raises an error if the expressions or the condition of an index would run another
 * user's code with the rights of this one.
 */
static void
check_code(Relation index)
{
	static const AttrNumber columns[] = {Anum_pg_index_indexprs, Anum_pg_index_indpred};

	for (int i = 0; i < lengthof(columns); i++)
	{
		Oid			owner;

		if (runs_foreign_code(IndexAsWritten(RelationGetRelid(index), columns[i]), &owner))
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("an expression or condition of index \"%s\" runs a function of another user",
							RelationGetRelationName(index)),
					 errdetail("Searches would run it with the rights of role \"%s\".",
							   GetUserNameFromId(GetUserId(), false)),
					 errhint("Measure as role \"%s\".", GetUserNameFromId(owner, false))));
	}
}

/* ---- queries ---- */

/* Parts of a query on an index. */
typedef struct Parts
{
	const char *value;			/* the indexed expression */
	const char *from;			/* FROM the table, with the condition of a
								 * partial index */
	const char *not_null;		/* the same, and the value is not NULL: a
								 * condition that a search must not have */
	const char *operator;
} Parts;

static void
get_parts(Relation index, Parts *parts)
{
	Oid			table = index->rd_index->indrelid;
	Oid			type = index->rd_opcintype[0];
	Oid			operator = get_opfamily_member(index->rd_opfamily[0], type, type, 1);
	HeapTuple	tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(operator));
	List	   *condition = RelationGetIndexPredicate(index);
	char	   *name = quote_qualified_identifier(get_namespace_name(get_rel_namespace(table)),
												  get_rel_name(table));

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator %u", operator);
	parts->operator = psprintf("OPERATOR(%s.%s)",
							   quote_identifier(get_namespace_name(((Form_pg_operator) GETSTRUCT(tuple))->oprnamespace)),
							   NameStr(((Form_pg_operator) GETSTRUCT(tuple))->oprname));
	ReleaseSysCache(tuple);
	parts->value = pg_get_indexdef_columns(RelationGetRelid(index), false);
	parts->from = psprintf("FROM ONLY %s", name);
	if (condition != NIL)
		parts->from = psprintf("%s WHERE (%s)", parts->from,
							   deparse_expression((Node *) make_ands_explicit(condition),
												  deparse_context_for(get_rel_name(table), table),
												  false, false));
	parts->not_null = psprintf("%s %s %s IS NOT NULL", parts->from, condition != NIL ? "AND" : "WHERE",
							   parts->value);
}

static SPIPlanPtr
prepare(const char *sql, int nargs, Oid *types, int options)
{
	SPIPlanPtr	plan = SPI_prepare_cursor(sql, nargs, types, options);

	if (plan == NULL)
		elog(ERROR, "could not prepare \"%s\": %s", sql, SPI_result_code_string(SPI_result));
	return plan;
}

/*
 * Plans a statement as if the table had that index only (invalid: none).  The plan stays
 * for all executions.  Raises an error unless the plan is in the index's order.
 * Functions that the planner evaluates may have cached plans made meanwhile, so cached
 * plans are made again.
 */
static void
plan_with(const Measurement *m, SPIPlanPtr plan, Oid index)
{
	int			level = NewGUCNestLevel();
	Oid			outer_table = forced_table;
	Oid			outer_index = forced_index;
	CachedPlan *volatile cached = NULL;
	bool		uses;

	forced_table = m->index->rd_index->indrelid;
	forced_index = index;
	PG_TRY();
	{
		if (OidIsValid(index))
		{
			QvSetForNow("enable_seqscan", "off");
			QvSetForNow("enable_indexscan", "on");
		}
		cached = SPI_plan_get_cached_plan(plan);
	}
	PG_FINALLY();
	{
		/* such functions may measure recall themselves */
		forced_table = outer_table;
		forced_index = outer_index;
		ResetPlanCache();
	}
	PG_END_TRY();
	AtEOXact_GUC(true, level);
	if (cached == NULL)
		elog(ERROR, "a query has no plan");
	uses = plan_uses(linitial_node(PlannedStmt, cached->stmt_list)->planTree, index);
	/* the plan is not saved, so SPI has it */
	ReleaseCachedPlan(cached, NULL);
	if (OidIsValid(index) && !uses)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" cannot be used for queries", RelationGetRelationName(m->index))));
}

/*
 * Runs the search for a value, for as many rows as the plan was made for.  Returns
 * milliseconds.  Rows are in SPI_tuptable.
 */
static double
run_search(SPIPlanPtr plan, const void *value)
{
	Datum		arg = PointerGetDatum(value);
	int			level = NewGUCNestLevel();
	instr_time	started,
				ended;

	/* otherwise the search could be planned again, without the index */
	QvSetForNow("plan_cache_mode", "auto");
	INSTR_TIME_SET_CURRENT(started);
	if (SPI_execute_plan(plan, &arg, NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "a search is no query");
	INSTR_TIME_SET_CURRENT(ended);
	INSTR_TIME_SUBTRACT(ended, started);
	AtEOXact_GUC(true, level);
	return INSTR_TIME_GET_MILLISEC(ended);
}

/* ---- searches ---- */

static void
add_search(Measurement *m, HeapTuple tuple, TupleDesc desc, int column)
{
	MemoryContext old;
	bool		isnull;
	Datum		datum = SPI_getbinval(tuple, desc, column, &isnull);
	void	   *value;
	Search	   *search = &m->searches[m->nsearches];

	if (isnull)
		return;
	old = MemoryContextSwitchTo(m->context);
	value = PG_DETOAST_DATUM_COPY(datum);
	/* a value that no index has is near nothing */
	if (QvIsIndexed(&m->opclass, value))
	{
		search->value = value;
		ItemPointerSetInvalid(&search->self);
		search->nearest = palloc(m->k * sizeof(double));
		m->nsearches++;
	}
	else
		pfree(value);
	MemoryContextSwitchTo(old);
	if (search->value && column > 1)
		search->self = *(ItemPointer) DatumGetPointer(SPI_getbinval(tuple, desc, 1, &isnull));
}

static void
make_room(Measurement *m, uint64 n)
{
	m->searches = MemoryContextAllocExtended(m->context, Max(1, n) * sizeof(Search),
											 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
}

/*
 * Uses rows of the table as searches: the same rows, as long as they stay where they are.
 */
static void
sample_rows(Measurement *m, const Parts *parts, int sample)
{
	const char *sql = psprintf("SELECT ctid, %s %s ORDER BY pg_catalog.hashtid(ctid), ctid LIMIT %d",
							   parts->value, parts->not_null, sample);
	SPIPlanPtr	plan = prepare(sql, 0, NULL, 0);

	plan_with(m, plan, InvalidOid);
	if (SPI_execute_plan(plan, NULL, NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "the sample is no query");
	m->of_rows = true;
	make_room(m, SPI_processed);
	for (uint64 i = 0; i < SPI_processed; i++)
		add_search(m, SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 2);
	SPI_freetuptable(SPI_tuptable);
	SPI_freeplan(plan);
}

/*
 * Raises an error unless the user may read what the measurement will read.  The executor
 * checks that.
 */
static void
check_rights(const Parts *parts)
{
	SPIPlanPtr	plan = prepare(psprintf("SELECT ctid, %s %s LIMIT 0", parts->value, parts->not_null),
							   0, NULL, 0);

	if (SPI_execute_plan(plan, NULL, NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "the check of rights is no query");
	SPI_freetuptable(SPI_tuptable);
	SPI_freeplan(plan);
}

/* Uses the first column of the user's query as searches. */
static void
read_queries(Measurement *m, const char *sql, int sample)
{
	SPIPlanPtr	plan = prepare(sql, 0, NULL, 0);
	Oid			type = m->index->rd_opcintype[0];

	if (!SPI_is_cursor_plan(plan) || SPI_execute_plan(plan, NULL, NULL, true, sample) != SPI_OK_SELECT)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("queries must be given as a SELECT statement")));
	if (SPI_tuptable->tupdesc->natts == 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the first column of the queries must be of type %s", format_type_be(type)),
				 errdetail("They have no column.")));
	if (SPI_gettypeid(SPI_tuptable->tupdesc, 1) != type)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the first column of the queries must be of type %s", format_type_be(type)),
				 errdetail("It is of type %s.",
						   format_type_be(SPI_gettypeid(SPI_tuptable->tupdesc, 1)))));
	make_room(m, SPI_processed);
	for (uint64 i = 0; i < SPI_processed; i++)
		add_search(m, SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1);
	SPI_freetuptable(SPI_tuptable);
	SPI_freeplan(plan);
}

/* ---- the exact side ---- */

/* Keeps a distance if it is among the k nearest of a search. */
static void
keep_distance(Search *search, int k, double distance)
{
	double	   *heap = search->nearest;
	int			at;

	if (search->count < k)
	{
		for (at = search->count++; at > 0 && heap[(at - 1) / 2] < distance; at = (at - 1) / 2)
			heap[at] = heap[(at - 1) / 2];
		heap[at] = distance;
		return;
	}
	if (distance >= heap[0])
		return;
	for (at = 0;;)
	{
		int			child = 2 * at + 1;

		if (child >= k)
			break;
		if (child + 1 < k && heap[child + 1] > heap[child])
			child++;
		if (heap[child] <= distance)
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = distance;
}

static double
distance_of(const Measurement *m, const Search *search, const void *value)
{
	double		distance;

	if (m->opclass.type->dims(search->value) != m->opclass.type->dims(value))
		m->opclass.type->different_dims(m->opclass.type->dims(value),
										m->opclass.type->dims(search->value));
	distance = m->opclass.type->distance(m->opclass.metric, search->value, value);
	return isnan(distance) ? INFINITY : distance;
}

/* Computes the distance of a row from all searches. */
static void
measure_row(Measurement *m, HeapTuple tuple, TupleDesc desc)
{
	MemoryContext old = MemoryContextSwitchTo(m->row_context);
	bool		isnull;
	ItemPointer tid = (ItemPointer) DatumGetPointer(SPI_getbinval(tuple, desc, 1, &isnull));
	void	   *value = PG_DETOAST_DATUM(SPI_getbinval(tuple, desc, 2, &isnull));

	CHECK_FOR_INTERRUPTS();
	if (QvIsIndexed(&m->opclass, value))
		for (int i = 0; i < m->nsearches; i++)
		{
			Search	   *search = &m->searches[i];

			if (!m->of_rows || !ItemPointerEquals(tid, &search->self))
				keep_distance(search, m->k, distance_of(m, search, value));
		}
	MemoryContextSwitchTo(old);
	MemoryContextReset(m->row_context);
}

/* Reads the table once, and finds the k nearest rows of every search. */
static void
search_exactly(Measurement *m, const Parts *parts)
{
	SPIPlanPtr	plan = prepare(psprintf("SELECT ctid, %s %s", parts->value, parts->not_null), 0, NULL,
							   CURSOR_OPT_NO_SCROLL);
	Portal		portal;

	plan_with(m, plan, InvalidOid);
	portal = SPI_cursor_open(NULL, plan, NULL, NULL, true);
	for (;;)
	{
		SPI_cursor_fetch(portal, true, ROWS_AT_A_TIME);
		if (SPI_processed == 0)
			break;
		for (uint64 i = 0; i < SPI_processed; i++)
			measure_row(m, SPI_tuptable->vals[i], SPI_tuptable->tupdesc);
		SPI_freetuptable(SPI_tuptable);
	}
	SPI_freetuptable(SPI_tuptable);
	SPI_cursor_close(portal);
	SPI_freeplan(plan);
}

/* ---- the index ---- */

/* The number of ranks among the k nearest rows that have the distance of the last one. */
static int
tied_ranks(const Search *search)
{
	int			n = 0;

	for (int i = 0; i < search->count; i++)
		n += search->nearest[i] == search->nearest[0];
	return n;
}

/*
 * Counts the returned rows that are as near as the k nearest.  Rows tied for the last
 * place may outnumber its ranks.  The ranks of nearer rows that are missing are no hits
 * by rank.
 */
static void
count_hits(Measurement *m, Search *search)
{
	int			counted = 0;
	int			nearer = 0;
	int			tied = 0;

	for (uint64 i = 0; i < SPI_processed && counted < m->k && search->count > 0; i++)
	{
		HeapTuple	tuple = SPI_tuptable->vals[i];
		MemoryContext old = MemoryContextSwitchTo(m->row_context);
		bool		isnull;
		ItemPointer tid = (ItemPointer) DatumGetPointer(SPI_getbinval(tuple, SPI_tuptable->tupdesc, 1, &isnull));

		if (!m->of_rows || !ItemPointerEquals(tid, &search->self))
		{
			Datum		value = SPI_getbinval(tuple, SPI_tuptable->tupdesc, 2, &isnull);
			double		distance = isnull ? INFINITY : distance_of(m, search, PG_DETOAST_DATUM(value));

			counted++;
			nearer += distance < search->nearest[0];
			tied += distance == search->nearest[0];
		}
		MemoryContextSwitchTo(old);
		MemoryContextReset(m->row_context);
	}
	search->hits = Min(nearer + tied, search->count);
	search->ranked = Min(nearer + Min(tied, tied_ranks(search)), search->count);
}

/*
 * Prepares the query of a search.  If the value is from a row, the query returns one row
 * more, because that row does not count.
 */
static SPIPlanPtr
prepare_search(const Measurement *m, const Parts *parts)
{
	Oid			type = m->index->rd_opcintype[0];

	return prepare(psprintf("SELECT ctid, %s %s ORDER BY %s %s $1 LIMIT %d", parts->value,
							parts->from, parts->value, parts->operator, m->k + (m->of_rows ? 1 : 0)),
				   1, &type, CURSOR_OPT_GENERIC_PLAN);
}

static void
search_index(Measurement *m, const Parts *parts)
{
	SPIPlanPtr	plan = prepare_search(m, parts);

	plan_with(m, plan, RelationGetRelid(m->index));
	for (int i = 0; i < m->nsearches; i++)
	{
		CHECK_FOR_INTERRUPTS();
		m->index_ms += run_search(plan, m->searches[i].value) / m->nsearches;
		count_hits(m, &m->searches[i]);
		SPI_freetuptable(SPI_tuptable);
	}
	SPI_freeplan(plan);
}

/* Measures the time of a search without the index. */
static void
time_exact(Measurement *m, const Parts *parts)
{
	SPIPlanPtr	plan = prepare_search(m, parts);
	int			n = Min(m->nsearches, EXACT_TIMED);

	plan_with(m, plan, InvalidOid);
	for (int i = 0; i < n; i++)
	{
		m->exact_ms += run_search(plan, m->searches[i].value) / n;
		SPI_freetuptable(SPI_tuptable);
	}
	SPI_freeplan(plan);
}

static void
measure(Measurement *m, int sample, const char *queries)
{
	Parts		parts;

	get_parts(m->index, &parts);
	if (queries)
	{
		check_rights(&parts);
		read_queries(m, queries, sample);
	}
	else
		sample_rows(m, &parts, sample);
	if (m->nsearches == 0)
		return;
	search_exactly(m, &parts);
	time_exact(m, &parts);
	search_index(m, &parts);
}

/* ---- for calibration ---- */

struct QvRecall
{
	Measurement measurement;
	Parts		parts;
};

static void
init_measurement(Measurement *m, Relation index, int k)
{
	m->index = index;
	m->k = k;
	check_code(index);
	QvGetOpclass(index, &m->opclass);
	m->context = AllocSetContextCreate(CurrentMemoryContext, "quiver recall", ALLOCSET_DEFAULT_SIZES);
	m->row_context = AllocSetContextCreate(m->context, "quiver recall row", ALLOCSET_DEFAULT_SIZES);
}

QvRecall *
QvRecallBegin(Relation index, int k, int sample, const char *queries)
{
	QvRecall   *recall = palloc0(sizeof(QvRecall));
	Measurement *m = &recall->measurement;

	init_measurement(m, index, k);
	get_parts(index, &recall->parts);
	check_rights(&recall->parts);
	read_queries(m, queries, sample);
	if (m->nsearches > 0)
		search_exactly(m, &recall->parts);
	return recall;
}

int
QvRecallQueries(const QvRecall *recall)
{
	int			n = 0;

	for (int i = 0; i < recall->measurement.nsearches; i++)
		n += recall->measurement.searches[i].count > 0;
	return n;
}

double
QvRecallMeasure(QvRecall *recall)
{
	Measurement *m = &recall->measurement;
	double		hits = 0,
				rows = 0;

	search_index(m, &recall->parts);
	for (int i = 0; i < m->nsearches; i++)
	{
		hits += m->searches[i].hits;
		rows += m->searches[i].count;
	}
	return rows > 0 ? hits / rows : 1;
}

void
QvRecallEnd(QvRecall *recall)
{
	MemoryContextDelete(recall->measurement.context);
	pfree(recall);
}

/* ---- the answer ---- */

typedef enum RecallColumn
{
	RECALL,
	RECALL_LOW,
	RECALL_HIGH,
	RECALL_BY_RANK,
	RECALL_SEARCHES,
	RECALL_INDEX_MS,
	RECALL_EXACT_MS,
	RECALL_COLUMNS
} RecallColumn;

/*
 * Wilson's interval of a share.  The hits of one search depend on each other.  The number
 * of trials is therefore the one that gives the observed spread between searches.  It is
 * at least the number of searches, and at most the number of rows.
 */
static void
wilson(double share, double variance, double searches, double rows, double *low, double *high)
{
	double		trials = variance > 0 ? share * (1 - share) / (variance / searches) : searches;
	double		z2 = CONFIDENCE_Z * CONFIDENCE_Z;
	double		middle,
				half;

	trials = Max(searches, Min(rows, trials));
	middle = (share + z2 / (2 * trials)) / (1 + z2 / trials);
	half = CONFIDENCE_Z / (1 + z2 / trials) *
		sqrt(share * (1 - share) / trials + z2 / (4 * trials * trials));
	*low = Max(0, Min(share, middle - half));
	*high = Min(1, Max(share, middle + half));
}

/*
 * The number of decimals that an interval bears: a unit of the last one is between a 20th
 * and half of its half-width.
 */
static double
decimals_of(double low, double high)
{
	return Max(0, -floor(log10((high - low) / 4)));
}

/* Rounds a share.  Only 0 and 1 themselves become 0 and 1. */
static double
round_share(double share, double decimals)
{
	double		units = pow(10, decimals);
	double		rounded = rint(share * units);

	if (share < 1)
		rounded = Min(rounded, units - 1);
	if (share > 0)
		rounded = Max(rounded, 1);
	return rounded / units;
}

/* Rounds milliseconds to three significant digits. */
static double
round_time(double ms)
{
	double		units = ms > 0 ? pow(10, 2 - floor(log10(ms))) : 1;

	return rint(ms * units) / units;
}

/*
 * Fills in the answer.  Only the number of searches is set when no search has a row to
 * find.  The interval is rounded outward.
 */
static void
summarize(const Measurement *m, Datum *values, bool *nulls)
{
	double		searches = 0,
				sum = 0,
				ranked = 0,
				squares = 0,
				rows = 0,
				low,
				high,
				decimals,
				units;

	for (int i = 0; i < m->nsearches; i++)
	{
		double		recall;

		if (m->searches[i].count == 0)
			continue;
		recall = (double) m->searches[i].hits / m->searches[i].count;
		searches++;
		sum += recall;
		ranked += (double) m->searches[i].ranked / m->searches[i].count;
		squares += recall * recall;
		rows += m->searches[i].count;
	}
	memset(nulls, true, RECALL_COLUMNS * sizeof(bool));
	values[RECALL_SEARCHES] = Int32GetDatum((int32) searches);
	nulls[RECALL_SEARCHES] = false;
	if (searches == 0)
		return;
	wilson(sum / searches, searches > 1 ? Max(0, squares - sum * sum / searches) / (searches - 1) : 0,
		   searches, rows, &low, &high);
	decimals = decimals_of(low, high);
	units = pow(10, decimals);
	values[RECALL] = Float8GetDatum(round_share(sum / searches, decimals));
	values[RECALL_LOW] = Float8GetDatum(floor(low * units) / units);
	values[RECALL_HIGH] = Float8GetDatum(ceil(high * units) / units);
	values[RECALL_BY_RANK] = Float8GetDatum(round_share(ranked / searches, decimals));
	values[RECALL_INDEX_MS] = Float8GetDatum(round_time(m->index_ms));
	values[RECALL_EXACT_MS] = Float8GetDatum(round_time(m->exact_ms));
	memset(nulls, false, RECALL_COLUMNS * sizeof(bool));
}

static int
checked_count(const char *what, int value, int most)
{
	if (value < 1 || value > most)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must be between 1 and %d", what, most)));
	return value;
}

/*
 * quiver_recall(index, k, sample, queries): the share of the k nearest rows that searches
 * of the index find.  The index is one of Quiver or of a stock pgvector.  Times are in
 * milliseconds.
 */
PG_FUNCTION_INFO_V1(quiver_recall);
Datum
quiver_recall(PG_FUNCTION_ARGS)
{
	Measurement m = {0};
	TupleDesc	desc;
	Datum		values[RECALL_COLUMNS];
	bool		nulls[RECALL_COLUMNS];
	int			sample;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
		PG_RETURN_NULL();
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE || desc->natts != RECALL_COLUMNS)
		elog(ERROR, "return type must be a row type of %d columns", RECALL_COLUMNS);
	m.k = checked_count("k", PG_GETARG_INT32(1), MAX_K);
	sample = checked_count("sample", PG_GETARG_INT32(2), MAX_SAMPLE);
	m.index = KnnOpenAnyIndex(PG_GETARG_OID(0), AccessShareLock, KNN_RIGHT_SOME);
	init_measurement(&m, m.index, m.k);
	SPI_connect();
	measure(&m, sample, PG_ARGISNULL(3) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(3)));
	SPI_finish();
	summarize(&m, values, nulls);
	relation_close(m.index, AccessShareLock);
	MemoryContextDelete(m.context);
	desc = BlessTupleDesc(desc);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}
