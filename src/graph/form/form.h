/*
 * form.h
 *		What differs between coded and plain graphs and is no matter of a
 *		GraphStore: one table of functions a form (coded.c, plain.c).
 *
 * Scans, insertion and vacuum are written once, over these tables; which of them
 * an index has, forms.h tells.  The calls are per scan, per row or per node;
 * what is done for every distance is behind GraphStore.
 */
#ifndef QV_GRAPH_FORM_FORM_H
#define QV_GRAPH_FORM_FORM_H

#include "graph/page/handle.h"
#include "graph/page/rows.h"
#include "graph/walk/search.h"
#include "graph/walk/select.h"
#include "space/query.h"

/* A value made ready to be searched for.  Each form extends it. */
typedef struct GraphPoint
{
	/* metric distance = scale * (search distance + offset) */
	double		scale;
	double		offset;
	const QvSpaceQuery *query;	/* NULL: plain */
} GraphPoint;

/*
 * A point that looks for neighbors, and the nodes that a search found and that
 * may become them, with copies of what comparing them takes.  Each form extends
 * it.
 */
typedef struct GraphNeighborhood
{
	GraphHandle *handle;
	const GraphPoint *point;
	const float *centered;		/* the point, for the entry points; NULL:
								 * plain */
	GraphStore *store;			/* for the search: takes in the live nodes
								 * expanded */
	GraphPairDistance pair;		/* of two copies, with the point's offset; arg
								 * is this */
	uint32		count;
	uint32		capacity;
	Candidate  *candidates;		/* ascending; ids index the copies */
	uint32	   *ids;			/* node numbers, by the same index */
	uint32		exclude;		/* a node never to be found, or GRAPH_NONE */
	bool	   *asked;			/* which of those chosen GraphAnchor() has
								 * asked and had an answer for good; NULL:
								 * none */
} GraphNeighborhood;

/* The node number of a neighborhood's candidate number i. */
#define GraphNeighborId(nb, i) ((nb)->ids[(nb)->candidates[i].id])

/* Fill in a new neighborhood, all of it but centered and store. */
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

/* Take a node in; its copy is number count - 1.  False when there is no need. */
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

/* Memory that these functions return is palloc'd, for its context to free. */
typedef struct GraphFormOps
{
	/* Candidates that a scan with the user's ef holds. */
	uint32		(*pool_size) (const GraphHandle *handle, int ef);

	/*
	 * Prepare a value (detoasted, of the column's dimensions, lives on) to be
	 * searched for.  NULL: any order will do.
	 */
	GraphPoint *(*prepare) (GraphHandle *handle, const void *value);

	/* The point that node id is; NULL when there is no such node. */
	GraphPoint *(*node_point) (GraphHandle *handle, uint32 id);

	/* The pages as a scan for a point sees them. */
	GraphStore *(*open) (GraphHandle *handle, const GraphPoint *point);

	/* A neighborhood of a point with room for so many nodes, none found yet. */
	GraphNeighborhood *(*neighborhood) (GraphHandle *handle, GraphPoint *point,
										uint32 capacity);

	/* Has copy number "at" the same value as the point? */
	bool		(*same) (const GraphNeighborhood *nb, uint32 at);

	/*
	 * Prepare edges from the point to the first n candidates.  NULL: nothing
	 * to do.
	 */
	void		(*make_edges) (GraphNeighborhood *nb, int n);

	/*
	 * Write what the point's node will not hold itself.  NULL: nothing.
	 * Without a node that refers to it, it is lost space, no more.
	 */
	void		(*store_value) (GraphNeighborhood *nb);

	/*
	 * Make a slot the point's node: live, without rows, with the n edges
	 * made.
	 */
	void		(*fill_node) (const GraphNeighborhood *nb, int n, GraphNode node);

	/* Put edge number i of those made into a place of a node. */
	void		(*set_edge) (const GraphNeighborhood *nb, int i, GraphNode node,
							 int place);

	/*
	 * Which place of the full node "to", with those edges, the point gets
	 * when that node chooses again; -1: none.  No lock is held.
	 */
	int			(*choose_place) (const GraphNeighborhood *nb, uint32 to, const uint32 *places,
								 bool force);

	/*
	 * Log and put an edge to the point, which is node id, into a place of a
	 * host.
	 */
	void		(*edge_back) (const GraphNeighborhood *nb, uint32 id, const GraphHost *host,
							  int place, bool anchor);
} GraphFormOps;

#endif							/* QV_GRAPH_FORM_FORM_H */
