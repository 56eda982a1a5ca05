/*
 * cost.c
 *		What a search of posting lists costs.
 */
#include "postgres.h"

#include <math.h>

#include "ivf/ivf.h"
#include "ivf/meta.h"
#include "ivf/probes.h"

/* Of the rows in the lists read, those whose records are read as well. */
#define RECORDS_READ 0.01
#define LEAST_RECORDS 40

/* A one-bit estimate costs so much less than a distance. */
#define ESTIMATES_PER_DISTANCE 20

void
IvfEstimateCost(Relation index, double tuples, int probes, double recall,
				IvfCost *cost)
{
	IvfMetaData meta;
	IvfLayout	layout;
	double		share,
				rows;

	IvfReadMeta(index, &meta, &layout);
	share = probes > 0 ? Min(1, (double) probes / meta.lists) :
		IvfProbesFor(&meta, recall);

	/*
	 * the metapage does not know of rows inserted since the last build or
	 * vacuum
	 */
	rows = Max(1, tuples > 0 ? tuples : meta.tuples);
	cost->lists = meta.lists;
	cost->probes = Max(1, ceil(share * meta.lists));
	cost->tuples = Max(1, rows * cost->probes / meta.lists);
	cost->pages = 1 + cost->tuples / layout.slots + 0.5 * cost->probes;
	if (layout.items[IVF_RECORDS].per_page > 0)
	{
		double		records = Min(cost->tuples, Max(LEAST_RECORDS, RECORDS_READ * cost->tuples));

		cost->pages += records;
		cost->evaluations = records + (meta.lists + cost->tuples) / ESTIMATES_PER_DISTANCE;
	}
	else
		cost->evaluations = meta.lists + cost->tuples;
}
