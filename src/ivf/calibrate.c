/*
 * calibrate.c
 *		How many lists a search must read for a recall; see calibrate.h.
 *
 * Some rows of the index are looked for, each without itself: a share t of
 * their nearest rows lies in the p lists nearest to them, for the targets t.
 * Searches then read p lists.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "compat.h"
#include "containers/compare.h"
#include "ivf/calibrate.h"
#include "ivf/meta.h"
#include "ivf/nearest.h"
#include "ivf/probes.h"
#include "ivf/scan.h"
#include "ivf/walk.h"
#include "miscadmin.h"
#include "pages/write.h"
#include "utils/memutils.h"

/* Rows looked for, and how many of their neighbors. */
#define QUERIES 200
#define NEIGHBORS 10

/* At most this share of the lists is read for each (and at least so many). */
#define MOST_LISTS 0.25
#define LEAST_LISTS 64

/*
 * When there is little time: the lists read are so many times those that were
 * needed the last time, and with fewer queries it is not worth it.
 */
#define SHORT_LISTS 2.0
#define LEAST_QUERIES 20

/* Probes are measured again when there are so many times the lists. */
#define MEASURE_AGAIN 1.5
#define LEAST_MEASURED 8

bool
IvfWantsMeasuring(const IvfMetaData *meta)
{
	return meta->lists >= LEAST_MEASURED &&
		meta->lists >= MEASURE_AGAIN * meta->measured_lists;
}

/* A list, large ones more often. */
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

/* Read a row chosen at random; false when the try failed. */
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

		/* or the last page, if there are fewer */
		if ((skip == 0 || !BlockNumberIsValid(walk->next)) && count > 0)
			return IvfWalkRead(walk, pg_prng_uint64_range(random, 0, count - 1), row);
		if (skip > 0)
			skip--;
	}
	return false;
}

/* Write the probes for n ranks (0: as they were) down; "due": to be measured again. */
static void
write_probes(IvfHandle *handle, const uint32 *ranks, uint32 n, bool due)
{
	Buffer		buf = IvfLockMeta(handle);
	IvfMetaData *meta;
	QvWrite		w;

	QvWriteBegin(&w, handle->index, handle->building);
	meta = IvfPageMeta(QvWriteRegister(&w, buf));
	if (n > 0)
		IvfSetProbes(meta, ranks, n, handle->lists->count);
	else
		meta->measured_lists = handle->lists->count;
	meta->flags = due ? meta->flags | IVF_MEASURE : meta->flags & ~IVF_MEASURE;
	handle->meta = *meta;
	QvWriteCommit(&w);
	UnlockReleaseBuffer(buf);
	QvInjectionPoint("quiver-ivf-probes-written");
}

/* Lists that each query reads, and queries, *queries of them, within so many rows. */
static uint32
plan_measuring(const IvfHandle *handle, uint64 max_rows, uint32 *queries)
{
	const IvfLists *lists = handle->lists;
	double		share = MOST_LISTS,
				rows = 0;
	uint32		most;

	*queries = QUERIES;
	if (max_rows > 0 && handle->meta.probes[IVF_TARGETS - 1] > 0)
		share = Min(share, SHORT_LISTS * handle->meta.probes[IVF_TARGETS - 1]);
	most = Min(Max(LEAST_LISTS, share * lists->count), lists->count);
	if (max_rows == 0)
		return most;
	for (uint32 i = 0; i < lists->count; i++)
		rows += lists->refs[i].rows;
	*queries = Min(QUERIES, max_rows / Max(1, rows * most / lists->count));
	return most;
}

void
IvfMeasureProbes(IvfHandle *handle, uint64 max_rows)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver measuring",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext query_context = AllocSetContextCreate(context, "quiver measuring a query",
														ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	uint32		queries;
	uint32		most = plan_measuring(handle, max_rows, &queries);
	uint32	   *ranks = palloc(QUERIES * NEIGHBORS * sizeof(uint32));
	uint32		n = 0;
	float	   *centroid = palloc(handle->layout.width * sizeof(float));
	IvfWalk		walk;
	pg_prng_state random;

	if (queries < LEAST_QUERIES)
		queries = 0;
	pg_prng_seed(&random, handle->meta.seed);
	IvfWalkInit(&walk, handle);
	for (uint32 i = 0; i < queries; i++)
	{
		IvfRow		row;
		IvfQuery	query;

		QvVacuumDelayPoint();
		if (!random_row(&walk, &random, &row))
			continue;
		MemoryContextSwitchTo(query_context);
		IvfDecodeCentroid(handle, walk.list, centroid);
		handle->layout.codec->prepare_row(handle, centroid, &row, IvfLutBits(handle, true), &query);
		n += IvfSearchRanks(handle, &query, &row.tid, NEIGHBORS, most, ranks + n);
		MemoryContextSwitchTo(context);
		MemoryContextReset(query_context);
	}
	if (n >= NEIGHBORS)
	{
		qsort(ranks, n, sizeof(uint32), CompareUint32);
		write_probes(handle, ranks, n, queries < QUERIES);
	}
	else if (queries < QUERIES)
		write_probes(handle, NULL, 0, true);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
