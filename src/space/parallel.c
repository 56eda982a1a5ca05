/*
 * parallel.c
 *		What all parallel work of a build has in shared memory; see parallel.h.
 */
#include "postgres.h"

#ifdef __linux__
#include <sys/statvfs.h>
#endif

#include "pgstat.h"
#include "space/parallel.h"
#include "storage/dsm_impl.h"
#include "tcop/tcopprot.h"

/* Keys of the parts of shared memory. */
#define KEY_QUERY_TEXT UINT64CONST(0x5176495600000003)
#define KEY_WAL_USAGE UINT64CONST(0x5176495600000004)
#define KEY_BUFFER_USAGE UINT64CONST(0x5176495600000005)

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

static Size
query_text_size(void)
{
	return debug_query_string ? strlen(debug_query_string) + 1 : 0;
}

void
QvParallelEstimate(ParallelContext *pcxt)
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

void
QvParallelStore(ParallelContext *pcxt, QvParallelUsage *usage)
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
	WalUsage   *wal = shm_toc_lookup(toc, KEY_WAL_USAGE, false);
	BufferUsage *buffers = shm_toc_lookup(toc, KEY_BUFFER_USAGE, false);

	InstrEndParallelQuery(&buffers[ParallelWorkerNumber], &wal[ParallelWorkerNumber]);
}

void
QvParallelWait(ParallelContext *pcxt, const QvParallelUsage *usage)
{
	WaitForParallelWorkersToFinish(pcxt);
	for (int i = 0; i < pcxt->nworkers_launched; i++)
		InstrAccumParallelQuery(&usage->buffers[i], &usage->wal[i]);
}
