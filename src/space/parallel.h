/*
 * parallel.h
 *		What all parallel work of a build has in shared memory: the query's text, and
 *		what the workers used.
 */
#ifndef QV_SPACE_PARALLEL_H
#define QV_SPACE_PARALLEL_H

#include "postgres.h"

#include "access/parallel.h"
#include "executor/instrument.h"

/* Name of the work's own part of shared memory; further ones follow. */
#define QV_KEY_SHARED UINT64CONST(0x5176495600000001)
#define QV_KEY_SORT UINT64CONST(0x5176495600000002)
#define QV_KEY_FLOATS UINT64CONST(0x5176495600000006)

typedef struct QvParallelUsage
{
	WalUsage   *wal;			/* one a worker */
	BufferUsage *buffers;
} QvParallelUsage;

/*
 * Is there room for so much dynamic shared memory?  Asking for too much is an
 * error, and containers often have 64 MB.
 */
extern bool QvHasSharedMemory(Size size);

/* Leader: before and after InitializeParallelDSM(). */
extern void QvParallelEstimate(ParallelContext *pcxt);
extern void QvParallelStore(ParallelContext *pcxt, QvParallelUsage *usage);

/* Leader: wait for all workers; an error of one is raised here. */
extern void QvParallelWait(ParallelContext *pcxt, const QvParallelUsage *usage);

/* The first and the last thing a worker does. */
extern void QvParallelStart(shm_toc *toc);
extern void QvParallelReport(shm_toc *toc);

#endif							/* QV_SPACE_PARALLEL_H */
