/*
 * entry_points.h
 *		Entry points of a graph: a flat array of nodes that searches start from, on pages
 *		and in memory.
 */
#ifndef QV_GRAPH_PAGE_ENTRY_POINTS_H
#define QV_GRAPH_PAGE_ENTRY_POINTS_H

#include "containers/pool.h"
#include "graph/page/handle.h"
#include "graph/page/query.h"

/* A graph has about GRAPH_ENTRY_FACTOR * sqrt(nodes) entry points. */
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
	QvRelCachePart part;		/* entry points of an index: part of its cache
								 * entry */
	uint32		version;		/* GraphMetaData.entry_version when it was
								 * read */
	uint32		count;			/* GraphMetaData.entry_count when it was read */
	uint32		nbatches;
	Size		batch_size;
	char	   *batches;		/* GraphEntryBatches, batch_size bytes apart */
	GraphEntryValue *values;	/* plain: set by entry_values.c; NULL: not
								 * read yet */
	uint32		nvalues;
};

#define GraphEntryBatchAt(entry_points, i) \
	((GraphEntryBatch *) ((entry_points)->batches + (Size) (i) * (entry_points)->batch_size))

/* ---- in a build ---- */

/* Returns empty entry points with room for n. */
extern GraphEntryPoints *GraphNewEntryPoints(const GraphHandle *handle, uint32 n);

/* Appends node id, with the code of the centered vector x (plain: NULL). */
extern void GraphAppendEntryPoint(const GraphHandle *handle, GraphEntryPoints *entry_points,
								  uint32 id, const float *x);

/* Returns the number of pages for the entry points (NULL: none). */
extern BlockNumber GraphEntryPointPages(const GraphHandle *handle,
										const GraphEntryPoints *entry_points);

/*
 * Writes entry points (NULL: none) on the next pages of a new index, and sets their place
 * in handle->meta.
 */
extern void GraphWriteEntryPoints(GraphHandle *handle, ForkNumber fork,
								  const GraphEntryPoints *entry_points);

/* ---- of an index ---- */

/* Reads the entry points of an index, as a part for its cache entry. */
extern GraphEntryPoints *GraphReadEntryPoints(GraphHandle *handle);

/*
 * Finds the n nearest entry points of a coded graph by estimate, ascending.  Returns how
 * many it has found.
 */
extern int	GraphNearestEntryPoints(const GraphHandle *handle, const GraphQuery *query,
									Candidate *out, int n);

/* Adds node id to the entry points on the pages.  x is as for GraphAppendEntryPoint(). */
extern void GraphAddEntryPoint(GraphHandle *handle, uint32 id, const float *x);

/* Empties the entry points.  The caller keeps inserts out. */
extern void GraphClearEntryPoints(GraphHandle *handle);

/*
 * Lets entry points of deleted nodes lead elsewhere.  replace(arg, id) returns the node to
 * use instead of node id, or id itself.  It is called without locks held.  Then drops all
 * entry points of a node but one.
 */
extern void GraphReplaceEntryPoints(GraphHandle *handle,
									uint32 (*replace) (void *arg, uint32 id), void *arg);

#endif							/* QV_GRAPH_PAGE_ENTRY_POINTS_H */
