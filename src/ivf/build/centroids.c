/*
 * centroids.c
 *		The lists of a new index; see centroids.h.
 */
#include "postgres.h"

#include <math.h>

#include "cluster/assign.h"
#include "cluster/hierarchy.h"
#include "cluster/kmeans.h"
#include "commands/progress.h"
#include "ivf/build/centroid_table.h"
#include "ivf/build/centroids.h"
#include "ivf/build/cluster.h"
#include "ivf/codec/layout.h"
#include "ivf/page/directory.h"
#include "miscadmin.h"
#include "space/count.h"
#include "space/sample.h"
#include "utils/backend_progress.h"
#include "utils/memutils.h"

/* Policy: rows sampled for each list. */
#define ROWS_PER_LIST 40

/* Policy: the least number of rows sampled. */
#define MIN_SAMPLE 10000

/* Policy: with fewer rows for each list there is a notice, since recall suffers. */
#define LEAST_ROWS_PER_LIST 8

/* Policy: rounds of k-means. */
#define KMEANS_ITERATIONS 10

/* Policy: rows for each list from which the length of its centroid is measured. */
#define LENGTH_ROWS 16

/* Rows that are assigned together for that. */
#define LENGTH_BATCH 1024

/* A sample of the table, as rows are clustered. */
typedef struct Sampling
{
	const IvfBuildParams *build;
	float	   *scratch;		/* width */
	float	   *rows;			/* n x width */
	int			n;
} Sampling;

static void
take_row(void *state, int slot, const void *value)
{
	Sampling   *s = state;
	const IvfLayout *layout = &s->build->layout;

	layout->codec->coordinates(&s->build->space, value, s->scratch,
							   s->rows + (Size) slot * layout->width);
}

/* Returns whether rows are near each other by their angle. */
static bool
is_spherical(const IvfBuildParams *build)
{
	QvMetric	metric = build->space.opclass.metric;

	return metric == QV_METRIC_COSINE || metric == QV_METRIC_IP;
}

/*
 * Gives unit centroids a length.  A unit centroid is a direction.  Rows are coded relative to
 * the point of that direction that is nearest to them on average.  It is found from a part of
 * the sample, in pieces from everywhere in it.
 */
static void
set_lengths(const float *rows, int n, Size width, float *centroids, uint32 lists)
{
	double	   *sum = palloc0(lists * sizeof(double));
	uint32	   *count = palloc0(lists * sizeof(uint32));
	uint32	   *assign = palloc(LENGTH_BATCH * sizeof(uint32));
	void	   *workspace = MemoryContextAllocHuge(CurrentMemoryContext, QvAssignWorkspace(lists));
	double		wanted = Min(n, (double) lists * LENGTH_ROWS + LENGTH_BATCH);
	int			pieces = ceil(wanted / LENGTH_BATCH);

	for (int p = 0; p < pieces; p++)
	{
		int			first = (int64) n * p / pieces;
		int			m = Min(LENGTH_BATCH, n - first);

		CHECK_FOR_INTERRUPTS();
		QvAssign(rows + first * width, m, width, centroids, lists, assign, NULL, workspace);
		for (int i = 0; i < m; i++)
		{
			uint32		list = assign[i];

			sum[list] += qv_kernels.ip_f32(rows + (first + i) * width, centroids + list * width, width);
			count[list]++;
		}
	}
	for (uint32 i = 0; i < lists; i++)
		for (Size j = 0; j < width && count[i] > 0; j++)
			centroids[i * width + j] *= sum[i] / count[i];
	pfree(sum);
	pfree(count);
	pfree(assign);
	pfree(workspace);
}

/* Subtracts the mean, except of inner products. */
static void
center(const IvfBuildParams *build, const IvfNewLists *lists, float *rows, Size n)
{
	uint32		pdim = build->layout.pdim;

	if (lists->space == QV_SPACE_IP || lists->mean == NULL)
		return;
	for (Size i = 0; i < n; i++)
		for (uint32 j = 0; j < pdim; j++)
			rows[i * pdim + j] -= lists->mean[j];
}

/* Numbers the groups that have centroids, from 0 on.  Returns how many there are. */
static uint32
number_groups(uint32 *parent, uint32 lists, uint32 tops)
{
	uint32	   *number = palloc(tops * sizeof(uint32));
	uint32		groups = 0;

	memset(number, 0xFF, tops * sizeof(uint32));
	for (uint32 i = 0; i < lists; i++)
	{
		if (number[parent[i]] == UINT32_MAX)
			number[parent[i]] = groups++;
		parent[i] = number[parent[i]];
	}
	pfree(number);
	return groups;
}

/*
 * Makes entries of the directory from centroids as clustering gives them: lists x width, in
 * groups parent[].  Directions are not centered yet.
 */
static void
make_entries(const Sampling *sampling, float *vectors, const uint32 *parent, IvfNewLists *lists)
{
	const IvfBuildParams *build = sampling->build;
	const IvfLayout *layout = &build->layout;

	if (is_spherical(build))
	{
		if (sampling->n > 0)
			set_lengths(sampling->rows, sampling->n, layout->width, vectors, lists->lists);
		center(build, lists, vectors, lists->lists);
	}
	lists->entries = MemoryContextAllocHuge(CurrentMemoryContext,
											(Size) lists->lists * layout->entry_size);
	for (uint32 i = 0; i < lists->lists; i++)
		IvfMakeEntry(layout, &build->space.opclass, vectors + (Size) i * layout->width, parent[i],
					 (IvfEntry) (lists->entries + (Size) i * layout->entry_size));
}

/* ---- a sample, clustered ---- */

static void
take_sample(Sampling *sampling, int target, double rows)
{
	const IvfBuildParams *build = sampling->build;
	QvSample	sample = {0};

	sample.heap = build->heap;
	sample.index = build->index;
	sample.info = build->info;
	sample.space = &build->space;
	sample.seed = build->meta.seed;
	sample.take = take_row;
	sample.state = sampling;
	sample.target = target;
	sampling->scratch = palloc(build->layout.width * sizeof(float));
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, IVF_PHASE_SAMPLE);
	sampling->n = QvSampleRows(&sample, rows);
}

/* Chooses the space, and the mean that rows are coded relative to: 0 for inner products. */
static void
find_mean(const Sampling *sampling, IvfNewLists *lists)
{
	QvSpace		space = sampling->build->space;

	if (space.pdim == 0)
		return;
	lists->mean = palloc(space.pdim * sizeof(float));
	QvMeanOfRows(sampling->rows, sampling->n, space.pdim, lists->mean);
	QvSpaceSetMean(&space, lists->mean);
	QvSpaceChoose(&space, sampling->rows, sampling->n);
	lists->space = space.kind;
	lists->level = space.level;
	if (space.kind == QV_SPACE_IP)
		memset(lists->mean, 0, space.pdim * sizeof(float));
}

size_t
IvfSampleTarget(uint32 lists, double rows)
{
	double		wanted = Max(MIN_SAMPLE, (double) lists * ROWS_PER_LIST);

	/* no more than twice the estimate of the rows, which may be off */
	return Max(1, Min(wanted, Max(MIN_SAMPLE, 2 * rows)));
}

/* Returns how many rows there is room to sample. */
static size_t
choose_target(uint32 lists, Size width)
{
	size_t		wanted = IvfSampleTarget(lists, INFINITY);

	return Max(1, IvfClusterRows(wanted, width, lists, (Size) maintenance_work_mem * 1024));
}

/* Raises a notice or an error if there was room for n sampled rows only, few for the lists. */
static void
check_room(const QvIndexOptions *options, uint32 lists, size_t target, int n)
{
	if (n < target || n >= LEAST_ROWS_PER_LIST * (double) lists)
		return;
	if (n < lists && options->lists > 0)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("maintenance_work_mem is too small for %u lists", lists),
				 errdetail("There is room for %d vectors while they are clustered.", n),
				 errhint("Increase maintenance_work_mem, or have fewer lists.")));
	ereport(NOTICE,
			(errmsg("lists are made from few rows because of maintenance_work_mem"),
			 errdetail("There is room for %d rows for %u lists. This may cause low recall.",
					   n, lists),
			 errhint("Increase maintenance_work_mem for better lists.")));
}

static void
from_sample(const IvfBuildParams *build, IvfNewLists *new)
{
	uint32		width = build->layout.width;
	uint32		lists = build->options->lists > 0 ? build->options->lists :
		IvfChooseLists(&build->layout, new->rows);
	size_t		room = choose_target(lists, width);
	Sampling	sampling = {.build = build};
	IvfClusterParams params = {0};
	IvfCluster *cluster;
	IvfClusterData *data;

	params.target = Min(room, IvfSampleTarget(lists, new->rows));
	params.dim = width;
	params.k = Min(lists, params.target);
	params.iterations = KMEANS_ITERATIONS;
	params.seed = build->meta.seed;
	params.spherical = is_spherical(build);
	params.workers = build->workers;
	params.memory = (Size) maintenance_work_mem * 1024;
	cluster = IvfClusterBegin(&params);
	data = IvfClusterGet(cluster);
	sampling.rows = data->rows;
	take_sample(&sampling, params.target, new->rows);
	find_mean(&sampling, new);
	/* rows far from the origin would lose digits when they are clustered */
	if (!params.spherical)
		center(build, new, sampling.rows, sampling.n);
	check_room(build->options, lists, room, sampling.n);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, IVF_PHASE_CLUSTER);
	if (sampling.n == 0)
	{
		memset(data->centroids, 0, width * sizeof(float));
		data->parent[0] = 0;
		new->lists = data->tops = 1;
	}
	else
	{
		new->lists = IvfClusterRun(cluster, sampling.n);
		sampling.n = data->n;
	}
	new->tops = number_groups(data->parent, new->lists, data->tops);
	make_entries(&sampling, data->centroids, data->parent, new);
	IvfClusterEnd(cluster);
}

/* ---- a table of centroids ---- */

/* Makes groups of the centroids from a table. */
static uint32
group(const IvfBuildParams *build, const float *vectors, uint32 lists, uint32 *parent)
{
	QvKmeansParams params = {0};
	size_t		tops = QvHierarchyTops(lists, lists);
	Size		width = build->layout.width;
	float	   *tops_vectors;
	void	   *workspace;

	memset(parent, 0, lists * sizeof(uint32));
	if (tops <= 1)
		return 1;
	params.rows = vectors;
	params.n = lists;
	params.dim = width;
	params.k = tops;
	params.iterations = KMEANS_ITERATIONS;
	params.seed = build->meta.seed;
	params.spherical = is_spherical(build);
	params.interrupt = QvClusterInterrupt;
	tops_vectors = MemoryContextAllocHuge(CurrentMemoryContext, tops * width * sizeof(float));
	workspace = MemoryContextAllocHuge(CurrentMemoryContext, QvKmeansWorkspace(lists, width, tops));
	tops = QvKmeans(&params, tops_vectors, parent, workspace);
	pfree(workspace);
	pfree(tops_vectors);
	return number_groups(parent, lists, tops);
}

static void
from_table(const IvfBuildParams *build, IvfNewLists *new)
{
	Size		memory = (Size) maintenance_work_mem * 1024;
	Size		width = build->layout.width;
	Sampling	sampling = {.build = build};
	float	   *vectors = IvfReadCentroids(build, &new->lists);
	uint32	   *parent = palloc(new->lists * sizeof(uint32));
	size_t		target;

	/* for the mean, and for the length of centroids */
	target = Max(MIN_SAMPLE, (double) new->lists * LENGTH_ROWS);
	target = Max(64, Min(target, memory / 3 / (width * sizeof(float))));
	target = Min(target, Max(MIN_SAMPLE, 2 * new->rows));
	sampling.rows = MemoryContextAllocHuge(CurrentMemoryContext, target * width * sizeof(float));
	take_sample(&sampling, target, new->rows);
	find_mean(&sampling, new);
	if (!is_spherical(build))
		center(build, new, vectors, new->lists);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, IVF_PHASE_CLUSTER);
	new->tops = group(build, vectors, new->lists, parent);
	make_entries(&sampling, vectors, parent, new);
	pfree(sampling.rows);
	pfree(parent);
	pfree(vectors);
}

void
IvfMakeLists(const IvfBuildParams *build, IvfNewLists *lists)
{
	double		table_rows;

	memset(lists, 0, sizeof(*lists));
	lists->rows = QvCountRows(build->heap, build->info, &build->space.opclass, &table_rows);
	if (build->options->centroids)
		from_table(build, lists);
	else
		from_sample(build, lists);
}
