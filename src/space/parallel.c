/*
 * parallel.c
 *		Parallel work of a build; see parallel.h.
 */
#include "postgres.h"

#ifdef __linux__
#include <sys/statvfs.h>
#endif

#include "access/genam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "compat.h"
#include "pgstat.h"
#include "space/parallel.h"
#include "storage/dsm_impl.h"
#include "tcop/tcopprot.h"
#include "utils/snapmgr.h"

/* Further parts of shared memory. */
#define KEY_QUERY_TEXT UINT64CONST(0x5176495600000003)
#define KEY_USAGE UINT64CONST(0x5176495600000004)
#define KEY_SCAN UINT64CONST(0x5176495600000005)

bool
QvHasSharedMemory(Size size)
{
#ifdef __linux__
	struct statvfs fs;

	if (dynamic_shared_memory_type == DSM_IMPL_POSIX && statvfs("/dev/shm", &fs) == 0)
		return (uint64) fs.f_bavail * fs.f_frsize > size + size / 8;
#endif
	return true;
}

/* Plans a part of shared memory, if it has a size. */
static void
plan_part(ParallelContext *pcxt, Size size)
{
	if (size == 0)
		return;
	shm_toc_estimate_chunk(&pcxt->estimator, size);
	shm_toc_estimate_keys(&pcxt->estimator, 1);
}

/* Makes a part that was planned.  Returns NULL if it has no size. */
static void *
make_part(ParallelContext *pcxt, uint64 key, Size size)
{
	void	   *part;

	if (size == 0)
		return NULL;
	part = shm_toc_allocate(pcxt->toc, size);
	shm_toc_insert(pcxt->toc, key, part);
	return part;
}

bool
QvParallelBegin(QvParallel *parallel, const char *function, int workers, Size shared, Size more,
				Relation heap, bool concurrent)
{
	Size		text = debug_query_string ? strlen(debug_query_string) + 1 : 0;
	Size		usage = Max(0, workers) * sizeof(QvWorkerUsage);
	Size		scan = 0;
	ParallelContext *pcxt;

	memset(parallel, 0, sizeof(*parallel));
	if (workers <= 0)
		return false;
	EnterParallelMode();
	pcxt = parallel->pcxt = CreateParallelContext("quiver", function, workers);
	if (heap)
	{
		parallel->snapshot = concurrent ? RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
		scan = table_parallelscan_estimate(heap, parallel->snapshot);
	}
	plan_part(pcxt, shared);
	plan_part(pcxt, more);
	plan_part(pcxt, scan);
	plan_part(pcxt, usage);
	plan_part(pcxt, text);
	InitializeParallelDSM(pcxt);
	if (pcxt->seg == NULL)
	{
		QvParallelEnd(parallel);
		return false;
	}
	parallel->shared = make_part(pcxt, QV_KEY_SHARED, shared);
	parallel->more = make_part(pcxt, QV_KEY_MORE, more);
	if (heap)
		table_parallelscan_initialize(heap, make_part(pcxt, KEY_SCAN, scan), parallel->snapshot);
	parallel->usage = make_part(pcxt, KEY_USAGE, usage);
	if (text > 0)
		memcpy(make_part(pcxt, KEY_QUERY_TEXT, text), debug_query_string, text);
	return true;
}

TableScanDesc
QvParallelScan(shm_toc *toc, Relation heap)
{
	return QvTableBeginParallel(heap, shm_toc_lookup(toc, KEY_SCAN, false));
}

void
QvParallelWait(const QvParallel *parallel)
{
	ParallelContext *pcxt = parallel->pcxt;

	WaitForParallelWorkersToFinish(pcxt);
	for (int i = 0; i < pcxt->nworkers_launched; i++)
		InstrAccumParallelQuery(&parallel->usage[i].buffers, &parallel->usage[i].wal);
}

void
QvParallelEnd(QvParallel *parallel)
{
	if (parallel->pcxt == NULL)
		return;
	if (parallel->snapshot && IsMVCCSnapshot(parallel->snapshot))
		UnregisterSnapshot(parallel->snapshot);
	DestroyParallelContext(parallel->pcxt);
	ExitParallelMode();
	parallel->pcxt = NULL;
}

/* ---- a worker ---- */

void
QvParallelStart(shm_toc *toc)
{
	debug_query_string = shm_toc_lookup(toc, KEY_QUERY_TEXT, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	InstrStartParallelQuery();
}

void
QvParallelReport(shm_toc *toc)
{
	QvWorkerUsage *usage = shm_toc_lookup(toc, KEY_USAGE, false);

	InstrEndParallelQuery(&usage[ParallelWorkerNumber].buffers, &usage[ParallelWorkerNumber].wal);
}

void *
QvWorkerBegin(QvWorker *worker, shm_toc *toc,
			  void (*get_opclass) (Relation index, QvOpclassInfo *opclass))
{
	QvBuildShared *shared = shm_toc_lookup(toc, QV_KEY_SHARED, false);

	QvParallelStart(toc);
	worker->toc = toc;
	/* the locks that the leader has, too; the worker keeps them to its end */
	worker->heap = table_open(shared->heap, shared->concurrent ? ShareUpdateExclusiveLock : ShareLock);
	worker->index = index_open(shared->index, shared->concurrent ? RowExclusiveLock : AccessExclusiveLock);
	worker->info = BuildIndexInfo(worker->index);
	worker->info->ii_Concurrent = shared->concurrent;
	get_opclass(worker->index, &worker->opclass);
	worker->scan = QvParallelScan(toc, worker->heap);
	return shared;
}

void
QvWorkerEnd(QvWorker *worker)
{
	index_close(worker->index, NoLock);
	table_close(worker->heap, NoLock);
	QvParallelReport(worker->toc);
}
