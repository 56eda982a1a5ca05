/*
 * build_parallel.c
 *		Processes that share the work of a build; see build.h.
 *
 * There are two kinds of work, one after the other, each with workers of its
 * own: k-means of the sample, task by task (src/cluster/README, "Hierarchy"),
 * and the scan of the table, which every participant codes and sorts its part
 * of.  The leader takes part in both, merges what was sorted, and alone
 * writes pages.
 */
#include "postgres.h"

#ifdef __linux__
#include <sys/statvfs.h>
#endif

#include "access/genam.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "cluster/hierarchy.h"
#include "cluster/kmeans.h"
#include "executor/instrument.h"
#include "ivf/build.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/dsm_impl.h"
#include "space/sample.h"
#include "storage/spin.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* Names of the parts of shared memory. */
#define KEY_SHARED UINT64CONST(0x5176495600000001)
#define KEY_SORT UINT64CONST(0x5176495600000002)
#define KEY_QUERY_TEXT UINT64CONST(0x5176495600000003)
#define KEY_WAL_USAGE UINT64CONST(0x5176495600000004)
#define KEY_BUFFER_USAGE UINT64CONST(0x5176495600000005)

/* ---- what both kinds of work have in shared memory ---- */

typedef struct Usage
{
	WalUsage   *wal;			/* one a worker */
	BufferUsage *buffers;
} Usage;

static Size
query_text_size(void)
{
	return debug_query_string ? strlen(debug_query_string) + 1 : 0;
}

static void
estimate_common(ParallelContext *pcxt)
{
	shm_toc_estimate_chunk(&pcxt->estimator, mul_size(sizeof(WalUsage), pcxt->nworkers));
	shm_toc_estimate_chunk(&pcxt->estimator, mul_size(sizeof(BufferUsage), pcxt->nworkers));
	shm_toc_estimate_keys(&pcxt->estimator, 2);
	if (query_text_size() > 0)
	{
		shm_toc_estimate_chunk(&pcxt->estimator, query_text_size());
		shm_toc_estimate_keys(&pcxt->estimator, 1);
	}
}

static void
store_common(ParallelContext *pcxt, Usage *usage)
{
	usage->wal = shm_toc_allocate(pcxt->toc, mul_size(sizeof(WalUsage), pcxt->nworkers));
	shm_toc_insert(pcxt->toc, KEY_WAL_USAGE, usage->wal);
	usage->buffers = shm_toc_allocate(pcxt->toc, mul_size(sizeof(BufferUsage), pcxt->nworkers));
	shm_toc_insert(pcxt->toc, KEY_BUFFER_USAGE, usage->buffers);
	if (query_text_size() > 0)
	{
		char	   *text = shm_toc_allocate(pcxt->toc, query_text_size());

		memcpy(text, debug_query_string, query_text_size());
		shm_toc_insert(pcxt->toc, KEY_QUERY_TEXT, text);
	}
}

/* The first thing a worker does. */
static void
show_query(shm_toc *toc)
{
	debug_query_string = shm_toc_lookup(toc, KEY_QUERY_TEXT, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	InstrStartParallelQuery();
}

static void
report_usage(shm_toc *toc)
{
	WalUsage   *wal = shm_toc_lookup(toc, KEY_WAL_USAGE, false);
	BufferUsage *buffers = shm_toc_lookup(toc, KEY_BUFFER_USAGE, false);

	InstrEndParallelQuery(&buffers[ParallelWorkerNumber], &wal[ParallelWorkerNumber]);
}

/* Let the leader wait for all workers; an error of one is raised here. */
static void
wait_for_workers(ParallelContext *pcxt, const Usage *usage)
{
	WaitForParallelWorkersToFinish(pcxt);
	for (int i = 0; i < pcxt->nworkers_launched; i++)
		InstrAccumParallelQuery(&usage->buffers[i], &usage->wal[i]);
}

/* ---- k-means ---- */

/* Shared by the participants; arrays follow, at these distances from here. */
typedef struct ClusterShared
{
	pg_atomic_uint32 next_task;
	uint32		tops;
	size_t		n;
	size_t		dim;
	size_t		k;
	int			iterations;
	int			spherical;
	uint64		seed;
	Size		rows;
	Size		plan;
	Size		centroids;
	Size		parent;
} ClusterShared;

struct IvfCluster
{
	IvfClusterData data;
	size_t		target;
	ParallelContext *pcxt;		/* NULL: alone */
	Usage		usage;
	ClusterShared *shared;
	void	   *memory;			/* shared, when alone */
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

/* Distances of the arrays from a header that will be at an address like base. */
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
 * Beyond the arrays.  A task is thought to have at most three times the rows
 * of an average one; IvfClusterRun() sees to it when there are more.
 */
static Size
workspace_size(size_t n, size_t dim, size_t k)
{
	size_t		tops = QvHierarchyTops(n, k);
	QvHierarchyParams params = {.n = n,.dim = dim,.k = k};
	Size		plan = QvHierarchyPlanWorkspace(&params, tops);
	Size		task;

	if (tops == 1)
		return QvKmeansWorkspace(n, dim, k);
	task = 3 * n / tops * dim * sizeof(float) +
		QvKmeansWorkspace(3 * n / tops, dim, 3 * k / tops);
	return Max(plan, task);
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

		if (shared_size(n, dim, Min(k, n)) + workspace_size(n, dim, Min(k, n)) <= memory)
			low = n;
		else
			high = n - 1;
	}
	return low;
}

/*
 * Is there room for so much dynamic shared memory?  Asking for too much is an
 * error, and containers often have 64 MB.
 */
static bool
has_shared_memory(Size size)
{
#ifdef __linux__
	struct statvfs fs;

	if (dynamic_shared_memory_type == DSM_IMPL_POSIX && statvfs("/dev/shm", &fs) == 0)
		return (uint64) fs.f_bavail * fs.f_frsize > size + size / 8;
#endif
	return true;
}

IvfCluster *
IvfClusterBegin(size_t target, size_t dim, size_t k, int iterations, uint64 seed,
				bool spherical, int workers, Size memory)
{
	IvfCluster *cluster = palloc0(sizeof(IvfCluster));
	size_t		tops;
	Size		size;

	k = Min(k, target);
	tops = QvHierarchyTops(target, k);
	size = shared_size(target, dim, k);
	/* one task, or one for each at most */
	workers = Min(workers, (int) tops - 1);
	if (workers > 0 && !has_shared_memory(size))
		workers = 0;
	cluster->max_memory = memory;
	if (workers > 0)
	{
		ParallelContext *pcxt;

		EnterParallelMode();
		pcxt = CreateParallelContext("quiver", "IvfParallelClusterMain", workers);
		shm_toc_estimate_chunk(&pcxt->estimator, size);
		shm_toc_estimate_keys(&pcxt->estimator, 1);
		estimate_common(pcxt);
		InitializeParallelDSM(pcxt);
		if (pcxt->seg == NULL)
		{
			/* no shared memory to be had: alone, then */
			DestroyParallelContext(pcxt);
			ExitParallelMode();
		}
		else
		{
			cluster->pcxt = pcxt;
			cluster->shared = shm_toc_allocate(pcxt->toc, size);
			shm_toc_insert(pcxt->toc, KEY_SHARED, cluster->shared);
			store_common(pcxt, &cluster->usage);
		}
	}
	if (cluster->pcxt == NULL)
		cluster->shared = cluster->memory =
			MemoryContextAllocHuge(CurrentMemoryContext, size);
	memset(cluster->shared, 0, sizeof(ClusterShared));
	(void) place_arrays(cluster->shared, cluster->shared, target, dim, k, tops);
	cluster->target = target;
	cluster->workers = cluster->pcxt ? workers : 0;
	cluster->shared->dim = dim;
	cluster->shared->k = k;
	cluster->shared->iterations = iterations;
	cluster->shared->seed = seed;
	cluster->shared->spherical = spherical;
	pg_atomic_init_u32(&cluster->shared->next_task, 0);
	cluster->data.rows = SharedAt(cluster->shared, cluster->shared->rows);
	cluster->data.centroids = SharedAt(cluster->shared, cluster->shared->centroids);
	cluster->data.parent = SharedAt(cluster->shared, cluster->shared->parent);
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

/* Do tasks until there are none left; every participant. */
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

/* Every other row of the sample. */
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
		/* one cluster has too many of the rows: with fewer they all fit */
		if (task <= left || shared->n / 2 < shared->k)
			break;
		thin_sample(cluster);
	}

	/* as many workers as there is memory for, beside the leader's */
	if (cluster->pcxt && shared->tops > 1 && left / Max(1, task) >= 2)
	{
		ReinitializeParallelWorkers(cluster->pcxt,
									Min(cluster->workers, left / Max(1, task) - 1));
		LaunchParallelWorkers(cluster->pcxt);
		ereport(DEBUG1,
				(errmsg_internal("clustering %zu rows using %d parallel workers", shared->n,
								 cluster->pcxt->nworkers_launched)));
	}
	run_tasks(shared);
	if (cluster->pcxt && cluster->pcxt->nworkers_launched > 0)
		wait_for_workers(cluster->pcxt, &cluster->usage);
	made = QvHierarchyFinish(&params, SharedAt(shared, shared->plan), cluster->data.centroids,
							 cluster->data.parent);
	cluster->data.n = shared->n;
	cluster->data.tops = shared->tops;
	return made;
}

void
IvfClusterEnd(IvfCluster *cluster)
{
	if (cluster->pcxt)
	{
		DestroyParallelContext(cluster->pcxt);
		ExitParallelMode();
	}
	if (cluster->memory)
		pfree(cluster->memory);
	pfree(cluster);
}

void
IvfParallelClusterMain(dsm_segment *seg, shm_toc *toc)
{
	show_query(toc);
	run_tasks(shm_toc_lookup(toc, KEY_SHARED, false));
	report_usage(toc);
}

/* ---- rows ---- */

/* The parallel scan of the table follows. */
typedef struct LoadShared
{
	Oid			heap;
	Oid			index;
	bool		concurrent;
	int			participants;	/* that memory is divided by */
	pg_atomic_uint64 progress;	/* rows so far, roughly */

	slock_t		mutex;			/* the rest: */
	double		heap_tuples;
	double		index_tuples;
	bool		broken_hot_chain;
} LoadShared;

#define LoadScan(shared) \
	((ParallelTableScanDesc) ((char *) (shared) + BUFFERALIGN(sizeof(LoadShared))))

struct IvfParallel
{
	ParallelContext *pcxt;
	Usage		usage;
	LoadShared *shared;
	Sharedsort *sort;
	Snapshot	snapshot;
};

IvfParallel *
IvfParallelBegin(Relation heap, Relation index, const IndexInfo *info, int workers)
{
	IvfParallel *parallel;
	ParallelContext *pcxt;
	Snapshot	snapshot;
	Size		shared_bytes,
				sort_bytes;

	if (workers <= 0)
		return NULL;
	EnterParallelMode();
	pcxt = CreateParallelContext("quiver", "IvfParallelBuildMain", workers);
	snapshot = info->ii_Concurrent ? RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;

	shared_bytes = add_size(BUFFERALIGN(sizeof(LoadShared)),
							table_parallelscan_estimate(heap, snapshot));
	sort_bytes = tuplesort_estimate_shared(workers + 1);
	shm_toc_estimate_chunk(&pcxt->estimator, shared_bytes);
	shm_toc_estimate_chunk(&pcxt->estimator, sort_bytes);
	shm_toc_estimate_keys(&pcxt->estimator, 2);
	estimate_common(pcxt);
	InitializeParallelDSM(pcxt);
	if (pcxt->seg == NULL)
	{
		if (IsMVCCSnapshot(snapshot))
			UnregisterSnapshot(snapshot);
		DestroyParallelContext(pcxt);
		ExitParallelMode();
		return NULL;
	}

	parallel = palloc0(sizeof(IvfParallel));
	parallel->pcxt = pcxt;
	parallel->snapshot = snapshot;
	parallel->shared = shm_toc_allocate(pcxt->toc, shared_bytes);
	memset(parallel->shared, 0, sizeof(LoadShared));
	parallel->shared->heap = RelationGetRelid(heap);
	parallel->shared->index = RelationGetRelid(index);
	parallel->shared->concurrent = info->ii_Concurrent;
	parallel->shared->participants = workers + 1;
	pg_atomic_init_u64(&parallel->shared->progress, 0);
	SpinLockInit(&parallel->shared->mutex);
	table_parallelscan_initialize(heap, LoadScan(parallel->shared), snapshot);
	parallel->sort = shm_toc_allocate(pcxt->toc, sort_bytes);
	tuplesort_initialize_shared(parallel->sort, workers + 1, pcxt->seg);
	shm_toc_insert(pcxt->toc, KEY_SHARED, parallel->shared);
	shm_toc_insert(pcxt->toc, KEY_SORT, parallel->sort);
	store_common(pcxt, &parallel->usage);

	LaunchParallelWorkers(pcxt);
	if (pcxt->nworkers_launched == 0)
	{
		IvfParallelEnd(parallel);
		return NULL;
	}
	ereport(DEBUG1,
			(errmsg_internal("loading index \"%s\" using %d parallel workers",
							 RelationGetRelationName(index), pcxt->nworkers_launched)));
	return parallel;
}

/* What every participant does: its part of the table, into a sort of its own. */
static void
load_part(LoadShared *shared, Sharedsort *sharedsort, Relation heap, Relation index,
		  IndexInfo *info, IvfHandle *handle, bool progress)
{
	SortCoordinateData coordinate = {.isWorker = true,.nParticipants = -1,.sharedsort = sharedsort};
	IvfLoad		load;
	double		tuples;

	IvfLoadInit(&load, handle,
				IvfBeginSort(IvfSortMemory(handle, shared->participants), &coordinate));
	load.progress = &shared->progress;
	load.reports = progress;
	tuples = table_index_build_scan(heap, index, info, true, progress, IvfLoadRow, &load,
									table_beginscan_parallel(heap, LoadScan(shared)));
	tuplesort_performsort(load.sort);
	SpinLockAcquire(&shared->mutex);
	shared->heap_tuples += tuples;
	shared->index_tuples += load.rows;
	shared->broken_hot_chain |= info->ii_BrokenHotChain;
	SpinLockRelease(&shared->mutex);
	tuplesort_end(load.sort);
	IvfLoadEnd(&load);
}

Tuplesortstate *
IvfParallelLoad(IvfParallel *parallel, Relation heap, Relation index, IndexInfo *info,
				IvfHandle *handle, double *heap_tuples, double *index_tuples)
{
	LoadShared *shared = parallel->shared;
	SortCoordinate coordinate = palloc0(sizeof(SortCoordinateData));
	Tuplesortstate *sort;

	load_part(shared, parallel->sort, heap, index, info, handle, true);
	wait_for_workers(parallel->pcxt, &parallel->usage);
	*heap_tuples = shared->heap_tuples;
	*index_tuples = shared->index_tuples;
	info->ii_BrokenHotChain = shared->broken_hot_chain;

	/* workers have gone: all of the memory is for merging */
	coordinate->isWorker = false;
	coordinate->nParticipants = parallel->pcxt->nworkers_launched + 1;
	coordinate->sharedsort = parallel->sort;
	sort = IvfBeginSort(IvfSortMemory(handle, 1), coordinate);
	tuplesort_performsort(sort);
	return sort;
}

void
IvfParallelEnd(IvfParallel *parallel)
{
	if (IsMVCCSnapshot(parallel->snapshot))
		UnregisterSnapshot(parallel->snapshot);
	DestroyParallelContext(parallel->pcxt);
	ExitParallelMode();
	pfree(parallel);
}

void
IvfParallelWork(dsm_segment *seg, shm_toc *toc,
				void (*get_opclass) (Relation index, QvOpclassInfo *opclass))
{
	LoadShared *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	Sharedsort *sort = shm_toc_lookup(toc, KEY_SORT, false);
	LOCKMODE	heap_lock = shared->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	LOCKMODE	index_lock = shared->concurrent ? RowExclusiveLock : AccessExclusiveLock;
	QvOpclassInfo opclass;
	Relation	heap,
				index;
	IndexInfo  *info;

	show_query(toc);
	/* the leader has these locks */
	heap = table_open(shared->heap, heap_lock);
	index = index_open(shared->index, index_lock);
	info = BuildIndexInfo(index);
	info->ii_Concurrent = shared->concurrent;
	get_opclass(index, &opclass);
	tuplesort_attach_shared(sort, seg);
	load_part(shared, sort, heap, index, info, IvfOpen(index, &opclass), false);
	index_close(index, index_lock);
	table_close(heap, heap_lock);
	report_usage(toc);
}
