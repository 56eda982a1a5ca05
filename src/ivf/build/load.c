/*
 * load.c
 *		Encoding and sorting the rows of a table; see load.h.
 *
 * Every participant scans a part of the table into a sort of its own.  The leader merges the
 * sorts.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "commands/progress.h"
#include "ivf/build/load.h"
#include "ivf/page/cache.h"
#include "ivf/search/nearest.h"
#include "miscadmin.h"
#include "pages/meta.h"
#include "port/atomics.h"
#include "space/parallel.h"
#include "storage/spin.h"
#include "utils/backend_progress.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/tuplesort.h"

/* ---- the sort ---- */

/* A row as it is sorted.  Its codes or its value follow. */
typedef struct IvfSorted
{
	int32		vl_len_;		/* varlena header: do not touch directly */
	float		a;
	float		b;
	float		scale;
	float		add;
	float		error;
	ItemPointerData tid;
	uint16		unused;
	uint8		data[FLEXIBLE_ARRAY_MEMBER];
} IvfSorted;

/* A shorter row would get a one-byte header in a tuple, and lose its alignment. */
#define SortedSize(layout) Max(160, offsetof(IvfSorted, data) + (layout)->data_bytes)

static TupleDesc
sorted_desc(void)
{
	TupleDesc	desc = CreateTemplateTupleDesc(2);

	TupleDescInitEntry(desc, 1, "list", INT4OID, -1, 0);
	TupleDescInitEntry(desc, 2, "row", BYTEAOID, -1, 0);
	return desc;
}

/*
 * Begins a participant's sort.  It uses the participant's share of the memory, less the
 * directory.  coordinate is NULL if there are no workers.
 */
static Tuplesortstate *
begin_sort(const IvfHandle *handle, int participants, SortCoordinate coordinate)
{
	Size		directory = MemoryContextMemAllocated(handle->lists->part.context, true);

	/* the least that a sort needs, in kB */
	int			memory = Max(64, (int) (maintenance_work_mem / participants) - (int) (directory / 1024));
	AttrNumber	keys[] = {1};
	Oid			operators[] = {Int4LessOperator};
	Oid			collations[] = {InvalidOid};
	bool		nulls_first[] = {false};

	return tuplesort_begin_heap(sorted_desc(), 1, keys, operators, collations, nulls_first,
								memory, coordinate, TUPLESORT_NONE);
}

/* ---- rows ---- */

typedef struct Loader
{
	IvfHandle  *handle;
	Tuplesortstate *sort;
	TupleTableSlot *slot;
	MemoryContext row_context;
	float	   *centroid;		/* width */
	float	   *scratch;		/* 2 * width */
	IvfSorted  *sorted;			/* a row as it is sorted */
	int64		rows;			/* indexed */
	int			left_out;		/* rows that are not (pages/meta.h) */
	pg_atomic_uint64 *progress; /* rows of all participants; NULL: no workers */
	bool		reports;		/* it reports progress */
} Loader;

static void
begin_loader(Loader *loader, IvfHandle *handle, Tuplesortstate *sort)
{
	const IvfLayout *layout = &handle->layout;

	memset(loader, 0, sizeof(*loader));
	loader->handle = handle;
	loader->sort = sort;
	loader->slot = MakeSingleTupleTableSlot(sorted_desc(), &TTSOpsVirtual);
	loader->row_context = AllocSetContextCreate(CurrentMemoryContext, "quiver build row",
												ALLOCSET_DEFAULT_SIZES);
	loader->centroid = palloc(layout->width * sizeof(float));
	loader->scratch = palloc(2 * layout->width * sizeof(float));
	loader->sorted = palloc0(SortedSize(layout));
	SET_VARSIZE(loader->sorted, SortedSize(layout));
}

static void
end_loader(Loader *loader)
{
	ExecDropSingleTupleTableSlot(loader->slot);
	MemoryContextDelete(loader->row_context);
	pfree(loader->centroid);
	pfree(loader->scratch);
	pfree(loader->sorted);
}

/* Reports progress every thousand rows. */
static void
count_rows(Loader *loader)
{
	int64		all = loader->rows;

	if (loader->rows % 1000 != 0)
		return;
	if (loader->progress)
		all = pg_atomic_add_fetch_u64(loader->progress, 1000);
	if (loader->reports)
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, all);
}

/* Encodes a value into loader->sorted.  Returns its list. */
static uint32
encode_row(Loader *loader, const void *value)
{
	IvfHandle  *handle = loader->handle;
	const IvfLayout *layout = &handle->layout;
	IvfSorted  *sorted = loader->sorted;
	IvfRowRoom	room = {.data = sorted->data, .scratch = loader->scratch};
	IvfQuery	query;
	IvfRow		row;
	uint32		list;

	layout->codec->prepare(handle, value, IvfLutBits(handle, false), &query);
	list = IvfNearestList(handle, &query);
	IvfDecodeCentroid(handle, list, loader->centroid);
	layout->codec->encode(layout, loader->centroid, &query, &room, &row);
	sorted->a = row.a;
	sorted->b = row.b;
	sorted->scale = row.scale;
	sorted->add = row.add;
	sorted->error = row.error;
	return list;
}

static void
load_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *state)
{
	Loader	   *loader = state;
	const QvSpace *space = &loader->handle->space;
	MemoryContext old;
	void	   *value;

	if (isnull[0])
	{
		loader->left_out |= QV_LEFT_OUT_NULLS;
		return;
	}
	old = MemoryContextSwitchTo(loader->row_context);
	value = PG_DETOAST_DATUM(values[0]);
	QvCheckDims(&space->opclass, space->dims, value);
	if (QvIsIndexed(&space->opclass, value))
	{
		uint32		list = encode_row(loader, value);

		loader->sorted->tid = *tid;
		ExecClearTuple(loader->slot);
		loader->slot->tts_values[0] = Int32GetDatum((int32) list);
		loader->slot->tts_isnull[0] = false;
		loader->slot->tts_values[1] = PointerGetDatum(loader->sorted);
		loader->slot->tts_isnull[1] = false;
		ExecStoreVirtualTuple(loader->slot);
		MemoryContextSwitchTo(old);
		tuplesort_puttupleslot(loader->sort, loader->slot);
		loader->rows++;
		count_rows(loader);
	}
	else
		loader->left_out |= QV_LEFT_OUT_NANS;
	MemoryContextSwitchTo(old);
	MemoryContextReset(loader->row_context);
}

/* ---- alone ---- */

static Tuplesortstate *
load_alone(const IvfBuildParams *build, IvfHandle *handle, IndexBuildResult *result, int *left_out)
{
	Loader		loader;

	begin_loader(&loader, handle, begin_sort(handle, 1, NULL));
	loader.reports = true;
	result->heap_tuples = table_index_build_scan(build->heap, build->index, build->info, true, true,
												 load_row, &loader, NULL);
	result->index_tuples = loader.rows;
	*left_out = loader.left_out;
	end_loader(&loader);
	tuplesort_performsort(loader.sort);
	return loader.sort;
}

/* ---- in parallel ---- */

/* The parallel scan of the table follows. */
typedef struct LoadShared
{
	Oid			heap;
	Oid			index;
	bool		concurrent;
	int			participants;	/* who share the memory */
	pg_atomic_uint64 progress;	/* rows so far, roughly */

	slock_t		mutex;			/* for the fields below */
	double		heap_tuples;
	double		index_tuples;
	int			left_out;
	bool		broken_hot_chain;
} LoadShared;

#define LoadScan(shared) \
	((ParallelTableScanDesc) ((char *) (shared) + BUFFERALIGN(sizeof(LoadShared))))

typedef struct Parallel
{
	ParallelContext *pcxt;
	QvParallelUsage usage;
	LoadShared *shared;
	Sharedsort *sort;
	Snapshot	snapshot;
} Parallel;

static void
end_parallel(Parallel *parallel)
{
	if (IsMVCCSnapshot(parallel->snapshot))
		UnregisterSnapshot(parallel->snapshot);
	DestroyParallelContext(parallel->pcxt);
	ExitParallelMode();
	pfree(parallel);
}

/* Launches workers; returns NULL if there are none. */
static Parallel *
begin_parallel(const IvfBuildParams *build)
{
	int			workers = build->workers;
	bool		concurrent = build->info->ii_Concurrent;
	Parallel   *parallel;
	ParallelContext *pcxt;
	Snapshot	snapshot;
	Size		shared_bytes,
				sort_bytes;

	if (workers <= 0)
		return NULL;
	EnterParallelMode();
	pcxt = CreateParallelContext("quiver", "IvfParallelBuildMain", workers);
	snapshot = concurrent ? RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;

	shared_bytes = add_size(BUFFERALIGN(sizeof(LoadShared)),
							table_parallelscan_estimate(build->heap, snapshot));
	sort_bytes = tuplesort_estimate_shared(workers + 1);
	shm_toc_estimate_chunk(&pcxt->estimator, shared_bytes);
	shm_toc_estimate_chunk(&pcxt->estimator, sort_bytes);
	shm_toc_estimate_keys(&pcxt->estimator, 2);
	QvParallelEstimate(pcxt);
	InitializeParallelDSM(pcxt);
	if (pcxt->seg == NULL)
	{
		if (IsMVCCSnapshot(snapshot))
			UnregisterSnapshot(snapshot);
		DestroyParallelContext(pcxt);
		ExitParallelMode();
		return NULL;
	}

	parallel = palloc0(sizeof(Parallel));
	parallel->pcxt = pcxt;
	parallel->snapshot = snapshot;
	parallel->shared = shm_toc_allocate(pcxt->toc, shared_bytes);
	memset(parallel->shared, 0, sizeof(LoadShared));
	parallel->shared->heap = RelationGetRelid(build->heap);
	parallel->shared->index = RelationGetRelid(build->index);
	parallel->shared->concurrent = concurrent;
	parallel->shared->participants = workers + 1;
	pg_atomic_init_u64(&parallel->shared->progress, 0);
	SpinLockInit(&parallel->shared->mutex);
	table_parallelscan_initialize(build->heap, LoadScan(parallel->shared), snapshot);
	parallel->sort = shm_toc_allocate(pcxt->toc, sort_bytes);
	tuplesort_initialize_shared(parallel->sort, workers + 1, pcxt->seg);
	shm_toc_insert(pcxt->toc, QV_KEY_SHARED, parallel->shared);
	shm_toc_insert(pcxt->toc, QV_KEY_SORT, parallel->sort);
	QvParallelStore(pcxt, &parallel->usage);

	LaunchParallelWorkers(pcxt);
	if (pcxt->nworkers_launched == 0)
	{
		end_parallel(parallel);
		return NULL;
	}
	ereport(DEBUG1,
			(errmsg_internal("loading index \"%s\" using %d parallel workers",
							 RelationGetRelationName(build->index), pcxt->nworkers_launched)));
	return parallel;
}

/*
 * Sorts a participant's part of the table.  In a worker only heap, index and info of build are
 * set.
 */
static void
load_part(LoadShared *shared, Sharedsort *sharedsort, const IvfBuildParams *build,
		  IvfHandle *handle, bool progress)
{
	SortCoordinateData coordinate = {.isWorker = true, .nParticipants = -1, .sharedsort = sharedsort};
	Loader		loader;
	double		tuples;

	begin_loader(&loader, handle, begin_sort(handle, shared->participants, &coordinate));
	loader.progress = &shared->progress;
	loader.reports = progress;
	tuples = table_index_build_scan(build->heap, build->index, build->info, true, progress, load_row, &loader,
									table_beginscan_parallel(build->heap, LoadScan(shared)));
	tuplesort_performsort(loader.sort);
	SpinLockAcquire(&shared->mutex);
	shared->heap_tuples += tuples;
	shared->index_tuples += loader.rows;
	shared->left_out |= loader.left_out;
	shared->broken_hot_chain |= build->info->ii_BrokenHotChain;
	SpinLockRelease(&shared->mutex);
	tuplesort_end(loader.sort);
	end_loader(&loader);
}

/* Takes part, waits for the workers, and returns all rows sorted. */
static Tuplesortstate *
load_together(Parallel *parallel, const IvfBuildParams *build, IvfHandle *handle,
			  IndexBuildResult *result, int *left_out)
{
	LoadShared *shared = parallel->shared;
	SortCoordinate coordinate = palloc0(sizeof(SortCoordinateData));
	Tuplesortstate *sort;

	load_part(shared, parallel->sort, build, handle, true);
	QvParallelWait(parallel->pcxt, &parallel->usage);
	result->heap_tuples = shared->heap_tuples;
	result->index_tuples = shared->index_tuples;
	*left_out = shared->left_out;
	build->info->ii_BrokenHotChain = shared->broken_hot_chain;

	/* the workers have ended: all memory is for merging */
	coordinate->isWorker = false;
	coordinate->nParticipants = parallel->pcxt->nworkers_launched + 1;
	coordinate->sharedsort = parallel->sort;
	sort = begin_sort(handle, 1, coordinate);
	tuplesort_performsort(sort);
	return sort;
}

/* ---- the result ---- */

struct IvfLoad
{
	const IvfLayout *layout;
	Parallel   *parallel;		/* NULL: there are no workers */
	Tuplesortstate *sort;
	TupleTableSlot *slot;
};

IvfLoad *
IvfLoadBegin(const IvfBuildParams *build, IvfHandle *handle, IndexBuildResult *result,
			 int *left_out)
{
	IvfLoad    *load = palloc(sizeof(IvfLoad));

	load->layout = &handle->layout;
	load->parallel = begin_parallel(build);
	load->sort = load->parallel ? load_together(load->parallel, build, handle, result, left_out) :
		load_alone(build, handle, result, left_out);
	load->slot = MakeSingleTupleTableSlot(sorted_desc(), &TTSOpsMinimalTuple);
	return load;
}

bool
IvfLoadNext(IvfLoad *load, uint32 *list, IvfRow *row)
{
	IvfSorted  *sorted;
	bool		isnull;

	if (!tuplesort_gettupleslot(load->sort, true, false, load->slot, NULL))
		return false;
	*list = (uint32) DatumGetInt32(slot_getattr(load->slot, 1, &isnull));
	/* not copied: it is aligned as a varlena, and needs no more */
	sorted = (IvfSorted *) DatumGetPointer(slot_getattr(load->slot, 2, &isnull));
	row->tid = sorted->tid;
	row->a = sorted->a;
	row->b = sorted->b;
	row->scale = sorted->scale;
	row->add = sorted->add;
	row->error = sorted->error;
	IvfSetRowData(load->layout, row, sorted->data);
	return true;
}

void
IvfLoadEnd(IvfLoad *load)
{
	ExecDropSingleTupleTableSlot(load->slot);
	tuplesort_end(load->sort);
	if (load->parallel)
		end_parallel(load->parallel);
	pfree(load);
}

/* ---- a worker ---- */

void
IvfParallelWork(dsm_segment *seg, shm_toc *toc,
				void (*get_opclass) (Relation index, QvOpclassInfo *opclass))
{
	LoadShared *shared = shm_toc_lookup(toc, QV_KEY_SHARED, false);
	Sharedsort *sort = shm_toc_lookup(toc, QV_KEY_SORT, false);
	LOCKMODE	heap_lock = shared->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	LOCKMODE	index_lock = shared->concurrent ? RowExclusiveLock : AccessExclusiveLock;
	QvOpclassInfo opclass;
	IvfBuildParams build = {0};

	QvParallelStart(toc);
	/* the leader has these locks */
	build.heap = table_open(shared->heap, heap_lock);
	build.index = index_open(shared->index, index_lock);
	build.info = BuildIndexInfo(build.index);
	build.info->ii_Concurrent = shared->concurrent;
	get_opclass(build.index, &opclass);
	tuplesort_attach_shared(sort, seg);
	load_part(shared, sort, &build, IvfOpen(build.index, &opclass), false);
	index_close(build.index, index_lock);
	table_close(build.heap, heap_lock);
	QvParallelReport(toc);
}
