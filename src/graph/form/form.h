/*
 * form.h
 *		What coded and plain graphs do differently, apart from the store: one table of
 *		functions for each form (coded.c, plain.c).
 *
 * Scans, inserts and VACUUM are written once, over these tables.  forms.h says which table
 * an index has.  The functions are called for each scan, row or node.  What is done for
 * every distance is behind GraphStore.
 */
#ifndef QV_GRAPH_FORM_FORM_H
#define QV_GRAPH_FORM_FORM_H

#include "graph/page/handle.h"
#include "graph/page/rows.h"
#include "graph/walk/search.h"
#include "graph/walk/select.h"
#include "space/query.h"

/* A value that is searched for.  Each form extends it. */
typedef struct GraphPoint
{
	const QvSpaceQuery *query;	/* NULL: plain */
} GraphPoint;

/*
 * A point with the nodes that a search found for it, which may become its neighbors.  They
 * are copied as far as comparing them needs.  Each form extends it.
 */
typedef struct GraphNeighborhood
{
	GraphHandle *handle;
	const GraphPoint *point;
	const float *centered;		/* the point's vector, for the entry points;
								 * NULL: plain */
	GraphStore *store;			/* for the search: adds the live nodes that
								 * are expanded */
	GraphPairDistance pair;		/* distance of two copies, with the point's
								 * offset; arg is the neighborhood */
	uint32		count;
	uint32		capacity;
	Candidate  *candidates;		/* ascending; their ids are indexes of copies */
	uint32	   *ids;			/* node numbers, by the same index */
	uint32		exclude;		/* a node that is never added, or GRAPH_NONE */
	bool	   *asked;			/* chosen neighbors that have answered
								 * GraphAnchor() for good; NULL: it was not
								 * called */
} GraphNeighborhood;

/* Node number of candidate i of a neighborhood. */
#define GraphNeighborId(nb, i) ((nb)->ids[(nb)->candidates[i].id])

/* Fills in a new neighborhood, except for centered and store. */
static inline void
GraphNeighborhoodInit(GraphNeighborhood *nb, GraphHandle *handle, const GraphPoint *point,
					  uint32 capacity, GraphPairDistance pair)
{
	nb->handle = handle;
	nb->point = point;
	nb->pair = pair;
	nb->count = 0;
	nb->capacity = capacity;
	nb->candidates = palloc(capacity * sizeof(Candidate));
	nb->ids = palloc(capacity * sizeof(uint32));
	nb->exclude = GRAPH_NONE;
	nb->asked = NULL;
}

/* Adds a node.  Its copy is number count - 1.  Returns false if it is not added. */
static inline bool
GraphNeighborhoodAdd(GraphNeighborhood *nb, uint32 id, float distance)
{
	uint32		i = nb->count;

	if (i == nb->capacity || id == nb->exclude)
		return false;
	nb->ids[i] = id;
	nb->candidates[i].distance = distance;
	nb->candidates[i].id = i;
	nb->count++;
	return true;
}

/* Functions of a form.  Memory that they return is palloc'd, and freed with its context. */
typedef struct GraphFormOps
{
	/* Returns the size of a scan's pool for the user's ef. */
	uint32		(*pool_size) (const GraphHandle *handle, int ef);

	/*
	 * Makes a point of a value, which is detoasted, of the column's
	 * dimensions, and lives on.  NULL: any order will do.
	 */
	GraphPoint *(*prepare) (GraphHandle *handle, const void *value);

	/* Makes a point of node id.  Returns NULL if there is no such node. */
	GraphPoint *(*node_point) (GraphHandle *handle, uint32 id);

	/* Returns the pages as a scan for a point sees them. */
	GraphStore *(*open) (GraphHandle *handle, const GraphPoint *point);

	/*
	 * Returns an empty neighborhood of a point, with room for "capacity"
	 * nodes.
	 */
	GraphNeighborhood *(*neighborhood) (GraphHandle *handle, GraphPoint *point,
										uint32 capacity);

	/* Tells whether copy number "at" has the same value as the point. */
	bool		(*same) (const GraphNeighborhood *nb, uint32 at);

	/*
	 * Tells whether the point is twice as near to the nearest node as this is
	 * to itself.  NULL: never.
	 */
	bool		(*surpasses) (const GraphNeighborhood *nb);

	/*
	 * Prepares edges from the point to the first n candidates.  NULL: nothing
	 * to do.
	 */
	void		(*make_edges) (GraphNeighborhood *nb, int n);

	/*
	 * Writes what has no room in the point's node.  NULL: nothing.  Until a
	 * node refers to it, it is lost space, and nothing else.
	 */
	void		(*store_value) (GraphNeighborhood *nb);

	/*
	 * Makes a slot the point's node: live, without rows, with the n prepared
	 * edges.
	 */
	void		(*fill_node) (const GraphNeighborhood *nb, int n, GraphNode node);

	/* Puts prepared edge i into a place of a node. */
	void		(*set_edge) (const GraphNeighborhood *nb, int i, GraphNode node,
							 int place);

	/*
	 * Chooses again for the full node "to", which has these edges.  Returns
	 * the place that the point gets, or -1.  No lock is held.
	 */
	int			(*choose_place) (const GraphNeighborhood *nb, uint32 to, const uint32 *places,
								 bool force);

	/*
	 * Logs and puts an edge to the point, which is node id, into a place of a
	 * host.
	 */
	void		(*edge_back) (const GraphNeighborhood *nb, uint32 id, const GraphHost *host,
							  int place, bool anchor);
} GraphFormOps;

#endif							/* QV_GRAPH_FORM_FORM_H */
