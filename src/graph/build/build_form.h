/*
 * build_form.h
 *		A build in progress, and what it does differently for coded and plain graphs: one
 *		table of functions for each form (coded_build.c, plain_build.c).
 */
#ifndef QV_GRAPH_BUILD_BUILD_FORM_H
#define QV_GRAPH_BUILD_BUILD_FORM_H

#include "access/tableam.h"
#include "graph/build/store_mem.h"
#include "graph/page/entry_points.h"
#include "nodes/execnodes.h"
#include "port/atomics.h"
#include "space/load.h"
#include "storage/barrier.h"

/* Build phases in pg_stat_progress_create_index.  Phase 1 is the server's. */
#define PHASE_SAMPLE 2
#define PHASE_CLUSTER 3
#define PHASE_LOAD 4
#define PHASE_CONNECT 5
#define PHASE_WRITE 6

/* Most nodes that a search for a node's neighbors enters at. */
#define BUILD_ENTRIES 4

typedef struct GraphBuildOps GraphBuildOps;

/* What the participants of a build share.  A build by one backend has it in its own memory. */
typedef struct GraphBuildShared
{
	QvBuildShared base;

	/* fixed before the workers start */
	GraphMetaData meta;
	double		rows;			/* rows that the index will have, roughly */
	uint32		nlists;			/* number of centroids */

	/* steps (team.h) */
	Barrier		barrier;
	pg_atomic_uint32 claims[2];

	/* set by the leader when the nodes have their places */
	uint32		nodes;
	uint32		nduplicates;
	dsm_handle	arrays;			/* with workers; invalid: a file has them */
	Size		arrays_size;
	uint32		first;			/* number of the node at the first position */

	GraphMemBudget budget;
} GraphBuildShared;

/* Arrays that the participants share, once the nodes are arranged. */
typedef struct GraphBuildArrays
{
	uint32	   *order;			/* nodes in the order of insertion; plain, at
								 * the end: in the order on the pages */
	uint32	   *position;		/* plain, at the end: place of a node on the
								 * pages */
	pg_atomic_uint32 *links;	/* first link to each node, until it becomes
								 * an edge; the memory of position */
	uint32	   *next;			/* next link after each link of a batch */
	uint32	   *representative; /* node of each list, or GRAPH_NONE */
	uint32	   *rank;			/* rank of that node in the order of insertion */
	GraphMemDuplicate *duplicates;
} GraphBuildArrays;

/* A build in progress, of one participant.  Each form extends it. */
typedef struct GraphBuildState
{
	const GraphBuildOps *ops;
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	GraphHandle handle;			/* made by the build: there are no pages yet */
	QvBufferHints hints;
	Size		max_memory;
	GraphBuildShared *shared;
	bool		leader;
	uint32		step;			/* number of times that the participants have
								 * met */

	MemoryContext row_context;	/* reset after every row */
	GraphMem	mem;
	GraphBuildArrays arrays;
	dsm_segment *segment;		/* memory of the arrays: this, or the next */
	QvRoom		room;
	GraphSearch search;
	Candidate  *chosen;
	Candidate  *scratch;
	uint32	   *unreached;		/* leader: nodes that become entry points */
	uint32		nunreached;
} GraphBuildState;

struct GraphBuildOps
{
	Size		state_size;

	/* Returns the bytes of a code or value in a node in memory. */
	Size		(*payload) (const GraphHandle *handle);

	/*
	 * Leader: reads a sample of the table, and sets shared->nlists.  Returns
	 * floats that all participants get, their number in *n.
	 */
	float	   *(*prepare) (GraphBuildState *bs, Size *n);

	/* Everyone: takes those floats, and starts bs->mem. */
	void		(*begin) (GraphBuildState *bs, float *floats, bool in_shared_memory);

	/*
	 * Adds a node without edges for a value of the column's dimensions, with
	 * its list and GraphMemLoaded.
	 */
	void		(*add) (GraphBuildState *bs, const void *value, ItemPointer tid);

	/* Returns the number of lists.  A node's list is below it. */
	uint32		(*count_lists) (const GraphBuildState *bs);

	/*
	 * Called when the first "count" nodes in the order of insertion are
	 * connected.  May be NULL.
	 */
	void		(*connected) (GraphBuildState *bs, uint32 count);

	/*
	 * Chooses the nodes that the search for a node's neighbors enters at: of
	 * those connected, at most BUILD_ENTRIES.  Returns how many.
	 */
	int			(*enter) (GraphBuildState *bs, uint32 id, uint32 connected, uint32 *entries);

	/*
	 * Leader: returns the nodes that will be entry points, palloc'd, their
	 * number in *n.  All nodes are connected.
	 */
	uint32	   *(*choose_entry_points) (GraphBuildState *bs, uint32 *n);

	/*
	 * Leader: sets the nodes' "list", by which they are ordered on the pages.
	 * NULL: they are in that order.
	 */
	void		(*assign_lists) (GraphBuildState *bs);

	/*
	 * Returns the entry points to write, with bs->unreached.  Node i will be
	 * at position[i] (NULL: i).
	 */
	GraphEntryPoints *(*make_entry_points) (GraphBuildState *bs, const uint32 *position);

	/*
	 * Writes a node with its edges, but without rows.  Node i is number first
	 * + position[i].
	 */
	void		(*write_node) (GraphBuildState *bs, GraphMemNode *from,
							   GraphNode to, const uint32 *position, uint32 first);

	/*
	 * Leader: writes the rest when all nodes are written, node order[i] as
	 * number first + i.  NULL: there is no rest.
	 */
	void		(*finish) (GraphBuildState *bs, const uint32 *order, uint32 first);
};

#endif							/* QV_GRAPH_BUILD_BUILD_FORM_H */
