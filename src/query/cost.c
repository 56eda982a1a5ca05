/*
 * cost.c
 *		What a search costs; see cost.h.
 */
#include "postgres.h"

#include <math.h>

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "query/cost.h"
#include "utils/spccache.h"

double
QvMissShare(double pages)
{
	return Max(0, 1 - effective_cache_size / Max(1, pages));
}

void
QvGetUnits(const IndexOptInfo *index, int dims, double value_pages, QvUnits *units)
{
	const RelOptInfo *table = index->rel;
	const double op = cpu_operator_cost;
	const double misses = QvMissShare((double) index->pages + table->pages);
	double		random,
				sequential;

	get_tablespace_page_costs(index->reltablespace, &random, &sequential);
	units->page = QV_PAGE_OPERATORS * op + misses * random;
	units->next_page = QV_PAGE_OPERATORS * op + misses * sequential;
	units->code = op * dims / QV_COORDINATES;
	units->neighbor = QV_NEIGHBOR_OPERATORS * op + units->code;
	units->measure = op + units->code;
	units->filter = 0;
	get_tablespace_page_costs(table->reltablespace, &random, &sequential);
	units->test = cpu_tuple_cost + table->baserestrictcost.per_tuple;
	units->row = QV_ROW_OPERATORS * op + units->test;
	units->row_page = misses * random;
	units->next_row = cpu_tuple_cost + units->test + (QV_PAGE_OPERATORS * op + misses * sequential) *
		table->pages / Max(1, table->tuples);
	units->value = units->measure + value_pages * (QV_PAGE_OPERATORS * op + misses * random);
}

double
QvWorkCost(const QvUnits *units, const QvWork *work)
{
	return work->pages * units->page + work->codes * units->code +
		work->neighbors * units->neighbor + work->measures * units->measure;
}

double
QvCountersCost(const QvUnits *units, const QvScanCounters *counters)
{
	return counters->pages * units->page + counters->codes * units->code +
		counters->neighbors * units->neighbor +
		(counters->nodes + counters->records + counters->entries) * units->measure;
}

/* Pages that rows are on, if these are in random places. */
static double
pages_met(double rows, double pages)
{
	return pages > 0 ? pages * (1 - exp(-rows / pages)) : 0;
}

double
QvRowsCost(const QvUnits *units, double rows, double pages)
{
	return rows * units->row + pages_met(rows, pages) * units->row_page;
}

double
QvMeasuredRows(double rows, double nearest, double sigmas)
{
	double		end = QvCurveQuantile(nearest / rows) + sigmas * QV_ERROR_SHARE;

	return Max(Min(rows, nearest), rows * erfc(-end / sqrt(2 * (1 + QV_ERROR_SHARE * QV_ERROR_SHARE))) / 2);
}

double
QvEntriesCost(const QvUnits *units, double entries, double pages, double share, double nearest,
			  double sigmas)
{
	double		passing = Max(1, entries * share);

	return pages_met(entries, pages) * units->next_page + entries * units->filter + passing * units->measure +
		QvMeasuredRows(passing, nearest, sigmas) * (units->page + units->measure);
}
