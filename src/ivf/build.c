/*
 * build.c
 *		Building an index of posting lists; see build.h.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "commands/progress.h"
#include "compat.h"
#include "ivf/build.h"
#include "ivf/calibrate.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/indexfsm.h"
#include "utils/backend_progress.h"
#include "utils/memutils.h"

/* A row as it is sorted, followed by its code and its one-bit code, or value. */
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

char *
IvfBuildPhaseName(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case IVF_PHASE_SAMPLE:
			return "sampling table";
		case IVF_PHASE_CLUSTER:
			return "performing k-means";
		case IVF_PHASE_ASSIGN:
			return "assigning tuples";
		case IVF_PHASE_WRITE:
			return "loading tuples";
		case IVF_PHASE_MEASURE:
			return "measuring probes";
		default:
			return NULL;
	}
}

/* ---- rows ---- */

/* Never so short that a tuple would keep it with a one-byte header, unaligned. */
#define SortedSize(layout) \
	Max(160, offsetof(IvfSorted, data) + \
		((layout)->form == QV_FORM_PLAIN ? (layout)->value_size : \
		 IvfRowBytes(layout)))

Tuplesortstate *
IvfBeginSort(int memory, SortCoordinate coordinate)
{
	TupleDesc	desc = CreateTemplateTupleDesc(2);
	AttrNumber	keys[] = {1};
	Oid			operators[] = {Int4LessOperator};
	Oid			collations[] = {InvalidOid};
	bool		nulls_first[] = {false};

	TupleDescInitEntry(desc, 1, "list", INT4OID, -1, 0);
	TupleDescInitEntry(desc, 2, "row", BYTEAOID, -1, 0);
	return tuplesort_begin_heap(desc, 1, keys, operators, collations, nulls_first,
								memory, coordinate, TUPLESORT_NONE);
}

static TupleTableSlot *
make_slot(void)
{
	TupleDesc	desc = CreateTemplateTupleDesc(2);

	TupleDescInitEntry(desc, 1, "list", INT4OID, -1, 0);
	TupleDescInitEntry(desc, 2, "row", BYTEAOID, -1, 0);
	return MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
}

void
IvfLoadInit(IvfLoad *load, IvfHandle *handle, Tuplesortstate *sort)
{
	const IvfLayout *layout = &handle->layout;
	TupleDesc	desc = CreateTemplateTupleDesc(2);

	TupleDescInitEntry(desc, 1, "list", INT4OID, -1, 0);
	TupleDescInitEntry(desc, 2, "row", BYTEAOID, -1, 0);
	memset(load, 0, sizeof(*load));
	load->handle = handle;
	load->sort = sort;
	load->slot = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	load->row_context = AllocSetContextCreate(CurrentMemoryContext, "quiver build row",
											  ALLOCSET_DEFAULT_SIZES);
	load->value = palloc(Max(1, layout->pdim) * sizeof(float));
	load->rotated = palloc(Max(1, layout->pdim) * sizeof(float));
	load->scratch = palloc(Max(1, layout->pdim) * 3 * sizeof(float));
	load->sorted = palloc0(SortedSize(layout));
	SET_VARSIZE(load->sorted, SortedSize(layout));
}

void
IvfLoadEnd(IvfLoad *load)
{
	ExecDropSingleTupleTableSlot(load->slot);
	MemoryContextDelete(load->row_context);
	pfree(load->value);
	pfree(load->rotated);
	pfree(load->scratch);
	pfree(load->sorted);
}

int
IvfSortMemory(const IvfHandle *handle, int participants)
{
	Size		directory = MemoryContextMemAllocated(handle->lists->part.context, true);

	/* what a sort of its own cannot do without */
	return Max(64, (int) (maintenance_work_mem / participants) - (int) (directory / 1024));
}

/* Show how far we are, every thousand rows. */
static void
count_rows(IvfLoad *load)
{
	int64		all = load->rows;

	if (load->rows % 1000 != 0)
		return;
	if (load->progress)
		all = pg_atomic_add_fetch_u64(load->progress, 1000);
	if (load->reports)
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, all);
}

static uint32
code_row(IvfLoad *load, const void *value)
{
	IvfHandle  *handle = load->handle;
	const IvfLayout *layout = &handle->layout;
	IvfSorted  *sorted = load->sorted;
	IvfQuery	query;
	IvfRow		row;
	uint32		list;

	if (layout->form == QV_FORM_PLAIN)
	{
		memcpy(sorted->data, value, layout->value_size);
		query.value = sorted->data;
		return IvfNearestList(handle, &query);
	}
	(void) QvSpaceRotateValue(&handle->space, value, load->value, load->rotated);
	IvfQueryInit(handle, &query, load->rotated, false);
	list = IvfNearestList(handle, &query);
	IvfEncode(handle, list, query.base.q.x, sorted->data, load->scratch, &row);
	sorted->a = row.a;
	sorted->b = row.b;
	sorted->scale = row.scale;
	sorted->add = row.add;
	sorted->error = row.error;
	return list;
}

void
IvfLoadRow(Relation index, ItemPointer tid, Datum *values, bool *isnull,
		   bool alive, void *state)
{
	IvfLoad    *load = state;
	IvfHandle  *handle = load->handle;
	MemoryContext old;
	void	   *value;

	if (isnull[0])
		return;
	old = MemoryContextSwitchTo(load->row_context);
	value = PG_DETOAST_DATUM(values[0]);
	QvCheckDims(&handle->space.opclass, handle->meta.dims, value);
	if (QvIsIndexed(&handle->space.opclass, value))
	{
		uint32		list = code_row(load, value);

		load->sorted->tid = *tid;
		ExecClearTuple(load->slot);
		load->slot->tts_values[0] = Int32GetDatum((int32) list);
		load->slot->tts_isnull[0] = false;
		load->slot->tts_values[1] = PointerGetDatum(load->sorted);
		load->slot->tts_isnull[1] = false;
		ExecStoreVirtualTuple(load->slot);
		MemoryContextSwitchTo(old);
		tuplesort_puttupleslot(load->sort, load->slot);
		load->rows++;
		count_rows(load);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(load->row_context);
}

/* ---- lists ---- */

/* Put where a list is into the directory, during the build. */
static void
set_entry(IvfHandle *handle, uint32 list, BlockNumber head, BlockNumber tail, uint32 rows)
{
	IvfEntry	entry;
	Buffer		buf = IvfReadEntry(handle, list, BUFFER_LOCK_EXCLUSIVE, &entry);

	entry->head = head;
	entry->tail = tail;
	entry->rows = rows;
	/* what finish_meta() makes it */
	IvfPageDirectory(BufferGetPage(buf))->version = 1;
	MarkBufferDirty(buf);
	UnlockReleaseBuffer(buf);
}

static void
write_lists(IvfHandle *handle, Tuplesortstate *sort)
{
	const IvfLayout *layout = &handle->layout;
	IvfWriter  *writer = IvfWriterBegin(handle, true);
	TupleTableSlot *slot = make_slot();
	uint32		list = IVF_NO_LIST;
	int64		done = 0;

	for (;;)
	{
		bool		more = tuplesort_gettupleslot(sort, true, false, slot, NULL);
		uint32		next = IVF_NO_LIST;
		bool		isnull;

		if (more)
			next = (uint32) DatumGetInt32(slot_getattr(slot, 1, &isnull));
		if (next != list)
		{
			if (list != IVF_NO_LIST)
			{
				BlockNumber head,
							tail;
				uint32		rows;

				IvfWriterFinish(writer, &head, &tail, &rows);
				set_entry(handle, list, head, tail, rows);
			}
			if (more)
				IvfWriterStart(writer, next, 1);
			list = next;
		}
		if (!more)
			break;
		{
			/* no copy, no alignment is needed but that of a varlena */
			IvfSorted  *sorted = (IvfSorted *) DatumGetPointer(slot_getattr(slot, 2, &isnull));
			IvfRow		row;

			row.tid = sorted->tid;
			row.a = sorted->a;
			row.b = sorted->b;
			row.scale = sorted->scale;
			row.add = sorted->add;
			row.error = sorted->error;
			IvfSetRowData(layout, &row, sorted->data);
			IvfWriterAdd(writer, &row);
		}
		if (++done % 1000 == 0)
		{
			CHECK_FOR_INTERRUPTS();
			pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);
		}
	}
	ExecDropSingleTupleTableSlot(slot);
	IvfWriterEnd(writer);
}

static void
finish_meta(IvfHandle *handle, double rows)
{
	Buffer		buf = QvReadPage(handle->index, handle->hints, QV_META_BLOCK, QV_PAGE_META,
								 BUFFER_LOCK_EXCLUSIVE);
	IvfMetaData *meta = IvfPageMeta(handle->index, BufferGetPage(buf));

	meta->tuples = rows;
	meta->version_lists++;
	MarkBufferDirty(buf);
	UnlockReleaseBuffer(buf);
}

/* All rows of the table, sorted by list. */
static Tuplesortstate *
load_rows(Relation heap, Relation index, IndexInfo *info, IvfHandle *handle,
		  IndexBuildResult *result)
{
	Tuplesortstate *sort = IvfBeginSort(IvfSortMemory(handle, 1), NULL);
	IvfLoad		load;

	IvfLoadInit(&load, handle, sort);
	load.reports = true;
	result->heap_tuples = table_index_build_scan(heap, index, info, true, true,
												 IvfLoadRow, &load, NULL);
	result->index_tuples = load.rows;
	IvfLoadEnd(&load);
	tuplesort_performsort(sort);
	return sort;
}

IndexBuildResult *
IvfBuild(Relation heap, Relation index, IndexInfo *info,
		 const QvOpclassInfo *opclass, const IvfOptions *options)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));
	int			workers = QvBuildWorkers(heap, index, info);
	IvfMetaData meta;
	IvfCentroids centroids;
	IvfHandle  *handle;
	IvfParallel *parallel;
	Tuplesortstate *sort;

	IvfMetaInit(&meta, QvColumnDims(index, opclass), options, opclass);
	IvfMakeCentroids(heap, index, info, opclass, options, &meta, workers, &centroids);
	meta.tops = centroids.tops;
	IvfCreatePages(index, MAIN_FORKNUM, &meta, centroids.mean, centroids.entries,
				   centroids.lists);
	pfree(centroids.entries);
	handle = IvfOpen(index, opclass);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, IVF_PHASE_ASSIGN);
	parallel = IvfParallelBegin(heap, index, info, workers);
	if (parallel)
		sort = IvfParallelLoad(parallel, heap, index, info, handle,
							   &result->heap_tuples, &result->index_tuples);
	else
		sort = load_rows(heap, index, info, handle, result);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, IVF_PHASE_WRITE);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, result->index_tuples);
	write_lists(handle, sort);
	tuplesort_end(sort);
	if (parallel)
		IvfParallelEnd(parallel);
	finish_meta(handle, result->index_tuples);
	IvfRefresh(handle);
	if (options->notice_little_data && result->index_tuples < options->lists)
		ereport(NOTICE,
				(errmsg("ivfflat index created with little data"),
				 errdetail("This will cause low recall."),
				 errhint("Drop the index until the table has more data.")));

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, IVF_PHASE_MEASURE);
	IvfMeasureProbes(handle, true);
	QvWriteLogAll(index, MAIN_FORKNUM);
	/* a map of free pages from the start, so that a later one does not add to the size */
	RecordUsedIndexPage(index, QV_META_BLOCK);
	return result;
}

void
IvfBuildEmpty(Relation index, const QvOpclassInfo *opclass, const IvfOptions *options)
{
	IvfMetaData meta;
	IvfLayout	layout;
	IvfEntry	entry;
	void	   *value = NULL;
	float	   *zero;

	IvfMetaInit(&meta, QvColumnDims(index, opclass), options, opclass);
	meta.lists = 1;
	if (!IvfLayoutFromMeta(&layout, &meta))
		elog(ERROR, "sizes of an index of %u dimensions do not fit together", meta.dims);
	zero = palloc0(Max(meta.dims, meta.pdim) * sizeof(float));
	if (meta.form == QV_FORM_PLAIN)
		value = opclass->type->from_float(zero, meta.dims);
	entry = palloc(layout.entry_size);
	IvfMakeEntry(&layout, zero, value, 0, entry);
	IvfCreatePages(index, INIT_FORKNUM, &meta, NULL, (char *) entry, 1);
	QvWriteLogAll(index, INIT_FORKNUM);
}
