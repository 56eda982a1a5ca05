/*
 * methods.c
 *		The access methods by table; see methods.h.
 */
#include "postgres.h"

#include "am/beside.h"
#include "am/methods.h"
#include "catalog/pg_class.h"
#include "compat.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"

/*
 * Each method has a function of its own to parse options: amoptions is told nothing but the
 * options, and its address tells which method a routine is of.
 */
#define DEFINE_METHOD(id, name_, engine_, settings_, options_, support_) \
	static bytea * \
	id##_parse_options(Datum reloptions, bool validate) \
	{ \
		return KnnParseOptions(&knn_##options_##_options, reloptions, validate); \
	} \
	const KnnMethod knn_##id##_method = { \
		.name = name_, \
		.engine = &engine_, \
		.settings = &knn_##settings_##_settings, \
		.options = &knn_##options_##_options, \
		.support = support_, \
		.parse_options = id##_parse_options \
	};
KNN_METHODS(DEFINE_METHOD)
#undef DEFINE_METHOD

const KnnMethod *
KnnMethodOfRoutine(const IndexAmRoutine *routine)
{
#define ADDRESS(id, name, engine, settings, options, support) &knn_##id##_method,
	static const KnnMethod *const methods[] = {KNN_METHODS(ADDRESS)};
#undef ADDRESS

	for (int i = 0; i < lengthof(methods); i++)
		if (methods[i]->parse_options == routine->amoptions)
			return methods[i];
	return NULL;
}

const KnnMethod *
KnnMethodOf(Relation index)
{
	return index->rd_rel->relkind == RELKIND_INDEX ? KnnMethodOfRoutine(index->rd_indam) : NULL;
}

bool
KnnHasRecall(Oid am)
{
	const KnnMethod *method = KnnMethodOfRoutine(GetIndexAmRoutineByAmId(am, false));

	return method && method->settings == &knn_quiver_settings;
}

bool
KnnIsPgvectors(Relation index)
{
	char	   *symbol;

	if (index->rd_rel->relkind != RELKIND_INDEX || KnnMethodOf(index) != NULL)
		return false;
	symbol = QvSharedSymbol(index->rd_amhandler);
	return symbol && (strcmp(symbol, "hnswhandler") == 0 || strcmp(symbol, "ivfflathandler") == 0);
}

double		knn_trial_misses = 0;

void
KnnSettingsOf(Relation index, QvSettings *settings)
{
	const KnnMethod *method = KnnMethodOf(index);

	KnnGetSettings(method->settings, index, settings);
	settings->misses = knn_trial_misses;
	if (knn_trial_misses > 0)
		settings->ef_search = settings->probes = 0;
	/* lists limit a search of lists, not rows */
	if (method->engine == &ivf_engine)
		settings->max_scan_tuples = 0;
}

/* Dimensions to plan with where a column has none, as that of an expression index may. */
#define USUAL_DIMENSIONS 256

int
KnnDimensions(Relation index)
{
	int32		typmod = TupleDescAttr(RelationGetDescr(index), 0)->atttypmod;

	return typmod > 0 ? typmod : USUAL_DIMENSIONS;
}

/* Is there a window function that needs all rows of a window, whatever its frame? */
static bool
has_whole_function(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	if (IsA(node, WindowFunc))
	{
		Oid			function = ((WindowFunc *) node)->winfnoid;

		return function == F_NTILE || function == F_PERCENT_RANK_ || function == F_CUME_DIST_;
	}
	return expression_tree_walker(node, has_whole_function, unused);
}

bool
KnnHasLimit(const Query *query)
{
	const Node *limit = query->limitCount;

	return limit != NULL && !(IsA(limit, Const) && ((const Const *) limit)->constisnull);
}

Node *
KnnUnknownLimit(const Query *query)
{
	return query->limitCount && !IsA(query->limitCount, Const) ? query->limitCount : NULL;
}

bool
KnnCanEvaluateLimit(const Query *query)
{
	return !contain_volatile_functions(query->limitCount) && !contain_subplans(query->limitCount);
}

/* Is a column of an index one of the keys that tell the groups of a query?  It has no NULLs. */
static bool
is_group_key(const PlannerInfo *root, const RelOptInfo *rel, IndexOptInfo *index, int column)
{
	for (int i = 0; i < QvGroupKeys(root); i++)
	{
		EquivalenceClass *class = list_nth_node(PathKey, root->group_pathkeys, i)->pk_eclass;
		EquivalenceMember *member;

		if (!list_member_oid(class->ec_opfamilies, index->opfamily[column]) ||
			class->ec_collation != index->indexcollations[column])
			continue;
		QvForeachMember(member, class, rel->relids)
		{
			if (bms_equal(member->em_relids, rel->relids) &&
				match_index_to_operand((Node *) member->em_expr, column, index))
				return QvColumnIsNotNull(planner_rt_fetch(rel->relid, root)->relid, rel, index->indexkeys[column]);
		}
	}
	return false;
}

/*
 * Is each row of a relation in a group of its own?  The group then has other rows of joins only.
 * This holds if the keys of the groups have all columns of a unique index.
 */
static bool
groups_single_rows(const PlannerInfo *root, const RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);
		int			column = 0;

		if (!index->unique || !index->immediate || index->indpred != NIL || index->indexprs != NIL)
			continue;
		while (column < index->nkeycolumns && is_group_key(root, rel, index, column))
			column++;
		if (column == index->nkeycolumns)
			return true;
	}
	return false;
}

/* Does a query that makes groups of rows want the first of them only, in the order of the rows? */
static bool
takes_first_groups(const PlannerInfo *root, const RelOptInfo *rel, bool evaluates_limit)
{
	const Query *query = root->parse;

	if (!KnnHasLimit(query) || query->groupingSets != NIL || query->havingQual != NULL)
		return false;
	if (KnnUnknownLimit(query) && !(evaluates_limit && KnnCanEvaluateLimit(query)))
		return false;
	/* an aggregate is of all rows of its group, and a search may miss some */
	if (query->hasAggs && !groups_single_rows(root, rel))
		return false;
	return root->sort_pathkeys == NIL || root->query_pathkeys == NIL ||
		linitial(root->sort_pathkeys) == linitial(root->query_pathkeys);
}

bool
KnnNeedsAllRows(const PlannerInfo *root, const RelOptInfo *rel, bool evaluates_limit)
{
	const Query *query = root->parse;
	const WindowClause *first;
	ListCell   *lc;

	if ((query->hasAggs || query->groupClause != NIL || query->distinctClause != NIL) &&
		!takes_first_groups(root, rel, evaluates_limit))
		return true;
	if (!query->hasWindowFuncs)
		return false;
	first = linitial_node(WindowClause, query->windowClause);
	foreach(lc, query->windowClause)
	{
		const WindowClause *window = lfirst_node(WindowClause, lc);

		/* one in another order sorts all rows */
		if (window->orderClause == NIL || !equal(window->orderClause, first->orderClause) ||
			(window->frameOptions & (FRAMEOPTION_END_UNBOUNDED_FOLLOWING | FRAMEOPTION_END_OFFSET_FOLLOWING)))
			return true;
	}
	return root->window_pathkeys == NIL || has_whole_function((Node *) query->targetList, NULL);
}

bool
KnnIsNullTest(const Node *clause, NullTestType type, IndexOptInfo *index)
{
	const NullTest *test = (const NullTest *) clause;

	return IsA(clause, NullTest) && test->nulltesttype == type &&
		match_index_to_operand((Node *) test->arg, 0, index);
}

bool
KnnHasNullTest(const List *conditions, NullTestType type, IndexOptInfo *index)
{
	ListCell   *lc;

	foreach(lc, conditions)
	{
		if (KnnIsNullTest((Node *) lfirst_node(RestrictInfo, lc)->clause, type, index))
			return true;
	}
	return false;
}
