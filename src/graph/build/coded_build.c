/*
 * coded_build.c
 *		The coded graph's part of a build: sample, centroids, codes.
 *
 *	1. A sample of the table gives the mean and about 2 sqrt(n) centroids.
 *	2. Every row is encoded, and numbered by its nearest centroid.
 *	3. The search for its neighbors enters at the representatives of its nearest centroids:
 *	   the rows that are nearest to these.
 *	4. The nodes are written in the order of their centroids, with their neighbors' codes
 *	   beside them.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "cluster/kmeans.h"
#include "commands/progress.h"
#include "graph/build/coded_build.h"
#include "graph/build/store_mem_coded.h"
#include "graph/page/meta.h"
#include "graph/page/node.h"
#include "graph/page/query.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "space/sample.h"

/*
 * Rows in the sample for each centroid.  This is enough for entry points, but not for
 * codebooks.
 */
#define ROWS_PER_LIST 20
#define KMEANS_ITERATIONS 5
#define MAX_LISTS 32768

/* Least rows of the sample, which the mean needs. */
#define MIN_SAMPLE 1000

typedef struct CodedBuild
{
	GraphBuildState base;

	float	   *value;			/* dims; also the codes of a node's edges */
	float	   *rotated;		/* pdim */
	float	   *centered;		/* pdim */
	uint8	   *bytes;			/* pdim */

	/* sample */
	float	   *sample;			/* target x pdim, rotated */
	QvRoom		sample_room;
	int			sampled;

	/* lists; the mean is first in the same memory */
	uint32		nlists;
	float	   *centroids;		/* nlists x pdim */
} CodedBuild;

static const float *
centroid(const CodedBuild *bs, uint32 list)
{
	return bs->centroids + (Size) list * bs->base.handle.meta.pdim;
}

/* Puts a value, rotated, into bs->rotated. */
static void
take_value(CodedBuild *bs, const void *value)
{
	QvSpaceRotateValue(&bs->base.handle.space, value, bs->value, bs->rotated);
}

/* ---- sample, mean, centroids ---- */

static void
take_sample(void *state, int slot, const void *value)
{
	CodedBuild *bs = state;

	take_value(bs, value);
	memcpy(bs->sample + (Size) slot * bs->base.handle.meta.pdim, bs->rotated,
		   bs->base.handle.meta.pdim * sizeof(float));
}

/* A quarter of the memory is for each of the sample, the centroids and what k-means needs. */
static void *
make_room(const CodedBuild *bs, QvRoom *room, Size size)
{
	return QvRoomMake(room, size, bs->base.max_memory / 4);
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
		.space = &bs->base.handle.space,
		.seed = bs->base.handle.meta.seed,
		.take = take_sample,
		.state = bs
	};

	sample.target = target;
	bs->sample = make_room(bs, &bs->sample_room,
						   (Size) sample.target * bs->base.handle.meta.pdim * sizeof(float));
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SAMPLE);
	bs->sampled = QvSampleRows(&sample, rows);
}

static void
compute_mean(CodedBuild *bs, float *mean)
{
	uint32		pdim = bs->base.handle.meta.pdim;

	QvMeanOfRows(bs->sample, bs->sampled, pdim, mean);
	QvSpaceSetMean(&bs->base.handle.space, mean);
	QvSpaceChoose(&bs->base.handle.space, bs->sample, bs->sampled);
	bs->base.handle.meta.space = bs->base.handle.space.kind;
	bs->base.handle.meta.level = bs->base.handle.space.level;
	for (int i = 0; i < bs->sampled; i++)
	{
		float	   *row = bs->sample + (Size) i * pdim;

		QvSpaceCenter(&bs->base.handle.space, row, row);
	}
}

/* Chooses how many neighbors the data need, before anything is laid out. */
static void
choose_degree(CodedBuild *bs)
{
	GraphHandle *handle = &bs->base.handle;

	GraphMetaAdapt(&handle->meta, bs->sample, bs->sampled);
	if (!GraphLayoutFromMeta(&handle->layout, &handle->meta))
		elog(ERROR, "graph node layout does not fit together");
	bs->base.shared->meta = handle->meta;
}

/* Returns the number of lists for a number of rows, at most. */
static uint32
wanted_lists(const CodedBuild *bs, double rows)
{
	uint32		wanted = Min(MAX_LISTS, 2 * sqrt(Max(1, rows)));

	return bs->sampled == 0 ? 0 : Min(wanted, bs->sampled / 8 + 1);
}

/* Computes the centroids of the sample.  Returns how many. */
static uint32
make_lists(CodedBuild *bs, uint32 wanted, float *centroids)
{
	uint32		pdim = bs->base.handle.meta.pdim;
	QvKmeansParams params = {0};
	QvRoom		workspace;
	uint32		made;

	if (wanted == 0)
		return 0;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_CLUSTER);
	params.rows = bs->sample;
	params.n = bs->sampled;
	params.dim = pdim;
	params.k = wanted;
	params.iterations = KMEANS_ITERATIONS;
	params.seed = bs->base.handle.meta.seed;
	params.interrupt = QvClusterInterrupt;
	made = QvKmeans(&params, centroids, NULL,
					make_room(bs, &workspace, QvKmeansWorkspace(bs->sampled, pdim, wanted)));
	QvRoomFree(&workspace);
	return made;
}

static float *
build_coded_prepare(GraphBuildState *base, Size *n)
{
	CodedBuild *bs = (CodedBuild *) base;
	uint32		pdim = base->handle.meta.pdim;
	uint32		wanted;
	float	   *floats;

	bs->value = palloc(pdim * sizeof(float));
	bs->rotated = palloc(pdim * sizeof(float));
	sample_rows(bs, base->shared->rows);
	wanted = wanted_lists(bs, base->shared->rows);
	floats = MemoryContextAllocHuge(CurrentMemoryContext, (wanted + 1) * (Size) pdim * sizeof(float));
	compute_mean(bs, floats);
	choose_degree(bs);
	base->shared->nlists = make_lists(bs, wanted, floats + pdim);
	QvRoomFree(&bs->sample_room);
	bs->sample = NULL;
	*n = (base->shared->nlists + 1) * (Size) pdim;
	return floats;
}

static void
build_coded_begin(GraphBuildState *base, float *floats, bool in_shared_memory)
{
	CodedBuild *bs = (CodedBuild *) base;
	GraphHandle *handle = &base->handle;
	uint32		pdim = handle->meta.pdim;
	Size		bits = (Size) handle->meta.degree * handle->meta.code_bits / 8;

	bs->value = palloc(Max(pdim * sizeof(float), bits));
	bs->rotated = palloc(pdim * sizeof(float));
	bs->centered = palloc(pdim * sizeof(float));
	bs->bytes = palloc(pdim);
	QvSpaceSetMean(&handle->space, floats);
	bs->centroids = floats + pdim;
	bs->nlists = base->shared->nlists;
	handle->entry_points = GraphNewEntryPoints(handle, bs->nlists);
	for (uint32 i = 0; i < bs->nlists; i++)
		GraphAppendEntryPoint(handle, handle->entry_points, i, centroid(bs, i));
	GraphMemInitCoded(&base->mem, handle, &base->shared->budget, in_shared_memory,
					  base->shared->rows);
}

static Size
build_coded_payload(const GraphHandle *handle)
{
	return handle->layout.pdim;
}

/* ---- rows ---- */

/* Finds the list of the row bs->centered, and others that are near. */
static uint32
find_lists(CodedBuild *bs, const GraphQuery *query, GraphMemLoaded *loaded)
{
	Candidate	near[GRAPH_LOADED_LISTS];
	int			n = GraphNearestEntryPoints(&bs->base.handle, query, near, GRAPH_LOADED_LISTS);
	uint32		list = 0;

	loaded->to_centroid = INFINITY;
	loaded->nlists = n;
	for (int i = 0; i < n; i++)
	{
		float		d = qv_kernels.l2sq_f32(bs->centered, centroid(bs, near[i].id),
											bs->base.handle.meta.pdim);

		loaded->lists[i] = near[i].id;
		if (d < loaded->to_centroid)
		{
			loaded->to_centroid = d;
			list = near[i].id;
		}
	}
	loaded->ip = n == 0 || bs->base.handle.meta.space == QV_SPACE_L2 ? 0 :
		qv_kernels.ip_f32(bs->centered, centroid(bs, list), bs->base.handle.meta.pdim);
	return list;
}

static void
build_coded_add(GraphBuildState *base, const void *value, ItemPointer tid)
{
	CodedBuild *bs = (CodedBuild *) base;
	GraphHandle *handle = &base->handle;
	GraphMemNode *node;
	GraphQuery	query;
	GraphCode	code;

	take_value(bs, value);
	QvSpaceCenter(&handle->space, bs->rotated, bs->centered);
	GraphEncode(&handle->layout, bs->centered, handle->space.mean, &code, bs->bytes);
	node = GraphMemAdd(&base->mem, &code, tid);
	GraphQueryInit(handle, &query, bs->rotated);
	node->list = find_lists(bs, &query, GraphMemLoadedOf(node));
}

static uint32
build_coded_count_lists(const GraphBuildState *base)
{
	return Max(1, base->shared->nlists);
}

/* ---- edges ---- */

/*
 * Enters at the representatives of the nearest lists.  While representatives are inserted
 * themselves, none of these may be connected yet.  Then the nearest of all others is used.
 */
static int
build_coded_enter(GraphBuildState *base, uint32 id, uint32 connected, uint32 *entries)
{
	CodedBuild *bs = (CodedBuild *) base;
	const GraphBuildArrays *arrays = &base->arrays;
	GraphMem   *mem = &base->mem;
	const GraphMemLoaded *loaded = GraphMemLoadedOf(GraphMemGet(mem, id));
	float		best = INFINITY;
	int			n = 0;

	for (int i = 0; i < loaded->nlists && n < BUILD_ENTRIES; i++)
		if (arrays->representative[loaded->lists[i]] != GRAPH_NONE &&
			arrays->rank[loaded->lists[i]] < connected)
			entries[n++] = arrays->representative[loaded->lists[i]];
	if (n > 0)
		return n;
	entries[0] = arrays->order[0];
	for (uint32 i = 0; i < bs->nlists; i++)
		if (arrays->representative[i] != GRAPH_NONE && arrays->rank[i] < connected)
		{
			float		d = mem->pair(mem, id, arrays->representative[i]);

			if (d < best)
			{
				best = d;
				entries[0] = arrays->representative[i];
			}
		}
	return 1;
}

/* ---- pages ---- */

/* Decodes the code of a node into bs->centered. */
static void
decode_node(CodedBuild *bs, const GraphMemNode *node, GraphCode *code)
{
	const GraphLayout *layout = &bs->base.handle.layout;

	GraphMemGetCode(&bs->base.mem, node, code);
	qv_kernels.decode_u8(code->bytes, code->scale, QvCodeOffset(layout->own_bits), bs->centered,
						 layout->pdim);
}

/* Chooses the representatives of lists, or the first node if there are none. */
static uint32 *
build_coded_choose_entry_points(GraphBuildState *base, uint32 *n)
{
	CodedBuild *bs = (CodedBuild *) base;
	uint32	   *nodes = palloc(Max(1, bs->nlists) * sizeof(uint32));

	*n = 0;
	for (uint32 i = 0; i < bs->nlists; i++)
		if (base->arrays.representative[i] != GRAPH_NONE)
			nodes[(*n)++] = base->arrays.representative[i];
	if (*n == 0 && base->mem.count > 0)
		nodes[(*n)++] = 0;
	return nodes;
}

static GraphEntryPoints *
build_coded_make_entry_points(GraphBuildState *base, const uint32 *position)
{
	CodedBuild *bs = (CodedBuild *) base;
	GraphHandle *handle = &base->handle;
	GraphEntryPoints *entry_points = GraphNewEntryPoints(handle, bs->nlists + 1 + base->nunreached);
	GraphCode	code;

	for (uint32 i = 0; i < bs->nlists; i++)
		if (base->arrays.representative[i] != GRAPH_NONE)
			GraphAppendEntryPoint(handle, entry_points, base->arrays.representative[i],
								  centroid(bs, i));
	if (entry_points->count == 0 && base->mem.count > 0)
	{
		decode_node(bs, GraphMemGet(&base->mem, 0), &code);
		GraphAppendEntryPoint(handle, entry_points, 0, bs->centered);
	}
	for (uint32 i = 0; i < base->nunreached; i++)
	{
		decode_node(bs, GraphMemGet(&base->mem, base->unreached[i]), &code);
		GraphAppendEntryPoint(handle, entry_points, base->unreached[i], bs->centered);
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

	decode_node(bs, from, &code);
	for (int i = 0; i < from->degree; i++)
	{
		uint32		id = GraphEdgeTo(from->edges[i].id);
		GraphCode	other;

		GraphMemGetCode(&bs->base.mem, GraphMemGet(&bs->base.mem, id), &other);
		GraphEncodeEdge(layout, &bs->base.handle.space, &code, bs->centered, &other,
						first + id, &edges[i], bits + i * stride);
	}
	GraphNodeInit(layout, to);
	GraphNodeSetCode(layout, to, &code);
	GraphNodeSetEdges(layout, to, edges, bits, from->degree);
	for (int i = 0; i < from->degree; i++)
		if (GraphEdgeIsAnchor(from->edges[i].id))
			GraphNodeSetAnchor(layout, to, i);
}

const GraphBuildOps graph_coded_build = {
	.state_size = sizeof(CodedBuild),
	.payload = build_coded_payload,
	.prepare = build_coded_prepare,
	.begin = build_coded_begin,
	.add = build_coded_add,
	.count_lists = build_coded_count_lists,
	.enter = build_coded_enter,
	.choose_entry_points = build_coded_choose_entry_points,
	.make_entry_points = build_coded_make_entry_points,
	.write_node = build_coded_write_node
};
