/*
 * notices.c
 *		Notices about indexes that do not do what the user may expect.
 *
 * EXPLAIN says why no index of a column serves the operator of ORDER BY.  ALTER INDEX says
 * when a new value of an option waits for a REINDEX.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "am/beside.h"
#include "am/methods.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_class.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "compat.h"
#include "lib/stringinfo.h"
#include "monitor/monitor.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

static ExplainOneQuery_hook_type previous_explain;
static object_access_hook_type previous_access;

/* ---- EXPLAIN: an operator that no index of the column serves ---- */

/* What the indexes of a column say about an operator. */
typedef struct Served
{
	bool		served;
	StringInfoData reasons;		/* why each index does not serve it; empty: no
								 * index has the column */
} Served;

/* Is it a distance operator of Quiver or of pgvector? */
static bool
is_distance(const OpExpr *op)
{
	return op->opresulttype == FLOAT8OID && list_length(op->args) == 2 &&
		QvSharedSymbol(op->opfuncid) != NULL;
}

static bool
has_column(Relation index, AttrNumber column)
{
	for (int i = 0; i < index->rd_index->indnkeyatts; i++)
		if (index->rd_index->indkey.values[i] == column)
			return true;
	return false;
}

static void
add_reason(Served *served, const char *reason)
{
	if (served->reasons.len > 0)
		appendStringInfoString(&served->reasons, "  ");
	appendStringInfoString(&served->reasons, reason);
	pfree((char *) reason);
}

static void
look_at_index(Relation index, AttrNumber column, Oid operator, Served *served)
{
	const char *name = RelationGetRelationName(index);
	Oid			own;

	if (!has_column(index, column))
		return;
	if (KnnMethodOf(index) == NULL && !KnnIsPgvectors(index))
	{
		char	   *method = get_am_name(index->rd_rel->relam);

		add_reason(served, psprintf("Index \"%s\" of access method %s does not order rows by distance.",
									name, method));
		return;
	}
	if (!SearchSysCacheExists3(AMOPOPID, ObjectIdGetDatum(operator), CharGetDatum(AMOP_ORDER),
							   ObjectIdGetDatum(index->rd_opfamily[0])))
	{
		own = get_opfamily_member(index->rd_opfamily[0], index->rd_opcintype[0],
								  index->rd_opcintype[0], 1);
		if (OidIsValid(own))
			add_reason(served, psprintf("Index \"%s\" serves %s.", name, get_opname(own)));
	}
	else if (!index->rd_index->indisvalid)
		add_reason(served, psprintf("Index \"%s\" is not valid.", name));
	else
		served->served = true;
}

static void
look_at_indexes(Oid relation, AttrNumber column, Oid operator, Served *served)
{
	Relation	table = table_open(relation, NoLock);
	List	   *indexes = RelationGetIndexList(table);
	ListCell   *lc;

	initStringInfo(&served->reasons);
	served->served = false;
	foreach(lc, indexes)
	{
		Relation	index = try_relation_open(lfirst_oid(lc), AccessShareLock);

		if (index == NULL)
			continue;
		if (index->rd_rel->relkind == RELKIND_INDEX)
			look_at_index(index, column, operator, served);
		else
			served->served = true;	/* of a partitioned table: not examined */
		relation_close(index, NoLock);
	}
	list_free(indexes);
	table_close(table, NoLock);
}

/* The operator family that orders by an operator; NULL if there is none. */
static char *
family_of(Oid operator)
{
	CatCList   *members = SearchSysCacheList1(AMOPOPID, ObjectIdGetDatum(operator));
	char	   *name = NULL;

	for (int i = 0; i < members->n_members && name == NULL; i++)
	{
		Form_pg_amop member = (Form_pg_amop) GETSTRUCT(&members->members[i]->tuple);
		HeapTuple	family;

		if (member->amoppurpose != AMOP_ORDER)
			continue;
		family = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(member->amopfamily));
		if (HeapTupleIsValid(family))
		{
			name = pstrdup(NameStr(((Form_pg_opfamily) GETSTRUCT(family))->opfname));
			ReleaseSysCache(family);
		}
	}
	ReleaseCatCacheList(members);
	return name;
}

/* Notes why no index serves ORDER BY column <operator> value. */
static void
explain_order(const Query *query, const OpExpr *op)
{
	ListCell   *lc;

	foreach(lc, op->args)
	{
		Node	   *arg = strip_implicit_coercions(lfirst(lc));
		Var		   *var = (Var *) arg;
		RangeTblEntry *rte;
		Served		served;
		char	   *family;

		if (!IsA(arg, Var) || var->varlevelsup != 0 || var->varattno <= 0)
			continue;
		rte = rt_fetch(var->varno, query->rtable);
		if (rte->rtekind != RTE_RELATION ||
			(rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW))
			continue;
		look_at_indexes(rte->relid, var->varattno, op->opno, &served);
		if (served.served || served.reasons.len == 0)
			continue;
		family = family_of(op->opno);
		ereport(NOTICE,
				(errmsg("no index on column \"%s\" of table \"%s\" serves ORDER BY with operator %s",
						get_attname(rte->relid, var->varattno, false), get_rel_name(rte->relid),
						get_opname(op->opno)),
				 errdetail("%s", served.reasons.data),
				 family ? errhint("Create an index with operator class %s.", family) : 0));
	}
}

static bool
explain_queries(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		Query	   *query = (Query *) node;

		if (query->sortClause != NIL)
		{
			Node	   *first = get_sortgroupclause_expr(linitial(query->sortClause), query->targetList);

			if (IsA(first, OpExpr) && is_distance((OpExpr *) first))
				explain_order(query, (OpExpr *) first);
		}
		return query_tree_walker(query, explain_queries, context, 0);
	}
	return expression_tree_walker(node, explain_queries, context);
}

static void
explain_query(Query *query, int cursor_options, IntoClause *into, ExplainState *es,
			  const char *sql, ParamListInfo params, QueryEnvironment *environment)
{
	explain_queries((Node *) query, NULL);
	if (previous_explain)
		previous_explain(query, cursor_options, into, es, sql, params, environment);
	else
		QvExplainOneQuery(query, cursor_options, into, es, sql, params, environment);
}

/* ---- ALTER INDEX: an option that waits for REINDEX ---- */

static const char *
value_of(List *options, const char *name)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		if (strcmp(option->defname, name) == 0)
			return defGetString(option);
	}
	return NULL;
}

/* The options in a row of pg_class. */
static List *
options_of(HeapTuple row, TupleDesc desc)
{
	bool		isnull;
	Datum		options = heap_getattr(row, Anum_pg_class_reloptions, desc, &isnull);

	return isnull ? NIL : untransformRelOptions(options);
}

/* Notes the options of builds whose values differ between two versions of pg_class. */
static void
compare_options(const KnnMethod *method, const char *name, List *before, List *after)
{
	for (int i = 0;; i++)
	{
		const char *option = KnnBuildOption(method->options, i);
		const char *was;
		const char *is;

		if (option == NULL)
			break;
		was = value_of(before, option);
		is = value_of(after, option);
		if ((was == NULL) != (is == NULL) || (was && strcmp(was, is) != 0))
			ereport(NOTICE,
					(errmsg("option \"%s\" of index \"%s\" changes nothing until the index is rebuilt",
							option, name),
					 errhint("REINDEX it.")));
	}
}

/*
 * Notes the changed options of an index.  The catalog caches still have the row of before
 * the command, and SnapshotSelf sees the new one.  The index is opened only if its options
 * changed.  ALTER INDEX has then locked it, which other commands need not have done.
 */
static void
note_options(Oid oid)
{
	HeapTuple	old = SearchSysCache1(RELOID, ObjectIdGetDatum(oid));
	List	   *before = NIL;
	List	   *after = NIL;
	Relation	catalog;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	new;

	if (!HeapTupleIsValid(old))
		return;
	if (((Form_pg_class) GETSTRUCT(old))->relkind == RELKIND_INDEX)
	{
		catalog = table_open(RelationRelationId, AccessShareLock);
		ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(oid));
		scan = systable_beginscan(catalog, ClassOidIndexId, true, SnapshotSelf, 1, &key);
		new = systable_getnext(scan);
		before = options_of(old, RelationGetDescr(catalog));
		if (HeapTupleIsValid(new))
			after = options_of(new, RelationGetDescr(catalog));
		systable_endscan(scan);
		table_close(catalog, AccessShareLock);
	}
	ReleaseSysCache(old);
	if (!equal(before, after))
	{
		Relation	index = relation_open(oid, NoLock);
		const KnnMethod *method = KnnMethodOf(index);

		if (method)
			compare_options(method, RelationGetRelationName(index), before, after);
		relation_close(index, NoLock);
	}
}

static void
see_access(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	if (previous_access)
		previous_access(access, class, object, sub, arg);
	if (access == OAT_POST_ALTER && class == RelationRelationId && sub == 0 &&
		!((ObjectAccessPostAlter *) arg)->is_internal)
		note_options(object);
}

/* ---- */

void
QvNoticesInit(void)
{
	static bool installed = false;

	if (installed)
		return;
	installed = true;
	previous_explain = ExplainOneQuery_hook;
	ExplainOneQuery_hook = explain_query;
	previous_access = object_access_hook;
	object_access_hook = see_access;
}
