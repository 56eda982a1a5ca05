/*
 * build.c
 *		Building an index of posting lists.
 *
 *	1. centroids.c gives the lists: from a sample of the table, clustered (cluster.c),
 *	   or from a table of centroids (centroid_table.c);
 *	2. load.c encodes every row for its nearest list, and sorts the rows by list;
 *	3. the lists are written one after the other;
 *	4. probes are measured, row pages are made, and the index is logged whole.
 *
 * Workers take part in clustering and in step 2.  The leader alone writes pages.  See
 * src/ivf/build/README.md.
 */
#include "postgres.h"

#include "commands/progress.h"
#include "compat.h"
#include "ivf/build/centroids.h"
#include "ivf/build/load.h"
#include "ivf/ivf.h"
#include "ivf/page/cache.h"
#include "ivf/page/directory.h"
#include "ivf/page/meta.h"
#include "ivf/page/writer.h"
#include "ivf/update/calibrate.h"
#include "ivf/update/row_pages.h"
#include "miscadmin.h"
#include "pages/write.h"
#include "rows/write.h"
#include "space/count.h"
#include "storage/indexfsm.h"
#include "utils/backend_progress.h"

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

/* Writes metapage, mean and directory, without WAL.  Fills in where they are. */
static void
create_pages(Relation index, ForkNumber fork, IvfMetaData *meta, const IvfNewLists *new)
{
	Buffer		buf;
	Page		page;

	Assert(new->lists > 0);
	/* the metapage is filled in last, since it names the other pages */
	QvNewBuildPage(index, fork, QV_PAGE_META, &buf);
	Assert(BufferGetBlockNumber(buf) == QV_META_BLOCK);
	UnlockReleaseBuffer(buf);

	meta->mean_block = QvWriteFloats(index, fork, new->mean, meta->pdim);
	meta->space = new->space;
	meta->level = new->level;
	meta->lists = new->lists;
	meta->tops = new->tops;
	for (uint32 first = 0; first < new->lists; first += meta->entries_per_page)
	{
		uint32		n = Min(new->lists - first, meta->entries_per_page);

		page = QvNewBuildPage(index, fork, QV_PAGE_LISTS, &buf);
		meta->list_tail = BufferGetBlockNumber(buf);
		if (first == 0)
			meta->list_head = meta->list_tail;
		IvfPageDirectory(page)->first = first;
		IvfPageDirectory(page)->count = n;
		memcpy(QvPageGetData(page) + sizeof(IvfDirectoryData),
			   new->entries + (Size) first * meta->entry_size, (Size) n * meta->entry_size);
		/* the pages of the directory follow one another */
		if (first + n < new->lists)
			QvPageGetHeader(page)->next = meta->list_tail + 1;
		UnlockReleaseBuffer(buf);
	}

	QvMetaWrite(index, fork, meta, sizeof(*meta));
}

/* Ends a list, and writes where it is into the directory. */
static void
finish_list(IvfHandle *handle, IvfWriter *writer, uint32 list)
{
	BlockNumber head,
				tail;
	uint32		rows;
	IvfEntry	entry;
	Buffer		buf;

	IvfWriterFinish(writer, &head, &tail, &rows);
	buf = IvfReadEntry(handle, list, BUFFER_LOCK_EXCLUSIVE, &entry);
	entry->head = head;
	entry->tail = tail;
	entry->rows = rows;
	/* the version that finish_meta() gives the directory */
	IvfPageDirectory(BufferGetPage(buf))->version = 1;
	MarkBufferDirty(buf);
	UnlockReleaseBuffer(buf);
}

static void
write_lists(IvfHandle *handle, IvfLoad *load)
{
	IvfWriter  *writer = IvfWriterBegin(handle);
	uint32		list = IVF_NO_LIST,
				next;
	int64		done = 0;
	IvfRow		row;

	while (IvfLoadNext(load, &next, &row))
	{
		if (next != list)
		{
			if (list != IVF_NO_LIST)
				finish_list(handle, writer, list);
			IvfWriterStart(writer, next, 1);
			list = next;
		}
		IvfWriterAdd(writer, &row);
		if (++done % 1000 == 0)
		{
			CHECK_FOR_INTERRUPTS();
			pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);
		}
	}
	if (list != IVF_NO_LIST)
		finish_list(handle, writer, list);
	IvfWriterEnd(writer);
}

static void
finish_meta(IvfHandle *handle, double rows)
{
	Buffer		buf = IvfLockMeta(handle);
	IvfMetaData *meta = IvfPageMeta(BufferGetPage(buf));

	meta->tuples = rows;
	meta->version_lists++;
	MarkBufferDirty(buf);
	UnlockReleaseBuffer(buf);
}

static void
init_params(IvfBuildParams *build, Relation index, const QvOpclassInfo *opclass,
			const QvIndexOptions *options)
{
	memset(build, 0, sizeof(*build));
	build->index = index;
	build->options = options;
	IvfMetaInit(&build->meta, &build->layout, QvColumnDims(index, opclass), options, opclass);
	QvSpaceInit(&build->space, opclass, build->meta.dims, build->meta.pdim, build->meta.seed);
}

IndexBuildResult *
IvfBuild(Relation heap, Relation index, IndexInfo *info,
		 const QvOpclassInfo *opclass, const QvIndexOptions *options, int *left_out)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));
	IvfBuildParams build;
	IvfNewLists new;
	IvfHandle  *handle;
	IvfLoad    *load;

	init_params(&build, index, opclass, options);
	build.heap = heap;
	build.info = info;
	build.workers = QvBuildWorkers(heap, index, info);
	IvfMakeLists(&build, &new);
	create_pages(index, MAIN_FORKNUM, &build.meta, &new);
	pfree(new.entries);
	handle = IvfOpen(index, opclass);
	handle->building = true;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, IVF_PHASE_ASSIGN);
	load = IvfLoadBegin(&build, handle, result, left_out);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, IVF_PHASE_WRITE);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, result->index_tuples);
	write_lists(handle, load);
	IvfLoadEnd(load);
	finish_meta(handle, result->index_tuples);
	IvfRefresh(handle);
	QvReportCount(index, new.rows, result->index_tuples);
	if (options->notice_little_data && result->index_tuples < options->lists)
		ereport(NOTICE,
				(errmsg("ivfflat index created with little data"),
				 errdetail("This will cause low recall."),
				 errhint("Drop the index until the table has more data.")));

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, IVF_PHASE_MEASURE);
	IvfMeasureProbes(handle, 0, result->heap_tuples);
	if (IvfCanHaveRows(&handle->meta))
		QvRowsMerge(&handle->rows, true, result->heap_tuples, IvfVisitRows, handle);
	QvWriteLogAll(index, MAIN_FORKNUM);

	/* makes the free space map, so that it does not add to the size later */
	RecordUsedIndexPage(index, QV_META_BLOCK);
	return result;
}

void
IvfBuildEmpty(Relation index, const QvOpclassInfo *opclass, const QvIndexOptions *options)
{
	IvfBuildParams build;
	IvfNewLists one = {.lists = 1, .tops = 1};
	float	   *zero;

	init_params(&build, index, opclass, options);
	/* there is no sense in the one list if the user has given centroids */
	build.meta.flags |= IVF_GROWS;
	one.space = build.meta.space;
	zero = palloc0(build.layout.width * sizeof(float));
	one.entries = palloc(build.layout.entry_size);
	IvfMakeEntry(&build.layout, opclass, zero, 0, (IvfEntry) one.entries);
	create_pages(index, INIT_FORKNUM, &build.meta, &one);
	QvWriteLogAll(index, INIT_FORKNUM);
}
