/*
 * build_form.h
 *		A build in progress, and what it does differently for coded and plain
 *		graphs: one table of functions a form (build_coded.c, build_plain.c).
 */
#ifndef QV_GRAPH_BUILD_FORM_H
#define QV_GRAPH_BUILD_FORM_H

#include "graph/entry_points.h"
#include "graph/store_mem.h"
#include "nodes/execnodes.h"

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
	IndexInfo  *info;
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
	 * Add a node without edges for a value, of the column's dimensions, to
	 * the graph in memory, from graph_context.  Returns its number, and in
	 * entries[nentries], at most BUILD_ENTRIES, where to search for its
	 * neighbors from.
	 */
	uint32		(*add) (GraphBuildState *bs, const void *value, ItemPointer tid,
						uint32 *entries, int *nentries);

	/* The node added last has its edges.  Called in graph_context. */
	void		(*connected) (GraphBuildState *bs, uint32 id);

	/*
	 * All rows are in memory: set the nodes' "list", by which they are
	 * ordered on the pages.  NULL: they have it.
	 */
	void		(*assign_lists) (GraphBuildState *bs);

	/* The entry points to write; node i will be at position[i]. */
	GraphEntryPoints *(*make_entry_points) (GraphBuildState *bs, const uint32 *position);

	/*
	 * Write a node with its edges but without rows; node i is number first +
	 * position[i].
	 */
	void		(*write_node) (GraphBuildState *bs, GraphMemNode *from,
							   GraphNode to, const uint32 *position, uint32 first);

	/*
	 * All nodes are written, node order[i] as number first + i.  NULL: that
	 * was all.
	 */
	void		(*finish) (GraphBuildState *bs, const uint32 *order, uint32 first);
};

#endif							/* QV_GRAPH_BUILD_FORM_H */
