/*
 * explain.c
 *		What EXPLAIN says of a top-k scan; see src/topk/README.md.
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "am/methods.h"
#include "compat.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "topk/state.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

/* A counter that says nothing when it is zero. */
static void
explain_if_any(const char *label, int64 value, ExplainState *es)
{
	if (value > 0 || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyInteger(label, NULL, value, es);
}

/*
 * How near rows are, unless the user reads the table by the rights of a view: the view may hide
 * these rows, or the column.  Row security hides rows that were not returned.
 */
static void
explain_distances(TopkState *state, ExplainState *es)
{
	Oid			reads_as = state->planned.reads_as;
	double		bound;

	if (!state->started || (OidIsValid(reads_as) && reads_as != GetUserId()))
		return;
	if (isfinite(state->last))
		ExplainPropertyFloat("Last Distance", NULL, TopkResultOf(state->planned.result, state->last), 6, es);
	bound = QvStreamBound(state->stream);
	if (isfinite(bound) && !state->planned.secured)
		ExplainPropertyFloat("Bound", NULL, TopkResultOf(state->planned.result, bound), 6, es);
}

static void
explain_work(TopkState *state, ExplainState *es)
{
	static const char *const names[] = {
		[TOPK_WALK] = "index",[TOPK_CODES] = "row pages",[TOPK_SET] = "other indexes",
		[TOPK_TABLE] = "table"
	};
	List	   *ran = NIL;
	QvStreamCounters no_rows = {0};
	const QvStreamCounters *rows = state->stream ? QvStreamGetCounters(state->stream) : &no_rows;
	QvScanCounters nothing = {0};
	const QvScanCounters *read = state->engine ? &state->engine->counters : &nothing;

	if (state->filter)
		explain_if_any("Rows Removed by Index Filter", read->removed, es);
	for (int i = 0; i < lengthof(names); i++)
		if (state->ran[i])
			ran = lappend(ran, (char *) names[i]);
	ExplainPropertyList("Strategies", ran, es);
	explain_if_any("Nodes Read", read->nodes, es);
	explain_if_any("Neighbors Scored", read->neighbors, es);
	explain_if_any("Lists Read", read->lists, es);
	explain_if_any("Codes Scored", read->codes, es);
	explain_if_any("Records Read", read->records, es);
	explain_if_any("Entries Scored", read->entries, es);
	ExplainPropertyInteger("Rows Proposed", NULL, rows->proposed, es);
	ExplainPropertyInteger("Rows Fetched", NULL, rows->fetched, es);
	if (state->filter && state->filter->wants_visible)
		ExplainPropertyInteger("Heap Fetches", NULL, rows->fetched, es);
	ExplainPropertyInteger("Rows Measured", NULL, rows->measured, es);
	explain_distances(state, es);
}

/* Says whether a recall takes what it took for the user's queries, or for rows. */
static void
explain_calibration(Oid oid, ExplainState *es)
{
	Relation	index = index_open(oid, AccessShareLock);
	QvSettings	settings;
	QvCurve		curve;

	KnnSettingsOf(index, &settings);
	KnnMethodOf(index)->engine->get_curve(index, &curve);
	if (settings.ef_search == 0 && settings.probes == 0 &&
		(curve.queries > 0 || es->format != EXPLAIN_FORMAT_TEXT))
		ExplainPropertyText("Recall", psprintf("%g as of %s", settings.recall,
											   curve.queries > 0 ? "queries" : "rows"), es);
	index_close(index, AccessShareLock);
}

/* An expression of the plan, or a list of conditions, if it is there, and what follows it. */
static void
explain_expr(const char *label, TopkState *state, TopkExpr which, const char *after, List *context,
			 ExplainState *es)
{
	Node	   *expr = TopkPlanExpr(state, which);
	bool		prefix = list_length(es->rtable) > 1 || es->verbose;

	if (expr == NULL)
		return;
	if (IsA(expr, List))
		expr = (Node *) make_ands_explicit((List *) expr);
	ExplainPropertyText(label, psprintf("%s%s", deparse_expression(expr, context, prefix, false), after), es);
}

/* The sort key as it is written, and the distance that stands for it. */
static void
explain_order(TopkState *state, List *context, ExplainState *es)
{
	int			order = state->planned.order;
	bool		descends = (order & TOPK_ORDER_DESCENDS) != 0,
				nulls_first = (order & TOPK_ORDER_NULLS_FIRST) != 0;
	const char *nulls = nulls_first == descends ? "" : nulls_first ? " NULLS FIRST" : " NULLS LAST";

	if (order == TOPK_ORDER_NONE)
		return;
	explain_expr("Sort Key", state, TOPK_EXPR_KEY, psprintf("%s%s", descends ? " DESC" : "", nulls), context, es);
	explain_expr("Order By", state, TOPK_EXPR_DISTANCE, "", context, es);
}

void
TopkExplain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	TopkState  *state = (TopkState *) css;
	Oid			index = state->planned.index;
	int			rows = state->planned.rows;
	const char *hint = state->planned.hint ? " (hint)" : "";
	List	   *context = set_deparse_context_plan(es->deparse_cxt, css->ss.ps.plan, ancestors);

	if (es->format == EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText("Search", psprintf("Index Scan using %s on %s",
											   quote_identifier(get_rel_name(index)),
											   quote_identifier(RelationGetRelationName(css->ss.ss_currentRelation))), es);
	else
		ExplainPropertyText("Index Name", get_rel_name(index), es);
	explain_order(state, context, es);
	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyInteger("Top K", NULL, rows, es);
		ExplainPropertyBool("Hint", *hint != '\0', es);
	}
	else
		ExplainPropertyText("Top K", rows > 0 ? psprintf("%d%s", rows, hint) :
							state->planned.limited ? "at run time" : "all", es);
	explain_expr("Radius", state, TOPK_EXPR_WITHIN, "", context, es);
	explain_expr("Index Filter", state, TOPK_EXPR_FILTER, "", context, es);
	explain_calibration(index, es);
	if (es->analyze)
		explain_work(state, es);
}
