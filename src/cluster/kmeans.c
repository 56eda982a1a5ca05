/*
 * kmeans.c
 *		Seeding and Lloyd rounds: see src/cluster/README.md.
 */
#include "cluster/kmeans.h"

#include "cluster/assign.h"
#include "kernels/kernels.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Seeds drawn between two updates of the distances; see src/cluster/README.md, "Seeding". */
#define SEED_BATCH 32
/* Rows for each seed in the sample that seeds are drawn from. */
#define SEED_SAMPLE 4
/*
 * A row's weight is its squared distance plus this many times the mean; see
 * src/cluster/README.md, "Seeding".
 */
#define SEED_UNIFORM 3
/* Draws before a batch is closed incomplete, in units of its size. */
#define SEED_ATTEMPTS 4

/*
 * A split of a cluster moves its two centroids apart by this part of the way to its
 * farthest row.  The part is small, so that they keep the rows of the mean.
 */
#define SPLIT_STEP 0.05f

/* Rounds end when fewer than one row in this many changed its centroid. */
#define CONVERGED_FRACTION 1000

typedef struct Work
{
	const QvKmeansParams *p;
	float	   *centroids;
	size_t		k;				/* centroids made: at most p->n */
	uint32_t   *assign;			/* n */
	float	   *dist;			/* n */
	uint32_t   *count;			/* k */
	float	   *tile;			/* QV_ASSIGN_ROWS x SEED_BATCH */
	void	   *assign_workspace;
	uint64_t	random;
} Work;

size_t
QvKmeansWorkspace(size_t n, size_t dim, size_t k)
{
	(void) dim;
	if (k > n)
		k = n;
	return QV_ALIGN64(n * sizeof(uint32_t)) + QV_ALIGN64(n * sizeof(float)) +
		QV_ALIGN64(k * sizeof(uint32_t)) +
		QV_ASSIGN_ROWS * SEED_BATCH * sizeof(float) + QvAssignWorkspace(k);
}

/* xorshift64*. It suffices for drawing seeds, and is the same everywhere. */
static uint64_t
random_next(Work *w)
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return w->random * UINT64_C(0x2545f4914f6cdd1d);
}

/* Uniform in [0, 1). */
static double
random_unit(Work *w)
{
	return (double) (random_next(w) >> 11) * 0x1p-53;
}

static void
interrupt(const Work *w)
{
	if (w->p->interrupt != NULL)
		w->p->interrupt(w->p->interrupt_arg);
}

static const float *
row(const Work *w, size_t i)
{
	return w->p->rows + i * w->p->dim;
}

static void
set_centroid(Work *w, size_t c, const float *values)
{
	memcpy(w->centroids + c * w->p->dim, values, w->p->dim * sizeof(float));
}

/*
 * Gives a centroid unit length.  One without direction gets any: as 0 it would be nearest to all
 * short rows.
 */
static void
normalize(const Work *w, float *centroid)
{
	float		norm = sqrtf(qv_kernels.norm2_f32(centroid, w->p->dim));

	if (norm > 0 && norm < INFINITY)
	{
		for (size_t i = 0; i < w->p->dim; i++)
			centroid[i] /= norm;
	}
	else if (norm == 0 && w->p->dim > 0)
		centroid[0] = 1;
}

/* ---- seeding ---- */

/*
 * The sample has every step-th row, and needs no copy: only the row stride of its matrix
 * is larger. dist[s] is the squared distance of sample row s to its nearest seed.  It is
 * 0 for a seed.
 */
typedef struct Sample
{
	size_t		step;
	size_t		size;
	bool		seeded;			/* is dist valid yet? */
} Sample;

/* Updates dist for the m centroids from number "first" on. */
static void
update_distances(Work *w, const Sample *sample, size_t first, size_t m)
{
	const float *seeds = w->centroids + first * w->p->dim;
	float		seed_norms[SEED_BATCH];
	size_t		stride = sample->step * w->p->dim;

	for (size_t j = 0; j < m; j++)
		seed_norms[j] = qv_kernels.norm2_f32(seeds + j * w->p->dim,
											 w->p->dim);
	for (size_t s = 0; s < sample->size; s += QV_ASSIGN_ROWS)
	{
		const float *rows = w->p->rows + s * stride;
		size_t		n = sample->size - s;

		if (n > QV_ASSIGN_ROWS)
			n = QV_ASSIGN_ROWS;
		qv_kernels.ip_f32_block(rows, n, stride, seeds, m, w->p->dim,
								w->p->dim, w->tile, SEED_BATCH);
		for (size_t i = 0; i < n; i++)
		{
			float		norm2 = qv_kernels.norm2_f32(rows + i * stride,
													 w->p->dim);
			float		best = sample->seeded ? w->dist[s + i] : INFINITY;

			for (size_t j = 0; j < m; j++)
			{
				float		d = norm2 + seed_norms[j] -
					2 * w->tile[i * SEED_BATCH + j];

				/*
				 * rounding may leave a little of a duplicate, which must not
				 * be drawn
				 */
				if (d < 1e-6f * norm2)
					d = 0;
				best = d < best ? d : best;
			}
			w->dist[s + i] = best;
		}
		interrupt(w);
	}
}

/* Seeds and their duplicates have no weight. */
static double
seed_weight(const Work *w, size_t s, double uniform)
{
	return w->dist[s] > 0 ? (double) w->dist[s] + uniform : 0;
}

/*
 * Draws up to "want" more seeds by weight, and makes them centroids from number "first"
 * on.  Returns the number drawn, or 0 when all distances are 0.
 */
static size_t
draw_seeds(Work *w, const Sample *sample, size_t first, size_t want)
{
	size_t		made = 0;
	double		total = 0;
	double		uniform;

	for (size_t s = 0; s < sample->size; s++)
		total += (double) w->dist[s];
	if (!(total > 0 && total < INFINITY))
		return 0;
	uniform = SEED_UNIFORM * total / (double) sample->size;
	total = 0;
	for (size_t s = 0; s < sample->size; s++)
		total += seed_weight(w, s, uniform);

	for (size_t a = 0; a < want * SEED_ATTEMPTS && made < want; a++)
	{
		double		rest = random_unit(w) * total;

		for (size_t s = 0; s < sample->size; s++)
		{
			rest -= seed_weight(w, s, uniform);
			if (rest < 0)
			{
				set_centroid(w, first + made++, row(w, s * sample->step));
				w->dist[s] = 0;
				break;
			}
		}

		/*
		 * otherwise the draw fell on the weight of a row drawn in this batch
		 */
	}
	return made;
}

static void
seed_centroids(Work *w)
{
	size_t		n = w->p->n;
	Sample		sample;
	size_t		made = 1;
	size_t		updated = 0;

	sample.step = n / (SEED_SAMPLE * w->k);
	if (sample.step == 0)
		sample.step = 1;
	sample.size = n / sample.step;
	sample.seeded = false;

	set_centroid(w, 0, row(w, random_next(w) % sample.size * sample.step));
	while (made < w->k)
	{
		size_t		want = w->k - made;
		size_t		drawn;

		/* early batches are small: few seeds say little about distances */
		if (want > made)
			want = made;
		if (want > SEED_BATCH)
			want = SEED_BATCH;
		for (; updated < made; updated += SEED_BATCH)
		{
			size_t		m = made - updated;

			update_distances(w, &sample, updated,
							 m < SEED_BATCH ? m : SEED_BATCH);
			sample.seeded = true;
		}
		updated = made;
		drawn = draw_seeds(w, &sample, made, want);
		if (drawn == 0)
			break;
		made += drawn;
	}

	/* all rows of the sample are seeds or their duplicates: use any rows */
	for (; made < w->k; made++)
		set_centroid(w, made, row(w, random_next(w) % n));
}

/* ---- Lloyd rounds ---- */

static size_t
assign_all(Work *w)
{
	QvAssignJob job = {
		.rows = w->p->rows,
		.n = w->p->n,
		.dim = w->p->dim,
		.centroids = w->centroids,
		.k = w->k,
		.assign = w->assign,
		.workspace = w->assign_workspace,
		.interrupt = w->p->interrupt,
		.interrupt_arg = w->p->interrupt_arg,
	};

	return QvAssignRun(&job);
}

/*
 * Gives the empty cluster "empty" half of the largest.  Both centroids leave the mean in
 * opposite directions, so that the plane between them halves the cluster.  Returns false
 * if the largest consists of duplicates.
 */
static bool
split_largest(Work *w, size_t empty)
{
	size_t		dim = w->p->dim;
	size_t		largest = 0;
	size_t		farthest = 0;
	float		distance = -1;
	float	   *a;
	float	   *b;

	for (size_t c = 1; c < w->k; c++)
	{
		if (w->count[c] > w->count[largest])
			largest = c;
	}
	a = w->centroids + largest * dim;
	b = w->centroids + empty * dim;
	for (size_t i = 0; i < w->p->n; i++)
	{
		if (w->assign[i] == largest)
		{
			float		d = qv_kernels.l2sq_f32(row(w, i), a, dim);

			if (d > distance)
			{
				distance = d;
				farthest = i;
			}
		}
	}
	memcpy(b, a, dim * sizeof(float));
	if (!(distance > 0) || w->count[largest] < 2)
		return false;
	for (size_t j = 0; j < dim; j++)
	{
		float		step = SPLIT_STEP * (row(w, farthest)[j] - a[j]);

		a[j] -= step;
		b[j] += step;
	}
	w->count[empty] = w->count[largest] / 2;
	w->count[largest] -= w->count[empty];
	interrupt(w);
	return true;
}

static void
update_centroids(Work *w)
{
	size_t		dim = w->p->dim;
	bool		splittable = true;

	memset(w->count, 0, w->k * sizeof(*w->count));
	memset(w->centroids, 0, w->k * dim * sizeof(float));
	for (size_t i = 0; i < w->p->n; i++)
	{
		uint32_t	c = w->assign[i];

		w->count[c]++;
		qv_kernels.add_f32(w->centroids + c * dim, row(w, i), dim);
		if (i % 1024 == 1023)
			interrupt(w);
	}
	for (size_t c = 0; c < w->k; c++)
	{
		float		inverse = 1.0f / (float) w->count[c];

		if (w->count[c] == 0)
			continue;
		for (size_t j = 0; j < dim; j++)
			w->centroids[c * dim + j] *= inverse;
	}
	for (size_t c = 0; c < w->k; c++)
	{
		if (w->count[c] == 0)
		{
			if (splittable)
				splittable = split_largest(w, c);
			else
				set_centroid(w, c, row(w, random_next(w) % w->p->n));
		}
	}
	if (w->p->spherical)
	{
		for (size_t c = 0; c < w->k; c++)
			normalize(w, w->centroids + c * dim);
	}
}

size_t
QvKmeans(const QvKmeansParams *p, float *centroids, uint32_t *assign,
		 void *workspace)
{
	char	   *memory = workspace;
	Work		w = {
		.p = p,
		.centroids = centroids,
		.k = p->k < p->n ? p->k : p->n,
		.random = p->seed * UINT64_C(0x9e3779b97f4a7c15) | 1,
	};

	if (p->n == 0)
		return 0;
	w.assign = (uint32_t *) memory;
	memory += QV_ALIGN64(p->n * sizeof(uint32_t));
	w.dist = (float *) memory;
	memory += QV_ALIGN64(p->n * sizeof(float));
	w.count = (uint32_t *) memory;
	memory += QV_ALIGN64(w.k * sizeof(uint32_t));
	w.tile = (float *) memory;
	memory += QV_ASSIGN_ROWS * SEED_BATCH * sizeof(float);
	w.assign_workspace = memory;

	if (p->n <= p->k)
	{
		for (size_t c = 0; c < w.k; c++)
			set_centroid(&w, c, row(&w, c));
	}
	else
		seed_centroids(&w);
	if (p->spherical)
	{
		for (size_t c = 0; c < w.k; c++)
			normalize(&w, centroids + c * p->dim);
	}

	for (size_t i = 0; i < p->n; i++)
		w.assign[i] = UINT32_MAX;
	if (p->n > p->k)
	{
		for (int round = 0; round < p->iterations; round++)
		{
			size_t		changed = assign_all(&w);

			if (changed <= p->n / CONVERGED_FRACTION)
				break;
			update_centroids(&w);
		}
	}
	if (assign != NULL)
	{
		(void) assign_all(&w);
		memcpy(assign, w.assign, p->n * sizeof(uint32_t));
	}
	return w.k;
}
