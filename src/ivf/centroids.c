/*
 * centroids.c
 *		The lists of a new index: their number, and their centroids from a
 *		sample of the table or from a table of centroids.
 */
#include "postgres.h"

#include <math.h>

#include "cluster/assign.h"
#include "cluster/hierarchy.h"
#include "cluster/kmeans.h"
#include "commands/progress.h"
#include "ivf/build.h"
#include "miscadmin.h"
#include "space/sample.h"
#include "utils/backend_progress.h"
#include "utils/memutils.h"

/* Rows sampled for each list, and at least. */
#define ROWS_PER_LIST 40
#define MIN_SAMPLE 10000

/* With fewer for each list, recall suffers. */
#define LEAST_ROWS_PER_LIST 8

#define KMEANS_ITERATIONS 10

/* Rows for each list that tell how long rows are, in pieces of so many. */
#define STRETCH_ROWS 16
#define STRETCH_PIECE 1024

typedef struct Sampling
{
	const QvOpclassInfo *opclass;
	const IvfMetaData *meta;
	QvRotation	rotation;
	float	   *value;			/* dims */
	float	   *rows;			/* target x width */
	Size		width;			/* coordinates of a row */
} Sampling;

static bool
take_row(void *state, int slot, Datum datum)
{
	Sampling   *s = state;
	float	   *row = s->rows + slot * s->width;
	void	   *value = PG_DETOAST_DATUM(datum);

	QvCheckDims(s->opclass, s->meta->dims, value);
	if (!QvIsIndexed(s->opclass, value))
		return false;
	s->opclass->type->to_float(value, s->meta->form == QV_FORM_PLAIN ? row : s->value);
	if (s->meta->form == QV_FORM_CODED)
		QvScaleAndRotate(&s->rotation, s->meta->metric == QV_METRIC_COSINE, s->value, row);
	return true;
}

/* Rows are near each other by their angle. */
static bool
is_spherical(const IvfMetaData *meta)
{
	return meta->metric == QV_METRIC_COSINE || meta->metric == QV_METRIC_IP;
}

static uint32
choose_lists(const IvfOptions *options, const IvfMetaData *meta, double rows)
{
	IvfMetaData sized = *meta;
	IvfLayout	layout;

	if (options->lists > 0)
		return options->lists;
	sized.lists = 1;
	if (!IvfLayoutFromMeta(&layout, &sized))
		elog(ERROR, "sizes of an index of %u dimensions do not fit together", meta->dims);
	return IvfChooseLists(&layout, rows);
}

/* The mean of the sample, subtracted from the centroids: L2 space. */
static void
center(const IvfMetaData *meta, const float *rows, int n, float *mean,
	   float *centroids, uint32 lists)
{
	QvMeanOfRows(rows, n, meta->pdim, INFINITY, mean);
	for (uint32 i = 0; i < lists; i++)
		for (uint32 j = 0; j < meta->pdim; j++)
			centroids[(Size) i * meta->pdim + j] -= mean[j];
}

/*
 * Unit centroids are directions; rows are coded against the point of that
 * direction that is nearest to them on average.  Found from a part of the
 * sample, in pieces from everywhere in it.
 */
static void
stretch(const float *rows, int n, Size width, float *centroids, uint32 lists)
{
	double	   *sum = palloc0(lists * sizeof(double));
	uint32	   *count = palloc0(lists * sizeof(uint32));
	uint32	   *assign = palloc(STRETCH_PIECE * sizeof(uint32));
	void	   *workspace = MemoryContextAllocHuge(CurrentMemoryContext, QvAssignWorkspace(lists));
	double		wanted = Min(n, (double) lists * STRETCH_ROWS + STRETCH_PIECE);
	int			pieces = ceil(wanted / STRETCH_PIECE);

	for (int p = 0; p < pieces; p++)
	{
		int			first = (int64) n * p / pieces;
		int			m = Min(STRETCH_PIECE, n - first);

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

/* Number the groups that have centroids from 0 on; returns how many there are. */
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

static void
make_entries(const IvfMetaData *meta, const QvOpclassInfo *opclass, const float *rows,
			 const uint32 *parent, Size width, IvfCentroids *centroids)
{
	IvfMetaData sized = *meta;
	IvfLayout	layout;

	sized.lists = centroids->lists;
	if (!IvfLayoutFromMeta(&layout, &sized))
		elog(ERROR, "sizes of an index of %u dimensions do not fit together", meta->dims);
	centroids->entries = MemoryContextAllocHuge(CurrentMemoryContext,
												(Size) centroids->lists * layout.entry_size);
	for (uint32 i = 0; i < centroids->lists; i++)
	{
		const float *row = rows + i * width;
		void	   *value = meta->form == QV_FORM_PLAIN ? opclass->type->from_float(row, meta->dims) : NULL;

		IvfMakeEntry(&layout, row, value, parent[i],
					 (IvfEntry) (centroids->entries + (Size) i * layout.entry_size));
		if (value)
			pfree(value);
	}
}

/* From centroids as clustering makes them to the index's; n rows of a sample. */
static void
finish(const IvfMetaData *meta, const QvOpclassInfo *opclass, const float *rows, int n,
	   float *vectors, uint32 *parent, Size width, IvfCentroids *centroids)
{
	if (is_spherical(meta) && n > 0)
		stretch(rows, n, width, vectors, centroids->lists);
	if (meta->form == QV_FORM_CODED)
	{
		centroids->mean = palloc0(meta->pdim * sizeof(float));
		if (meta->space == QV_SPACE_L2)
			center(meta, rows, n, centroids->mean, vectors, centroids->lists);
	}
	make_entries(meta, opclass, vectors, parent, width, centroids);
}

/* ---- a sample, clustered ---- */

static void
begin_sampling(Sampling *sampling, const QvOpclassInfo *opclass, const IvfMetaData *meta,
			   float *rows)
{
	sampling->opclass = opclass;
	sampling->meta = meta;
	sampling->width = meta->form == QV_FORM_PLAIN ? meta->dims : meta->pdim;
	sampling->rows = rows;
	if (meta->form == QV_FORM_CODED)
	{
		sampling->value = palloc(meta->dims * sizeof(float));
		QvRotationInit(&sampling->rotation, meta->dims, meta->seed,
					   palloc(QvRotationSignBytes(meta->dims)));
	}
}

static int
take_sample(Relation heap, Relation index, IndexInfo *info, Sampling *sampling,
			int target, double rows)
{
	QvSample	sample = {0};

	sample.heap = heap;
	sample.index = index;
	sample.info = info;
	sample.seed = sampling->meta->seed;
	sample.take = take_row;
	sample.state = sampling;
	sample.target = target;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, IVF_PHASE_SAMPLE);
	return QvSampleRows(&sample, rows);
}

/* How many rows there is room to sample for so many lists. */
static size_t
choose_target(uint32 lists, Size width)
{
	size_t		wanted = Max(MIN_SAMPLE, (double) lists * ROWS_PER_LIST);

	return Max(1, IvfClusterRows(wanted, width, lists, (Size) maintenance_work_mem * 1024));
}

/*
 * Say so when n rows were sampled because there was no room for more, and they
 * are few for the lists wanted.
 */
static void
check_room(const IvfOptions *options, uint32 lists, size_t target, int n)
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
from_sample(Relation heap, Relation index, IndexInfo *info,
			const QvOpclassInfo *opclass, const IvfOptions *options,
			const IvfMetaData *meta, int workers, IvfCentroids *centroids)
{
	Size		width = meta->form == QV_FORM_PLAIN ? meta->dims : meta->pdim;
	uint32		lists = choose_lists(options, meta, centroids->rows);
	size_t		target = choose_target(lists, width);
	size_t		room;
	Sampling	sampling = {0};
	IvfCluster *cluster;
	IvfClusterData *data;
	int			n;

	/* not for ever more than there is, though the estimate may be wrong */
	room = target;
	target = Min(target, Max(MIN_SAMPLE, 2 * centroids->rows));
	cluster = IvfClusterBegin(target, width, Min(lists, target), KMEANS_ITERATIONS, meta->seed,
							  is_spherical(meta), workers,
							  (Size) maintenance_work_mem * 1024);
	data = IvfClusterGet(cluster);
	begin_sampling(&sampling, opclass, meta, data->rows);
	n = take_sample(heap, index, info, &sampling, target, centroids->rows);
	check_room(options, lists, room, n);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, IVF_PHASE_CLUSTER);
	if (n == 0)
	{
		memset(data->centroids, 0, width * sizeof(float));
		data->parent[0] = 0;
		centroids->lists = data->tops = 1;
	}
	else
	{
		centroids->lists = IvfClusterRun(cluster, n);
		n = data->n;
	}
	centroids->tops = number_groups(data->parent, centroids->lists, data->tops);
	finish(meta, opclass, data->rows, n, data->centroids, data->parent, width, centroids);
	IvfClusterEnd(cluster);
}

/* ---- a table of centroids ---- */

/* Groups of centroids that are there already. */
static uint32
group(const IvfMetaData *meta, const float *vectors, uint32 lists, Size width, uint32 *parent)
{
	QvKmeansParams params = {0};
	size_t		tops = QvHierarchyTops(lists, lists);
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
	params.seed = meta->seed;
	params.spherical = is_spherical(meta);
	params.interrupt = QvClusterInterrupt;
	tops_vectors = MemoryContextAllocHuge(CurrentMemoryContext, tops * width * sizeof(float));
	workspace = MemoryContextAllocHuge(CurrentMemoryContext, QvKmeansWorkspace(lists, width, tops));
	tops = QvKmeans(&params, tops_vectors, parent, workspace);
	pfree(workspace);
	pfree(tops_vectors);
	return number_groups(parent, lists, tops);
}

static void
from_table(Relation heap, Relation index, IndexInfo *info,
		   const QvOpclassInfo *opclass, const IvfOptions *options,
		   const IvfMetaData *meta, IvfCentroids *centroids)
{
	Size		memory = (Size) maintenance_work_mem * 1024;
	Sampling	sampling = {0};
	float	   *vectors;
	uint32	   *parent;
	size_t		target;
	int			n;

	begin_sampling(&sampling, opclass, meta, NULL);
	vectors = IvfReadCentroids(index, opclass, options, meta, &sampling.rotation,
							   &centroids->lists);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, IVF_PHASE_CLUSTER);
	parent = palloc(centroids->lists * sizeof(uint32));
	centroids->tops = group(meta, vectors, centroids->lists, sampling.width, parent);

	/* the mean, and how long rows are */
	target = Max(MIN_SAMPLE, (double) centroids->lists * STRETCH_ROWS);
	target = Max(64, Min(target, memory / 3 / (sampling.width * sizeof(float))));
	target = Min(target, Max(MIN_SAMPLE, 2 * centroids->rows));
	sampling.rows = MemoryContextAllocHuge(CurrentMemoryContext,
										   target * sampling.width * sizeof(float));
	n = take_sample(heap, index, info, &sampling, target, centroids->rows);
	finish(meta, opclass, sampling.rows, n, vectors, parent, sampling.width, centroids);
	pfree(sampling.rows);
	pfree(parent);
	pfree(vectors);
}

void
IvfMakeCentroids(Relation heap, Relation index, IndexInfo *info,
				 const QvOpclassInfo *opclass, const IvfOptions *options,
				 const IvfMetaData *meta, int workers, IvfCentroids *centroids)
{
	memset(centroids, 0, sizeof(*centroids));
	centroids->rows = QvEstimateRows(heap);
	if (options->centroids)
		from_table(heap, index, info, opclass, options, meta, centroids);
	else
		from_sample(heap, index, info, opclass, options, meta, workers, centroids);
}
