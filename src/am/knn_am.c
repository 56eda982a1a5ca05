/*
 * knn_am.c
 *		What the access methods of all engines have in common; see knn_am.h.
 */
#include "postgres.h"

#include "am/knn_am.h"
#include "am/knn_scan.h"
#include "compat.h"
#include "optimizer/cost.h"
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

bool
KnnCanScan(const IndexPath *path)
{
	return path->indexorderbys != NIL && !path->indexinfo->hypothetical;
}

void
KnnCostEstimate(PlannerInfo *root, IndexPath *path, double loop_count,
				const KnnCost *cost, Cost *startup, Cost *total,
				Selectivity *selectivity, double *correlation, double *pages)
{
	GenericCosts costs = {0};
	double		random_page_cost,
				seq_page_cost,
				page_cost;

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
	*startup = cost->pages * page_cost * 0.5 +
		cost->evaluations * cpu_operator_cost * 0.1;

	/*
	 * The rows after the first come out of what the search found, and then
	 * from further searches: in proportion, up to the whole index.
	 */
	*total = *startup * Max(1, costs.numIndexTuples / Max(1, cost->tuples)) +
		costs.numIndexTuples * (cpu_index_tuple_cost + cpu_operator_cost);
	*selectivity = costs.indexSelectivity;
	*correlation = 0;
	*pages = costs.numIndexPages;
}
