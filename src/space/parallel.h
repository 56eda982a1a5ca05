/*
 * parallel.h
 *		Parallel work of a build: shared memory, the scan of the table, and workers.
 */
#ifndef QV_SPACE_PARALLEL_H
#define QV_SPACE_PARALLEL_H

#include "postgres.h"

#include "access/parallel.h"
#include "access/relscan.h"
#include "executor/instrument.h"
#include "space/load.h"

/* Parts of shared memory.  A worker looks them up by these keys. */
#define QV_KEY_SHARED UINT64CONST(0x5176495600000001)
#define QV_KEY_MORE UINT64CONST(0x5176495600000002)

/* What a worker has used. */
typedef struct QvWorkerUsage
{
	BufferUsage buffers;
	WalUsage	wal;
} QvWorkerUsage;

/* Parallel work, as the leader has it. */
typedef struct QvParallel
{
	ParallelContext *pcxt;		/* NULL: the leader is alone */
	Snapshot	snapshot;		/* of the scan; NULL: there is none */
	QvWorkerUsage *usage;		/* one for each worker */
	void	   *shared;			/* parts of shared memory */
	void	   *more;
} QvParallel;

/*
 * Is there room for that much dynamic shared memory?  Asking for too much raises an
 * error, and containers often have 64 MB.
 */
extern bool QvHasSharedMemory(Size size);

/*
 * Enters parallel mode, with room for that many workers, which begin in a function of that name.
 * Their shared memory has two parts, whose bytes are not zeroed (0: there is no such part).  If
 * heap is not NULL, the participants can share a scan of it.  Returns false if no workers are
 * wanted or there is no shared memory.  Nothing has to be ended then.
 */
extern bool QvParallelBegin(QvParallel *parallel, const char *function, int workers, Size shared,
							Size more, Relation heap, bool concurrent);

/* Returns a participant's part of the scan. */
extern TableScanDesc QvParallelScan(shm_toc *toc, Relation heap);

/* The leader waits for all workers.  An error of a worker is raised here. */
extern void QvParallelWait(const QvParallel *parallel);

/* The leader frees shared memory, and leaves parallel mode.  Does nothing if it is alone. */
extern void QvParallelEnd(QvParallel *parallel);

/* A worker calls these first and last. */
extern void QvParallelStart(shm_toc *toc);
extern void QvParallelReport(shm_toc *toc);

/* What a worker of a build opens, by the QvBuildShared that its shared memory begins with. */
typedef struct QvWorker
{
	shm_toc    *toc;
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	QvOpclassInfo opclass;
	TableScanDesc scan;
} QvWorker;

/*
 * A worker of a build calls these in place of the two above.  Returns the first part of shared
 * memory.  get_opclass is the access methods' own.
 */
extern void *QvWorkerBegin(QvWorker *worker, shm_toc *toc,
						   void (*get_opclass) (Relation index, QvOpclassInfo *opclass));
extern void QvWorkerEnd(QvWorker *worker);

#endif							/* QV_SPACE_PARALLEL_H */
