/*
 * radius.c
 *		How many rows are within a radius; see radius.h.
 */
#include "postgres.h"

#include <math.h>

#include "am/methods.h"
#include "am/opclass.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "query/members.h"
#include "topk/radius.h"

/*
 * The value that an index is searched for; NULL: it is not known, or it has no distance.  What the
 * planner has not made a constant of may be a function that takes long, as one that calls a model.
 */
static const void *
known_value(const TopkTarget *target, Relation index, const QvOpclassInfo *opclass)
{
	const Const *constant = (const Const *) target->form.value;
	const void *value;

	if (!IsA(constant, Const) || constant->constisnull)
		return NULL;
	value = PG_DETOAST_DATUM(constant->constvalue);
	/* where dimensions differ, the query will tell */
	return opclass->type->dims(value) == KnnDimensions(index) && QvIsIndexed(opclass, value) ? value : NULL;
}

/* The share of distances that meet conditions, which take them from caseValue_datum. */
static double
share_that_meets(List *conditions, QvMetric metric, TopkResult result, const double *distances, uint32 n)
{
	EState	   *estate = CreateExecutorState();
	ExprContext *econtext = GetPerTupleExprContext(estate);
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	ExprState  *state = ExecInitQual(conditions, NULL);
	uint32		met = 0;

	for (uint32 i = 0; i < n; i++)
	{
		econtext->caseValue_datum = Float8GetDatum(TopkResultPossible(metric, result, distances[i]));
		econtext->caseValue_isNull = false;
		ResetExprContext(econtext);
		met += ExecQual(state, econtext);
	}
	MemoryContextSwitchTo(old);
	FreeExecutorState(estate);
	return n > 0 ? (double) met / n : -1;
}

/* The share of the rows that pass a relation's conditions that have a value in an index. */
static double
indexed_share(PlannerInfo *root, IndexOptInfo *index)
{
	NullTest   *test = makeNode(NullTest);

	if (KnnHasNullTest(index->rel->baserestrictinfo, IS_NOT_NULL, index))
		return 1;
	test->arg = linitial_node(TargetEntry, index->indextlist)->expr;
	test->nulltesttype = IS_NOT_NULL;
	test->location = -1;
	return clause_selectivity(root, (Node *) test, index->rel->relid, JOIN_INNER, NULL);
}

/* On 15 pull_paramids() leaves out the parameters of prepared statements. */
static bool
has_param(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	return IsA(node, Param) || expression_tree_walker(node, has_param, unused);
}

double
TopkShareWithin(PlannerInfo *root, const TopkTarget *target, Relation index)
{
	List	   *within = extract_actual_clauses(target->within, false);
	Node	   *conditions = TopkReplaceDistance((Node *) within, target->form.distance);
	double		distances[QV_MEMBERS_SAMPLE];
	QvOpclassInfo opclass;
	QvSettings	settings;
	QvScanGoal	goal = {.settings = &settings, .endless = true};
	QvScan	   *engine;
	uint32		n;
	double		share;

	/* not known when the query is planned */
	if (contain_var_clause(conditions) || has_param(conditions, NULL) ||
		contain_mutable_functions(conditions))
		return -1;
	QvGetOpclass(index, &opclass);
	goal.value = known_value(target, index, &opclass);
	if (goal.value == NULL)
		return -1;
	KnnSettingsOf(index, &settings);
	engine = KnnMethodOf(index)->engine->begin(index, &opclass);
	engine->ops->start(engine, &goal);
	n = QvMembersSample(engine, target->index->rel->pages, distances);
	engine->ops->end(engine);
	share = share_that_meets((List *) conditions, opclass.metric, target->form.result, distances, n);
	return share * indexed_share(root, target->index);
}
