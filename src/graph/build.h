/*
 * build.h
 *		Building a graph index: what its parts share (src/graph/README.md,
 *		"Build").
 */
#ifndef QV_GRAPH_BUILD_H
#define QV_GRAPH_BUILD_H

#include "graph/form.h"
#include "graph/graph.h"
#include "graph/store_mem.h"

/* Build phases, in pg_stat_progress_create_index; 1 is the server's own. */
#define PHASE_SAMPLE 2
#define PHASE_CLUSTER 3
#define PHASE_LOAD 4
#define PHASE_WRITE 5

/* Nodes that a row's search enters at, at most. */
#define BUILD_ENTRIES 4

typedef struct GraphBuildOps GraphBuildOps;

/* Each form extends it. */
typedef struct GraphBuildState
{
	const GraphBuildOps *ops;
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	const QvOpclassInfo *opclass;
	GraphMetaData meta;
	GraphHandle handle;			/* made by hand: there are no pages yet */
	QvBufferHints hints;
	Size		max_memory;

	MemoryContext row_context;	/* reset after every row */
	MemoryContext graph_context;
	GraphMem	mem;
	GraphSearch search;
	Candidate  *chosen;
	Candidate  *scratch;
	bool		on_pages;		/* the graph no longer fits in memory */
	double		tuples;			/* rows indexed */
} GraphBuildState;

struct GraphBuildOps
{
	Size		state_size;

	/* Look at the table before its rows come, and start bs->mem. */
	void		(*prepare) (GraphBuildState *bs);

	/*
	 * Add the row of a value, of the column's dimensions, to the graph in
	 * memory.  Memory that is to stay comes from graph_context.
	 */
	void		(*add) (GraphBuildState *bs, const void *value, ItemPointer tid);

	/* All rows are in memory: give the nodes their final lists. */
	void		(*assign_lists) (GraphBuildState *bs);

	/* The table of entry points to write; node i will be at position[i]. */
	GraphEntryPoints *(*make_entry_points) (GraphBuildState *bs, const uint32 *position);

	/* Write a node with its edges but without rows. */
	void		(*write_node) (GraphBuildState *bs, GraphMemNode *from,
							   GraphNode to, const uint32 *position, uint32 first);

	/*
	 * All nodes are written, node order[i] as number first + i.  NULL: that
	 * was all.
	 */
	void		(*finish) (GraphBuildState *bs, const uint32 *order, uint32 first);
};

extern const GraphBuildOps graph_coded_build;	/* build_coded.c */
extern const GraphBuildOps graph_plain_build;	/* build_plain.c */

/* ---- build.c ---- */

/*
 * Insert node id, the last one added, into the graph in memory, entering at
 * entries.  Returns false when an equal node took the row instead, and id is
 * gone.  Called in graph_context.
 */
extern bool GraphBuildConnect(GraphBuildState *bs, uint32 id,
							  const uint32 *entries, int nentries);

/* ---- build_write.c ---- */

/* An in-memory entry points with room for n entries. */
extern GraphEntryPoints *GraphNewEntryPoints(const GraphMetaData *meta, uint32 n);

/* Append an entry with the code of the centered vector x, NULL for none. */
extern void GraphAppendEntryPoint(const GraphMetaData *meta, GraphEntryPoints *entry_points,
							 uint32 id, const float *x);

/* Write the graph in memory out, all pages of the index. */
extern void GraphBuildWrite(GraphBuildState *bs);

#endif							/* QV_GRAPH_BUILD_H */
