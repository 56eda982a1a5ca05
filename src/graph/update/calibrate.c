/*
 * calibrate.c
 *		How large a scan's pool must be; see calibrate.h and src/graph/update/README.md,
 *		"Calibration".
 */
#include "postgres.h"

#include <math.h>

#include "common/hashfn.h"
#include "common/pg_prng.h"
#include "compat.h"
#include "graph/graph.h"
#include "graph/page/entry_points.h"
#include "graph/page/meta.h"
#include "graph/page/node.h"
#include "graph/page/pool.h"
#include "graph/page/rows.h"
#include "graph/update/calibrate.h"
#include "graph/walk/store_coded.h"
#include "pages/turnover.h"
#include "utils/memutils.h"

/*
 * Number of queries, which are rows of the index.  There are fewer if all their distances
 * would be more than MAX_DISTANCES.
 */
#define MAX_QUERIES 200
#define MIN_QUERIES 100
#define MAX_DISTANCES 2e9

/* Slots that are looked at for a query, at most. */
#define TRIES 100

/* Numbers of nearest rows to be found for each: GRAPH_MEASURED_ROWS, and graph_depths. */
#define DEPTHS (1 + GRAPH_DEPTHS)
#define depth_rows(depth) ((depth) == 0 ? GRAPH_MEASURED_ROWS : graph_depths[(depth) - 1])

/* Least nodes of an index that is calibrated.  With fewer any pool is enough. */
#define LEAST_NODES 1000

/* Policy: the pool is measured again when this share of the nodes came or went. */
#define MEASURE_AGAIN 0.5

/*
 * Values of ef_search for which the pool is measured.  The line is drawn through the first
 * and the last, and raised to the others.
 */
static const int efs[] = {10, 40, 100};

/* Pools tried: from the first on, doubled in some steps, until almost nothing is missed. */
#define FIRST_POOL 12
#define STEPS 3
#define LAST_POOL 10000
#define ENOUGH 0.998
#define MAX_POINTS 30

/* Share of the misses of a target recall that a pool may have, since queries differ from rows. */
#define SLACK 0.8

/* Share of the queries that are hard. */
#define HARD_SHARE 0.1

/* Misses for which deep searches are measured. */
#define DEEP_MISSES ((1 - QV_DEFAULT_RECALL) * SLACK)

/*
 * BETTER is the share of the misses of exact distances that estimates must find besides.
 * Searches for rows of the index are a little easier than others, and another build of the
 * same rows differs by 0.01.  TOLERANCE is the recall that 200 queries cannot resolve.
 */
#define BETTER 0.2
#define TOLERANCE 0.002

/* Least misses that exact distances may have for others to be as good. */
#define LEAST_MISSES 0.0005

#define ENTRIES 8

/* Pieces that are claimed at a time: pages that are read for the nearest rows, and queries. */
#define CLAIM_PAGES 64
#define CLAIM_QUERIES 4

/* ---- distances ---- */

/*
 * Returns a likely true distance of a row whose code's distance is known.  It is off by
 * what a residual of that length in a random direction makes of it.  The direction depends
 * on the row and the query only.  Without it, rows that codes cannot tell apart would be
 * nearer or farther by accident of their codes.
 */
static float
likely_distance(const GraphQuery *query, uint32 pdim, uint32 number, uint32 id, float distance,
				float error)
{
	uint32		hash = murmurhash32(id ^ murmurhash32(number));
	int			sum = (hash & 0xFF) + (hash >> 8 & 0xFF) + (hash >> 16 & 0xFF) + (hash >> 24);
	float		normal = (sum - 510) / 147.8f;	/* about normal: mean 0,
												 * deviation 1 */

	/* the error is that of a residual along the query, not along q - x */
	if (query->base.kind != QV_SPACE_IP)
		error *= query->base.norm > 0 ? Min(1, sqrtf(Max(distance, 0)) / query->base.norm) : 0;
	return distance + normal * error / sqrtf(pdim);
}

/* ---- searching by exact distances, as pgvector does ---- */

typedef struct ExactStore
{
	GraphStore	base;
	GraphHandle *handle;
	const GraphQuery *query;
	uint32		number;			/* number of the query */
	void		(*interrupt) (void);	/* no page is locked then */
	uint8	   *unpacked;
	uint32		ids[GRAPH_MAX_DEGREE];
} ExactStore;

/* Returns the likely distance of a node. */
static float
node_distance(const GraphHandle *handle, const GraphQuery *query, uint32 number, uint32 id,
			  GraphNode node, const uint8 *code)
{
	float		ip = QvCodeIp(&query->base.q, code, handle->layout.own_bits, node->scale);

	return likely_distance(query, handle->layout.pdim, number, id,
						   QvSpaceQueryDistance(&query->base, ip, GraphNodeNorm2(handle, node)),
						   GraphQueryError(query, node->norm2, node->residual));
}

/*
 * Returns the likely distance of node id, or INFINITY if there is none.  Copies its
 * neighbors to ids, if not NULL.
 */
static float
measure(ExactStore *store, uint32 id, uint32 *ids)
{
	const GraphLayout *layout = &store->handle->layout;
	GraphNode	node;
	Buffer		buf = GraphLockNode(store->handle, id, BUFFER_LOCK_SHARE, &node);
	float		distance = INFINITY;

	if (node != NULL)
		distance = node_distance(store->handle, store->query, store->number, id, node,
								 GraphNodeOwnBytes(layout, node, store->unpacked));
	if (ids)
	{
		if (node != NULL)
			memcpy(ids, GraphNodeIds(layout, node), layout->degree * sizeof(uint32));
		else
			memset(ids, 0xFF, layout->degree * sizeof(uint32));
	}
	UnlockReleaseBuffer(buf);
	return distance;
}

static void
exact_expand(GraphStore *base, GraphSearch *search, uint32 id, float offered)
{
	ExactStore *store = (ExactStore *) base;

	store->interrupt();
	(void) measure(store, id, store->ids);
	for (uint32 i = 0; i < store->handle->layout.degree; i++)
	{
		uint32		neighbor = GraphEdgeTo(store->ids[i]);

		/*
		 * a query has no neighbors, but nodes may be reached by its anchors
		 * only
		 */
		if (id == store->number && !GraphEdgeIsAnchor(store->ids[i]))
			continue;
		if (neighbor != GRAPH_NONE && !IdSetHas(&search->seen, neighbor))
		{
			float		distance = measure(store, neighbor, NULL);

			if (distance < INFINITY)
				GraphSearchOffer(search, distance, neighbor);
		}
	}
}

/* ---- searching by estimates, as a scan does ---- */

typedef struct EstimateStore
{
	GraphCodedStore coded;
	void		(*expand) (GraphStore *store, GraphSearch *search, uint32 id, float offered);
	ExactStore *exact;
} EstimateStore;

static void
estimate_expand(GraphStore *base, GraphSearch *search, uint32 id, float offered)
{
	EstimateStore *store = (EstimateStore *) base;

	if (id == store->exact->number)
		exact_expand(&store->exact->base, search, id, offered);
	else
	{
		store->exact->interrupt();
		store->expand(base, search, id, offered);
	}
}

/* ---- one query ---- */

/* The nearest distances that a search has found, ascending.  INFINITY where there are fewer. */
typedef struct Nearest
{
	float		distances[GRAPH_DEEPEST];
} Nearest;

/* Memory that the participants share. */
typedef struct Measured
{
	/*
	 * Results of a search for all queries.  There are two: the next search
	 * begins when all have done their part of this one, but may not have read
	 * the results of the others.
	 */
	Nearest		found[2][MAX_QUERIES];
	struct
	{
		bool		there;
		Nearest		truth[MAX_QUERIES]; /* nearest rows on the pages that it
										 * has read */
	}			of[FLEXIBLE_ARRAY_MEMBER];	/* for each participant */
} Measured;

typedef struct Calibrator
{
	GraphHandle *handle;
	const GraphCrew *crew;
	Measured   *measured;
	int			searches;		/* searches for all queries that are done */
	void		(*interrupt) (void);
	MemoryContext context;		/* reset after every query */
	uint32	   *ids;			/* nodes that are queries */
	int			n;
} Calibrator;

/* Makes a query of a node.  Returns false if it is gone. */
static bool
load_query(Calibrator *c, uint32 id, GraphQuery *query)
{
	GraphHandle *handle = c->handle;
	const GraphLayout *layout = &handle->layout;
	uint8	   *bytes = palloc(layout->pdim);
	float	   *rotated = palloc(layout->pdim * sizeof(float));
	GraphNode	node;
	GraphCode	code;
	Buffer		buf = GraphLockNode(handle, id, BUFFER_LOCK_SHARE, &node);
	bool		live = node != NULL && node->state == GRAPH_SLOT_LIVE;

	if (live)
	{
		GraphNodeCode(layout, node, &code, bytes);
		qv_kernels.decode_u8(code.bytes, code.scale, QvCodeOffset(layout->own_bits), rotated,
							 layout->pdim);
	}
	UnlockReleaseBuffer(buf);
	if (!live)
		return false;
	for (uint32 i = 0; i < layout->pdim; i++)
		rotated[i] += handle->space.mean[i];
	GraphQueryInit(handle, query, rotated);
	return true;
}

static void
add_nearest(Nearest *nearest, float distance)
{
	int			i = GRAPH_DEEPEST - 1;

	if (!(distance < nearest->distances[i]))
		return;
	for (; i > 0 && nearest->distances[i - 1] > distance; i--)
		nearest->distances[i] = nearest->distances[i - 1];
	nearest->distances[i] = distance;
}

/*
 * Searches for node id, which is no result itself, with a pool of that size: of estimates, or
 * of exact distances.
 */
static void
search(Calibrator *c, const GraphQuery *query, uint32 id, uint32 pool, bool exact, Nearest *found)
{
	EstimateStore by_estimate;
	ExactStore	by_distance = {0};
	GraphSearch s;
	Candidate	entries[ENTRIES];
	int			nentries;

	GraphCodedStoreInit(&by_estimate.coded, c->handle, query);
	by_estimate.expand = by_estimate.coded.base.expand;
	by_estimate.coded.base.expand = estimate_expand;
	by_estimate.exact = &by_distance;
	by_distance.base.exact = true;
	by_distance.base.expand = exact_expand;
	by_distance.handle = c->handle;
	by_distance.query = query;
	by_distance.number = id;
	by_distance.interrupt = c->interrupt;
	by_distance.unpacked = palloc(c->handle->layout.pdim);
	GraphSearchInit(&s, exact, false);
	/* one place more, for the query itself */
	GraphSearchReset(&s, pool + 1);
	nentries = GraphNearestEntryPoints(c->handle, query, entries, ENTRIES);
	for (int i = 0; i < nentries; i++)
		GraphSearchOffer(&s, exact ? measure(&by_distance, entries[i].id, NULL) : entries[i].distance,
						 entries[i].id);
	GraphSearchRun(&s, exact ? &by_distance.base : &by_estimate.coded.base);

	for (int i = 0; i < GRAPH_DEEPEST; i++)
		found->distances[i] = INFINITY;
	if (exact)
		for (uint32 i = 0; i < s.pool.nexpanded; i++)
		{
			if (s.pool.expanded[i].id != id)
				add_nearest(found, s.pool.expanded[i].distance);
		}
	else
		for (uint32 i = 0; i < s.nresults; i++)
			add_nearest(found, likely_distance(query, c->handle->layout.pdim, id, s.results[i].id,
											   s.results[i].distance, s.results[i].error));
}

/* Returns how many of "found" are among the k nearest known. */
static int
count_hits(const float *found, const Nearest *truth, int k)
{
	int			hits = 0;

	while (hits < k && found[hits] <= truth->distances[k - 1])
		hits++;
	return hits;
}

/* ---- all queries ---- */

/* Searches for query i with a pool of that size. */
static void
search_one(Calibrator *c, int i, uint32 pool, bool exact, Nearest *found)
{
	MemoryContext old = MemoryContextSwitchTo(c->context);
	GraphQuery	query;

	c->interrupt();
	for (int j = 0; j < GRAPH_DEEPEST; j++)
		found->distances[j] = INFINITY;
	if (load_query(c, c->ids[i], &query))
		search(c, &query, c->ids[i], pool, exact, found);
	MemoryContextSwitchTo(old);
	MemoryContextReset(c->context);
}

/*
 * Searches for all queries with a pool of that size.  Sets recalls to the shares of the nearest
 * rows that are found, for each depth.  Returns what was found, until the next search but one.
 */
static const Nearest *
search_all(Calibrator *c, uint32 pool, bool exact, const Nearest *truth, double *recalls)
{
	Nearest    *found = c->measured->found[c->searches++ % 2];

	for (uint32 at; (at = c->crew->claim(c->crew->arg, CLAIM_QUERIES)) < c->n;)
		for (int i = at; i < Min(at + CLAIM_QUERIES, c->n); i++)
			search_one(c, i, pool, exact, &found[i]);
	c->crew->meet(c->crew->arg);
	for (int depth = 0; depth < DEPTHS; depth++)
	{
		double		hits = 0;

		for (int i = 0; i < c->n; i++)
			hits += count_hits(found[i].distances, &truth[i], depth_rows(depth));
		recalls[depth] = hits / (depth_rows(depth) * c->n);
	}
	return found;
}

/* Adds every node of a page to the nearest rows, where it is near enough. */
static void
look_at_page(const Calibrator *c, Page page, BlockNumber block, const GraphQuery *queries,
			 const bool *there, uint8 *unpacked, Nearest *truth)
{
	const GraphLayout *layout = &c->handle->layout;

	for (uint32 slot = 0; slot < layout->per_page; slot++)
	{
		GraphNode	node = GraphPageNode(layout, page, slot);
		uint32		id = GraphNodeNumber(layout, block, slot);
		const uint8 *code;

		if (node->state != GRAPH_SLOT_LIVE)
			continue;
		code = GraphNodeOwnBytes(layout, node, unpacked);
		for (int i = 0; i < c->n; i++)
			if (there[i] && id != c->ids[i])
				add_nearest(&truth[i], node_distance(c->handle, &queries[i], c->ids[i], id, node, code));
	}
}

/*
 * Finds the nearest rows of each query.  Every participant reads some pages, then all
 * results are merged.
 */
static void
find_truth(Calibrator *c, Nearest *truth)
{
	const GraphCrew *crew = c->crew;
	Relation	index = c->handle->index;
	BlockNumber nblocks = RelationGetNumberOfBlocks(index);
	GraphQuery *queries = palloc0(c->n * sizeof(GraphQuery));
	bool	   *there = palloc(c->n * sizeof(bool));
	PGAlignedBlock copy;
	uint8	   *unpacked = palloc(c->handle->layout.pdim);
	int			number = crew->claim(crew->arg, 1);

	crew->meet(crew->arg);
	for (int i = 0; i < c->n; i++)
	{
		there[i] = load_query(c, c->ids[i], &queries[i]);
		for (int j = 0; j < GRAPH_DEEPEST; j++)
			truth[i].distances[j] = INFINITY;
	}
	for (BlockNumber first; (first = crew->claim(crew->arg, CLAIM_PAGES)) < nblocks;)
		for (BlockNumber block = Max(1, first); block < Min(first + CLAIM_PAGES, nblocks); block++)
		{
			Buffer		buf;

			c->interrupt();
			buf = QvReadAnyPage(index, NULL, block, NULL, BUFFER_LOCK_SHARE);
			memcpy(copy.data, BufferGetPage(buf), BLCKSZ);
			UnlockReleaseBuffer(buf);
			if (QvPageIs((Page) copy.data, QV_PAGE_NODES))
				look_at_page(c, (Page) copy.data, block, queries, there, unpacked, truth);
		}
	memcpy(c->measured->of[number].truth, truth, c->n * sizeof(Nearest));
	c->measured->of[number].there = true;
	crew->meet(crew->arg);
	for (int other = 0; other < crew->participants; other++)
		if (other != number && c->measured->of[other].there)
			for (int i = 0; i < c->n; i++)
				for (int j = 0; j < GRAPH_DEEPEST; j++)
					add_nearest(&truth[i], c->measured->of[other].truth[i].distances[j]);
	pfree(there);
	pfree(unpacked);
}

/* The nearest distances of one query, as many as a search looks at. */
typedef struct Front
{
	float		distances[GRAPH_SETTLED_ROWS];
} Front;

/* What pools of estimates find of the nearest rows, for each depth.  Pools are ascending. */
typedef struct PoolPoints
{
	GraphRecallPoint of[DEPTHS][MAX_POINTS];
	int			n[DEPTHS];
	Front	   *fronts[MAX_POINTS]; /* of each query, for all pools that were
									 * tried; */
	int			tried;			/* which are these */
} PoolPoints;

/* The size of a pool that is tried. */
static uint32
pool_of(int step)
{
	return FIRST_POOL * pow(2, (double) step / STEPS);
}

/* Measures pools from small ones on.  A depth ends at almost all rows, a deeper one at enough. */
static void
measure_pools(Calibrator *c, const Nearest *truth, PoolPoints *points)
{
	bool		ended[DEPTHS] = {0};
	int			left = DEPTHS;

	memset(points->n, 0, sizeof(points->n));
	for (points->tried = 0; left > 0 && pool_of(points->tried) <= LAST_POOL; points->tried++)
	{
		uint32		pool = pool_of(points->tried);
		double		recalls[DEPTHS];
		const Nearest *found = search_all(c, pool, false, truth, recalls);

		points->fronts[points->tried] = palloc(c->n * sizeof(Front));
		for (int i = 0; i < c->n; i++)
			memcpy(&points->fronts[points->tried][i], &found[i], sizeof(Front));
		for (int i = 0; i < DEPTHS; i++)
			if (!ended[i])
			{
				points->of[i][points->n[i]++] = (GraphRecallPoint) {pool, recalls[i]};
				ended[i] = recalls[i] >= (i == 0 ? ENOUGH : 1 - DEEP_MISSES);
				left -= ended[i];
			}
	}
}

/* How many of the distances of a front were not in the one before? */
static int
count_new(const Front *front, const Front *before)
{
	int			at = 0;
	int			count = 0;

	for (int i = 0; i < GRAPH_SETTLED_ROWS; i++)
	{
		while (at < GRAPH_SETTLED_ROWS && before->distances[at] < front->distances[i])
			at++;
		if (at < GRAPH_SETTLED_ROWS && before->distances[at] == front->distances[i])
			at++;
		else
			count++;
	}
	return count;
}

/*
 * Returns how many of the nearest rows of a pool are new against half of it only for a hard query.
 * Of the pools that were tried the next larger one tells, since all have their half among them.
 * Returns 0 if too few were tried.
 */
static int
hard_new_rows(const Calibrator *c, const PoolPoints *points, double pool)
{
	int			at = STEPS;
	int			queries[GRAPH_SETTLED_ROWS + 2] = {0};	/* with that many new
														 * rows, or more */
	int			least = 1;

	/* damaged codes: no search finds less than another */
	if (points->tried <= STEPS)
		return 0;
	while (at < points->tried - 1 && pool_of(at) < pool)
		at++;
	for (int i = 0; i < c->n; i++)
		for (int n = count_new(&points->fronts[at][i], &points->fronts[at - STEPS][i]); n > 0; n--)
			queries[n]++;
	while (queries[least] > HARD_SHARE * c->n)
		least++;
	return least;
}

/* Returns the ef with which a depth has the default recall. */
static double
ef_of_depth(const PoolPoints *points, int depth, double slope, double extra)
{
	return Max(1, (GraphPoolForMisses(points->of[depth], points->n[depth], DEEP_MISSES) - extra) / slope);
}

/* Returns the pool of estimates that finds as many as one of ef exact distances. */
static double
pool_like(Calibrator *c, int ef, const Nearest *truth, const PoolPoints *points)
{
	double		more = GraphMoreNodes(&c->handle->meta);
	double		recalls[DEPTHS];
	double		recall;

	search_all(c, ceil(ef * more), true, truth, recalls);
	recall = recalls[0] + BETTER * (1 - recalls[0]) - TOLERANCE;
	return Max(more * (GRAPH_POOL_SLOPE * ef + GRAPH_POOL_EXTRA),
			   Min(GraphPoolForMisses(points->of[0], points->n[0], Max(1 - recall, LEAST_MISSES)),
				   GRAPH_MAX_SLOPE * ef + GRAPH_POOL_EXTRA));
}

/* Chooses random live nodes, by the index's seed.  There are fewer if hardly any slots have one. */
static void
choose_queries(Calibrator *c)
{
	const GraphLayout *layout = &c->handle->layout;
	BlockNumber nblocks = RelationGetNumberOfBlocks(c->handle->index);
	pg_prng_state random;
	int			wanted = Max(MIN_QUERIES, Min(MAX_QUERIES, MAX_DISTANCES / c->handle->meta.live_nodes));

	pg_prng_seed(&random, c->handle->meta.seed);
	c->ids = palloc(wanted * sizeof(uint32));
	for (int tries = 0; tries < TRIES * wanted && c->n < wanted; tries++)
	{
		BlockNumber block = pg_prng_uint64_range(&random, 1, nblocks - 1);
		uint32		slot = pg_prng_uint64_range(&random, 0, layout->per_page - 1);
		Buffer		buf = QvReadAnyPage(c->handle->index, NULL, block, NULL, BUFFER_LOCK_SHARE);
		Page		page = BufferGetPage(buf);

		if (QvPageIs(page, QV_PAGE_NODES) &&
			GraphPageNode(layout, page, slot)->state == GRAPH_SLOT_LIVE)
			c->ids[c->n++] = GraphNodeNumber(layout, block, slot);
		UnlockReleaseBuffer(buf);
		c->interrupt();
	}
}

static void
write_pools(GraphHandle *handle, double slope, double extra, const Calibrator *c, const PoolPoints *points)
{
	GraphMetaData *meta;
	Buffer		buf = GraphLockMeta(handle->index, handle->hints, &meta);
	QvWrite		w;

	QvWriteBegin(&w, handle->index, handle->building);
	meta = GraphRegisterMeta(&w, buf);
	meta->pool_slope = slope;
	meta->pool_extra = extra;
	meta->pool_nodes = meta->live_nodes;
	for (int i = 0; i < GRAPH_DEPTHS; i++)
		meta->deep_efs[i] = Min(GRAPH_MAX_DEEP_EF, ef_of_depth(points, 1 + i, slope, extra) /
								ef_of_depth(points, 0, slope, extra));
	for (int i = 0; i < GRAPH_RECALLS; i++)
	{
		meta->recall_pools[i] = Min(GRAPH_MAX_POOL,
									Max(1, GraphPoolForMisses(points->of[0], points->n[0], (1 - graph_recalls[i]) * SLACK)));
		meta->hard_new_rows[i] = hard_new_rows(c, points, Max(meta->recall_pools[i], slope + extra));
	}
	QvWriteEnd(&w);
	QvInjectionPoint("quiver-graph-pools-written");
}

void
GraphGetCurve(Relation index, QvCurve *curve)
{
	GraphMetaData meta;

	GraphReadMeta(index, &meta);
	*curve = meta.curve;
}

void
GraphSetCurve(Relation index, const QvCurve *curve)
{
	GraphMetaData *meta;
	Buffer		buf = GraphLockMeta(index, NULL, &meta);
	QvWrite		w;

	QvWriteBegin(&w, index, false);
	GraphRegisterMeta(&w, buf)->curve = *curve;
	QvWriteEnd(&w);
	QvInjectionPoint("quiver-graph-curve-written");
}

Size
GraphCalibrateMemory(int participants)
{
	return offsetof(Measured, of) + participants * sizeof(((Measured *) NULL)->of[0]);
}

bool
GraphWantsCalibration(const GraphMetaData *meta, double nodes)
{
	return meta->form == QV_FORM_CODED && nodes >= LEAST_NODES &&
		QvIsTurnedOver(meta->pool_nodes, nodes, MEASURE_AGAIN);
}

void
GraphCalibrate(GraphHandle *handle, void (*interrupt) (void), const GraphCrew *crew, bool writes)
{
	MemoryContext context;
	MemoryContext old;
	Calibrator	c = {
		.handle = handle, .crew = crew, .measured = crew->memory, .interrupt = interrupt
	};
	Nearest    *truth;
	PoolPoints	points;
	const int	last = lengthof(efs) - 1;
	double		pools[lengthof(efs)];
	double		slope,
				extra;

	if (handle->layout.form != QV_FORM_CODED || handle->meta.live_nodes < LEAST_NODES)
		return;
	context = AllocSetContextCreate(CurrentMemoryContext, "quiver calibration",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	c.context = AllocSetContextCreate(context, "quiver calibration query", ALLOCSET_DEFAULT_SIZES);
	choose_queries(&c);
	if (c.n > 0)
	{
		truth = palloc(c.n * sizeof(Nearest));
		find_truth(&c, truth);
		measure_pools(&c, truth, &points);
		for (int i = 0; i < lengthof(efs); i++)
			pools[i] = pool_like(&c, efs[i], truth, &points);
		slope = Max(GraphMoreNodes(&handle->meta) * GRAPH_POOL_SLOPE, (pools[last] - pools[0]) / (efs[last] - efs[0]));
		slope = Min(slope, GRAPH_MAX_SLOPE);
		extra = GraphMoreNodes(&handle->meta) * GRAPH_POOL_EXTRA;
		for (int i = 0; i < lengthof(efs); i++)
			extra = Max(extra, Min(GRAPH_MAX_EXTRA, pools[i] - slope * efs[i]));
		for (int depth = 0; depth < DEPTHS && writes; depth++)
			for (int i = 0; i < points.n[depth]; i++)
				elog(DEBUG2, "a pool of %.0f candidates finds %.4f of %d rows", points.of[depth][i].pool,
					 points.of[depth][i].recall, depth_rows(depth));
		if (writes)
		{
			for (int i = 0; i < lengthof(efs); i++)
				elog(DEBUG1, "%d rows: a pool of %.0f candidates is as good as %d exact distances",
					 c.n, pools[i], efs[i]);
			elog(DEBUG1, "so pools are of %.1f ef + %.0f candidates", slope, extra);
			write_pools(handle, slope, extra, &c, &points);
		}
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/* ---- alone ---- */

static uint32
claim_alone(void *arg, uint32 pieces)
{
	uint32	   *claims = arg;
	uint32		first = *claims;

	*claims += pieces;
	return first;
}

static void
meet_alone(void *arg)
{
	uint32	   *claims = arg;

	*claims = 0;
}

void
GraphCalibrateAlone(GraphHandle *handle, void (*interrupt) (void))
{
	uint32		claims = 0;
	GraphCrew	alone = {
		.participants = 1,
		.memory = palloc0(GraphCalibrateMemory(1)),
		.arg = &claims,
		.claim = claim_alone,
		.meet = meet_alone
	};

	GraphCalibrate(handle, interrupt, &alone, true);
	pfree(alone.memory);
}
