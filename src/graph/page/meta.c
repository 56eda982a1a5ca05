/*
 * meta.c
 *		The metapage of a graph index; see meta.h.
 */
#include "postgres.h"

#include "cluster/dimension.h"
#include "common/pg_prng.h"
#include "graph/page/meta.h"
#include "space/sample.h"

/* Seed of every new index, so that builds can be repeated exactly. */
#define ROTATION_SEED UINT64CONST(0x5175697665720001)

/* Data of at most this intrinsic dimension are easy (src/graph/page/README.md, "Neighbors"). */
#define EASY_DIMENSION 25

static const QvMetaFormat graph_meta_format = {
	.what = "a graph index",
	.magic = GRAPH_META_MAGIC,
	.min_version = GRAPH_META_BATCHES,
	.max_version = GRAPH_META_VERSION,
	.pgvector_magic = PGVECTOR_HNSW_MAGIC
};

QvForm
GraphChooseForm(const QvOpclassInfo *opclass, int dims)
{
	return opclass->type->dense_float && dims > GRAPH_MAX_FEW_DIMS &&
		(opclass->metric == QV_METRIC_L2 || opclass->metric == QV_METRIC_IP ||
		 opclass->metric == QV_METRIC_COSINE) ? QV_FORM_CODED : QV_FORM_PLAIN;
}

void
GraphMetaInit(GraphMetaData *meta, int dims, int m, int ef_construction,
			  const QvOpclassInfo *opclass)
{
	memset(meta, 0, sizeof(*meta));
	meta->magic = GRAPH_META_MAGIC;
	meta->version = GRAPH_META_VERSION;
	meta->dims = dims;
	meta->form = GraphChooseForm(opclass, dims);
	meta->metric = opclass->metric;
	meta->m = m;
	meta->ef_construction = ef_construction;
	meta->seed = ROTATION_SEED;
	meta->build_id = pg_prng_uint64(&pg_global_prng_state);
	meta->mean_block = InvalidBlockNumber;
	meta->entry_head = meta->entry_tail = InvalidBlockNumber;
	meta->insert_block = InvalidBlockNumber;
	meta->value_block = InvalidBlockNumber;
	if (meta->form == QV_FORM_CODED)
	{
		meta->pdim = QvPaddedDim(dims);
		meta->space = QvSpaceKindOf(opclass);
		GraphChooseCodedLayout(meta, false);
	}
	else
	{
		meta->value_size = opclass->type->fixed_size(dims);
		GraphChoosePlainLayout(meta);
	}
}

void
GraphMetaAdapt(GraphMetaData *meta, const float *rows, int n)
{
	double		dimension;

	if (meta->space != QV_SPACE_L2)
		return;
	dimension = QvIntrinsicDimension(rows, n, meta->pdim, QvClusterInterrupt, NULL);
	elog(DEBUG1, "intrinsic dimension of %d rows: %.1f", n, dimension);
	if (dimension <= EASY_DIMENSION)
		GraphChooseCodedLayout(meta, true);
}

void
GraphReadMeta(Relation index, GraphMetaData *meta)
{
	QvMetaRead(index, &graph_meta_format, meta, sizeof(*meta));
}

Buffer
GraphLockMeta(Relation index, QvBufferHints *hints, GraphMetaData **meta)
{
	Buffer		buf = QvReadPage(index, hints, QV_META_BLOCK, QV_PAGE_META,
								 BUFFER_LOCK_EXCLUSIVE);

	*meta = QvMetaGet(index, BufferGetPage(buf), &graph_meta_format);
	return buf;
}
