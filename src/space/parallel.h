/*
 * parallel.h
 *		What all parallel work of a build has in shared memory: the text of the SQL
 *		query, and what the workers used.
 */
#ifndef QV_SPACE_PARALLEL_H
#define QV_SPACE_PARALLEL_H

#include "postgres.h"

#include "access/parallel.h"
#include "executor/instrument.h"

/* The key of the work's own part of shared memory.  Keys of further parts follow. */
#define QV_KEY_SHARED UINT64CONST(0x5176495600000001)
#define QV_KEY_SORT UINT64CONST(0x5176495600000002)
#define QV_KEY_FLOATS UINT64CONST(0x5176495600000006)

typedef struct QvParallelUsage
{
	WalUsage   *wal;			/* one for each worker */
	BufferUsage *buffers;
} QvParallelUsage;

/*
 * Is there room for that much dynamic shared memory?  Asking for too much raises an
 * error, and containers often have 64 MB.
 */
extern bool QvHasSharedMemory(Size size);

/* The leader calls these before and after InitializeParallelDSM(). */
extern void QvParallelEstimate(ParallelContext *pcxt);
extern void QvParallelStore(ParallelContext *pcxt, QvParallelUsage *usage);

/* The leader waits for all workers.  An error of a worker is raised here. */
extern void QvParallelWait(ParallelContext *pcxt, const QvParallelUsage *usage);

/* A worker calls these first and last. */
extern void QvParallelStart(shm_toc *toc);
extern void QvParallelReport(shm_toc *toc);

#endif							/* QV_SPACE_PARALLEL_H */
