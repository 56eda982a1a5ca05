/*
 * entry_points.h
 *		The entry points of a graph: a flat array of nodes that searches start
 *		from, on pages and in memory.
 */
#ifndef QV_GRAPH_PAGE_ENTRY_POINTS_H
#define QV_GRAPH_PAGE_ENTRY_POINTS_H

#include "containers/pool.h"
#include "graph/page/handle.h"
#include "graph/page/query.h"

/* There are about GRAPH_ENTRY_FACTOR * sqrt(nodes) of them. */
#define GRAPH_ENTRY_FACTOR 2

/* The value of a plain graph's entry point. */
typedef struct GraphEntryValue
{
	uint32		id;
	void	   *value;
} GraphEntryValue;

/* Entry points in memory. */
struct GraphEntryPoints
{
	QvRelCachePart part;		/* of what was read */
	uint32		version;		/* GraphMetaData.entry_version and _count, */
	uint32		count;			/* of when it was read */
	uint32		nbatches;
	Size		batch_size;
	char	   *batches;		/* GraphEntryBatches, batch_size apart */
	GraphEntryValue *values;	/* entry_values.c's */
	uint32		nvalues;
};

#define GraphEntryBatchAt(entry_points, i) \
	((GraphEntryBatch *) ((entry_points)->batches + (Size) (i) * (entry_points)->batch_size))

/* ---- in a build ---- */

/* None yet, with room for n. */
extern GraphEntryPoints *GraphNewEntryPoints(const GraphHandle *handle, uint32 n);

/*
 * Append node id, with the code of the centered vector x (NULL in a plain
 * graph).
 */
extern void GraphAppendEntryPoint(const GraphHandle *handle, GraphEntryPoints *entry_points,
								  uint32 id, const float *x);

/* Pages that they take. */
extern BlockNumber GraphEntryPointPages(const GraphHandle *handle,
										const GraphEntryPoints *entry_points);

/*
 * Write entry points (NULL: none) on the next pages of a new index, and say
 * in handle->meta where they are.
 */
extern void GraphWriteEntryPoints(GraphHandle *handle, ForkNumber fork,
								  const GraphEntryPoints *entry_points);

/* ---- of an index ---- */

/* Read the entry points that handle->meta tells of, as a part for the index's cache. */
extern GraphEntryPoints *GraphReadEntryPoints(GraphHandle *handle);

/*
 * The n nearest entry points of a coded graph by estimate, ascending.  Returns
 * how many there are.
 */
extern int	GraphNearestEntryPoints(const GraphHandle *handle, const GraphQuery *query,
									Candidate *out, int n);

/* Add node id to the entry points on the pages; x as for GraphAppendEntryPoint(). */
extern void GraphAddEntryPoint(GraphHandle *handle, uint32 id, const float *x);

/* Empty the pages of entry points.  The caller keeps inserts out. */
extern void GraphClearEntryPoints(GraphHandle *handle);

/*
 * Let the entry points of dead nodes lead elsewhere: replace(arg, id) returns
 * the node to use instead of id (id itself to leave it), and is called without
 * locks held.
 */
extern void GraphReplaceEntryPoints(GraphHandle *handle,
									uint32 (*replace) (void *arg, uint32 id), void *arg);

#endif							/* QV_GRAPH_PAGE_ENTRY_POINTS_H */
