/*
 * build_coded.c
 *		The coded graph's part of a build: sample, centroids, codes.
 *
 *	1. a sample of the table gives the mean and about 2 sqrt(n) centroids;
 *	2. every row is encoded, and the search for its neighbors enters at the
 *	   representatives of its nearest centroids;
 *	3. the nodes are written in the order of their centroids, with their
 *	   neighbors' codes beside them.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "cluster/kmeans.h"
#include "commands/progress.h"
#include "graph/build_coded.h"
#include "graph/node.h"
#include "graph/query.h"
#include "graph/store_mem_coded.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "space/sample.h"

/* Rows sampled for each centroid: enough for entry points, not for codebooks. */
#define ROWS_PER_LIST 20
#define KMEANS_ITERATIONS 5
#define MAX_LISTS 32768

/* The least sample, which the mean alone wants. */
#define MIN_SAMPLE 1000

/* Centroids compared exactly for each row. */
#define NEAREST_LISTS 8

typedef struct CodedBuild
{
	GraphBuildState base;

	float	   *value;			/* dims; also a node's edges' bits */
	float	   *rotated;		/* pdim */
	float	   *centered;		/* pdim */
	uint8	   *bytes;			/* pdim */

	/* sample */
	float	   *sample;			/* target x pdim, rotated */
	int			sampled;

	/* lists */
	uint32		nlists;
	float	   *centroids;		/* nlists x pdim */
	uint32	   *medoid;			/* node nearest to each centroid, or NONE */
	float	   *medoid_distance;
} CodedBuild;

static const float *
centroid(const CodedBuild *bs, uint32 list)
{
	return bs->centroids + (Size) list * bs->base.handle.meta.pdim;
}

/* Leave a value, rotated, in bs->rotated. */
static void
take_value(CodedBuild *bs, const void *value)
{
	(void) QvSpaceRotateValue(&bs->base.handle.space, value, bs->value, bs->rotated);
}

/* ---- sample, mean, centroids ---- */

static bool
take_sample(void *state, int slot, Datum datum)
{
	CodedBuild *bs = state;
	void	   *value = PG_DETOAST_DATUM(datum);

	QvCheckDims(&bs->base.handle.space.opclass, bs->base.handle.meta.dims, value);
	if (!QvIsIndexed(&bs->base.handle.space.opclass, value))
		return false;
	take_value(bs, value);
	memcpy(bs->sample + (Size) slot * bs->base.handle.meta.pdim, bs->rotated,
		   bs->base.handle.meta.pdim * sizeof(float));
	return true;
}

static void
sample_rows(CodedBuild *bs, double rows)
{
	double		lists = Min(MAX_LISTS, 2 * sqrt(Max(1, rows)));
	double		target = Max(MIN_SAMPLE, lists * ROWS_PER_LIST);
	QvSample	sample = {
		.heap = bs->base.heap,
		.index = bs->base.handle.index,
		.info = bs->base.info,
		.seed = bs->base.handle.meta.seed,
		.take = take_sample,
		.state = bs
	};

	/* a quarter of the memory; k-means wants some of the rest */
	target = Min(target, bs->base.max_memory / 4.0 / (bs->base.handle.meta.pdim * sizeof(float)));
	target = Max(target, 64);
	sample.target = target;
	bs->sample = MemoryContextAllocHuge(CurrentMemoryContext,
										(Size) sample.target * bs->base.handle.meta.pdim * sizeof(float));
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SAMPLE);
	bs->sampled = QvSampleRows(&sample, rows);
}

/*
 * A few rows of another order of magnitude would carry the mean away from all
 * others, whose codes then say nothing: rows whose squared length is so many
 * times the median do not count.
 */
#define OUTLIER 1e4f

static void
compute_mean(CodedBuild *bs, float *mean)
{
	uint32		pdim = bs->base.handle.meta.pdim;

	QvMeanOfRows(bs->sample, bs->sampled, pdim, OUTLIER, mean);
	QvSpaceSetMean(&bs->base.handle.space, mean);
	for (int i = 0; i < bs->sampled; i++)
	{
		float	   *row = bs->sample + (Size) i * pdim;

		QvSpaceCenter(&bs->base.handle.space, row, row);
	}
}

static void
make_lists(CodedBuild *bs, double rows)
{
	uint32		pdim = bs->base.handle.meta.pdim;
	uint32		wanted = Min(MAX_LISTS, 2 * sqrt(Max(1, rows)));
	QvKmeansParams params = {0};
	void	   *workspace;

	wanted = Min(wanted, bs->sampled / 8 + 1);
	if (bs->sampled == 0)
		wanted = 0;
	bs->centroids = MemoryContextAllocHuge(CurrentMemoryContext,
										   (Size) Max(1, wanted) * pdim * sizeof(float));
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_CLUSTER);
	if (wanted > 0)
	{
		params.rows = bs->sample;
		params.n = bs->sampled;
		params.dim = pdim;
		params.k = wanted;
		params.iterations = KMEANS_ITERATIONS;
		params.seed = bs->base.handle.meta.seed;
		params.interrupt = QvClusterInterrupt;
		workspace = MemoryContextAllocHuge(CurrentMemoryContext,
										   QvKmeansWorkspace(bs->sampled, pdim, wanted));
		bs->nlists = QvKmeans(&params, bs->centroids, NULL, workspace);
		pfree(workspace);
	}
	pfree(bs->sample);
	bs->sample = NULL;

	bs->medoid = palloc(Max(1, bs->nlists) * sizeof(uint32));
	bs->medoid_distance = palloc(Max(1, bs->nlists) * sizeof(float));
	bs->base.handle.entry_points = GraphNewEntryPoints(&bs->base.handle, bs->nlists);
	for (uint32 i = 0; i < bs->nlists; i++)
	{
		bs->medoid[i] = GRAPH_NONE;
		bs->medoid_distance[i] = FLT_MAX;
		GraphAppendEntryPoint(&bs->base.handle, bs->base.handle.entry_points, i, centroid(bs, i));
	}
}

static void
build_coded_prepare(GraphBuildState *base)
{
	CodedBuild *bs = (CodedBuild *) base;
	const GraphMetaData *meta = &base->handle.meta;
	Size		bits = (Size) meta->degree * meta->code_bits / 8;
	double		rows;

	bs->value = palloc(Max(meta->pdim * sizeof(float), bits));
	bs->rotated = palloc(meta->pdim * sizeof(float));
	bs->centered = palloc(meta->pdim * sizeof(float));
	bs->bytes = palloc(meta->pdim);

	rows = QvEstimateRows(base->heap);
	sample_rows(bs, rows);
	compute_mean(bs, palloc(meta->pdim * sizeof(float)));
	make_lists(bs, rows);
	GraphMemInitCoded(&base->mem, &base->handle, base->max_memory);
}

/* ---- rows ---- */

/*
 * The list of row "centered", and where to enter the graph for it: fills
 * entries with at most BUILD_ENTRIES node numbers, returns how many.
 */
static int
find_entries(CodedBuild *bs, const GraphQuery *query, uint32 *list, uint32 *entries)
{
	Candidate	near[NEAREST_LISTS];
	int			nnear = GraphNearestEntryPoints(&bs->base.handle, query, near, NEAREST_LISTS);
	float		best = FLT_MAX;
	int			n = 0;

	*list = 0;
	for (int i = 0; i < nnear; i++)
	{
		float		d = qv_kernels.l2sq_f32(bs->centered,
											centroid(bs, near[i].id),
											bs->base.handle.meta.pdim);

		if (d < best)
		{
			best = d;
			*list = near[i].id;
		}
		if (n < BUILD_ENTRIES && bs->medoid[near[i].id] != GRAPH_NONE)
			entries[n++] = bs->medoid[near[i].id];
	}

	/*
	 * A table in clustered order: no near list has a node yet.  Enter at the
	 * nearest list that has.
	 */
	if (n == 0 && bs->base.mem.count > 0)
	{
		float		nearest = FLT_MAX;

		entries[n++] = 0;
		for (uint32 i = 0; i < bs->nlists; i++)
		{
			float		d;

			if (bs->medoid[i] == GRAPH_NONE)
				continue;
			d = qv_kernels.l2sq_f32(bs->centered, centroid(bs, i),
									bs->base.handle.meta.pdim);
			if (d < nearest)
			{
				nearest = d;
				entries[0] = bs->medoid[i];
			}
		}
	}
	return n;
}

static uint32
build_coded_add(GraphBuildState *base, const void *value, ItemPointer tid,
				uint32 *entries, int *nentries)
{
	CodedBuild *bs = (CodedBuild *) base;
	GraphHandle *handle = &base->handle;
	MemoryContext old;
	GraphQuery	query;
	GraphCode	code;
	uint32		list,
				id;

	take_value(bs, value);
	QvSpaceCenter(&handle->space, bs->rotated, bs->centered);
	GraphEncode(&handle->layout, bs->centered, handle->space.mean, &code, bs->bytes);
	GraphQueryInit(handle, &query, bs->rotated);
	*nentries = find_entries(bs, &query, &list, entries);

	old = MemoryContextSwitchTo(base->graph_context);
	id = GraphMemAdd(&base->mem, &code, tid);
	MemoryContextSwitchTo(old);
	GraphMemGet(&base->mem, id)->list = list;
	return id;
}

/* A node nearer to its list's centroid than the others represents the list. */
static void
build_coded_connected(GraphBuildState *base, uint32 id)
{
	CodedBuild *bs = (CodedBuild *) base;
	uint32		list = GraphMemGet(&base->mem, id)->list;
	float		d;

	if (bs->nlists == 0)
		return;
	d = qv_kernels.l2sq_f32(bs->centered, centroid(bs, list), base->handle.meta.pdim);
	if (d < bs->medoid_distance[list])
	{
		bs->medoid_distance[list] = d;
		bs->medoid[list] = id;
	}
}

/* ---- pages ---- */

static GraphEntryPoints *
build_coded_make_entry_points(GraphBuildState *base, const uint32 *position)
{
	CodedBuild *bs = (CodedBuild *) base;
	const GraphLayout *layout = &base->handle.layout;
	GraphEntryPoints *entry_points = GraphNewEntryPoints(&base->handle, Max(1, bs->nlists));

	/* the lists that have a node */
	for (uint32 i = 0; i < bs->nlists; i++)
		if (bs->medoid[i] != GRAPH_NONE)
			GraphAppendEntryPoint(&base->handle, entry_points, position[bs->medoid[i]],
								  centroid(bs, i));
	if (entry_points->count == 0 && base->mem.count > 0)
	{
		GraphCode	code;

		GraphMemGetCode(&base->mem, GraphMemGet(&base->mem, 0), &code);
		qv_kernels.decode_u8(code.bytes, code.scale, QvCodeOffset(layout->own_bits),
							 bs->centered, layout->pdim);
		GraphAppendEntryPoint(&base->handle, entry_points, position[0], bs->centered);
	}
	return entry_points;
}

static void
build_coded_write_node(GraphBuildState *base, GraphMemNode *from, GraphNode to,
					   const uint32 *position, uint32 first)
{
	CodedBuild *bs = (CodedBuild *) base;
	const GraphLayout *layout = &bs->base.handle.layout;
	GraphEdge	edges[GRAPH_MAX_DEGREE];
	Size		stride = layout->code_bits / 8;
	uint8	   *bits = (uint8 *) bs->value;
	GraphCode	code;

	GraphMemShrink(&bs->base.mem, from, bs->base.scratch);
	GraphMemGetCode(&bs->base.mem, from, &code);
	qv_kernels.decode_u8(code.bytes, code.scale, QvCodeOffset(layout->own_bits),
						 bs->centered, layout->pdim);
	for (int i = 0; i < from->degree; i++)
	{
		uint32		id = from->edges[i].id;
		GraphCode	other;

		GraphMemGetCode(&bs->base.mem, GraphMemGet(&bs->base.mem, id), &other);
		GraphEncodeEdge(layout, bs->base.handle.meta.space, &code, bs->centered, &other,
						first + position[id], &edges[i], bits + i * stride);
	}
	GraphNodeInit(layout, to);
	GraphNodeSetCode(layout, to, &code);
	GraphNodeSetEdges(layout, to, edges, bits, from->degree);
}

const GraphBuildOps graph_coded_build = {
	.state_size = sizeof(CodedBuild),
	.prepare = build_coded_prepare,
	.add = build_coded_add,
	.connected = build_coded_connected,
	.make_entry_points = build_coded_make_entry_points,
	.write_node = build_coded_write_node
};
