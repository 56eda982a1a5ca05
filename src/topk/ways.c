/*
 * ways.c
 *		What the ways to find the rows of a top-k scan cost; see ways.h.
 */
#include "postgres.h"

#include <math.h>

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "topk/ways.h"

double
TopkProposals(const TopkKnown *known, double wanted)
{
	return Min(known->rows, wanted * known->rows / Max(1, known->passing));
}

/*
 * Rows that are proposed are looked up, if the set is there.  Then their entries are tested, if
 * there are conditions on included columns and this was not done before.  Then they are fetched and
 * tested.  Rows that pass are measured.
 */
static double
proposed_cost(const TopkKnown *known, double proposals, double wanted, bool by_entry)
{
	double		fetched = proposals;
	double		cost = proposals * cpu_operator_cost + wanted * known->units.value;

	if (known->is_there)
		fetched = Min(proposals, proposals * known->members / Max(1, known->rows));
	if (by_entry)
	{
		cost += fetched * (known->units.page + known->units.filter);
		fetched *= known->admitted;
	}
	return cost + QvRowsCost(&known->units, fetched, known->table_pages);
}

double
TopkWalkCost(const TopkKnown *known, double depth, double proposals, double wanted)
{
	QvWork		work;

	known->engine->estimate_work(known->index, known->settings, known->rows, depth, &work);
	return QvWorkCost(&known->units, &work) + proposed_cost(known, proposals, wanted, known->has_filter);
}

/* All codes are read, and then rows are proposed as above. */
static double
codes_cost(const TopkKnown *known, double wanted)
{
	double		proposals = TopkProposals(known, wanted) * known->admitted;

	if (known->row_pages == 0 || !known->by_value)
		return INFINITY;
	return QvEntriesCost(&known->units, known->rows, known->row_pages, known->admitted, proposals,
						 known->sigmas) +
		proposed_cost(known, proposals, wanted, false);
}

/*
 * What it costs to fetch rows of the set.  A bitmap scan reads the same pages, and the planner
 * knows in which order.
 */
static double
set_rows_cost(const TopkKnown *known, double rows)
{
	return known->bitmap > 0 ? rows * (known->units.row + known->bitmap / Max(1, known->members)) :
		QvRowsCost(&known->units, rows, known->table_pages);
}

/* The set is collected, and its rows are read by their codes or from the table. */
static double
set_cost(const TopkKnown *known, double wanted)
{
	double		passing = Min(known->members, known->passing);
	double		fetched = Min(known->members, wanted * known->members * known->admitted / Max(1, passing));
	double		by_row = passing * known->units.value;
	double		by_code = INFINITY;

	if (!known->has_set)
		return INFINITY;
	if (known->row_pages > 0 && known->by_value)
		by_code = QvEntriesCost(&known->units, known->members, known->row_pages, known->admitted, fetched,
								known->sigmas) +
			set_rows_cost(known, fetched) + fetched * known->units.value;
	return known->collect + Min(by_row + set_rows_cost(known, known->members), by_code);
}

/*
 * Is a search without conditions left to other ways?  The first rows are left to the index or to
 * row pages.  They are left to the index where the user has set an effort or quiver_calibrate()
 * tries one.  Where no row is to be missed row pages are of no use: codes rule out few for sure.
 */
static bool
is_left_to_others(const TopkKnown *known, TopkWay way, double wanted)
{
	const QvSettings *settings = known->settings;

	if (way == TOPK_WALK || known->filtered || !known->by_value)
		return false;
	if (way == TOPK_CODES && settings->recall >= 1)
		return true;
	return wanted <= TOPK_FIRST_ROWS &&
		(way != TOPK_CODES || settings->ef_search > 0 || settings->probes > 0 || settings->misses > 0);
}

double
TopkWayCost(const TopkKnown *known, TopkWay way, double wanted)
{
	if (is_left_to_others(known, way, wanted))
		return INFINITY;
	wanted = Min(wanted, Max(1, known->passing));
	switch (way)
	{
		case TOPK_WALK:
			return TopkWalkCost(known, TopkProposals(known, wanted), TopkProposals(known, wanted), wanted);
		case TOPK_CODES:
			return codes_cost(known, wanted);
		case TOPK_SET:
			return set_cost(known, wanted);
		default:
			/* all rows are fetched and tested, in order */
			return known->table_rows * known->units.next_row + known->passing * known->units.value;
	}
}

TopkWay
TopkCheapest(const TopkKnown *known, TopkWay from, double wanted, double *cost)
{
	TopkWay		best = TOPK_WALK;

	*cost = INFINITY;
	for (TopkWay way = from; way < TOPK_TABLE + known->has_table; way++)
	{
		double		other = TopkWayCost(known, way, wanted);

		if (other < *cost)
		{
			*cost = other;
			best = way;
		}
	}
	return best;
}

double
TopkScanCost(const TopkKnown *known, double wanted)
{
	double		least;
	TopkWay		first = TopkCheapest(known, TOPK_WALK, Min(wanted, TOPK_FIRST_ROWS), &least);

	(void) TopkCheapest(known, TOPK_WALK, wanted, &least);

	/*
	 * it changes when the way that it began with has cost as much as the
	 * other
	 */
	return Min(TopkWayCost(known, first, wanted), 2 * least);
}
