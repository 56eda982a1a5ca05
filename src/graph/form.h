/*
 * form.h
 *		What differs between coded and plain graphs: one table of functions a
 *		form.
 *
 * Scans, insertion, vacuum and builds are written once, over these tables
 * (coded.c, plain.c).  The calls are per node, per row or per scan; what is
 * done for every distance is behind GraphStore.
 */
#ifndef QV_GRAPH_FORM_H
#define QV_GRAPH_FORM_H

#include "graph/cache.h"
#include "graph/search.h"
#include "graph/select.h"

/*
 * A value made ready to be searched for and, by encode(), to become a node.
 * Each form extends it.
 */
typedef struct GraphPoint
{
	/* metric distance = scale * (search distance + offset) */
	double		scale;
	double		offset;
	const float *centered;			/* for the entry points; NULL: nothing to keep */
} GraphPoint;

/*
 * Nodes that a search for a point found and that may become its neighbors,
 * with copies of what comparing them takes.  Each form extends it.
 */
typedef struct GraphNeighborhood
{
	GraphHandle *handle;
	uint32		count;
	uint32		capacity;
	Candidate  *candidates;		/* ascending; ids index the copies */
	uint32	   *ids;			/* node numbers, by the same index */
	uint32		exclude;		/* a node never to be found, or GRAPH_NONE */
} GraphNeighborhood;

/* The node number of a neighborhood's candidate number i. */
#define GraphNeighborId(nb, i) ((nb)->ids[(nb)->candidates[i].id])

static inline void
GraphNeighborhoodInit(GraphNeighborhood *nb, GraphHandle *handle, uint32 capacity)
{
	nb->handle = handle;
	nb->count = 0;
	nb->capacity = capacity;
	nb->candidates = palloc(capacity * sizeof(Candidate));
	nb->ids = palloc(capacity * sizeof(uint32));
	nb->exclude = GRAPH_NONE;
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
	/* offers are exact distances (GraphSearch.offer_once) */
	bool		exact;

	/* there are about entry_factor * sqrt(nodes) entry points */
	double		entry_factor;

	/* Candidates that a scan with the user's ef holds. */
	uint32		(*pool_size) (const GraphHandle *handle, int ef);

	/* Those of a search for neighbors, in multiples of ef_construction. */
	int			insert_pool;

	/*
	 * Prepare a value (detoasted, of the column's dimensions, lives on) to be
	 * searched for.  NULL: any order will do.
	 */
	GraphPoint *(*prepare) (GraphHandle *handle, const void *value);

	/* The point that node id is, encoded; NULL when there is no such node. */
	GraphPoint *(*node_point) (GraphHandle *handle, uint32 id);

	/* Prepare a point to become a node. */
	void		(*encode) (GraphHandle *handle, GraphPoint *point);

	/*
	 * The pages as a search for point sees them.  Live nodes that are expanded
	 * are added to nb unless it is NULL.
	 */
	GraphStore *(*open) (GraphHandle *handle, const GraphPoint *point,
						 GraphNeighborhood *nb);

	/* Offer the n nearest entry points. */
	void		(*enter) (GraphStore *store, GraphSearch *search, int n);

	/*
	 * Add to an entry points just read what a sweep of it needs besides the
	 * pages.  NULL: nothing.
	 */
	void		(*read_entries) (GraphHandle *handle, GraphEntryPoints *entry_points);

	/* ---- neighborhoods ---- */

	GraphNeighborhood *(*neighborhood) (GraphHandle *handle, uint32 capacity);

	/* Search distance (with offset) of two copies; arg is the neighborhood. */
	GraphPairDistance pair;

	/* Is copy number at the same value as point? */
	bool		(*same) (const GraphNeighborhood *nb, uint32 at,
						 const GraphPoint *point);

	/* Prepare edges from point to the first n candidates, for fill_node. */
	void		(*make_edges) (GraphNeighborhood *nb, const GraphPoint *point,
							   int n);

	/* ---- nodes on pages ---- */

	/*
	 * Write what a node does not hold itself.  NULL: nothing.  Without a node
	 * that refers to it, it is lost space, no more.
	 */
	void		(*store_value) (GraphHandle *handle, GraphPoint *point,
								bool building);

	/* Give that space back before node id is freed.  NULL: nothing. */
	void		(*free_value) (GraphHandle *handle, uint32 id);

	/* Make a slot a live node without rows: point, with the n edges made. */
	void		(*fill_node) (const GraphNeighborhood *nb, const GraphPoint *point,
							  int n, GraphNode node);

	/* Put edge number i of those made into an empty place of a node. */
	void		(*set_edge) (const GraphNeighborhood *nb, int i, GraphNode node,
							 int place);

	/*
	 * Offer node id, which is point, to node "to" as a neighbor.  A node that
	 * is full need not take it, unless forced.  Returns whether it did.
	 */
	bool		(*link_back) (GraphHandle *handle, const GraphPoint *point,
							  uint32 id, uint32 to, bool force, bool building);
} GraphFormOps;

/*
 * Values of so few dimensions are no larger than the codes of the neighbors
 * beside them, and measured exactly in less time (src/graph/README.md, "Few
 * dimensions").
 */
#define GRAPH_MAX_FEW_DIMS 8

/* What form an index of that operator class and so many dimensions has. */
static inline QvForm
GraphChooseForm(const QvOpclassInfo *opclass, int dims)
{
	return opclass->type->dense_float && dims > GRAPH_MAX_FEW_DIMS &&
		(opclass->metric == QV_METRIC_L2 || opclass->metric == QV_METRIC_IP ||
		 opclass->metric == QV_METRIC_COSINE) ? QV_FORM_CODED : QV_FORM_PLAIN;
}

extern const GraphFormOps graph_coded_ops;	/* coded.c */
extern const GraphFormOps graph_plain_ops;	/* plain.c */

static inline const GraphFormOps *
GraphFormOf(const GraphMetaData *meta)
{
	return meta->form == QV_FORM_CODED ? &graph_coded_ops : &graph_plain_ops;
}

#endif							/* QV_GRAPH_FORM_H */
