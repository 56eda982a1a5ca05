/*
 * calibrate.c
 *		Measuring how many lists a search must read for a recall; see calibrate.h.
 *
 * Some rows of the index are queries, each without itself.  For a target t we find the number p
 * such that a share t of their nearest rows lies in the p lists nearest to them.  Searches then
 * read p lists.  For many rows, as under a condition, p is measured with fewer queries, in all
 * lists.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "compat.h"
#include "containers/compare.h"
#include "ivf/ivf.h"
#include "ivf/page/meta.h"
#include "ivf/page/probes.h"
#include "ivf/page/walk.h"
#include "ivf/search/nearest.h"
#include "ivf/search/scan.h"
#include "ivf/update/calibrate.h"
#include "miscadmin.h"
#include "pages/turnover.h"
#include "pages/write.h"
#include "utils/memutils.h"

/* Policy: queries for few rows, and the nearest rows that count of each. */
#define QUERIES 200
#define NEIGHBORS 10

/* Policy: queries for many rows. */
#define DEEP_QUERIES 60

/*
 * Policy: the share of the lists that a query for few rows reads, if nothing was measured.  If
 * more is needed, there are fewer queries.
 */
#define MOST_LISTS 0.25

/*
 * Policy: otherwise a query reads SHORT_LISTS times the lists that have this share of the ranks of
 * the nearest 125 rows.
 */
#define MOST_RANKS 0.99
#define MOST_DEPTH 2

/* Policy: the least number of lists that a query for few rows reads. */
#define LEAST_LISTS 64

/* Policy: how many times the lists that were needed a query for few rows reads. */
#define SHORT_LISTS 2.0

/* Policy: with fewer queries than this, or rows, nothing is measured. */
#define LEAST_QUERIES 20

/* Policy: an insert measures probes again when there are this number of times the lists. */
#define MORE_LISTS 1.5

/* Policy: the least number of lists with which an insert measures probes. */
#define LEAST_MEASURED 8

/*
 * Policy: VACUUM measures probes again when this share of the rows came or went, and should have
 * long ago.  Autovacuum comes when a fifth more rows are there, or a fifth are dead.
 */
#define MEASURE_AGAIN 0.1
#define OVERDUE 0.25

bool
IvfHasManyMoreLists(const IvfMetaData *meta)
{
	return meta->lists >= LEAST_MEASURED &&
		meta->lists >= MORE_LISTS * meta->measured_lists;
}

double
IvfRowsOf(const IvfMetaData *meta, double table_rows)
{
	return meta->table_share > 0 ? table_rows * meta->table_share : table_rows;
}

bool
IvfWantsMeasuring(const IvfMetaData *meta, double rows)
{
	return (meta->flags & IVF_MEASURE) ||
		(rows >= LEAST_QUERIES && QvIsTurnedOver(meta->measured_rows, rows, MEASURE_AGAIN));
}

bool
IvfIsOverdue(const IvfMetaData *meta, double rows)
{
	return meta->measured_rows < 1 || QvIsTurnedOver(meta->measured_rows, rows, OVERDUE);
}

void
IvfGetCurve(Relation index, QvCurve *curve)
{
	IvfMetaData meta;
	IvfLayout	layout;

	IvfReadMeta(index, &meta, &layout);
	*curve = meta.curve;
}

void
IvfSetCurve(Relation index, const QvCurve *curve)
{
	IvfHandle	handle = {.index = index};
	Buffer		buf = IvfLockMeta(&handle);
	QvWrite		w;

	QvWriteBegin(&w, index, false);
	IvfPageMeta(QvWriteRegister(&w, buf))->curve = *curve;
	QvWriteEnd(&w);
	QvInjectionPoint("quiver-ivf-curve-written");
}

/* Draws a list at random, in proportion to its rows. */
static uint32
random_list(IvfHandle *handle, pg_prng_state *random)
{
	const IvfLists *lists = handle->lists;
	uint32		most = 1;
	uint32		list = 0;

	for (uint32 i = 0; i < lists->count; i++)
		most = Max(most, lists->refs[i].rows);
	for (int i = 0; i < 100; i++)
	{
		list = pg_prng_uint64_range(random, 0, lists->count - 1);
		if (pg_prng_uint64_range(random, 0, most - 1) < lists->refs[list].rows)
			break;
	}
	return list;
}

/* Reads a row drawn at random; returns false if the try failed. */
static bool
random_row(IvfWalk *walk, pg_prng_state *random, IvfRow *row)
{
	IvfHandle  *handle = walk->handle;
	uint32		list = random_list(handle, random);
	const IvfListRef *ref = &handle->lists->refs[list];
	uint32		skip = 0;

	if (ref->rows > 0)
		skip = pg_prng_uint64_range(random, 0, (ref->rows - 1) / handle->layout.slots);
	IvfWalkStart(walk, list, ref->head);
	while (IvfWalkNextPage(walk))
	{
		uint32		count = IvfPageList(walk->images.page)->count;

		/* the last page, if the list has fewer pages */
		if ((skip == 0 || !BlockNumberIsValid(walk->next)) && count > 0)
			return IvfWalkRead(walk, pg_prng_uint64_range(random, 0, count - 1), row);
		if (skip > 0)
			skip--;
	}
	return false;
}

/* Ranks of the lists that the nearest rows of all queries were in. */
typedef struct Ranks
{
	uint32		few[QUERIES * NEIGHBORS];	/* of queries for few rows */
	uint32		nfew;
	uint32	   *deep[IVF_DEPTHS];	/* of the nearest IvfDepthRows */
	uint32		ndeep[IVF_DEPTHS];
} Ranks;

/*
 * Writes the probes for these ranks into the metapage, as one WAL record.  Probes without ranks
 * stay as they are.  "whole" says that all was measured; otherwise VACUUM is to measure again.
 */
static void
write_probes(IvfHandle *handle, const Ranks *ranks, bool whole, double table_rows)
{
	Buffer		buf = IvfLockMeta(handle);
	IvfMetaData *meta;
	QvWrite		w;

	QvWriteBegin(&w, handle->index, handle->building);
	meta = IvfPageMeta(QvWriteRegister(&w, buf));
	if (ranks->nfew > 0)
		IvfSetProbes(meta, ranks->few, ranks->nfew, handle->lists->count);
	else
		meta->measured_lists = handle->lists->count;
	for (int i = 0; i < IVF_DEPTHS; i++)
		if (ranks->ndeep[i] > 0)
			IvfSetDeepProbes(meta, i, ranks->deep[i], ranks->ndeep[i], handle->lists->count);
	if (whole)
	{
		meta->deep_lists = handle->lists->count;
		meta->measured_rows = Max(1, meta->tuples);
		meta->table_share = meta->measured_rows / Max(meta->measured_rows, table_rows);
	}
	meta->flags = whole ? meta->flags & ~IVF_MEASURE : meta->flags | IVF_MEASURE;
	handle->meta = *meta;
	QvWriteEnd(&w);
	QvInjectionPoint("quiver-ivf-probes-written");
}

/*
 * Returns the lists that each query for few rows reads, and sets *queries, within max_rows rows
 * (0: no bound).  99 % of the nearest 125 rows are in some number of lists.  The nearest 10 are
 * hardly in lists beyond twice that number.
 */
static uint32
plan_measuring(const IvfHandle *handle, uint64 max_rows, const Ranks *ranks, uint32 *queries)
{
	const IvfLists *lists = handle->lists;
	const float *known = handle->meta.probes;
	double		share = MOST_LISTS;
	uint32		most;

	*queries = QUERIES;
	if (ranks->ndeep[0] > 0)
		share = SHORT_LISTS / lists->count *
			(ranks->deep[MOST_DEPTH][(Size) (ranks->ndeep[MOST_DEPTH] * MOST_RANKS)] + 1);
	else if (known[IVF_TARGETS - 1] > 0)
		share = SHORT_LISTS * known[IVF_TARGETS - 1];
	most = Min(Max(LEAST_LISTS, share * lists->count), lists->count);
	if (max_rows == 0)
	{
		*queries = Min(QUERIES, Max(DEEP_QUERIES, QUERIES * MOST_LISTS * lists->count / most));
		return most;
	}
	*queries = Min(QUERIES, max_rows / Max(1, IvfListRows(lists) * most / lists->count));
	return most;
}

/* Searches for a row drawn at random, in a number of lists.  Returns how many ranks were found. */
static uint32
measure_row(IvfWalk *walk, pg_prng_state *random, uint32 k, uint32 lists, uint32 *ranks)
{
	IvfHandle  *handle = walk->handle;
	IvfRow		row;
	IvfQuery	query;
	float	   *centroid;

	QvVacuumDelayPoint();
	if (!random_row(walk, random, &row))
		return 0;
	centroid = palloc(handle->layout.width * sizeof(float));
	IvfDecodeCentroid(handle, walk->list, centroid);
	handle->layout.codec->prepare_row(handle, centroid, &row, IvfLutBits(handle), &query);
	return IvfSearchRanks(handle, &query, &row.tid, k, lists, ranks);
}

/* Finds the ranks of the nearest IvfDepthRows, in all lists.  Rows come nearest first. */
static void
measure_deep(IvfWalk *walk, pg_prng_state *random, MemoryContext query_context, Ranks *ranks)
{
	uint32		k = IvfDepthRows[IVF_DEPTHS - 1];
	uint32	   *found = palloc(k * sizeof(uint32));

	for (int i = 0; i < IVF_DEPTHS; i++)
		ranks->deep[i] = palloc(DEEP_QUERIES * IvfDepthRows[i] * sizeof(uint32));
	for (uint32 i = 0; i < DEEP_QUERIES; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(query_context);
		uint32		n = measure_row(walk, random, k, walk->handle->lists->count, found);

		MemoryContextSwitchTo(old);
		MemoryContextReset(query_context);
		for (int j = 0; j < IVF_DEPTHS; j++)
		{
			uint32		take = Min(n, IvfDepthRows[j]);

			memcpy(ranks->deep[j] + ranks->ndeep[j], found, take * sizeof(uint32));
			ranks->ndeep[j] += take;
		}
	}
	for (int i = 0; i < IVF_DEPTHS; i++)
		qsort(ranks->deep[i], ranks->ndeep[i], sizeof(uint32), CompareUint32);
}

static void
measure(IvfHandle *handle, uint64 max_rows, double table_rows)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver measuring",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext query_context = AllocSetContextCreate(context, "quiver measuring a query",
														ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	uint32		queries,
				most;
	Ranks	   *ranks = palloc0(sizeof(Ranks));
	IvfWalk		walk;
	pg_prng_state random;

	pg_prng_seed(&random, handle->meta.seed);
	IvfWalkInit(&walk, handle);
	if (max_rows == 0)
		measure_deep(&walk, &random, query_context, ranks);
	most = plan_measuring(handle, max_rows, ranks, &queries);
	if (queries < LEAST_QUERIES)
		queries = 0;
	MemoryContextSwitchTo(query_context);
	for (uint32 i = 0; i < queries; i++)
	{
		ranks->nfew += measure_row(&walk, &random, NEIGHBORS, most, ranks->few + ranks->nfew);
		MemoryContextReset(query_context);
	}
	MemoryContextSwitchTo(context);
	if (ranks->nfew < NEIGHBORS)
	{
		/* nearly all rows are equal */
		ranks->nfew = 0;
		memset(ranks->ndeep, 0, sizeof(ranks->ndeep));
	}
	qsort(ranks->few, ranks->nfew, sizeof(uint32), CompareUint32);
	write_probes(handle, ranks, max_rows == 0, table_rows);
	elog(DEBUG1, "nearest rows of %u rows were looked for in %u of %u lists, so probes are of %.1f lists",
		 queries, most, handle->lists->count, handle->meta.probes[0] * handle->lists->count);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

void
IvfMeasureProbes(IvfHandle *handle, uint64 max_rows, double table_rows)
{
	const Ranks none = {0};

	/* with fewer rows VACUUM measures when there are more */
	if (IvfListRows(handle->lists) < LEAST_QUERIES)
		return;
	/* if an INSERT is canceled here, VACUUM measures, and not the next one */
	if (max_rows > 0)
		write_probes(handle, &none, false, table_rows);
	measure(handle, max_rows, table_rows);
}
