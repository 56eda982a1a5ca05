/*
 * notices.c
 *		Notices about indexes that do not do what the user may expect.
 *
 * EXPLAIN says why no index of a column serves the distance of ORDER BY, or of a radius.  ALTER
 * INDEX says when a new value of an option waits for a REINDEX.
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
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "compat.h"
#include "lib/stringinfo.h"
#include "monitor/monitor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "topk/form.h"
#include "topk/groups.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

static ExplainOneQuery_hook_type previous_explain;
static object_access_hook_type previous_access;

/* ---- EXPLAIN: a distance that no index of the column serves ---- */

/* What the indexes of a column say about an operator. */
typedef struct Served
{
	bool		served;
	StringInfoData reasons;		/* why each index does not serve it; empty: no
								 * index has the column */
} Served;

/* A distance, and the operator class of indexes for it. */
typedef struct Distance
{
	List	   *args;			/* NIL: none found */
	Oid			operator;
	NameData	opclass;
} Distance;

/*
 * Finds the distance of a type, by its function or by its operator's name, and its operator class
 * of hnsw: this has all distances.  Returns false if there is none.
 */
static bool
find_class(Oid type, Oid function, const char *name, Distance *distance)
{
	CatCList   *classes = SearchSysCacheList1(CLAAMNAMENSP, ObjectIdGetDatum(get_am_oid("hnsw", true)));
	bool		found = false;

	for (int i = 0; i < classes->n_members && !found; i++)
	{
		Form_pg_opclass class = (Form_pg_opclass) GETSTRUCT(&classes->members[i]->tuple);
		Oid			operator = get_opfamily_member(class->opcfamily, class->opcintype, class->opcintype, 1);

		/* a class need not have an operator */
		found = class->opcintype == type && OidIsValid(operator) &&
			(name ? strcmp(get_opname(operator), name) == 0 : TopkIsDistance(function, get_opcode(operator)));
		distance->operator = operator;
		distance->opclass = class->opcname;
	}
	ReleaseCatCacheList(classes);
	return found;
}

/* Is an expression a distance by which an index can order rows? */
static bool
is_distance(Node *expr, Distance *distance)
{
	List	   *args = NIL;
	Oid			function = TopkFunctionOf(expr, &args);

	if (!OidIsValid(function) || list_length(args) != 2 ||
		!find_class(exprType(linitial(args)), function, NULL, distance))
		return false;
	distance->args = args;
	return true;
}

/*
 * Finds the distance in an expression such as 1 - (e <=> $1).  Returns true if no index could serve
 * the expression, as it is made of other nodes than a form or a group's nearest row is.
 */
static bool
find_distance(Node *expr, Distance *distance)
{
	if (expr == NULL)
		return false;
	if (distance->args == NIL && is_distance(expr, distance))
		return false;
	switch (nodeTag(expr))
	{
		case T_OpExpr:
		case T_FuncExpr:
			if (exprType(expr) == BOOLOID)
				return true;
			break;
		case T_Aggref:
			if (TopkTakesExtreme((Aggref *) expr) == 0)
				return true;
			break;
		case T_RelabelType:
		case T_CoalesceExpr:
		case T_MinMaxExpr:
		case T_Const:
		case T_Param:
		case T_List:
		case T_TargetEntry:
			break;
		default:
			return true;
	}
	return expression_tree_walker(expr, find_distance, distance);
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
look_at_index(Relation index, AttrNumber column, Oid operator, bool radius, Served *served)
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
	else if (radius && !KnnHasRecall(index->rd_rel->relam))
		add_reason(served, psprintf("Index \"%s\" of access method %s serves a radius only with ORDER BY of its distance and LIMIT.",
									name, get_am_name(index->rd_rel->relam)));
	else if (!index->rd_index->indisvalid)
		add_reason(served, psprintf("Index \"%s\" is not valid.", name));
	else
		served->served = true;
}

static void
look_at_indexes(Oid relation, AttrNumber column, Oid operator, bool radius, Served *served)
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
			look_at_index(index, column, operator, radius, served);
		else
			served->served = true;	/* of a partitioned table: not examined */
		relation_close(index, NoLock);
	}
	list_free(indexes);
	table_close(table, NoLock);
}

/* Notes that a query casts a column, and that its value should be cast instead. */
static void
explain_cast(const Var *var, const RangeTblEntry *rte, Oid type_asked, const char *operator, bool radius)
{
	const char *type = format_type_be(var->vartype);
	Distance	own;
	Served		served;

	if (!find_class(getBaseType(var->vartype), InvalidOid, operator, &own))
		return;
	look_at_indexes(rte->relid, var->varattno, own.operator, radius, &served);
	ereport(NOTICE,
			(errmsg("no index on column \"%s\" of table \"%s\" serves operator %s",
					get_attname(rte->relid, var->varattno, false), get_rel_name(rte->relid), operator),
			 errdetail("The column is of type %s, and is cast to type %s of the query.", type,
					   format_type_be(type_asked)),
			 served.served ? errhint("Cast the query: %s $1::%s", operator, type) :
			 radius ?
			 errhint("Cast the query: %s $1::%s, and create an index of quiver_graph or quiver_ivf with operator class %s.",
					 operator, type, NameStr(own.opclass)) :
			 errhint("Cast the query: %s $1::%s, and create an index with operator class %s.",
					 operator, type, NameStr(own.opclass))));
}

/* Notes why no index serves a distance of a column. */
static void
explain_distance(const Query *query, const Distance *distance, bool radius)
{
	const char *operator = get_opname(distance->operator);
	Oid			type_asked = exprType(linitial(distance->args));
	ListCell   *lc;

	/* a distance between columns of one row */
	if (bms_overlap(pull_varnos(NULL, linitial(distance->args)), pull_varnos(NULL, lsecond(distance->args))))
		return;
	foreach(lc, distance->args)
	{
		Node	   *arg = strip_implicit_coercions(lfirst(lc));
		Var		   *var = (Var *) arg;
		RangeTblEntry *rte;
		Served		served;

		if (!IsA(arg, Var) || var->varlevelsup != 0 || var->varattno <= 0)
			continue;
		rte = rt_fetch(var->varno, query->rtable);
		if (rte->rtekind != RTE_RELATION ||
			(rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW))
			continue;
		look_at_indexes(rte->relid, var->varattno, distance->operator, radius, &served);
		if (served.served || served.reasons.len == 0)
			continue;
		if (getBaseType(var->vartype) != type_asked)
			explain_cast(var, rte, type_asked, operator, radius);
		else
			ereport(NOTICE,
					(errmsg("no index on column \"%s\" of table \"%s\" serves operator %s",
							get_attname(rte->relid, var->varattno, false), get_rel_name(rte->relid),
							operator),
					 errdetail("%s", served.reasons.data),
					 radius ?
					 errhint("Create an index of quiver_graph or quiver_ivf with operator class %s.",
							 NameStr(distance->opclass)) :
					 errhint("Create an index with operator class %s.", NameStr(distance->opclass))));
		return;
	}
}

/* Looks at the distance that a query orders by.  Returns whether there is one. */
static bool
explain_order(const Query *query)
{
	Distance	distance = {0};
	Node	   *key;

	/* groups that an index serves are nearest groups, or of single rows */
	if (query->sortClause == NIL || query->groupingSets != NIL || query->havingQual != NULL ||
		(query->hasAggs && query->groupClause == NIL))
		return false;
	key = get_sortgroupclause_expr(linitial(query->sortClause), query->targetList);
	if (!find_distance(key, &distance) && distance.args && !contain_volatile_functions(key))
		explain_distance(query, &distance, false);
	return distance.args != NIL;
}

/* Looks at conditions that a distance is less than something. */
static void
explain_radii(const Query *query)
{
	ListCell   *lc;

	foreach(lc, query->jointree ? make_ands_implicit((Expr *) query->jointree->quals) : NIL)
	{
		Distance	distance = {0};
		List	   *args = NIL;
		Oid			function = TopkFunctionOf(lfirst(lc), &args);

		if (((function == F_FLOAT8LT || function == F_FLOAT8LE) && is_distance(linitial(args), &distance)) ||
			((function == F_FLOAT8GT || function == F_FLOAT8GE) && is_distance(lsecond(args), &distance)))
			explain_distance(query, &distance, true);
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

		if (!explain_order(query))
			explain_radii(query);
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
