/*
 * sample.c
 *		A sample of the rows that an index build will read; see sample.h.
 */
#include "postgres.h"

#include <math.h>

#include "access/tableam.h"
#include "containers/compare.h"
#include "kernels/kernels.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "space/sample.h"
#include "utils/memutils.h"
#include "utils/sampling.h"

typedef struct Sampling
{
	const QvSample *sample;
	int			sampled;		/* slots filled */
	double		seen;			/* rows */
	double		skip;			/* rows to skip; < 0: not known yet */
	ReservoirStateData reservoir;
	MemoryContext row_context;	/* reset after every row */
} Sampling;

static void
sample_callback(Relation index, ItemPointer tid, Datum *values, bool *isnull,
				bool alive, void *state)
{
	Sampling   *sampling = state;
	const QvSample *s = sampling->sample;
	MemoryContext old;
	const void *value;
	int			to;

	if (isnull[0])
		return;
	sampling->seen++;
	if (sampling->sampled < s->target)
		to = sampling->sampled;
	else
	{
		/* Vitter's algorithm, as ANALYZE uses it */
		if (sampling->skip < 0)
			sampling->skip = reservoir_get_next_S(&sampling->reservoir, sampling->seen - 1,
												  s->target);
		if (sampling->skip-- > 0)
			return;
		sampling->skip = -1;
		to = s->target * sampler_random_fract(&sampling->reservoir.randstate);
	}
	old = MemoryContextSwitchTo(sampling->row_context);
	value = QvIndexedValue(s->space, values[0]);
	if (value)
	{
		s->take(s->state, to, value);
		if (to == sampling->sampled)
			sampling->sampled++;
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(sampling->row_context);
}

/* As in the server, but with a seed of ours, so that builds can be repeated exactly. */
static void
init_reservoir(ReservoirState reservoir, int target, uint64 seed)
{
	sampler_random_init_state((uint32) seed, &reservoir->randstate);
	reservoir->W = exp(-log(sampler_random_fract(&reservoir->randstate)) / target);
}

int
QvSampleRows(const QvSample *s, double rows)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(s->heap);
	Sampling	sampling = {.sample = s, .skip = -1};
	double		blocks;

	init_reservoir(&sampling.reservoir, s->target, s->seed);
	sampling.row_context = AllocSetContextCreate(CurrentMemoryContext, "quiver sample row",
												 ALLOCSET_DEFAULT_SIZES);

	/* half as many blocks again as the rows need, because blocks differ */
	blocks = 16 + 1.5 * s->target * nblocks / Max(1, rows);
	if (blocks >= nblocks)
		table_index_build_scan(s->heap, s->index, s->info, false, false,
							   sample_callback, &sampling, NULL);
	else
	{
		BlockSamplerData sampler;

		BlockSampler_Init(&sampler, nblocks, blocks, s->seed & PG_INT32_MAX);
		while (BlockSampler_HasMore(&sampler))
		{
			BlockNumber block = BlockSampler_Next(&sampler);

			CHECK_FOR_INTERRUPTS();

			/*
			 * a concurrent build has a snapshot, which decides what is
			 * visible
			 */
			table_index_build_range_scan(s->heap, s->index, s->info, false,
										 !s->info->ii_Concurrent, false, block, 1,
										 sample_callback, &sampling, NULL);
		}
	}
	MemoryContextDelete(sampling.row_context);
	return sampling.sampled;
}

/*
 * Rows whose squared distance from the mean is more than this many times the median do not count
 * for it.  A few of them would move the mean away from all others, whose codes would then be
 * useless.
 */
#define OUTLIER 100

/* The mean of the rows that are no farther away than "most". */
static void
mean_of_near(const float *rows, int n, uint32 pdim, const float *distances, float most, float *mean)
{
	double	   *sum = palloc0(pdim * sizeof(double));
	int			used = 0;

	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (distances[i] > most)
			continue;
		used++;
		for (uint32 j = 0; j < pdim; j++)
			sum[j] += rows[(Size) i * pdim + j];
	}
	for (uint32 j = 0; j < pdim; j++)
		mean[j] = used > 0 ? sum[j] / used : 0;
	pfree(sum);
}

void
QvMeanOfRows(const float *rows, int n, uint32 pdim, float *mean)
{
	float	   *distances = palloc0(Max(1, n) * sizeof(float));
	float	   *sorted = palloc(Max(1, n) * sizeof(float));

	mean_of_near(rows, n, pdim, distances, 0, mean);
	for (int i = 0; i < n; i++)
		distances[i] = qv_kernels.l2sq_f32(rows + (Size) i * pdim, mean, pdim);
	memcpy(sorted, distances, n * sizeof(float));
	qsort(sorted, n, sizeof(float), CompareFloats);
	if (n > 0)
		mean_of_near(rows, n, pdim, distances, OUTLIER * sorted[n / 2], mean);
	pfree(sorted);
	pfree(distances);
}

void
QvClusterInterrupt(void *arg)
{
	CHECK_FOR_INTERRUPTS();
}
