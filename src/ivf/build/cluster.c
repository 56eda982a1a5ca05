/*
 * cluster.c
 *		k-means of a sample, task by task; see cluster.h.
 *
 * src/cluster/README.md, "Hierarchy", has the tasks.
 */
#include "postgres.h"

#include "cluster/hierarchy.h"
#include "cluster/kmeans.h"
#include "ivf/build/cluster.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "space/parallel.h"
#include "space/sample.h"
#include "utils/memutils.h"

/* What the participants share.  Arrays follow it. */
typedef struct ClusterShared
{
	pg_atomic_uint32 next_task; /* number of the next task to be done */
	uint32		tops;
	size_t		n;
	size_t		dim;
	size_t		k;
	int			iterations;
	int			spherical;
	uint64		seed;
	Size		rows;			/* distances of the arrays from here */
	Size		plan;
	Size		centroids;
	Size		parent;
} ClusterShared;

struct IvfCluster
{
	IvfClusterData data;
	size_t		target;
	QvParallel	parallel;
	ClusterShared *shared;
	void	   *memory;			/* what shared is in, if there are no workers */
	int			workers;
	Size		max_memory;
};

#define SharedAt(shared, at) ((void *) ((char *) (shared) + (at)))

static void
get_params(ClusterShared *shared, QvHierarchyParams *params)
{
	params->rows = SharedAt(shared, shared->rows);
	params->n = shared->n;
	params->dim = shared->dim;
	params->k = shared->k;
	params->iterations = shared->iterations;
	params->seed = shared->seed;
	params->spherical = shared->spherical;
	params->interrupt = QvClusterInterrupt;
	params->interrupt_arg = NULL;
}

/*
 * Sets the distances of the arrays from a header at an address that is aligned as base is.
 * Returns the size of all.
 */
static Size
place_arrays(ClusterShared *at, const void *base, size_t n, size_t dim, size_t k, size_t tops)
{
	Size		misaligned = (uintptr_t) base % 64;
	Size		end = misaligned + sizeof(ClusterShared);

	end = TYPEALIGN(64, end);
	at->rows = end - misaligned;
	end = TYPEALIGN(64, add_size(end, mul_size(n * dim, sizeof(float))));
	at->plan = end - misaligned;
	end = TYPEALIGN(64, add_size(end, QvHierarchyPlanSize(n, tops)));
	at->centroids = end - misaligned;
	end = TYPEALIGN(64, add_size(end, mul_size(k * dim, sizeof(float))));
	at->parent = end - misaligned;
	return add_size(end, k * sizeof(uint32)) + 64;
}

static Size
shared_size(size_t n, size_t dim, size_t k)
{
	ClusterShared at;

	return place_arrays(&at, NULL, n, dim, k, QvHierarchyTops(n, k));
}

/*
 * Returns the bytes of a participant's workspace.  A task is assumed to have at most three times
 * the rows of an average task.  IvfClusterRun() handles larger tasks.
 */
static Size
workspace_size(size_t n, size_t dim, size_t k)
{
	size_t		tops = QvHierarchyTops(n, k);
	QvHierarchyParams params = {.n = n, .dim = dim, .k = k};
	Size		plan = QvHierarchyPlanWorkspace(&params, tops);
	Size		task;

	if (tops == 1)
		return QvKmeansWorkspace(n, dim, k);
	task = 3 * n / tops * dim * sizeof(float) +
		QvKmeansWorkspace(3 * n / tops, dim, 3 * k / tops);
	return Max(plan, task);
}

Size
IvfClusterMemory(size_t n, size_t dim, size_t k)
{
	return shared_size(n, dim, k) + workspace_size(n, dim, k);
}

size_t
IvfClusterRows(size_t wanted, size_t dim, size_t k, Size memory)
{
	size_t		low = 0,
				high = wanted;

	/* the most rows that fit */
	while (low < high)
	{
		size_t		n = low + (high - low + 1) / 2;

		if (IvfClusterMemory(n, dim, Min(k, n)) <= memory)
			low = n;
		else
			high = n - 1;
	}
	return low;
}

/* Allocates shared memory for workers.  Without it the leader clusters alone. */
static void
share_memory(IvfCluster *cluster, int workers, Size size)
{
	if (workers <= 0 || !QvHasSharedMemory(size) ||
		!QvParallelBegin(&cluster->parallel, "IvfParallelClusterMain", workers, size, 0, NULL, false))
		return;
	cluster->workers = workers;
	cluster->shared = cluster->parallel.shared;
}

IvfCluster *
IvfClusterBegin(const IvfClusterParams *params)
{
	IvfCluster *cluster = palloc0(sizeof(IvfCluster));
	size_t		k = Min(params->k, params->target);
	size_t		tops = QvHierarchyTops(params->target, k);
	Size		size = shared_size(params->target, params->dim, k);
	ClusterShared *shared;

	/* no more participants than tasks */
	share_memory(cluster, Min(params->workers, (int) tops - 1), size);
	if (cluster->shared == NULL)
		cluster->shared = cluster->memory =
			MemoryContextAllocHuge(CurrentMemoryContext, size);
	cluster->max_memory = params->memory;
	cluster->target = params->target;
	shared = cluster->shared;
	memset(shared, 0, sizeof(ClusterShared));
	(void) place_arrays(shared, shared, params->target, params->dim, k, tops);
	shared->dim = params->dim;
	shared->k = k;
	shared->iterations = params->iterations;
	shared->seed = params->seed;
	shared->spherical = params->spherical;
	pg_atomic_init_u32(&shared->next_task, 0);
	cluster->data.rows = SharedAt(shared, shared->rows);
	cluster->data.centroids = SharedAt(shared, shared->centroids);
	cluster->data.parent = SharedAt(shared, shared->parent);
	return cluster;
}

IvfClusterData *
IvfClusterGet(IvfCluster *cluster)
{
	return &cluster->data;
}

static void *
alloc_workspace(Size size)
{
	return (void *) TYPEALIGN(64, MemoryContextAllocHuge(CurrentMemoryContext, size + 64));
}

/* Does tasks until none is left.  Every participant does this. */
static void
run_tasks(ClusterShared *shared)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver k-means",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	const void *plan = SharedAt(shared, shared->plan);
	QvHierarchyParams params;
	void	   *workspace;

	get_params(shared, &params);
	workspace = alloc_workspace(QvHierarchyTaskWorkspace(&params, plan));
	for (;;)
	{
		uint32		task = pg_atomic_fetch_add_u32(&shared->next_task, 1);

		if (task >= shared->tops)
			break;
		CHECK_FOR_INTERRUPTS();
		QvHierarchyTask(&params, plan, task, SharedAt(shared, shared->centroids),
						SharedAt(shared, shared->parent), workspace);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

static void
make_plan(ClusterShared *shared)
{
	QvHierarchyParams params;
	Size		size;
	char	   *memory = NULL;

	get_params(shared, &params);
	size = QvHierarchyPlanWorkspace(&params, shared->tops);
	if (size > 0)
		memory = MemoryContextAllocHuge(CurrentMemoryContext, size + 64);
	QvHierarchyPlan(&params, shared->tops, SharedAt(shared, shared->plan),
					(void *) TYPEALIGN(64, memory));
	if (memory)
		pfree(memory);
}

/* Leaves out every other row of the sample. */
static void
thin_sample(IvfCluster *cluster)
{
	ClusterShared *shared = cluster->shared;

	for (size_t i = 1; 2 * i < shared->n; i++)
		memcpy(cluster->data.rows + i * shared->dim, cluster->data.rows + 2 * i * shared->dim,
			   shared->dim * sizeof(float));
	shared->n = (shared->n + 1) / 2;
}

uint32
IvfClusterRun(IvfCluster *cluster, size_t n)
{
	ClusterShared *shared = cluster->shared;
	Size		fixed = shared_size(cluster->target, shared->dim, shared->k);
	Size		left = cluster->max_memory > fixed ? cluster->max_memory - fixed : 0;
	ParallelContext *pcxt = cluster->parallel.pcxt;
	QvHierarchyParams params;
	Size		task;
	uint32		made;

	shared->n = n;
	for (;;)
	{
		shared->tops = Min(QvHierarchyTops(shared->n, shared->k),
						   QvHierarchyTops(cluster->target, shared->k));
		make_plan(shared);
		get_params(shared, &params);
		task = QvHierarchyTaskWorkspace(&params, SharedAt(shared, shared->plan));
		/* if one task has too many rows, a thinner sample makes it fit */
		if (task <= left || shared->n / 2 < shared->k)
			break;
		thin_sample(cluster);
	}

	/* as many workers as there is memory for, beside that of the leader */
	if (pcxt && shared->tops > 1 && left / Max(1, task) >= 2)
	{
		ReinitializeParallelWorkers(pcxt, Min(cluster->workers, left / Max(1, task) - 1));
		LaunchParallelWorkers(pcxt);
		ereport(DEBUG1,
				(errmsg_internal("clustering %zu rows using %d parallel workers", shared->n,
								 pcxt->nworkers_launched)));
	}
	run_tasks(shared);
	if (pcxt && pcxt->nworkers_launched > 0)
		QvParallelWait(&cluster->parallel);
	made = QvHierarchyFinish(&params, SharedAt(shared, shared->plan), cluster->data.centroids,
							 cluster->data.parent);
	cluster->data.n = shared->n;
	cluster->data.tops = shared->tops;
	return made;
}

void
IvfClusterEnd(IvfCluster *cluster)
{
	QvParallelEnd(&cluster->parallel);
	if (cluster->memory)
		pfree(cluster->memory);
	pfree(cluster);
}

void
IvfParallelClusterMain(dsm_segment *seg, shm_toc *toc)
{
	QvParallelStart(toc);
	run_tasks(shm_toc_lookup(toc, QV_KEY_SHARED, false));
	QvParallelReport(toc);
}
