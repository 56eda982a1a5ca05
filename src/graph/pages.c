/*
 * pages.c
 *		Metapage, mean and entry points; see pages.h.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "graph/form.h"
#include "graph/pages.h"
#include "miscadmin.h"
#include "pages/write.h"

/* Frozen in each index; the same for all, so that builds repeat exactly. */
#define ROTATION_SEED UINT64CONST(0x5175697665720001)

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
		meta->space = opclass->metric == QV_METRIC_IP ? QV_SPACE_IP : QV_SPACE_L2;
		GraphChooseCodedLayout(meta);
	}
	else
	{
		meta->value_size = opclass->type->fixed_size(dims);
		GraphChoosePlainLayout(meta);
	}
}

void
GraphCreatePages(Relation index, ForkNumber fork, GraphMetaData *meta,
				 const float *mean, const GraphEntryPoints *entry_points)
{
	Buffer		buf;
	Page		page;
	uint32		nblocks = entry_points ? entry_points->nbatches : 0;
	int			per_page = GraphEntryBatchesPerPage(meta->entry_bits);

	/* the metapage is filled in last, when the others are known */
	QvNewBuildPage(index, fork, QV_PAGE_META, &buf);
	Assert(BufferGetBlockNumber(buf) == QV_META_BLOCK);
	UnlockReleaseBuffer(buf);

	meta->mean_block = QvWriteFloats(index, fork, mean, meta->pdim);

	/* always one page, so that appending finds a tail */
	meta->entry_count = 0;
	for (uint32 i = 0; i == 0 || i < nblocks; i += per_page)
	{
		page = QvNewBuildPage(index, fork, QV_PAGE_ENTRIES, &buf);
		meta->entry_tail = BufferGetBlockNumber(buf);
		if (i == 0)
			meta->entry_head = meta->entry_tail;
		for (uint32 j = i; j < Min(i + per_page, nblocks); j++)
		{
			memcpy(QvPageGetData(page) + (Size) (j - i) * entry_points->batch_size,
				   GraphEntryBatchAt(entry_points, j), entry_points->batch_size);
			meta->entry_count += GraphEntryBatchAt(entry_points, j)->count;
		}
		/* the pages of the table follow one another */
		if (i + per_page < nblocks)
			QvPageGetHeader(page)->next = meta->entry_tail + 1;
		UnlockReleaseBuffer(buf);
	}

	QvMetaWrite(index, fork, meta, sizeof(*meta));
}

void
GraphSetEntryPoint(GraphEntryBatch *block, int slot, uint32 id, const float *x,
			  uint32 pdim, int entry_bits)
{
	uint8		bits[GRAPH_MAX_ENTRY_BITS / 8];

	block->ids[slot] = id;
	if (x == NULL)
		return;
	block->a[slot] = qv_kernels.norm2_f32(x, pdim);
	block->b[slot] = QvEncodeBits(x, pdim, entry_bits, bits);
	QvPackSlot(block->codes, entry_bits, slot, bits);
}

/*
 * Locks: the metapage first, then the tail page, then a new page.  Nobody
 * locks the metapage while holding another page.
 */
void
GraphAddEntryPoint(Relation index, uint32 id, const float *x, bool building)
{
	Buffer		meta_buf,
				tail_buf,
				new_buf = InvalidBuffer;
	GraphMetaData *meta;
	Page		tail;
	QvWrite		w;
	int			per_page;
	uint32		last;
	Size		block_size;

	meta_buf = QvReadPage(index, NULL, QV_META_BLOCK, QV_PAGE_META,
						  BUFFER_LOCK_EXCLUSIVE);
	meta = GraphPageMeta(index, BufferGetPage(meta_buf));
	per_page = GraphEntryBatchesPerPage(meta->entry_bits);
	block_size = GraphEntryBatchSize(meta->entry_bits);
	/* a page locked twice would wait for itself, and not even for Ctrl-C */
	if (meta->entry_tail == QV_META_BLOCK)
		QvReportCorruption(index, QV_META_BLOCK, "The metapage is no page of entry points.");
	tail_buf = QvReadPage(index, NULL, meta->entry_tail, QV_PAGE_ENTRIES,
						  BUFFER_LOCK_EXCLUSIVE);
	last = meta->entry_count % (per_page * QV_BATCH);

	if (last == 0 && meta->entry_count > 0)
	{
		BlockNumber next = QvPageGetHeader(BufferGetPage(tail_buf))->next;
		BlockNumber after = InvalidBlockNumber;

		/* the tail is full; a page is left when the table was emptied */
		if (BlockNumberIsValid(next))
		{
			if (next == meta->entry_tail || next == QV_META_BLOCK)
				QvReportCorruption(index, meta->entry_tail, "The chain of entry point pages is broken.");
			new_buf = QvReadPage(index, NULL, next, QV_PAGE_ENTRIES, BUFFER_LOCK_EXCLUSIVE);
			after = QvPageGetHeader(BufferGetPage(new_buf))->next;
		}
		else
			new_buf = QvNewPage(index, MAIN_FORKNUM);
		QvWriteBegin(&w, index, building);
		meta = (GraphMetaData *) QvPageGetData(QvWriteRegister(&w, meta_buf));
		tail = QvWriteRegister(&w, tail_buf);
		QvPageGetHeader(tail)->next = BufferGetBlockNumber(new_buf);
		tail = QvWriteRegisterNew(&w, new_buf, QV_PAGE_ENTRIES);
		memset(QvPageGetData(tail), 0, QV_PAGE_SPACE);
		QvPageGetHeader(tail)->next = after;
		meta->entry_tail = BufferGetBlockNumber(new_buf);
	}
	else
	{
		QvWriteBegin(&w, index, building);
		meta = (GraphMetaData *) QvPageGetData(QvWriteRegister(&w, meta_buf));
		tail = QvWriteRegister(&w, tail_buf);
	}
	{
		GraphEntryBatch *block = (GraphEntryBatch *)
			(QvPageGetData(tail) + last / QV_BATCH * block_size);

		GraphSetEntryPoint(block, last % QV_BATCH, id, x, meta->pdim, meta->entry_bits);
		block->count = last % QV_BATCH + 1;
	}
	meta->entry_count++;
	QvWriteCommit(&w);
	if (BufferIsValid(new_buf))
		UnlockReleaseBuffer(new_buf);
	UnlockReleaseBuffer(tail_buf);
	UnlockReleaseBuffer(meta_buf);
}

/*
 * The chain of pages stays: a backend that read the metapage before may be
 * reading it.  GraphAddEntryPoint() takes the pages again.
 */
void
GraphClearEntryPoints(Relation index)
{
	Buffer		meta_buf = QvReadPage(index, NULL, QV_META_BLOCK, QV_PAGE_META,
									  BUFFER_LOCK_EXCLUSIVE);
	GraphMetaData *meta = GraphPageMeta(index, BufferGetPage(meta_buf));
	Buffer		head_buf;
	QvWrite		w;

	if (meta->entry_head == QV_META_BLOCK)
		QvReportCorruption(index, QV_META_BLOCK, "The metapage is no page of entry points.");
	head_buf = QvReadPage(index, NULL, meta->entry_head, QV_PAGE_ENTRIES,
						  BUFFER_LOCK_EXCLUSIVE);
	QvWriteBegin(&w, index, false);
	meta = (GraphMetaData *) QvPageGetData(QvWriteRegister(&w, meta_buf));
	meta->entry_count = 0;
	meta->entry_tail = meta->entry_head;
	meta->entry_version++;
	memset(QvPageGetData(QvWriteRegister(&w, head_buf)), 0, QV_PAGE_SPACE);
	QvWriteCommit(&w);
	UnlockReleaseBuffer(head_buf);
	UnlockReleaseBuffer(meta_buf);
}

void
GraphReplaceEntryPoints(Relation index, uint32 (*replace) (void *arg, uint32 id),
				   void *arg)
{
	GraphMetaData meta;
	BlockNumber block;
	Size		block_size;
	int			per_page;
	bool		changed = false;
	QvWrite		w;
	Buffer		buf;

	GraphReadMeta(index, &meta);
	per_page = GraphEntryBatchesPerPage(meta.entry_bits);
	block_size = GraphEntryBatchSize(meta.entry_bits);
	for (block = meta.entry_head; BlockNumberIsValid(block);)
	{
		BlockNumber next;
		uint32	   *old_ids = palloc(per_page * QV_BATCH * sizeof(uint32));
		uint32	   *new_ids = palloc(per_page * QV_BATCH * sizeof(uint32));
		int			n = 0,
					at = 0;
		bool		page_changed = false;

		CHECK_FOR_INTERRUPTS();
		buf = QvReadPage(index, NULL, block, QV_PAGE_ENTRIES, BUFFER_LOCK_SHARE);
		for (int i = 0; i < per_page; i++)
		{
			GraphEntryBatch *rb = (GraphEntryBatch *)
				(QvPageGetData(BufferGetPage(buf)) + i * block_size);

			for (uint32 j = 0; j < Min(rb->count, QV_BATCH); j++)
				old_ids[n++] = rb->ids[j];
		}
		next = block == meta.entry_tail ? InvalidBlockNumber :
			QvPageGetHeader(BufferGetPage(buf))->next;
		UnlockReleaseBuffer(buf);

		for (int i = 0; i < n; i++)
		{
			new_ids[i] = replace(arg, old_ids[i]);
			page_changed |= new_ids[i] != old_ids[i];
		}
		if (page_changed)
		{
			buf = QvReadPage(index, NULL, block, QV_PAGE_ENTRIES, BUFFER_LOCK_EXCLUSIVE);
			QvWriteBegin(&w, index, false);
			{
				Page		page = QvWriteRegister(&w, buf);

				for (int i = 0; i < per_page; i++)
				{
					GraphEntryBatch *rb = (GraphEntryBatch *)
						(QvPageGetData(page) + i * block_size);

					/* entries are only ever appended: the first n are the same */
					for (uint32 j = 0; j < Min(rb->count, QV_BATCH) && at < n; j++)
						rb->ids[j] = new_ids[at++];
				}
			}
			QvWriteCommit(&w);
			UnlockReleaseBuffer(buf);
			changed = true;
		}
		pfree(old_ids);
		pfree(new_ids);
		block = next;
	}
	if (changed)
	{
		buf = QvReadPage(index, NULL, QV_META_BLOCK, QV_PAGE_META,
						 BUFFER_LOCK_EXCLUSIVE);
		QvWriteBegin(&w, index, false);
		((GraphMetaData *) QvPageGetData(QvWriteRegister(&w, buf)))->entry_version++;
		QvWriteCommit(&w);
		UnlockReleaseBuffer(buf);
	}
}
