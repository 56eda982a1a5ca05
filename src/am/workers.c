/*
 * workers.c
 *		Where the workers of parallel builds begin: the engines start them by these names.
 */
#include "postgres.h"

#include "am/opclass.h"
#include "graph/graph.h"
#include "ivf/ivf.h"

extern PGDLLEXPORT void GraphParallelBuildMain(dsm_segment *seg, shm_toc *toc);
extern PGDLLEXPORT void IvfParallelBuildMain(dsm_segment *seg, shm_toc *toc);

void
GraphParallelBuildMain(dsm_segment *seg, shm_toc *toc)
{
	GraphParallelWork(seg, toc, QvGetOpclass);
}

void
IvfParallelBuildMain(dsm_segment *seg, shm_toc *toc)
{
	IvfParallelWork(seg, toc, QvGetOpclass);
}
