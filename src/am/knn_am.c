/*
 * knn_am.c
 *		What the access methods of all engines have in common; see knn_am.h.
 */
#include "postgres.h"

#include <math.h>

#include "am/knn_am.h"
#include "am/knn_scan.h"
#include "compat.h"
#include "optimizer/cost.h"
#include "optimizer/paths.h"
#include "optimizer/optimizer.h"
#include "utils/float.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"

static bool
knnvalidate(Oid opclass)
{
	return true;
}

IndexAmRoutine *
KnnAmRoutine(int support)
{
	IndexAmRoutine *am = makeNode(IndexAmRoutine);

	am->amstrategies = 0;
	am->amsupport = support;
	am->amoptsprocnum = 0;
	am->amcanorder = false;
	am->amcanorderbyop = true;
	am->amcanbackward = false;
	am->amcanunique = false;
	am->amcanmulticol = false;
	am->amoptionalkey = true;
	am->amsearcharray = false;
	am->amsearchnulls = false;
	am->amstorage = false;
	am->amclusterable = false;
	am->ampredlocks = false;
	am->amcanparallel = false;
	am->amcaninclude = false;
	am->amusemaintenanceworkmem = false;	/* of VACUUM, not of builds */
	am->amparallelvacuumoptions = VACUUM_OPTION_PARALLEL_BULKDEL;
	am->amkeytype = InvalidOid;

	am->amcanreturn = NULL;
	am->amproperty = NULL;
	am->amvalidate = knnvalidate;
	am->amadjustmembers = NULL;
	am->amrescan = KnnRescan;
	am->amgettuple = KnnGetTuple;
	am->amgetbitmap = NULL;
	am->amendscan = KnnEndScan;
	am->ammarkpos = NULL;
	am->amrestrpos = NULL;
	am->amestimateparallelscan = NULL;
	am->aminitparallelscan = NULL;
	am->amparallelrescan = NULL;
	return am;
}

/* Does the query ask for rows without a value?  These are in no index. */
static bool
wants_nulls(IndexOptInfo *index)
{
	ListCell   *lc;

	foreach(lc, index->indrestrictinfo)
	{
		const NullTest *test = (const NullTest *) lfirst_node(RestrictInfo, lc)->clause;

		if (IsA(test, NullTest) && test->nulltesttype == IS_NULL &&
			match_index_to_operand((Node *) test->arg, 0, index))
			return true;
	}
	return false;
}

bool
KnnCanScan(const IndexPath *path)
{
	return list_length(path->indexorderbys) == 1 && !path->indexinfo->hypothetical &&
		!wants_nulls(path->indexinfo);
}

/* A row's place in the order takes its record and its distance. */
#define ORDER_COST 4

/*
 * Pages that so many visits of pages meet: those of a small index are met again and
 * again, which costs a little time only.
 */
static double
distinct_pages(const IndexPath *path, double visits)
{
	double		pages = Max(1, path->indexinfo->pages);

	return pages * (1 - exp(-visits / pages));
}

void
KnnCostEstimate(PlannerInfo *root, IndexPath *path, double loop_count,
				const KnnCost *cost, Cost *startup, Cost *total,
				Selectivity *selectivity, double *correlation, double *pages)
{
	GenericCosts costs = {0};
	double		random_page_cost,
				seq_page_cost,
				page_cost,
				evaluation_cost,
				searches;

	if (!KnnCanScan(path))
	{
		*startup = *total = get_float8_infinity();
		*selectivity = 0;
		*correlation = 0;
		*pages = 0;
		QvDisablePath(&path->path);
		return;
	}
	genericcostestimate(root, path, loop_count, &costs);
	get_tablespace_page_costs(path->indexinfo->reltablespace,
							  &random_page_cost, &seq_page_cost);

	/*
	 * Searches share where they enter and many of the other pages, so most
	 * are in memory: halfway to what a sequential read costs.
	 */
	page_cost = (random_page_cost > seq_page_cost) ?
		seq_page_cost : random_page_cost;
	page_cost *= 0.5;
	evaluation_cost = cpu_operator_cost * 0.1;
	*startup = distinct_pages(path, cost->pages) * page_cost + cost->pages * cpu_tuple_cost +
		cost->evaluations * evaluation_cost;

	/*
	 * The rows after the first come out of what the search found, and then
	 * from further searches: in proportion, up to the whole index.
	 */
	searches = Max(1, costs.numIndexTuples / Max(1, cost->tuples));
	*total = distinct_pages(path, cost->pages * searches) * page_cost +
		cost->pages * searches * cpu_tuple_cost +
		cost->evaluations * searches * evaluation_cost +
		costs.numIndexTuples * (cpu_index_tuple_cost + ORDER_COST * cpu_tuple_cost);
	*selectivity = costs.indexSelectivity;
	*correlation = 0;
	*pages = costs.numIndexPages;
}
