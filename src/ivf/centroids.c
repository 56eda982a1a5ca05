/*
 * centroids.c
 *		The lists of a new index: their number, and their centroids from a
 *		sample of the table or from a table of centroids.
 */
#include "postgres.h"

#include <math.h>

#include "cluster/kmeans.h"
#include "commands/progress.h"
#include "ivf/build.h"
#include "miscadmin.h"
#include "storage/sample.h"
#include "utils/backend_progress.h"
#include "utils/memutils.h"

/*
 * Lists for the square root of the rows.  More lists make searches read less
 * and builds take longer (src/ivf/README.md, "Number of lists").
 */
#define LISTS_PER_ROOT 1.0

/* Rows sampled for each list, and at least. */
#define ROWS_PER_LIST 64
#define MIN_SAMPLE 10000

#define KMEANS_ITERATIONS 10

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

	IvfCheckDims(s->meta, s->opclass, value);
	if (!IvfIsIndexed(s->opclass, value))
		return false;
	s->opclass->type->to_float(value, s->meta->form == IVF_PLAIN ? row : s->value);
	if (s->meta->form == IVF_CODED)
		QvSpaceRotate(&s->rotation, s->meta->metric == QV_METRIC_COSINE, s->value, row);
	return true;
}

static void
kmeans_interrupt(void *arg)
{
	CHECK_FOR_INTERRUPTS();
}

static uint32
choose_lists(const IvfOptions *options, double rows)
{
	if (options->lists > 0)
		return options->lists;
	return Max(1, Min(IVF_MAX_LISTS, rint(LISTS_PER_ROOT * sqrt(rows))));
}

/* The mean of the sample, subtracted from the centroids. */
static void
center(const IvfMetaData *meta, const float *rows, int n, float *mean,
	   float *centroids, uint32 lists)
{
	double	   *sum = palloc0(meta->pdim * sizeof(double));

	for (int i = 0; i < n; i++)
		for (uint32 j = 0; j < meta->pdim; j++)
			sum[j] += rows[(Size) i * meta->pdim + j];
	for (uint32 j = 0; j < meta->pdim; j++)
		mean[j] = n > 0 ? sum[j] / n : 0;
	for (uint32 i = 0; i < lists; i++)
		for (uint32 j = 0; j < meta->pdim; j++)
			centroids[(Size) i * meta->pdim + j] -= mean[j];
	pfree(sum);
}

/*
 * Spherical k-means gives directions; rows are coded against the point of
 * that direction that is nearest to them on average.
 */
static void
stretch(const float *rows, int n, Size width, const uint32 *assign,
		float *centroids, uint32 lists)
{
	double	   *sum = palloc0(lists * sizeof(double));
	uint32	   *count = palloc0(lists * sizeof(uint32));

	for (int i = 0; i < n; i++)
	{
		sum[assign[i]] += qv_kernels.ip_f32(rows + i * width, centroids + assign[i] * width, width);
		count[assign[i]]++;
	}
	for (uint32 i = 0; i < lists; i++)
		for (Size j = 0; j < width && count[i] > 0; j++)
			centroids[i * width + j] *= sum[i] / count[i];
	pfree(sum);
	pfree(count);
}

/* Cluster the sample; returns the number of lists. */
static uint32
cluster(const IvfMetaData *meta, const Sampling *s, int n, uint32 lists, float *centroids)
{
	QvKmeansParams params = {0};
	bool		spherical = meta->metric == QV_METRIC_COSINE || meta->metric == QV_METRIC_IP;
	uint32	   *assign;
	void	   *workspace;

	if (n == 0)
	{
		memset(centroids, 0, s->width * sizeof(float));
		return 1;
	}
	params.rows = s->rows;
	params.n = n;
	params.dim = s->width;
	params.k = lists;
	params.iterations = KMEANS_ITERATIONS;
	params.seed = meta->seed;
	params.spherical = spherical;
	params.interrupt = kmeans_interrupt;
	assign = palloc(n * sizeof(uint32));
	workspace = MemoryContextAllocHuge(CurrentMemoryContext, QvKmeansWorkspace(n, s->width, lists));
	lists = QvKmeans(&params, centroids, assign, workspace);
	pfree(workspace);
	if (spherical)
		stretch(s->rows, n, s->width, assign, centroids, lists);
	pfree(assign);
	return lists;
}

static void
make_entries(const IvfMetaData *meta, const QvOpclassInfo *opclass, const float *rows,
			 Size width, IvfCentroids *centroids)
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
		void	   *value = meta->form == IVF_PLAIN ? opclass->type->from_float(row, meta->dims) : NULL;

		IvfMakeEntry(&layout, row, value, 0,
					 (IvfEntry) (centroids->entries + (Size) i * layout.entry_size));
		if (value)
			pfree(value);
	}
}

void
IvfMakeCentroids(Relation heap, Relation index, IndexInfo *info,
				 const QvOpclassInfo *opclass, const IvfOptions *options,
				 const IvfMetaData *meta, IvfCentroids *centroids)
{
	Sampling	sampling = {0};
	QvSample	sample = {0};
	double		memory = maintenance_work_mem * 1024.0;
	uint32		lists;
	float	   *rows;
	int			n;

	memset(centroids, 0, sizeof(*centroids));
	centroids->rows = QvEstimateRows(heap);
	lists = choose_lists(options, centroids->rows);

	sampling.opclass = opclass;
	sampling.meta = meta;
	sampling.width = meta->form == IVF_PLAIN ? meta->dims : meta->pdim;
	if (meta->form == IVF_CODED)
	{
		sampling.value = palloc(meta->dims * sizeof(float));
		QvRotationInit(&sampling.rotation, meta->dims, meta->seed,
					   palloc(QvRotationSignBytes(meta->dims)));
	}
	sample.heap = heap;
	sample.index = index;
	sample.info = info;
	sample.seed = meta->seed;
	sample.take = take_row;
	sample.state = &sampling;

	/* a third of the memory; k-means wants as much again */
	sample.target = Max(MIN_SAMPLE, (double) lists * ROWS_PER_LIST);
	sample.target = Min(sample.target, memory / 3 / (sampling.width * sizeof(float)));
	sample.target = Max(sample.target, 64);
	sampling.rows = MemoryContextAllocHuge(CurrentMemoryContext,
										   sample.target * sampling.width * sizeof(float));
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, IVF_PHASE_SAMPLE);
	n = QvSampleRows(&sample, centroids->rows);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, IVF_PHASE_CLUSTER);
	lists = Max(1, Min(lists, n));
	rows = MemoryContextAllocHuge(CurrentMemoryContext,
								  (Size) lists * sampling.width * sizeof(float));
	centroids->lists = cluster(meta, &sampling, n, lists, rows);
	centroids->tops = 1;
	if (meta->form == IVF_CODED)
	{
		centroids->mean = palloc0(meta->pdim * sizeof(float));
		if (meta->space == IVF_SPACE_L2)
			center(meta, sampling.rows, n, centroids->mean, rows, centroids->lists);
	}
	pfree(sampling.rows);
	make_entries(meta, opclass, rows, sampling.width, centroids);
	pfree(rows);
}
