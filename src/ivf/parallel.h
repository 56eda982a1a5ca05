/*
 * parallel.h
 *		What all parallel work of a build has in shared memory: the query's text, and
 *		what the workers used.
 *
 * There are two kinds of work, one after the other, each with workers of its own:
 * k-means of the sample (cluster.c), and the scan of the table (load.c).  The leader
 * takes part in both.
 */
#ifndef QV_IVF_PARALLEL_H
#define QV_IVF_PARALLEL_H

#include "postgres.h"

#include "access/parallel.h"
#include "executor/instrument.h"

/* Name of the work's own part of shared memory; further ones follow. */
#define IVF_KEY_SHARED UINT64CONST(0x5176495600000001)
#define IVF_KEY_SORT UINT64CONST(0x5176495600000002)

typedef struct IvfParallelUsage
{
	WalUsage   *wal;			/* one a worker */
	BufferUsage *buffers;
} IvfParallelUsage;

/* Leader: before and after InitializeParallelDSM(). */
extern void IvfParallelEstimate(ParallelContext *pcxt);
extern void IvfParallelStore(ParallelContext *pcxt, IvfParallelUsage *usage);

/* Leader: wait for all workers; an error of one is raised here. */
extern void IvfParallelWait(ParallelContext *pcxt, const IvfParallelUsage *usage);

/* The first and the last thing a worker does. */
extern void IvfParallelStart(shm_toc *toc);
extern void IvfParallelReport(shm_toc *toc);

#endif							/* QV_IVF_PARALLEL_H */
