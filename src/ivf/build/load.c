/*
 * load.c
 *		Encoding and sorting the rows of a table; see load.h.
 *
 * Every participant scans a part of the table into a sort of its own.  The leader merges the
 * sorts.
 */
#include "postgres.h"

#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "compat.h"
#include "ivf/build/load.h"
#include "ivf/page/cache.h"
#include "ivf/search/nearest.h"
#include "miscadmin.h"
#include "space/parallel.h"
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

/*
 * Rows are sorted by list, then by their place in the table.  The place makes the lists the
 * same for any number of participants.  Both are in one number, which is sorted faster than
 * two.
 */
#define OFFSET_BITS 15
#define LIST_SHIFT (OFFSET_BITS + 32)

StaticAssertDecl(MaxOffsetNumber < (1 << OFFSET_BITS), "an offset does not fit in a sort key");
StaticAssertDecl(IVF_MAX_LISTS <= (1 << (63 - LIST_SHIFT)), "a list does not fit in a sort key");

static int64
sort_key(uint32 list, ItemPointer tid)
{
	return ((int64) list << LIST_SHIFT) |
		((int64) ItemPointerGetBlockNumber(tid) << OFFSET_BITS) | ItemPointerGetOffsetNumber(tid);
}

static uint32
list_of_key(int64 key)
{
	return key >> LIST_SHIFT;
}

/* A shorter row would get a one-byte header in a tuple, and lose its alignment. */
#define SortedSize(layout) Max(160, offsetof(IvfSorted, data) + (layout)->data_bytes)

static TupleDesc
sorted_desc(void)
{
	TupleDesc	desc = CreateTemplateTupleDesc(2);

	TupleDescInitEntry(desc, 1, "place", INT8OID, -1, 0);
	TupleDescInitEntry(desc, 2, "row", BYTEAOID, -1, 0);
	QvTupleDescFinalize(desc);
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
	Oid			operators[] = {Int8LessOperator};
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
	float	   *centroid;		/* width */
	float	   *scratch;		/* 2 * width */
	IvfSorted  *sorted;			/* a row as it is sorted */
} Loader;

/* Encodes a value into loader->sorted.  Returns its list. */
static uint32
encode_row(Loader *loader, const void *value)
{
	IvfSorted  *sorted = loader->sorted;
	IvfRowRoom	room = {.data = sorted->data, .scratch = loader->scratch};
	IvfQuery	query;
	IvfRow		row;
	uint32		list = IvfEncodeInNearest(loader->handle, value, loader->centroid, &room, &query, &row);

	sorted->a = row.a;
	sorted->b = row.b;
	sorted->scale = row.scale;
	sorted->add = row.add;
	sorted->error = row.error;
	return list;
}

static void
add_row(void *state, const void *value, ItemPointer tid)
{
	Loader	   *loader = state;
	TupleTableSlot *slot = loader->slot;
	uint32		list = encode_row(loader, value);

	loader->sorted->tid = *tid;
	ExecClearTuple(slot);
	slot->tts_values[0] = Int64GetDatum(sort_key(list, tid));
	slot->tts_isnull[0] = false;
	slot->tts_values[1] = PointerGetDatum(loader->sorted);
	slot->tts_isnull[1] = false;
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(loader->sort, slot);
}

/*
 * Sorts a participant's part of the table, by a scan (NULL: all of it).  In a worker only heap,
 * index and info of build are set.
 */
static Tuplesortstate *
load_part(QvBuildShared *shared, SortCoordinate coordinate, const IvfBuildParams *build,
		  IvfHandle *handle, bool leader, TableScanDesc scan)
{
	const IvfLayout *layout = &handle->layout;
	Loader		loader = {.handle = handle};
	QvLoader	rows = {
		.heap = build->heap,
		.index = build->index,
		.info = build->info,
		.space = &handle->space,
		.shared = shared,
		.leader = leader,
		.add = add_row,
		.state = &loader
	};

	loader.sort = begin_sort(handle, shared->participants, coordinate);
	loader.slot = MakeSingleTupleTableSlot(sorted_desc(), &TTSOpsVirtual);
	loader.centroid = palloc(layout->width * sizeof(float));
	loader.scratch = palloc(2 * layout->width * sizeof(float));
	loader.sorted = palloc0(SortedSize(layout));
	SET_VARSIZE(loader.sorted, SortedSize(layout));
	QvLoadRows(&rows, scan);
	tuplesort_performsort(loader.sort);
	ExecDropSingleTupleTableSlot(loader.slot);
	pfree(loader.centroid);
	pfree(loader.scratch);
	pfree(loader.sorted);
	return loader.sort;
}

/* ---- in parallel ---- */

/* Sorts a participant's part, as one of several sorts that the leader merges. */
static void
load_shared_part(QvBuildShared *shared, Sharedsort *sort, const IvfBuildParams *build,
				 IvfHandle *handle, bool leader, TableScanDesc scan)
{
	SortCoordinateData coordinate = {.isWorker = true, .nParticipants = -1, .sharedsort = sort};

	tuplesort_end(load_part(shared, &coordinate, build, handle, leader, scan));
}

/* Launches workers.  Returns false if there are none. */
static bool
begin_parallel(QvParallel *parallel, const IvfBuildParams *build)
{
	int			workers = build->workers;

	if (!QvParallelBegin(parallel, "IvfParallelBuildMain", workers, sizeof(QvBuildShared),
						 tuplesort_estimate_shared(workers + 1), build->heap,
						 build->info->ii_Concurrent))
		return false;
	QvBuildSharedInit(parallel->shared, build->heap, build->index, build->info, workers + 1);
	tuplesort_initialize_shared(parallel->more, workers + 1, parallel->pcxt->seg);
	LaunchParallelWorkers(parallel->pcxt);
	if (parallel->pcxt->nworkers_launched == 0)
	{
		QvParallelEnd(parallel);
		return false;
	}
	ereport(DEBUG1,
			(errmsg_internal("loading index \"%s\" using %d parallel workers",
							 RelationGetRelationName(build->index),
							 parallel->pcxt->nworkers_launched)));
	return true;
}

/* Takes part, waits for the workers, and returns all rows sorted. */
static Tuplesortstate *
load_together(QvParallel *parallel, const IvfBuildParams *build, IvfHandle *handle)
{
	SortCoordinate coordinate = palloc0(sizeof(SortCoordinateData));
	Tuplesortstate *sort;

	load_shared_part(parallel->shared, parallel->more, build, handle, true,
					 QvParallelScan(parallel->pcxt->toc, build->heap));
	QvParallelWait(parallel);

	/* the workers have ended: all memory is for merging */
	coordinate->isWorker = false;
	coordinate->nParticipants = parallel->pcxt->nworkers_launched + 1;
	coordinate->sharedsort = parallel->more;
	sort = begin_sort(handle, 1, coordinate);
	tuplesort_performsort(sort);
	return sort;
}

/* ---- the result ---- */

struct IvfLoad
{
	const IvfLayout *layout;
	QvParallel	parallel;
	Tuplesortstate *sort;
	TupleTableSlot *slot;
};

IvfLoad *
IvfLoadBegin(const IvfBuildParams *build, IvfHandle *handle, IndexBuildResult *result,
			 int *left_out)
{
	IvfLoad    *load = palloc(sizeof(IvfLoad));
	QvBuildShared alone;
	QvBuildShared *shared = &alone;

	load->layout = &handle->layout;
	if (begin_parallel(&load->parallel, build))
	{
		shared = load->parallel.shared;
		load->sort = load_together(&load->parallel, build, handle);
	}
	else
	{
		QvBuildSharedInit(shared, build->heap, build->index, build->info, 1);
		load->sort = load_part(shared, NULL, build, handle, true, NULL);
	}
	result->heap_tuples = shared->heap_tuples;
	result->index_tuples = shared->index_tuples;
	*left_out = shared->left_out;
	build->info->ii_BrokenHotChain = shared->broken_hot_chain;
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
	*list = list_of_key(DatumGetInt64(slot_getattr(load->slot, 1, &isnull)));
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
	QvParallelEnd(&load->parallel);
	pfree(load);
}

/* ---- a worker ---- */

void
IvfParallelWork(dsm_segment *seg, shm_toc *toc,
				void (*get_opclass) (Relation index, QvOpclassInfo *opclass))
{
	QvWorker	worker;
	QvBuildShared *shared = QvWorkerBegin(&worker, toc, get_opclass);
	Sharedsort *sort = shm_toc_lookup(toc, QV_KEY_MORE, false);
	IvfBuildParams build = {.heap = worker.heap, .index = worker.index, .info = worker.info};

	tuplesort_attach_shared(sort, seg);
	load_shared_part(shared, sort, &build, IvfOpen(worker.index, &worker.opclass), false,
					 worker.scan);
	QvWorkerEnd(&worker);
}
