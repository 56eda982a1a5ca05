/*
 * hierarchy.c
 *		k-means of two levels: see src/cluster/README.md, "Hierarchy".
 */
#include "cluster/hierarchy.h"

#include "cluster/assign.h"
#include "cluster/kmeans.h"

#include <math.h>
#include <string.h>

/*
 * Up to this number of centroids one task is best: see src/cluster/README.md,
 * "Hierarchy".
 */
#define FLAT_MAX 256
/* Rows for each top cluster in the sample that top clusters are made from. */
#define TOP_SAMPLE 256

/* The parent of a centroid that was planned but not made. */
#define NOT_MADE UINT32_MAX

/*
 * Where the parts of a plan are.  Top cluster t has the rows order[row_end[t - 1] ..
 * row_end[t]) and the centroids centroid_end[t - 1] .. centroid_end[t].  Ends are stored
 * rather than starts, so that the arrays have the length tops.  There is no order when
 * there is one cluster.
 */
typedef struct Plan
{
	uint64_t   *row_end;
	uint64_t   *centroid_end;
	uint32_t   *order;
	size_t		tops;
} Plan;

/* The start of a plan. */
typedef struct PlanHeader
{
	uint64_t	tops;
} PlanHeader;

static Plan
plan_parts(const void *memory)
{
	Plan		plan;
	const PlanHeader *header = memory;

	plan.tops = header->tops;
	plan.row_end = (uint64_t *) (header + 1);
	plan.centroid_end = plan.row_end + plan.tops;
	plan.order = (uint32_t *) (plan.centroid_end + plan.tops);
	return plan;
}

static size_t
part_start(const uint64_t *ends, size_t t)
{
	return t > 0 ? ends[t - 1] : 0;
}

static size_t
part_size(const uint64_t *ends, size_t t)
{
	return ends[t] - part_start(ends, t);
}

static size_t
centroids_wanted(const QvHierarchyParams *p)
{
	return p->k < p->n ? p->k : p->n;
}

size_t
QvHierarchyTops(size_t n, size_t k)
{
	if (k > n)
		k = n;
	return k <= FLAT_MAX ? 1 : (size_t) lround(sqrt((double) k));
}

/* ---- plan ---- */

static size_t
sample_size(size_t n, size_t tops)
{
	return tops * TOP_SAMPLE < n ? tops * TOP_SAMPLE : n;
}

size_t
QvHierarchyPlanSize(size_t n, size_t tops)
{
	return sizeof(PlanHeader) + 2 * tops * sizeof(uint64_t) +
		(tops > 1 ? n * sizeof(uint32_t) : 0);
}

/*
 * The workspace holds the centroids of the top clusters and the cluster of every row.
 * Beside them it holds either a sample with the workspace of its k-means, or the
 * workspace of the assignment of all rows.
 */
size_t
QvHierarchyPlanWorkspace(const QvHierarchyParams *p, size_t tops)
{
	size_t		sample = sample_size(p->n, tops);
	size_t		first;
	size_t		second = QvAssignWorkspace(tops);

	if (tops <= 1)
		return 0;
	first = QV_ALIGN64(sample * p->dim * sizeof(float)) +
		QvKmeansWorkspace(sample, p->dim, tops);
	return QV_ALIGN64(tops * p->dim * sizeof(float)) +
		QV_ALIGN64(p->n * sizeof(uint32_t)) +
		(first > second ? first : second);
}

/* Makes the top clusters.  Returns their number. */
static size_t
make_tops(const QvHierarchyParams *p, size_t tops, float *centroids,
		  void *workspace)
{
	size_t		sampled = sample_size(p->n, tops);
	size_t		rowsize = p->dim * sizeof(float);
	float	   *sample = workspace;
	QvKmeansParams params = {
		.rows = sample,
		.n = sampled,
		.dim = p->dim,
		.k = tops,
		.iterations = p->iterations,
		.seed = p->seed,
		.spherical = p->spherical,
		.interrupt = p->interrupt,
		.interrupt_arg = p->interrupt_arg,
	};

	for (size_t i = 0; i < sampled; i++)
	{
		size_t		row = (size_t) ((uint64_t) i * p->n / sampled);

		memcpy(sample + i * p->dim, p->rows + row * p->dim, rowsize);
	}
	return QvKmeans(&params, centroids, NULL,
					(char *) workspace + QV_ALIGN64(sampled * rowsize));
}

/* Sorts the row numbers by cluster. */
static void
sort_rows(const QvHierarchyParams *p, Plan *plan, const uint32_t *assign)
{
	size_t		end = 0;

	memset(plan->row_end, 0, plan->tops * sizeof(uint64_t));
	for (size_t i = 0; i < p->n; i++)
		plan->row_end[assign[i]]++;
	for (size_t t = 0; t < plan->tops; t++)
	{
		size_t		rows = plan->row_end[t];

		plan->row_end[t] = end;
		end += rows;
	}
	/* a start becomes the end when all rows are in */
	for (size_t i = 0; i < p->n; i++)
		plan->order[plan->row_end[assign[i]]++] = (uint32_t) i;
}

/*
 * Divides the centroids between the clusters.  Each cluster with rows gets at least one,
 * at most as many as it has rows, and otherwise a number in proportion to its rows.  The
 * sum is exactly the number wanted.
 */
static void
share_centroids(const QvHierarchyParams *p, Plan *plan)
{
	size_t		wanted = centroids_wanted(p);
	size_t		given = 0;
	size_t		end = 0;

	for (size_t t = 0; t < plan->tops; t++)
	{
		size_t		rows = part_size(plan->row_end, t);
		size_t		share = 0;

		if (rows > 0)
			share = (size_t) ((uint64_t) rows * wanted / p->n);
		if (share == 0 && rows > 0)
			share = 1;
		plan->centroid_end[t] = share;
		given += share;
	}

	/*
	 * corrects roundings one by one, where a centroid has most or fewest rows
	 */
	while (given != wanted)
	{
		size_t		best = 0;
		double		best_load = -1;

		for (size_t t = 0; t < plan->tops; t++)
		{
			size_t		rows = part_size(plan->row_end, t);
			size_t		share = plan->centroid_end[t];
			double		load;

			if (given < wanted ? share >= rows : share <= 1)
				continue;
			load = given < wanted ? (double) rows / (double) (share + 1) :
				(double) share / (double) rows;
			if (load > best_load)
			{
				best_load = load;
				best = t;
			}
		}
		if (given < wanted)
		{
			plan->centroid_end[best]++;
			given++;
		}
		else
		{
			plan->centroid_end[best]--;
			given--;
		}
	}
	for (size_t t = 0; t < plan->tops; t++)
	{
		end += plan->centroid_end[t];
		plan->centroid_end[t] = end;
	}
}

void
QvHierarchyPlan(const QvHierarchyParams *p, size_t tops, void *memory,
				void *workspace)
{
	Plan		plan;

	((PlanHeader *) memory)->tops = tops;
	plan = plan_parts(memory);
	if (tops <= 1)
	{
		for (size_t t = 0; t < tops; t++)
		{
			plan.row_end[t] = p->n;
			plan.centroid_end[t] = centroids_wanted(p);
		}
	}
	else
	{
		float	   *centroids = workspace;
		uint32_t   *assign = (uint32_t *) ((char *) centroids +
										   QV_ALIGN64(tops * p->dim *
													  sizeof(float)));
		char	   *rest = (char *) assign +
			QV_ALIGN64(p->n * sizeof(uint32_t));
		QvAssignJob job = {
			.rows = p->rows,
			.n = p->n,
			.dim = p->dim,
			.centroids = centroids,
			.assign = assign,
			.workspace = rest,
			.interrupt = p->interrupt,
			.interrupt_arg = p->interrupt_arg,
		};

		/* no more clusters than centroids, or some would have none */
		job.k = make_tops(p, tops < p->k ? tops : p->k, centroids, rest);
		memset(assign, 0, p->n * sizeof(uint32_t));
		(void) QvAssignRun(&job);
		sort_rows(p, &plan, assign);
		share_centroids(p, &plan);
	}
}

/* ---- tasks ---- */

/* Is a copy of the rows needed?  They lie together when they are all rows. */
static size_t
copied_rows(const QvHierarchyParams *p, const Plan *plan, size_t task)
{
	size_t		rows = part_size(plan->row_end, task);

	return rows < p->n ? rows : 0;
}

size_t
QvHierarchyTaskWorkspace(const QvHierarchyParams *p, const void *memory)
{
	Plan		plan = plan_parts(memory);
	size_t		most = 0;

	for (size_t t = 0; t < plan.tops; t++)
	{
		size_t		size;

		size = QV_ALIGN64(copied_rows(p, &plan, t) * p->dim * sizeof(float)) +
			QvKmeansWorkspace(part_size(plan.row_end, t), p->dim,
							  part_size(plan.centroid_end, t));
		most = size > most ? size : most;
	}
	return most;
}

/* Returns another seed for every task.  The first task has the seed itself. */
static uint64_t
task_seed(uint64_t seed, size_t task)
{
	return seed + task * UINT64_C(0xbf58476d1ce4e5b9);
}

static uint64_t
hash_centroid(const float *centroid, size_t dim)
{
	uint64_t	hash = 0;

	for (size_t i = 0; i < dim; i++)
	{
		uint32_t	bits;

		memcpy(&bits, centroid + i, sizeof(bits));
		hash = (hash ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}

/*
 * Keeps the first of equal centroids and closes the gaps.  Returns the number left.
 * "table" has room for 2 k numbers, as QvKmeansWorkspace() of k or more rows has.
 */
static size_t
drop_equals(float *centroids, size_t k, size_t dim, uint32_t *table)
{
	size_t		rowsize = dim * sizeof(float);
	size_t		left = 0;

	memset(table, 0, 2 * k * sizeof(uint32_t));
	for (size_t c = 0; c < k; c++)
	{
		const float *centroid = centroids + c * dim;
		size_t		slot = hash_centroid(centroid, dim) % (2 * k);

		while (table[slot] != 0 &&
			   memcmp(centroids + (table[slot] - 1) * dim, centroid,
					  rowsize) != 0)
			slot = (slot + 1) % (2 * k);
		if (table[slot] != 0)
			continue;
		if (c != left)
			memcpy(centroids + left * dim, centroid, rowsize);
		table[slot] = (uint32_t) ++left;
	}
	return left;
}

size_t
QvHierarchyTask(const QvHierarchyParams *p, const void *memory, size_t task,
				float *centroids, uint32_t *parent, void *workspace)
{
	Plan		plan = plan_parts(memory);
	size_t		first = part_start(plan.centroid_end, task);
	size_t		planned = part_size(plan.centroid_end, task);
	size_t		copied = copied_rows(p, &plan, task);
	size_t		made;
	QvKmeansParams params = {
		.rows = p->rows,
		.n = part_size(plan.row_end, task),
		.dim = p->dim,
		.k = planned,
		.iterations = p->iterations,
		.seed = task_seed(p->seed, task),
		.spherical = p->spherical,
		.interrupt = p->interrupt,
		.interrupt_arg = p->interrupt_arg,
	};

	if (planned == 0)
		return 0;
	centroids += first * p->dim;
	parent += first;
	if (copied > 0)
	{
		const uint32_t *order = plan.order + part_start(plan.row_end, task);
		float	   *rows = workspace;

		for (size_t i = 0; i < copied; i++)
		{
			memcpy(rows + i * p->dim, p->rows + order[i] * p->dim,
				   p->dim * sizeof(float));
			if (i % 1024 == 1023 && p->interrupt != NULL)
				p->interrupt(p->interrupt_arg);
		}
		params.rows = rows;
		workspace = (char *) workspace +
			QV_ALIGN64(copied * p->dim * sizeof(float));
	}
	made = QvKmeans(&params, centroids, NULL, workspace);
	made = drop_equals(centroids, made, p->dim, workspace);
	for (size_t c = 0; c < planned; c++)
		parent[c] = c < made ? (uint32_t) task : NOT_MADE;
	return made;
}

/* ---- finish ---- */

size_t
QvHierarchyFinish(const QvHierarchyParams *p, const void *plan,
				  float *centroids, uint32_t *parent)
{
	size_t		made = 0;

	(void) plan;
	for (size_t c = 0; c < centroids_wanted(p); c++)
	{
		if (parent[c] == NOT_MADE)
			continue;
		if (c != made)
		{
			memcpy(centroids + made * p->dim, centroids + c * p->dim,
				   p->dim * sizeof(float));
			parent[made] = parent[c];
		}
		made++;
	}
	return made;
}
