/*
 * test_cluster.c
 *		k-means and assignment, at every level.
 */
#include "unit.h"

#include <setjmp.h>

#include "cluster/assign.h"
#include "cluster/dimension.h"
#include "cluster/hierarchy.h"
#include "cluster/kmeans.h"

/* A problem and its result; rows are read-only to the library. */
typedef struct Problem
{
	QvKmeansParams p;
	float	   *rows;
	float	   *centroids;
	uint32_t   *assign;
	size_t		made;
} Problem;

static void *
alloc(size_t size)
{
	void	   *p = aligned_alloc(64, (size + 64) / 64 * 64);

	if (p == NULL)
		abort();
	return p;
}

static Problem
problem_new(size_t n, size_t dim, size_t k)
{
	Problem		x = {.p = {.n = n, .dim = dim, .k = k, .iterations = 8, .seed = 7}};

	x.rows = alloc(n * dim * 4);
	x.p.rows = x.rows;
	x.centroids = alloc(k * dim * 4);
	x.assign = alloc(n * 4);
	return x;
}

static void
problem_free(Problem *x)
{
	free(x->rows);
	free(x->centroids);
	free(x->assign);
}

/* The workspace is between inaccessible pages. */
static void
solve(Problem *x)
{
	size_t		size = QvKmeansWorkspace(x->p.n, x->p.dim, x->p.k);
	UnitBuffer	buffer = UnitBufferNew(size);

	memset(buffer.start, 0xee, buffer.size);
	x->made = QvKmeans(&x->p, x->centroids, x->assign,
					   UnitAtEnd(&buffer, (size + 63) / 64 * 64));
	UnitBufferFree(&buffer);
}

static double
distance2(const float *a, const float *b, size_t dim)
{
	double		sum = 0;

	for (size_t i = 0; i < dim; i++)
		sum += ((double) a[i] - (double) b[i]) * ((double) a[i] - (double) b[i]);
	return sum;
}

static double
nearest(const float *row, const float *centroids, size_t k, size_t dim)
{
	double		best = INFINITY;

	for (size_t c = 0; c < k; c++)
		best = fmin(best, distance2(row, centroids + c * dim, dim));
	return best;
}

/* Sum of squared distances to the assigned centroids. */
static double
inertia(const Problem *x)
{
	double		sum = 0;

	for (size_t i = 0; i < x->p.n; i++)
		sum += distance2(x->rows + i * x->p.dim, x->centroids + x->assign[i] * x->p.dim, x->p.dim);
	return sum;
}

/* Rows around "clusters" centers, a tenth as far from them as they are apart. */
static void
fill_mixture(Problem *x, size_t clusters)
{
	size_t		dim = x->p.dim;
	float	   *centers = alloc(clusters * dim * 4);

	UnitFillNormal(centers, clusters * dim);
	UnitFillNormal(x->rows, x->p.n * dim);
	for (size_t i = 0; i < x->p.n; i++)
	{
		size_t		c = UnitRandom() % clusters;

		for (size_t j = 0; j < dim; j++)
			x->rows[i * dim + j] = centers[c * dim + j] + 0.1f * x->rows[i * dim + j];
	}
	free(centers);
}

/* What every result must satisfy. */
static void
check_result(const Problem *x)
{
	size_t		dim = x->p.dim;

	CHECK(x->made == (x->p.k < x->p.n ? x->p.k : x->p.n), "made %zu", x->made);
	for (size_t i = 0; i < x->made * dim; i++)
		CHECK(isfinite(x->centroids[i]), "centroid %zu is not finite", i / dim);
	for (size_t i = 0; i < x->p.n; i++)
	{
		const float *row = x->rows + i * dim;
		double		best = nearest(row, x->centroids, x->made, dim);
		double		got;

		CHECK(x->assign[i] < x->made, "row %zu is assigned to %u", i, x->assign[i]);
		if (x->assign[i] >= x->made)
			continue;
		got = distance2(row, x->centroids + x->assign[i] * dim, dim);
		/* the score is a difference of terms of the size of |row|^2 */
		CHECK(got <= best + 2e-6 * (best + (double) qv_kernels.norm2_f32(row, dim)),
			  "row %zu: %g, nearest %g", i, got, best);
	}
}

/* Lloyd rounds from random rows, in plain C: what we must not be worse than. */
static double
random_seed_inertia(const Problem *x)
{
	size_t		dim = x->p.dim;
	size_t		k = x->p.k;
	float	   *centroids = alloc(k * dim * 4);
	double	   *sums = alloc(k * dim * 8);
	size_t	   *count = alloc(k * sizeof(size_t));
	uint32_t   *assign = alloc(x->p.n * 4);
	void	   *workspace = alloc(QvAssignWorkspace(k));
	double		total = 0;

	for (size_t c = 0; c < k; c++)
		memcpy(centroids + c * dim, x->rows + UnitRandom() % x->p.n * dim, dim * 4);
	for (int round = 0; round <= x->p.iterations; round++)
	{
		QvAssign(x->rows, x->p.n, dim, centroids, k, assign, NULL, workspace);
		if (round == x->p.iterations)
			break;
		memset(sums, 0, k * dim * 8);
		memset(count, 0, k * sizeof(size_t));
		for (size_t i = 0; i < x->p.n; i++)
		{
			count[assign[i]]++;
			for (size_t j = 0; j < dim; j++)
				sums[assign[i] * dim + j] += x->rows[i * dim + j];
		}
		for (size_t c = 0; c < k; c++)
			for (size_t j = 0; j < dim && count[c] > 0; j++)
				centroids[c * dim + j] = (float) (sums[c * dim + j] / (double) count[c]);
	}
	for (size_t i = 0; i < x->p.n; i++)
		total += distance2(x->rows + i * dim, centroids + assign[i] * dim, dim);
	free(centroids);
	free(sums);
	free(count);
	free(assign);
	free(workspace);
	return total;
}

static void
test_assign(void)
{
	static const size_t ns[] = {0, 1, 5, 119, 120, 121, 128, 129, 300};
	static const size_t ks[] = {1, 2, 3, 4, 5, 63, 64, 65, 130};
	static const size_t dims[] = {1, 3, 16, 50, 130};

	for (size_t a = 0; a < 9; a++)
		for (size_t b = 0; b < 9; b++)
			for (size_t c = 0; c < 5; c++)
			{
				size_t		n = ns[a];
				size_t		k = ks[b];
				size_t		dim = dims[c];
				float	   *rows = alloc(n * dim * 4);
				float	   *centroids = alloc(k * dim * 4);
				uint32_t   *assign = alloc(n * 4);
				float	   *dist = alloc(n * 4);
				size_t		size = QvAssignWorkspace(k);
				UnitBuffer	buffer = UnitBufferNew(size);

				UnitFillNormal(rows, n * dim);
				UnitFillNormal(centroids, k * dim);
				QvAssign(rows, n, dim, centroids, k, assign, dist, UnitAtEnd(&buffer, size));
				for (size_t i = 0; i < n; i++)
				{
					double		best = nearest(rows + i * dim, centroids, k, dim);
					double		got = distance2(rows + i * dim, centroids + assign[i] * dim, dim);

					CHECK(assign[i] < k, "assigned to %u of %zu", assign[i], k);
					CHECK(got <= best + 2e-6 * (best + (double) dim), "n %zu k %zu dim %zu row %zu: %g, nearest %g",
						  n, k, dim, i, got, best);
					CHECK(fabs(dist[i] - got) <= 1e-5 * got, "distance %g, not %g",
						  (double) dist[i], got);
				}
				UnitBufferFree(&buffer);
				free(rows);
				free(centroids);
				free(assign);
				free(dist);
			}
}

/* Centroids that equal rows: the distance is 0, not what cancellation leaves. */
static void
test_assign_exact(void)
{
	const size_t n = 200;
	const size_t dim = 100;
	float	   *rows = alloc(n * dim * 4);
	uint32_t   *assign = alloc(n * 4);
	float	   *dist = alloc(n * 4);
	void	   *workspace = alloc(QvAssignWorkspace(n));

	UnitFillNormal(rows, n * dim);
	for (size_t i = 0; i < n * dim; i++)
		rows[i] += 10;
	QvAssign(rows, n, dim, rows, n, assign, dist, workspace);
	for (size_t i = 0; i < n; i++)
		CHECK(assign[i] == i && dist[i] == 0, "row %zu is at %u, %g", i, assign[i],
			  (double) dist[i]);
	free(rows);
	free(assign);
	free(dist);
	free(workspace);
}

static void
test_clusters(void)
{
	static const size_t cases[][4] = {	/* n, dim, k, true clusters */
		{2000, 20, 40, 40}, {3000, 33, 100, 100}, {1500, 8, 30, 10}, {1000, 64, 300, 50},
		{400, 1, 7, 7}
	};

	for (size_t c = 0; c < 5; c++)
	{
		Problem		x = problem_new(cases[c][0], cases[c][1], cases[c][2]);
		double		total = 0;
		double		random = 0;

		for (uint64_t seed = 1; seed <= (c == 4 ? 50 : 5); seed++)
		{
			fill_mixture(&x, cases[c][3]);
			x.p.seed = seed;
			solve(&x);
			check_result(&x);
			total += inertia(&x);
			random += random_seed_inertia(&x);
		}
		CHECK(total <= 1.02 * random, "inertia %g, from random rows %g", total, random);
		/* more of the mixture's own clusters are found than by chance */
		if (cases[c][2] == cases[c][3])
			CHECK(total <= 0.76 * random || c == 4, "inertia %g, from random rows %g", total, random);
		problem_free(&x);
	}
}

/* Nothing to find: every cluster has a fair share all the same. */
static void
test_unclustered(void)
{
	Problem		x = problem_new(4000, 32, 100);
	size_t		count[100] = {0};
	size_t		largest = 0;

	UnitFillNormal(x.rows, x.p.n * x.p.dim);
	solve(&x);
	check_result(&x);
	CHECK(inertia(&x) <= 1.02 * random_seed_inertia(&x), "inertia");
	for (size_t i = 0; i < x.p.n; i++)
		count[x.assign[i]]++;
	for (size_t c = 0; c < 100; c++)
	{
		CHECK(count[c] > 0, "cluster %zu is empty", c);
		largest = count[c] > largest ? count[c] : largest;
	}
	CHECK(largest < 400, "the largest of 100 clusters has %zu of 4000 rows", largest);
	problem_free(&x);
}

static void
test_few_rows(void)
{
	for (size_t n = 0; n <= 12; n++)
	{
		Problem		x = problem_new(n, 5, 10);

		UnitFillNormal(x.rows, n * 5);
		solve(&x);
		check_result(&x);
		if (n <= 10)
			CHECK(inertia(&x) == 0, "every row is a centroid");
		problem_free(&x);
	}
}

static void
test_duplicates(void)
{
	static const size_t distinct[] = {1, 2, 3, 9, 15};

	for (size_t c = 0; c < 5; c++)
	{
		Problem		x = problem_new(500, 24, 10);
		float		values[15 * 24];

		UnitFillNormal(values, 15 * 24);
		for (size_t i = 0; i < x.p.n; i++)
			memcpy(x.rows + i * 24, values + i % distinct[c] * 24, 24 * 4);
		solve(&x);
		check_result(&x);
		if (distinct[c] <= 10)
			CHECK(inertia(&x) <= 1e-10 * 500 * 24, "%zu distinct rows: inertia %g", distinct[c], inertia(&x));

		/* before any round, every centroid is one of the rows */
		memset(x.centroids, 0xee, 10 * 24 * 4);
		x.p.iterations = 0;
		solve(&x);
		for (size_t k = 0; k < 10; k++)
		{
			bool		found = false;

			for (size_t v = 0; v < distinct[c]; v++)
				found |= memcmp(x.centroids + k * 24, values + v * 24, 24 * 4) == 0;
			CHECK(found, "%zu distinct rows: centroid %zu is none", distinct[c], k);
		}
		problem_free(&x);
	}
}

/*
 * All rows on a few rays: a round on the unit sphere makes centroids of one
 * ray equal, so that all but one of them lose their rows.
 */
static void
test_spherical(void)
{
	Problem		x = problem_new(900, 12, 30);

	x.p.spherical = 1;
	UnitFillNormal(x.rows, x.p.n * 12);
	solve(&x);
	check_result(&x);
	for (size_t c = 0; c < x.made; c++)
	{
		double		norm = sqrt(distance2(x.centroids + c * 12, (float[12]) {0}, 12));

		CHECK(fabs(norm - 1) < 1e-5, "centroid %zu has length %g", c, norm);
	}

	for (size_t i = 0; i < x.p.n; i++)
	{
		float		length = (float) (1 + UnitUniform());

		for (size_t j = 0; j < 12; j++)
			x.rows[i * 12 + j] = length * ((j == i % 3) + 0.02f * UnitNormal());
	}
	solve(&x);
	check_result(&x);
	{
		size_t		count[30] = {0};
		size_t		empty = 0;
		size_t		largest = 0;

		for (size_t i = 0; i < x.p.n; i++)
			count[x.assign[i]]++;
		for (size_t c = 0; c < 30; c++)
		{
			empty += count[c] == 0;
			largest = count[c] > largest ? count[c] : largest;
		}
		CHECK(empty <= 2, "%zu empty clusters", empty);
		CHECK(largest <= 100, "the largest of 30 clusters has %zu of 900 rows", largest);
	}
	problem_free(&x);
}

/* Rows without a direction do not take those that are short. */
static void
test_spherical_zeros(void)
{
	Problem		x = problem_new(900, 12, 30);
	size_t		count[30] = {0};
	size_t		largest = 0;

	x.p.spherical = 1;
	UnitFillNormal(x.rows, x.p.n * 12);
	for (size_t i = 0; i < x.p.n * 12; i++)
		x.rows[i] *= i / 12 % 20 == 0 ? 0 : 0.03f;
	solve(&x);
	for (size_t c = 0; c < x.made; c++)
	{
		double		norm = sqrt(distance2(x.centroids + c * 12, (float[12]) {0}, 12));

		CHECK(fabs(norm - 1) < 1e-5, "centroid %zu has length %g", c, norm);
	}
	for (size_t i = 0; i < x.p.n; i++)
		count[x.assign[i]]++;
	for (size_t c = 0; c < 30; c++)
		largest = count[c] > largest ? count[c] : largest;
	CHECK(largest <= 150, "the largest of 30 clusters has %zu of 900 rows", largest);
	problem_free(&x);
}

/* One far row takes a seed each time; the rest must still be divided. */
static void
test_refill(void)
{
	Problem		x = problem_new(1000, 4, 20);
	size_t		count[20] = {0};

	/* all rows but one equal up to a little noise, far from the origin */
	for (size_t i = 0; i < x.p.n; i++)
		for (size_t j = 0; j < 4; j++)
			x.rows[i * 4 + j] = i == 17 ? -100 : (float) (i % 16 + 1) + 1e-3f * UnitNormal();
	solve(&x);
	check_result(&x);
	for (size_t i = 0; i < x.p.n; i++)
		count[x.assign[i]]++;
	for (size_t c = 0; c < 20; c++)
		CHECK(count[c] > 0, "cluster %zu is empty", c);
	problem_free(&x);
}

static void
test_deterministic(void)
{
	Problem		x = problem_new(1500, 40, 60);
	float	   *first = alloc(60 * 40 * 4);

	fill_mixture(&x, 200);
	solve(&x);
	memcpy(first, x.centroids, 60 * 40 * 4);
	memset(x.centroids, 0xee, 60 * 40 * 4);
	solve(&x);
	CHECK(memcmp(first, x.centroids, 60 * 40 * 4) == 0, "the same seed gives the same centroids");
	x.p.seed++;
	solve(&x);
	CHECK(memcmp(first, x.centroids, 60 * 40 * 4) != 0, "another seed gives others");

	/* assign may be NULL, and changes nothing */
	x.p.seed--;
	{
		void	   *workspace = alloc(QvKmeansWorkspace(1500, 40, 60));

		QvKmeans(&x.p, x.centroids, NULL, workspace);
		CHECK(memcmp(first, x.centroids, 60 * 40 * 4) == 0, "without assign");
		free(workspace);
	}
	free(first);
	problem_free(&x);
}

/* Rounds never make it worse. */
static void
test_rounds(void)
{
	Problem		x = problem_new(2000, 16, 50);
	double		before = INFINITY;

	fill_mixture(&x, 70);
	for (int rounds = 0; rounds <= 6; rounds++)
	{
		double		now;

		x.p.iterations = rounds;
		solve(&x);
		check_result(&x);
		now = inertia(&x);
		CHECK(now <= before * 1.0001, "%d rounds: %g after %g", rounds, now, before);
		before = now;
	}
	problem_free(&x);
}

/* ---- two levels ---- */

/* Guarded memory of exactly that size, filled with rubbish. */
static UnitBuffer
workspace_new(size_t size, void **start)
{
	UnitBuffer	buffer = UnitBufferNew(size + 64);

	memset(buffer.start, 0xee, buffer.size);
	*start = UnitAtEnd(&buffer, (size + 63) / 64 * 64);
	return buffer;
}

/*
 * Solve with so many top clusters, running task (i * step + step / 2) % tops as
 * the i-th; step and tops have no common divisor.  Fills parent and x->assign,
 * and checks what holds for every result.
 */
static void
solve_hierarchy(Problem *x, size_t tops, size_t step, uint32_t *parent)
{
	QvHierarchyParams p = {
		.rows = x->p.rows,
		.n = x->p.n,
		.dim = x->p.dim,
		.k = x->p.k,
		.iterations = x->p.iterations,
		.seed = x->p.seed,
		.spherical = x->p.spherical,
		.interrupt = x->p.interrupt,
		.interrupt_arg = x->p.interrupt_arg,
	};
	size_t		dim = x->p.dim;
	size_t		wanted = x->p.k < x->p.n ? x->p.k : x->p.n;
	size_t		sum = 0;
	size_t		plan_size = QvHierarchyPlanSize(x->p.n, tops);
	void	   *plan;
	void	   *workspace;
	UnitBuffer	plan_buffer = UnitBufferNew(plan_size);
	UnitBuffer	buffer = workspace_new(QvHierarchyPlanWorkspace(&p, tops), &workspace);

	plan = UnitAtEnd(&plan_buffer, (plan_size + 7) / 8 * 8);
	memset(plan, 0xee, plan_size);
	QvHierarchyPlan(&p, tops, plan, workspace);
	UnitBufferFree(&buffer);

	memset(parent, 0xee, x->p.k * 4);
	for (size_t i = 0; i < tops; i++)
	{
		size_t		made;
		size_t		task = (i * step + step / 2) % tops;

		buffer = workspace_new(QvHierarchyTaskWorkspace(&p, plan), &workspace);
		made = QvHierarchyTask(&p, plan, task, x->centroids, parent, workspace);
		sum += made;
		UnitBufferFree(&buffer);
	}
	x->made = QvHierarchyFinish(&p, plan, x->centroids, parent);
	UnitBufferFree(&plan_buffer);

	CHECK(x->made == sum, "%zu centroids, the tasks made %zu", x->made, sum);
	CHECK(x->made <= wanted && (x->made > 0 || wanted == 0), "made %zu of %zu", x->made, wanted);
	for (size_t c = 0; c < x->made; c++)
	{
		CHECK(parent[c] < tops, "parent %u of %zu", parent[c], tops);
		CHECK(c == 0 || parent[c] >= parent[c - 1], "parents are in order");
		for (size_t j = 0; j < dim; j++)
			CHECK(isfinite(x->centroids[c * dim + j]), "centroid %zu is not finite", c);
		if (x->p.spherical)
		{
			double		norm = sqrt((double) qv_kernels.norm2_f32(x->centroids + c * dim, dim));

			CHECK(fabs(norm - 1) < 1e-5, "centroid %zu has length %g", c, norm);
		}
	}
	if (x->made > 0)
	{
		void	   *w = alloc(QvAssignWorkspace(x->made));

		memset(x->assign, 0, x->p.n * 4);
		QvAssign(x->rows, x->p.n, dim, x->centroids, x->made, x->assign, NULL, w);
		free(w);
	}
}

/* All numbers of centroids from 1 to more than there are rows, and of tops. */
static void
test_hierarchy_counts(void)
{
	static const size_t ns[] = {0, 1, 2, 3, 10, 47};
	static const size_t tops[] = {1, 2, 7, 60};

	for (size_t a = 0; a < 6; a++)
		for (size_t k = 1; k <= ns[a] + 3; k++)
			for (size_t b = 0; b < 4; b++)
			{
				Problem		x = problem_new(ns[a], 3, k);
				uint32_t   *parent = alloc(k * 4);

				x.p.iterations = 3;
				x.p.spherical = k % 2;
				UnitFillNormal(x.rows, ns[a] * 3);
				solve_hierarchy(&x, tops[b], 1, parent);
				/* rows differ in direction as well */
				CHECK(x.made == (k < ns[a] ? k : ns[a]), "n %zu k %zu tops %zu: made %zu",
					  ns[a], k, tops[b], x.made);
				if (k >= ns[a] && !x.p.spherical)
					CHECK(ns[a] == 0 || inertia(&x) == 0, "every row is a centroid");
				free(parent);
				problem_free(&x);
			}
}

/* Centroids of equal rows are one. */
static void
test_hierarchy_duplicates(void)
{
	static const size_t distinct[] = {1, 2, 3, 9, 40};
	static const size_t tops[] = {1, 3, 8};

	for (size_t c = 0; c < 5; c++)
		for (size_t t = 0; t < 3; t++)
		{
			Problem		x = problem_new(500, 24, 30);
			uint32_t	parent[30];
			float		values[40 * 24];

			UnitFillNormal(values, 40 * 24);
			for (size_t i = 0; i < x.p.n; i++)
				memcpy(x.rows + i * 24, values + i % distinct[c] * 24, 24 * 4);
			solve_hierarchy(&x, tops[t], 1, parent);
			for (size_t i = 0; i < x.made; i++)
				for (size_t j = 0; j < i; j++)
					CHECK(parent[i] != parent[j] ||
						  memcmp(x.centroids + i * 24, x.centroids + j * 24, 24 * 4) != 0,
						  "centroids %zu and %zu are equal", i, j);
			CHECK(x.made >= (distinct[c] < 30 ? distinct[c] : 1), "%zu distinct rows: %zu centroids",
				  distinct[c], x.made);
			/* means of equal rows differ in the last digit */
			if (distinct[c] == 1)
				CHECK(x.made <= 10, "%zu centroids of one row", x.made);
			if (distinct[c] < 10)
				CHECK(inertia(&x) <= 1e-10 * 500 * 24, "%zu distinct rows: inertia %g", distinct[c], inertia(&x));
			problem_free(&x);
		}
}

/* Whatever the order of the tasks; and one task is plain k-means. */
static void
test_hierarchy_deterministic(void)
{
	const size_t k = 300;
	Problem		x = problem_new(3000, 16, k);
	float	   *first = alloc(k * 16 * 4);
	uint32_t   *parent = alloc(k * 4);
	uint32_t   *first_parent = alloc(k * 4);

	fill_mixture(&x, 200);
	solve_hierarchy(&x, 17, 1, first_parent);
	memcpy(first, x.centroids, k * 16 * 4);
	for (size_t step = 2; step < 17; step += 7)
	{
		memset(x.centroids, 0xee, k * 16 * 4);
		solve_hierarchy(&x, 17, step, parent);
		CHECK(memcmp(first, x.centroids, k * 16 * 4) == 0, "another order, other centroids");
		CHECK(memcmp(first_parent, parent, k * 4) == 0, "another order, other parents");
	}
	x.p.seed++;
	solve_hierarchy(&x, 17, 1, parent);
	CHECK(memcmp(first, x.centroids, k * 16 * 4) != 0, "another seed gives others");

	solve_hierarchy(&x, 1, 1, parent);
	memcpy(first, x.centroids, k * 16 * 4);
	solve(&x);
	CHECK(memcmp(first, x.centroids, k * 16 * 4) == 0, "one task is plain k-means");
	free(first);
	free(parent);
	free(first_parent);
	problem_free(&x);
}

/*
 * Nearly as good as k-means of one level, and as fairly divided.  For most
 * seeds: now and then two of the mixture's clusters share a centroid.
 */
static void
test_hierarchy_inertia(void)
{
	static const size_t cases[][5] = {	/* n, dim, k, true clusters, spherical */
		{4000, 16, 260, 100, 0}, {4000, 16, 260, 100, 1}, {4000, 12, 260, 2000, 0}
	};

	for (size_t c = 0; c < 3; c++)
	{
		Problem		x = problem_new(cases[c][0], cases[c][1], cases[c][2]);
		uint32_t   *parent = alloc(x.p.k * 4);
		int			good = 0;

		x.p.spherical = (int) cases[c][4];
		for (x.p.seed = 1; x.p.seed <= UNIT_SEEDS(6); x.p.seed++)
		{
			double		flat;
			double		two;
			size_t		largest = 0;
			size_t	   *count = calloc(x.p.k, sizeof(size_t));

			fill_mixture(&x, cases[c][3]);
			for (size_t i = 0; i < x.p.n && x.p.spherical; i++)
			{
				float	   *row = x.rows + i * x.p.dim;
				float		norm = sqrtf(qv_kernels.norm2_f32(row, x.p.dim));

				for (size_t j = 0; j < x.p.dim; j++)
					row[j] /= norm;
			}
			solve(&x);
			flat = inertia(&x);
			solve_hierarchy(&x, QvHierarchyTops(x.p.n, x.p.k), 1, parent);
			CHECK(x.made == x.p.k, "made %zu", x.made);
			two = inertia(&x);
			for (size_t i = 0; i < x.p.n; i++)
				count[x.assign[i]]++;
			for (size_t i = 0; i < x.p.k; i++)
				largest = count[i] > largest ? count[i] : largest;
			CHECK(largest <= 10 * x.p.n / x.p.k, "the largest cluster has %zu rows", largest);
			/* the last have no clusters to speak of */
			good += two <= (c < 2 ? 1.03 : 1.12) * flat;
			free(count);
		}
		CHECK(good >= UNIT_SEEDS(6) * 2 / 3, "%d of %d seeds are nearly as good", good, UNIT_SEEDS(6));
		free(parent);
		problem_free(&x);
	}
}

/* Almost all rows in one top cluster: shares still add up, none without one. */
static void
test_hierarchy_skew(void)
{
	Problem		x = problem_new(2000, 4, 40);
	uint32_t	parent[40];
	size_t		tops = 12;
	size_t		children[12] = {0};

	for (size_t i = 0; i < x.p.n; i++)
		for (size_t j = 0; j < 4; j++)
			x.rows[i * 4 + j] = (i % 100 == 7 ? 1000.0f * (float) (i / 200) : 0) + UnitNormal();
	solve_hierarchy(&x, tops, 5, parent);
	CHECK(x.made == 40, "made %zu", x.made);
	for (size_t c = 0; c < x.made; c++)
		children[parent[c]]++;
	for (size_t t = 0; t < tops; t++)
		CHECK(children[t] > 0, "no centroid of top cluster %zu", t);
	problem_free(&x);
}

static void
test_hierarchy_tops(void)
{
	CHECK(QvHierarchyTops(100000, 1) == 1 && QvHierarchyTops(100000, 256) == 1, "one");
	CHECK(QvHierarchyTops(100, 5000) == 1, "never more centroids than rows");
	for (size_t k = 300; k < 100000; k *= 3)
	{
		size_t		tops = QvHierarchyTops(50 * k, k);

		CHECK(tops > 1 && tops * tops <= 4 * k && 4 * tops * tops >= k, "k %zu: %zu", k, tops);
	}
}

static int	interrupts;
static int	interrupt_limit;
static jmp_buf escape;

static void
count_interrupt(void *arg)
{
	CHECK(arg == &interrupts, "the argument is passed on");
	if (++interrupts == interrupt_limit)
		longjmp(escape, 1);
}

/* n normal rows of d dimensions, turned into dim >= d coordinates. */
static float *
embedded_rows(size_t n, size_t d, size_t dim)
{
	float	   *rows = alloc(n * dim * 4);
	float	   *map = alloc(d * dim * 4);

	UnitFillNormal(map, d * dim);
	memset(rows, 0, n * dim * 4);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < d; j++)
		{
			float		x = UnitNormal();

			for (size_t c = 0; c < dim; c++)
				rows[i * dim + c] += x * map[j * dim + c];
		}
	free(map);
	return rows;
}

static double
dimension_of(const float *rows, size_t n, size_t dim)
{
	return QvIntrinsicDimension(rows, n, dim, NULL, NULL);
}

static void
test_dimension(void)
{
	static const size_t own[] = {1, 2, 4, 8, 16};
	const size_t n = 5000,
				dim = 48;
	double		before = 0;

	for (size_t c = 0; c < 5; c++)
	{
		float	   *rows = embedded_rows(n, own[c], dim);
		double		found = dimension_of(rows, n, dim);

		/* the estimate is too small where 2,000 rows are few */
		CHECK(found > 0.75 * own[c] && found < 1.25 * own[c], "%g of %zu dimensions", found, own[c]);
		CHECK(found > before, "%g after %g", found, before);
		before = found;

		/* that some rows are many times there says nothing about the others */
		for (size_t i = 0; i < n; i += 3)
			memcpy(rows + i * dim, rows, dim * 4);
		found = dimension_of(rows, n, dim);
		CHECK(found > 0.75 * own[c] && found < 1.25 * own[c], "%g of %zu dimensions", found, own[c]);
		free(rows);
	}
}

/* Too few rows to tell, and nothing but one. */
static void
test_dimension_unknown(void)
{
	const size_t n = 1000;
	float	   *rows = embedded_rows(n, 3, 16);

	for (size_t few = 0; few < n; few = few * 2 + 1)
		CHECK(dimension_of(rows, few, 16) == INFINITY, "%zu rows", few);
	CHECK(dimension_of(rows, n, 16) < 4, "3 dimensions");
	for (size_t i = 0; i < n * 16; i++)
		rows[i] = 1;
	CHECK(dimension_of(rows, n, 16) == 0, "rows at one place");

	/*
	 * far from the origin and as near as float can tell: whatever, but a
	 * number
	 */
	for (size_t i = 0; i < n * 16; i++)
		rows[i] = 1e18f * (1 + UnitRandom() % 2);
	CHECK(dimension_of(rows, n, 16) >= 0, "distances that overflow");
	free(rows);
}

static void
test_interrupt(void)
{
	Problem		x = problem_new(5000, 16, 50);

	fill_mixture(&x, 70);
	x.p.interrupt = count_interrupt;
	x.p.interrupt_arg = &interrupts;
	interrupts = 0;
	interrupt_limit = 0;
	solve(&x);
	CHECK(interrupts >= 5 * 2, "called %d times", interrupts);

	/* leaving at any call is safe */
	{
		void	   *workspace = alloc(QvKmeansWorkspace(5000, 16, 50));
		int			most = interrupts;

		for (volatile int limit = 1; limit <= most; limit += 7)
		{
			interrupts = 0;
			interrupt_limit = limit;
			if (setjmp(escape) == 0)
				QvKmeans(&x.p, x.centroids, x.assign, workspace);
			CHECK(interrupts == limit, "left at call %d of %d", interrupts, limit);
		}
		free(workspace);
	}

	/* both levels pass it on */
	{
		uint32_t   *parent = alloc(50 * 4);

		interrupts = 0;
		interrupt_limit = 0;
		solve_hierarchy(&x, 7, 1, parent);
		CHECK(interrupts >= 2 * 5000 / 120, "called %d times", interrupts);
		free(parent);
	}

	interrupts = 0;
	interrupt_limit = 0;
	QvIntrinsicDimension(x.rows, 5000, 16, count_interrupt, &interrupts);
	CHECK(interrupts >= 50, "called %d times", interrupts);
	problem_free(&x);
}

void
SuiteCluster(void)
{
	for (const char *const *l = QvKernelsAvailable(); *l != NULL; l++)
	{
		if (!QvKernelsSetLevel(*l))
			abort();
		UnitRun("assignment equals brute force", *l, test_assign);
		UnitRun("distances of assignment", *l, test_assign_exact);
		UnitRun("k-means finds clusters", *l, test_clusters);
		UnitRun("k-means without clusters", *l, test_unclustered);
		UnitRun("k-means of few rows", *l, test_few_rows);
		UnitRun("k-means of duplicates", *l, test_duplicates);
		UnitRun("spherical k-means", *l, test_spherical);
		UnitRun("spherical k-means, zeros", *l, test_spherical_zeros);
		UnitRun("k-means refills clusters", *l, test_refill);
		UnitRun("k-means is deterministic", *l, test_deterministic);
		UnitRun("rounds of k-means", *l, test_rounds);
		UnitRun("interrupts of clustering", *l, test_interrupt);
		UnitRun("intrinsic dimension", *l, test_dimension);
		UnitRun("intrinsic dimension of what has none", *l, test_dimension_unknown);
		UnitRun("two levels: every k", *l, test_hierarchy_counts);
		UnitRun("two levels of duplicates", *l, test_hierarchy_duplicates);
		UnitRun("two levels are deterministic", *l, test_hierarchy_deterministic);
		UnitRun("two levels against one", *l, test_hierarchy_inertia);
		UnitRun("two levels of skewed rows", *l, test_hierarchy_skew);
		UnitRun("number of top clusters", *l, test_hierarchy_tops);
#ifdef __SANITIZE_ADDRESS__

		/*
		 * clustering is the same code at each level; kernels have tests of
		 * their own
		 */
		break;
#endif
	}
}
