/*
 * build_form.h
 *		A build in progress, and what it does differently for coded and plain
 *		graphs: one table of functions a form (build_coded.c, build_plain.c).
 */
#ifndef QV_GRAPH_BUILD_BUILD_FORM_H
#define QV_GRAPH_BUILD_BUILD_FORM_H

#include "access/tableam.h"
#include "graph/build/store_mem.h"
#include "graph/page/entry_points.h"
#include "nodes/execnodes.h"
#include "port/atomics.h"
#include "storage/barrier.h"
#include "storage/buffile.h"

/* Build phases, in pg_stat_progress_create_index; 1 is the server's own. */
#define PHASE_SAMPLE 2
#define PHASE_CLUSTER 3
#define PHASE_LOAD 4
#define PHASE_CONNECT 5
#define PHASE_WRITE 6

/* Nodes that a row's search enters at, at most. */
#define BUILD_ENTRIES 4

typedef struct GraphBuildOps GraphBuildOps;

/* What the participants of a build share; of one backend when it is alone. */
typedef struct GraphBuildShared
{
	/* fixed before the workers start */
	Oid			heap;
	Oid			index;
	bool		concurrent;
	GraphMetaData meta;
	double		rows;			/* in the table, roughly */
	uint32		nlists;			/* centroids */

	/* in step (build_team.h) */
	int			participants;
	Barrier		barrier;
	pg_atomic_uint32 claims[2];

	/* while rows are loaded */
	pg_atomic_uint64 progress;
	slock_t		mutex;			/* for the next four */
	double		heap_tuples;
	double		loaded;			/* rows in memory */
	double		spilled;		/* rows for which there was no memory */
	bool		broken_hot_chain;

	/* the leader's, when the nodes have their places */
	uint32		nodes;
	uint32		nduplicates;
	dsm_handle	arrays;
	uint32		first;			/* number of the node at the first position */

	GraphMemBudget budget;
} GraphBuildShared;

/* Arrays that the participants share from the arrangement of the nodes on. */
typedef struct GraphBuildArrays
{
	uint32	   *order;			/* nodes as they are inserted; in the end, of
								 * a plain graph, as they lie on the pages */
	uint32	   *position;		/* plain, in the end: on the pages */
	pg_atomic_uint32 *links;	/* first link to each node, until it is made
								 * an edge; the memory of position */
	uint32	   *next;			/* link after each of a batch */
	uint32	   *representative; /* node of each list, or NONE */
	uint32	   *rank;			/* of it, in the order of insertion */
	GraphMemDuplicate *duplicates;
} GraphBuildArrays;

/* Each form extends it. */
typedef struct GraphBuildState
{
	const GraphBuildOps *ops;
	Relation	heap;
	Relation	index;
	IndexInfo  *info;
	GraphHandle handle;			/* made by hand: there are no pages yet */
	QvBufferHints hints;
	Size		max_memory;
	GraphBuildShared *shared;
	bool		leader;
	uint32		step;			/* how often the participants have met */

	MemoryContext row_context;	/* reset after every row */
	GraphMem	mem;
	GraphBuildArrays arrays;
	dsm_segment *segment;		/* of the arrays, or NULL */
	GraphSearch search;
	Candidate  *chosen;
	Candidate  *scratch;
	uint32	   *unreached;		/* nodes that become entry points, leader */
	uint32		nunreached;
	BufFile    *spill;			/* rows for which there was no memory, or NULL */
	int64		nspilled;
} GraphBuildState;

struct GraphBuildOps
{
	Size		state_size;

	/* Bytes of a code or value in a node in memory. */
	Size		(*payload) (const GraphHandle *handle);

	/*
	 * Leader: look at the table before its rows come, and set shared->nlists.
	 * Returns floats that all participants are to have, their number in *n.
	 */
	float	   *(*prepare) (GraphBuildState *bs, Size *n);

	/* Everyone: take those floats, and start bs->mem. */
	void		(*begin) (GraphBuildState *bs, float *floats, bool in_shared_memory);

	/*
	 * Add a node without edges for a value, of the column's dimensions, its
	 * list and what GraphMemLoaded says.  False: there is no memory; its list
	 * is told.
	 */
	bool		(*add) (GraphBuildState *bs, const void *value, ItemPointer tid, uint32 *list);

	/* Lists that a node added may have: numbers below this. */
	uint32		(*count_lists) (const GraphBuildState *bs);

	/*
	 * The first so many in the order of insertion are connected.  May be
	 * NULL.
	 */
	void		(*connected) (GraphBuildState *bs, uint32 count);

	/*
	 * Where to search for a node's neighbors from: of those connected, at
	 * most BUILD_ENTRIES.  Returns how many.
	 */
	int			(*enter) (GraphBuildState *bs, uint32 id, uint32 connected, uint32 *entries);

	/*
	 * Leader, all nodes are connected: the nodes that will be entry points,
	 * palloc'd, their number in *n.
	 */
	uint32	   *(*choose_entry_points) (GraphBuildState *bs, uint32 *n);

	/*
	 * Leader: set the nodes' "list", by which they are ordered on the pages.
	 * NULL: they are in that order.
	 */
	void		(*assign_lists) (GraphBuildState *bs);

	/*
	 * The entry points to write, with bs->unreached; node i will be at
	 * position[i] (NULL: i).
	 */
	GraphEntryPoints *(*make_entry_points) (GraphBuildState *bs, const uint32 *position);

	/*
	 * Write a node with its edges but without rows; node i is number first +
	 * position[i].
	 */
	void		(*write_node) (GraphBuildState *bs, GraphMemNode *from,
							   GraphNode to, const uint32 *position, uint32 first);

	/*
	 * Leader: all nodes are written, node order[i] as number first + i. NULL:
	 * that was all.
	 */
	void		(*finish) (GraphBuildState *bs, const uint32 *order, uint32 first);
};

#endif							/* QV_GRAPH_BUILD_BUILD_FORM_H */
