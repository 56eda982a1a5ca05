/*
 * values.c
 *		The table's values of rows in an index; see values.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_index.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "compat.h"
#include "nodes/nodeFuncs.h"
#include "table/values.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

void
TableValuesInit(TableValues *values, Relation heap, Relation index, const QvOpclassInfo *opclass)
{
	memset(values, 0, sizeof(*values));
	values->heap = heap;
	values->index = index;
	values->opclass = opclass;
	values->parent = CurrentMemoryContext;
}

/* Is a function written in a language in which users other than superusers may write? */
static bool
is_users_function(Oid function, void *context)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid			language;

	if (!HeapTupleIsValid(tuple))
		return true;
	language = ((Form_pg_proc) GETSTRUCT(tuple))->prolang;
	ReleaseSysCache(tuple);
	return language != INTERNALlanguageId && language != ClanguageId;
}

/* Does an expression run users' code, or contain anything that might? */
static bool
runs_users_code(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_List:
		case T_Var:
		case T_Const:
		case T_RelabelType:
		case T_CollateExpr:
		case T_ArrayExpr:
		case T_BoolExpr:
		case T_BooleanTest:
		case T_NullTest:
			break;
		case T_FuncExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
			if (check_functions_in_node(node, is_users_function, NULL))
				return true;
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, runs_users_code, context);
}

Node *
IndexAsWritten(Oid index, AttrNumber column)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	Node	   *node;
	Datum		tree;
	bool		isnull;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for index %u", index);
	tree = SysCacheGetAttr(INDEXRELID, tuple, column, &isnull);
	node = isnull ? NULL : stringToNode(TextDatumGetCString(tree));
	ReleaseSysCache(tuple);
	return node;
}

bool
IndexRunsUsersCode(Oid index, bool or_condition)
{
	return runs_users_code(IndexAsWritten(index, Anum_pg_index_indexprs), NULL) ||
		(or_condition && runs_users_code(IndexAsWritten(index, Anum_pg_index_indpred), NULL));
}

/*
 * May the values be read?
 *
 * An INSERT must not show other rows to code that the inserting user can replace: the
 * operators of a function are found by that user's search_path.  It must not run code
 * that may insert into the same index, either.  Out-of-line values must stay as long as
 * there is a snapshot.
 */
static bool
may_read(const TableValues *values)
{
	return ActiveSnapshotSet() && !QvSnapshotsAge() &&
		!IndexRunsUsersCode(RelationGetRelid(values->index), false);
}

static void
open_reader(TableValues *values)
{
	MemoryContext old;

	values->asked = true;
	values->context = AllocSetContextCreate(values->parent, "quiver table values",
											ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(values->context);
	if (may_read(values))
		values->reader = RowReaderBegin(values->heap, values->index, values->opclass);
	MemoryContextSwitchTo(old);
}

bool
TableIsReadable(TableValues *values)
{
	if (!values->asked)
		open_reader(values);
	return values->reader != NULL;
}

const void *
TableValue(TableValues *values, ItemPointer tid)
{
	/*
	 * SnapshotSelf sees rows that are not deleted, and committed or our own.
	 * A transaction that deletes one now is younger than our snapshot, so
	 * VACUUM leaves the row's out-of-line values.  A damaged heap TID is
	 * reported by the next search.
	 */
	return TableIsReadable(values) && RowMayBe(values->reader, tid) &&
		RowFetch(values->reader, tid, SnapshotSelf) ? RowValue(values->reader) : NULL;
}

void
TableValuesEnd(TableValues *values)
{
	if (values->reader)
		RowReaderEnd(values->reader);
	if (values->context)
		MemoryContextDelete(values->context);
}
