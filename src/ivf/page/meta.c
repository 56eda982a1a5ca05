/*
 * meta.c
 *		The metapage; see meta.h.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "ivf/codec/layout.h"
#include "ivf/page/meta.h"
#include "ivf/page/probes.h"
#include "pages/write.h"
#include "rows/rows.h"

static const QvMetaFormat ivf_meta_format = {
	.what = "an index of posting lists",
	.magic = IVF_META_MAGIC,
	.min_version = IVF_META_FIRST,
	.max_version = IVF_META_VERSION,
	.pgvector_magic = PGVECTOR_IVFFLAT_MAGIC
};

/* Format: stored in each index.  All indexes have the same, so that builds repeat exactly. */
#define ROTATION_SEED UINT64CONST(0x5175697665720002)

void
IvfMetaInit(IvfMetaData *meta, IvfLayout *layout, int dims, const QvIndexOptions *options,
			const QvOpclassInfo *opclass)
{
	memset(meta, 0, sizeof(*meta));
	meta->magic = IVF_META_MAGIC;
	meta->dims = dims;
	meta->form = opclass->type->dense_float ? QV_FORM_CODED : QV_FORM_PLAIN;
	meta->metric = opclass->metric;
	meta->bits = options->bits;
	meta->flags = options->centroids == NULL ? IVF_GROWS : 0;
	meta->max_lists = options->lists ? options->lists : IVF_MAX_LISTS;
	meta->seed = ROTATION_SEED;
	meta->build_id = pg_prng_uint64(&pg_global_prng_state);
	meta->mean_block = meta->list_head = meta->list_tail = InvalidBlockNumber;
	meta->lists = meta->tops = 1;
	if (meta->form == QV_FORM_CODED)
	{
		meta->pdim = QvPaddedDim(dims);
		meta->space = QvSpaceKindOf(opclass);
	}
	else
		meta->value_size = opclass->type->fixed_size(dims);
	IvfChooseLayout(meta);
	meta->version = meta->form == QV_FORM_CODED ? IVF_META_VERSION : IVF_META_FIRST;
	if (!IvfLayoutFromMeta(layout, meta))
		elog(ERROR, "sizes of an index of %u dimensions do not fit together", meta->dims);
}

/* Derives the layout.  Returns false if the metapage's numbers do not fit together. */
static bool
derive_layout(Relation index, IvfLayout *layout, const IvfMetaData *meta)
{
	return IvfProbesAreShares(meta) && QvRowsMetaIsSound(&meta->rows, index, meta->pdim) &&
		IvfLayoutFromMeta(layout, meta);
}

void
IvfReadMeta(Relation index, IvfMetaData *meta, IvfLayout *layout)
{
	QvMetaRead(index, &ivf_meta_format, meta, sizeof(*meta));
	if (!derive_layout(index, layout, meta))
		QvReportCorruption(index, QV_META_BLOCK, "The metapage's numbers do not fit together.");
}

bool
IvfPeekMeta(Relation index, IvfMetaData *meta)
{
	Buffer		buf;
	bool		ours;
	IvfLayout	layout;

	if (RelationGetNumberOfBlocks(index) == 0)
		return false;
	buf = QvReadBuffer(index, QV_META_BLOCK, NULL);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	ours = !PageIsNew(BufferGetPage(buf)) && QvPageIs(BufferGetPage(buf), QV_PAGE_META);
	if (ours)
		*meta = *IvfPageMeta(BufferGetPage(buf));
	UnlockReleaseBuffer(buf);
	return ours && meta->magic == IVF_META_MAGIC &&
		meta->version >= ivf_meta_format.min_version &&
		meta->version <= ivf_meta_format.max_version && derive_layout(index, &layout, meta);
}

void
IvfSetFlags(IvfHandle *handle, uint8 set, uint8 clear)
{
	Buffer		buf = IvfLockMeta(handle);
	IvfMetaData *meta = IvfPageMeta(BufferGetPage(buf));
	uint8		flags = (meta->flags | set) & ~clear;

	if (flags != meta->flags)
	{
		QvWrite		w;

		QvWriteBegin(&w, handle->index, handle->building);
		IvfPageMeta(QvWriteRegister(&w, buf))->flags = flags;
		QvWriteCommit(&w);
	}
	handle->meta.flags = flags;
	UnlockReleaseBuffer(buf);
}

Buffer
IvfLockMeta(IvfHandle *handle)
{
	Buffer		buf = QvReadPage(handle->index, handle->hints, QV_META_BLOCK, QV_PAGE_META,
								 BUFFER_LOCK_EXCLUSIVE);

	(void) QvMetaGet(handle->index, BufferGetPage(buf), &ivf_meta_format);
	return buf;
}
