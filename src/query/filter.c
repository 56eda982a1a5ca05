/*
 * filter.c
 *		Conditions on included columns; see filter.h.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/sysattr.h"
#include "access/visibilitymap.h"
#include "catalog/pg_opfamily_d.h"
#include "catalog/pg_type_d.h"
#include "common/int.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "query/cost.h"
#include "query/filter.h"
#include "storage/bufmgr.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/typcache.h"

/* ---- conditions ---- */

/* Keep the included columns that conditions have. */
static void
choose_columns(QvFilter *filter, const Scan *scan, Relation index, List *conditions)
{
	QvIncluded *included = QvIncludedDescribe(index, 0);
	Bitmapset  *used = NULL;

	pull_varattnos((Node *) conditions, scan->scanrelid, &used);
	filter->columns = palloc(included->count * sizeof(QvIncludedColumn));
	for (int i = 0; i < included->count; i++)
		if (bms_is_member(included->columns[i].attribute - FirstLowInvalidHeapAttributeNumber, used))
			filter->columns[filter->ncolumns++] = included->columns[i];
	filter->space = palloc0(included->count * QV_INCLUDED_MAX);
}

static int
find_column(const QvFilter *filter, const Var *var)
{
	int			i = 0;

	while (filter->columns[i].attribute != var->varattno)
		i++;
	return i;
}

static bool
is_integer(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID;
}

/*
 * The btree strategy by which an operator compares numbers that are stored as integers of their
 * order; 0: it does not.
 */
static int
integer_strategy(const OpExpr *op)
{
	Oid			left,
				right;

	op_input_types(op->opno, &left, &right);
	/* extensions may add types of their own to the family */
	if (is_integer(left) && is_integer(right))
		return get_op_opfamily_strategy(op->opno, INTEGER_BTREE_FAM_OID);
	switch (op->opfuncid)
	{
		case F_ENUM_EQ:
		case F_OIDEQ:
		case F_BOOLEQ:
			return BTEqualStrategyNumber;
	}
	/* a date and a timestamp are not of one scale */
	if (left != right || (left != DATEOID && left != TIMEOID && left != TIMESTAMPOID && left != TIMESTAMPTZOID))
		return 0;
	return get_op_opfamily_strategy(op->opno, lookup_type_cache(left, TYPECACHE_BTREE_OPFAMILY)->btree_opf);
}

/* The place of the column of a condition that compares a column with a constant; -1: it is none. */
static int
column_argument(const OpExpr *op)
{
	if (!IsA(op, OpExpr) || list_length(op->args) != 2 || op->opretset || !func_strict(op->opfuncid))
		return -1;
	for (int i = 0; i < 2; i++)
		if (IsA(list_nth(op->args, i), Var) && !contain_var_clause(list_nth(op->args, 1 - i)))
			return i;
	return -1;
}

Cost
QvFilterCost(PlannerInfo *root, List *conditions)
{
	Cost		cost = 0;
	ListCell   *lc;

	foreach(lc, conditions)
	{
		const OpExpr *op = lfirst(lc);
		QualCost	qual;

		if (IsA(op, Var) || (column_argument(op) >= 0 && integer_strategy(op) > 0))
			cost += QV_RANGE_OPERATORS * cpu_operator_cost;
		else
		{
			cost_qual_eval_node(&qual, (Node *) op, root);
			cost += QV_INCLUDED_OPERATORS * cpu_operator_cost + qual.per_tuple;
		}
	}
	return cost;
}

/* Have a condition tested as a range, if it compares a column with a constant that way. */
static bool
make_range(const OpExpr *op, QvCondition *condition)
{
	int			strategy = integer_strategy(op);

	if (strategy < BTLessStrategyNumber || strategy > BTGreaterStrategyNumber)
		return false;
	condition->kind = QV_CONDITION_RANGE;
	condition->strategy = condition->argument == 0 ? strategy : BTGreaterStrategyNumber + 1 - strategy;
	condition->length = get_typlen(exprType(list_nth(op->args, 1 - condition->argument)));
	return true;
}

/* Have it tested by a call. */
static void
make_call(const OpExpr *op, QvCondition *condition)
{
	FmgrInfo   *function = palloc0(sizeof(FmgrInfo));

	fmgr_info(op->opfuncid, function);
	fmgr_info_set_expr((Node *) op, function);
	condition->kind = QV_CONDITION_CALL;
	condition->call = palloc0(SizeForFunctionCallInfo(2));
	InitFunctionCallInfoData(*condition->call, function, 2, op->inputcollid, NULL, NULL);
}

static void
init_condition(const QvFilter *filter, PlanState *node, Node *clause, QvCondition *condition)
{
	const OpExpr *op = (OpExpr *) clause;
	int			i = column_argument(op);

	if (IsA(clause, Var))
	{
		/* a boolean column */
		condition->kind = QV_CONDITION_RANGE;
		condition->column = find_column(filter, (Var *) clause);
		condition->least = condition->most = 1;
	}
	else if (i < 0)
	{
		condition->kind = QV_CONDITION_EXPRESSION;
		condition->expression = ExecInitQual(list_make1(clause), node);
	}
	else
	{
		condition->column = find_column(filter, list_nth(op->args, i));
		condition->argument = i;
		condition->constant = ExecInitExpr(list_nth(op->args, 1 - i), node);
		if (!make_range(op, condition))
			make_call(op, condition);
	}
}

static int
compare_kinds(const void *a, const void *b)
{
	return (int) ((const QvCondition *) a)->kind - (int) ((const QvCondition *) b)->kind;
}

QvFilter *
QvFilterCreate(PlanState *node, Relation table, Relation index, List *conditions)
{
	QvFilter   *filter = palloc0(sizeof(QvFilter));
	TupleDesc	desc = RelationGetDescr(table);
	bool		fixed = node->scanopsfixed;
	ListCell   *lc;

	filter->table = table;
	filter->econtext = node->ps_ExprContext;
	filter->conditions = palloc0(list_length(conditions) * sizeof(QvCondition));
	filter->all_leakproof = true;
	choose_columns(filter, (Scan *) node->plan, index, conditions);
	/* rows of the table are in another kind of slot */
	node->scanopsfixed = false;
	foreach(lc, conditions)
	{
		QvCondition *condition = &filter->conditions[filter->nconditions++];

		init_condition(filter, node, lfirst(lc), condition);
		/* ranges raise no errors */
		condition->leakproof = condition->kind == QV_CONDITION_RANGE || !contain_leaked_vars(lfirst(lc));
		filter->all_leakproof &= condition->leakproof;
		filter->nranges += condition->kind == QV_CONDITION_RANGE;
	}
	node->scanopsfixed = fixed;
	qsort(filter->conditions, filter->nconditions, sizeof(QvCondition), compare_kinds);
	filter->slot = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	memset(filter->slot->tts_isnull, true, desc->natts * sizeof(bool));
	ExecStoreVirtualTuple(filter->slot);
	filter->finder.context = CurrentMemoryContext;
	filter->included = palloc(BLCKSZ);
	filter->visible = palloc(BLCKSZ);
	filter->may_pass = palloc(BLCKSZ);
	return filter;
}

/* An integer of a type of that length. */
static int64
to_integer(Datum value, int16 length)
{
	switch (length)
	{
		case sizeof(bool):
			return DatumGetBool(value);
		case sizeof(int16):
			return DatumGetInt16(value);
		case sizeof(int32):
			return DatumGetInt32(value);
		default:
			return DatumGetInt64(value);
	}
}

/* Set the range of values that are on that side of a constant. */
static void
set_range(QvCondition *condition, int64 constant, bool isnull)
{
	int			strategy = condition->strategy;
	bool		none = isnull;

	condition->least = PG_INT64_MIN;
	condition->most = PG_INT64_MAX;
	if (strategy >= BTEqualStrategyNumber)
		none |= pg_add_s64_overflow(constant, strategy == BTGreaterStrategyNumber, &condition->least);
	if (strategy <= BTEqualStrategyNumber)
		none |= pg_sub_s64_overflow(constant, strategy == BTLessStrategyNumber, &condition->most);
	if (none)
	{
		condition->least = 1;
		condition->most = 0;
	}
}

void
QvFilterUse(QvFilter *filter, QvScan *engine)
{
	filter->engine = engine;
	filter->rows = engine->rows && engine->rows->included ? engine->rows : NULL;
	if (filter->rows == NULL)
		return;
	QvRowsFinderInit(&filter->finder, filter->rows);
	for (int i = 0; i < filter->nconditions; i++)
	{
		QvCondition *condition = &filter->conditions[i];
		bool		isnull;
		Datum		value;

		if (condition->constant == NULL)
			continue;
		/* it lives as long as CurrentMemoryContext */
		value = ExecEvalExpr(condition->constant, filter->econtext, &isnull);
		if (condition->kind == QV_CONDITION_RANGE)
			set_range(condition, isnull ? 0 : to_integer(value, condition->length), isnull);
		else
			condition->call->args[1 - condition->argument] = (NullableDatum) {value, isnull};
	}
}

/* ---- rows ---- */

/* Have columns of an entry in the slot; false: they are not known. */
static bool
read_columns(QvFilter *filter, const char *at, uint32 i, const QvIncludedColumn *columns, int ncolumns)
{
	const QvIncluded *included = filter->rows->included;
	const char *bits = QvIncludedBits(included, (char *) at, i);
	TupleTableSlot *slot = filter->slot;

	if (!(*bits & QV_INCLUDED_KNOWN))
		return false;
	for (int c = 0; c < ncolumns; c++)
	{
		const QvIncludedColumn *column = &columns[c];
		int			to = column->attribute - 1;

		slot->tts_isnull[to] = !QvIncludedHasBit(bits, column->bit);
		slot->tts_values[to] = QvIncludedGet(column, QvIncludedValue(included, column, (char *) at, i),
											 filter->space + c * QV_INCLUDED_MAX);
	}
	return true;
}

static bool
test_call(const QvCondition *condition, Datum value)
{
	FunctionCallInfo call = condition->call;

	if (call->args[1 - condition->argument].isnull)
		return false;
	call->args[condition->argument].value = value;
	call->isnull = false;
	return DatumGetBool(FunctionCallInvoke(call)) && !call->isnull;
}

static bool
test_condition(const QvFilter *filter, const QvCondition *condition)
{
	const QvIncludedColumn *column = &filter->columns[condition->column];
	Datum		value = filter->slot->tts_values[column->attribute - 1];
	int64		integer;

	if (condition->kind == QV_CONDITION_EXPRESSION)
		return ExecQual(condition->expression, filter->econtext);
	if (filter->slot->tts_isnull[column->attribute - 1])
		return false;
	if (condition->kind == QV_CONDITION_CALL)
		return test_call(condition, value);
	integer = to_integer(value, column->length);
	return integer >= condition->least && integer <= condition->most;
}

/*
 * Is the row of an entry, which is there, visible to everybody?  Its page is locked: VACUUM clears
 * the entries of dead rows before it sets the bits of their pages.
 */
static inline bool
is_visible(QvFilter *filter, BlockNumber block)
{
	return (filter->wants_visible || !filter->all_leakproof) &&
		VM_ALL_VISIBLE(filter->table, block, &filter->visibility);
}

/* Test the conditions from one on, on the columns in the slot. */
static QvAdmission
test_slot(QvFilter *filter, bool visible, int from)
{
	bool		all = visible || filter->all_leakproof;
	MemoryContext old;
	int			i = from;

	ResetExprContext(filter->econtext);
	filter->econtext->ecxt_scantuple = filter->slot;
	old = MemoryContextSwitchTo(filter->econtext->ecxt_per_tuple_memory);
	while (i < filter->nconditions &&
		   ((!all && !filter->conditions[i].leakproof) || test_condition(filter, &filter->conditions[i])))
		i++;
	MemoryContextSwitchTo(old);
	if (i == filter->nconditions)
		return visible && filter->wants_visible ? QV_ROW_PASSES : QV_ROW_MAY_PASS;
	filter->engine->counters.removed++;
	return QV_ROW_FAILS;
}

/* ---- pages ---- */

/*
 * Leave out the rows of a page whose value is known and not in a range; n: entries.  A range is
 * made one of the column's type.  With one byte of bits a row, many values are compared at once.
 */
#define DEFINE_RANGE_TEST(type, lowest, highest) \
static pg_attribute_always_inline void \
test_##type(type from, type to, const char *restrict values, const char *restrict bits, int stride, \
			int bit, uint32 n, uint8 *restrict may_pass) \
{ \
	for (uint32 i = 0; i < n; i++) \
	{ \
		type		value; \
		uint8		has = (uint8) bits[i * stride + bit / 8] >> (bit % 8) & 1; \
		\
		memcpy(&value, values + i * sizeof(type), sizeof(type)); \
		may_pass[i] &= ~bits[i * stride] | (has & (value >= from) & (value <= to)); \
	} \
} \
\
static void \
test_range_##type(int64 least, int64 most, const char *values, const char *bits, int stride, \
				  int bit, uint32 n, uint8 *may_pass) \
{ \
	bool		none = least > (highest) || most < (lowest); \
	type		from = none ? 1 : Max(least, (lowest)), \
				to = none ? 0 : Min(most, (highest)); \
	\
	if (stride == 1) \
		test_##type(from, to, values, bits, 1, bit, n, may_pass); \
	else \
		test_##type(from, to, values, bits, stride, bit, n, may_pass); \
}
DEFINE_RANGE_TEST(int8, PG_INT8_MIN, PG_INT8_MAX)
DEFINE_RANGE_TEST(int16, PG_INT16_MIN, PG_INT16_MAX)
DEFINE_RANGE_TEST(int32, PG_INT32_MIN, PG_INT32_MAX)
DEFINE_RANGE_TEST(int64, PG_INT64_MIN, PG_INT64_MAX)
#undef DEFINE_RANGE_TEST

static void
test_range(const QvFilter *filter, const QvCondition *condition, const char *at, uint32 first, uint32 n)
{
	const QvIncluded *included = filter->rows->included;
	const QvIncludedColumn *column = &filter->columns[condition->column];
	void		(*test) (int64, int64, const char *, const char *, int, int, uint32, uint8 *) =
		column->length == sizeof(int8) ? test_range_int8 :
		column->length == sizeof(int16) ? test_range_int16 :
		column->length == sizeof(int32) ? test_range_int32 : test_range_int64;

	test(condition->least, condition->most, QvIncludedValue(included, column, (char *) at, first),
		 QvIncludedBits(included, (char *) at, first), included->bits, column->bit, n, filter->may_pass + first);
}

bool
QvFilterTestRanges(QvFilter *filter, const char *at, uint32 first, uint32 n)
{
	const QvIncluded *included = filter->rows->included;
	const char *bits = QvIncludedBits(included, (char *) at, first);
	uint32		known = 0,
				left = 0;

	memset(filter->may_pass + first, 1, n);
	for (int i = 0; i < filter->nranges; i++)
		test_range(filter, &filter->conditions[i], at, first, n);
	for (uint32 i = 0; i < n; i++)
	{
		known += bits[i * included->bits] & QV_INCLUDED_KNOWN;
		left += bits[i * included->bits] & filter->may_pass[first + i] & QV_INCLUDED_KNOWN;
	}
	filter->tested += known;
	filter->engine->counters.removed += known - left;
	return left > 0 && filter->nranges < filter->nconditions;
}

void
QvFilterPrefetch(const QvFilter *filter, BlockNumber block)
{
	const QvRows *rows = filter->rows;
	const QvIncluded *included = rows->included;
	Size		offset = QV_PAGE_START + sizeof(QvRowPageData) + rows->per_page * rows->code_size;

	QvPrefetchPin(rows->hints, block);
	QvPrefetchPage(rows->hints, block, offset, rows->per_page * included->bits);
	for (int c = 0; c < filter->ncolumns; c++)
		QvPrefetchPage(rows->hints, block, offset + rows->per_page * filter->columns[c].offset,
					   rows->per_page * filter->columns[c].length);
}

void
QvFilterSee(QvFilter *filter, const char *at, QvRowNumber first)
{
	const QvRows *rows = filter->rows;
	BlockNumber asked = InvalidBlockNumber;
	bool		answer = false;

	memcpy(filter->included, at, QvRowsPageBytes(rows) - rows->per_page * rows->code_size);
	memset(filter->visible, false, rows->per_page);
	for (uint32 i = 0; !filter->all_leakproof && i < rows->per_page; i++)
	{
		ItemPointerData tid;

		if (!QvIncludedIsKnown(rows->included, at, i))
			continue;
		QvRowsTid(rows, first + i, &tid);
		if (ItemPointerGetBlockNumberNoCheck(&tid) != asked)
		{
			asked = ItemPointerGetBlockNumberNoCheck(&tid);
			answer = is_visible(filter, asked);
		}
		filter->visible[i] = answer;
	}
}

void
QvFilterTestOthers(QvFilter *filter, uint32 first, uint32 n)
{
	for (uint32 i = first; i < first + n; i++)
		if (filter->may_pass[i] && read_columns(filter, filter->included, i, filter->columns, filter->ncolumns))
			filter->may_pass[i] = test_slot(filter, filter->visible[i], filter->nranges) != QV_ROW_FAILS;
}

/* Have columns of a row in the slot, and see whether it is visible; false: they are not known. */
static bool
read_row(QvFilter *filter, const ItemPointerData *tid, const QvIncludedColumn *columns, int ncolumns,
		 bool *visible)
{
	const QvRows *rows = filter->rows;
	QvRowNumber number;
	BlockNumber block;
	bool		known;
	Buffer		buf;

	if (rows == NULL || !QvRowsHasNumber(rows, tid, &number))
		return false;
	block = QvRowsFindPage(&filter->finder, number / rows->per_page);
	if (block == QV_ROWS_NO_PAGE)
		return false;
	filter->engine->counters.pages++;
	buf = QvRowsReadPage(rows, block, number / rows->per_page, BUFFER_LOCK_SHARE);
	known = read_columns(filter, QvRowsIncluded(rows, QvPageEntries(BufferGetPage(buf))), number % rows->per_page,
						 columns, ncolumns);
	*visible = known && is_visible(filter, ItemPointerGetBlockNumberNoCheck(tid));
	UnlockReleaseBuffer(buf);
	return known;
}

QvAdmission
QvFilterTestRow(QvFilter *filter, const ItemPointerData *tid)
{
	bool		visible;

	if (!read_row(filter, tid, filter->columns, filter->ncolumns, &visible))
		return QV_ROW_MAY_PASS;
	filter->tested++;
	return test_slot(filter, visible, 0);
}

bool
QvFilterFill(QvFilter *filter, const ItemPointerData *tid)
{
	bool		visible;

	return filter->rows && read_row(filter, tid, filter->rows->included->columns, filter->rows->included->count,
									&visible) && visible;
}

void
QvFilterRelease(QvFilter *filter)
{
	if (BufferIsValid(filter->visibility))
		ReleaseBuffer(filter->visibility);
	filter->visibility = InvalidBuffer;
}

void
QvFilterEnd(QvFilter *filter)
{
	QvFilterRelease(filter);
	ExecDropSingleTupleTableSlot(filter->slot);
}
