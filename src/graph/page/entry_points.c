/*
 * entry_points.c
 *		Entry points of a graph; see entry_points.h.
 *
 * Locks: the metapage first, then the tail page, then the page after it.  No backend locks
 * the metapage while it has one of these locked.
 */
#include "postgres.h"

#include "compat.h"
#include "containers/bitmap.h"
#include "graph/page/entry_points.h"
#include "graph/page/meta.h"
#include "miscadmin.h"
#include "pages/write.h"
#include "utils/memutils.h"

#define BatchesPerPage(handle) GraphEntryBatchesPerPage((handle)->meta.entry_bits)

/* Entry points that a page holds at most. */
#define EntriesPerPage(handle) (BatchesPerPage(handle) * QV_BATCH)

/* Fills place i of a batch. */
static void
set_entry(const GraphHandle *handle, GraphEntryBatch *batch, int i, uint32 id, const float *x)
{
	uint32		entry_bits = handle->meta.entry_bits;
	uint8		bits[GRAPH_MAX_ENTRY_BITS / 8];

	batch->ids[i] = id;
	batch->count = i + 1;
	Assert((x == NULL) == (handle->layout.form == QV_FORM_PLAIN));
	if (x == NULL)
		return;
	batch->a[i] = QvSpaceNorm2(&handle->space, qv_kernels.norm2_f32(x, handle->meta.pdim),
							   qv_kernels.ip_f32(x, handle->space.mean, handle->meta.pdim));
	batch->b[i] = QvEncodeBits(x, handle->meta.pdim, entry_bits, bits);
	QvPackSlot(batch->codes, entry_bits, i, bits);
}

/* ---- in a build ---- */

GraphEntryPoints *
GraphNewEntryPoints(const GraphHandle *handle, uint32 n)
{
	GraphEntryPoints *entry_points = palloc0(sizeof(GraphEntryPoints));
	uint32		nbatches = (n + QV_BATCH - 1) / QV_BATCH;

	entry_points->batch_size = GraphEntryBatchSize(handle->meta.entry_bits);
	entry_points->batches = MemoryContextAllocExtended(CurrentMemoryContext,
													   Max(1, nbatches) * entry_points->batch_size,
													   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	return entry_points;
}

void
GraphAppendEntryPoint(const GraphHandle *handle, GraphEntryPoints *entry_points,
					  uint32 id, const float *x)
{
	uint32		at = entry_points->count++;

	entry_points->nbatches = at / QV_BATCH + 1;
	set_entry(handle, GraphEntryBatchAt(entry_points, at / QV_BATCH), at % QV_BATCH, id, x);
}

BlockNumber
GraphEntryPointPages(const GraphHandle *handle, const GraphEntryPoints *entry_points)
{
	uint32		nbatches = entry_points ? entry_points->nbatches : 0;

	/* at least one, so that appending finds a tail */
	return Max(1, (nbatches + BatchesPerPage(handle) - 1) / BatchesPerPage(handle));
}

void
GraphWriteEntryPoints(GraphHandle *handle, ForkNumber fork, const GraphEntryPoints *entry_points)
{
	GraphMetaData *meta = &handle->meta;
	BlockNumber pages = GraphEntryPointPages(handle, entry_points);
	uint32		per_page = BatchesPerPage(handle);

	meta->entry_count = entry_points ? entry_points->count : 0;
	for (BlockNumber i = 0; i < pages; i++)
	{
		Buffer		buf;
		Page		page = QvNewBuildPage(handle->index, fork, QV_PAGE_ENTRIES, &buf);

		meta->entry_tail = BufferGetBlockNumber(buf);
		if (i == 0)
			meta->entry_head = meta->entry_tail;
		if (entry_points && entry_points->nbatches > i * per_page)
			memcpy(QvPageGetData(page), GraphEntryBatchAt(entry_points, i * per_page),
				   Min(per_page, entry_points->nbatches - i * per_page) * entry_points->batch_size);
		/* the pages of entry points follow one another */
		if (i + 1 < pages)
			QvPageGetHeader(page)->next = meta->entry_tail + 1;
		UnlockReleaseBuffer(buf);
	}
}

/* ---- reading ---- */

GraphEntryPoints *
GraphReadEntryPoints(GraphHandle *handle)
{
	Relation	index = handle->index;
	const GraphMetaData *meta = &handle->meta;
	GraphEntryPoints *entry_points = QvRelCacheNewPart(sizeof(GraphEntryPoints));
	BlockNumber block = meta->entry_head;
	int			per_page = BatchesPerPage(handle);
	BlockNumber pages = 0,
				limit = RelationGetNumberOfBlocks(index);

	/*
	 * An entry point that was added since the metapage was read may be in the
	 * last batch.  We keep the number that the metapage had, so that the
	 * entry point is noticed as new.
	 */
	entry_points->version = meta->entry_version;
	entry_points->count = meta->entry_count;
	entry_points->batch_size = GraphEntryBatchSize(meta->entry_bits);
	entry_points->nbatches = (meta->entry_count + QV_BATCH - 1) / QV_BATCH;
	if (meta->entry_count > (uint64) limit * EntriesPerPage(handle))
		QvReportCorruption(index, QV_META_BLOCK, "There cannot be %u entry points.",
						   meta->entry_count);
	entry_points->batches = MemoryContextAllocExtended(entry_points->part.context,
													   Max(1, entry_points->nbatches) *
													   entry_points->batch_size,
													   MCXT_ALLOC_HUGE);
	for (uint32 i = 0; i < entry_points->nbatches;)
	{
		Buffer		buf;
		Page		page;

		if (!BlockNumberIsValid(block) || ++pages > limit)
			QvReportCorruption(index, QV_META_BLOCK, "The chain of entry point pages is broken.");
		buf = QvReadPage(index, handle->hints, block, QV_PAGE_ENTRIES, BUFFER_LOCK_SHARE);
		page = BufferGetPage(buf);
		for (int j = 0; j < per_page && i < entry_points->nbatches; j++, i++)
		{
			GraphEntryBatch *to = GraphEntryBatchAt(entry_points, i);

			memcpy(to, GraphPageEntryBatch(page, meta->entry_bits, j), entry_points->batch_size);
			if (to->count > QV_BATCH)
				QvReportCorruption(index, block, "A batch claims %u entry points.", to->count);
		}
		block = QvPageGetHeader(page)->next;
		UnlockReleaseBuffer(buf);
	}
	return entry_points;
}

int
GraphNearestEntryPoints(const GraphHandle *handle, const GraphQuery *query,
						Candidate *out, int n)
{
	const GraphEntryPoints *entry_points = handle->entry_points;
	const QvQuery *q = &query->base.q;
	Candidate  *items = palloc(PoolEntries(n) * sizeof(Candidate));
	Pool		pool;
	int			found;

	PoolReset(&pool, items, n);
	for (uint32 i = 0; i < entry_points->nbatches; i++)
	{
		const GraphEntryBatch *batch = GraphEntryBatchAt(entry_points, i);
		uint32		sums[QV_BATCH];
		float		est[QV_BATCH];

		qv_kernels.fastscan(batch->codes, q->lut, handle->meta.entry_bits / 4, sums);
		if (query->base.kind != QV_SPACE_IP)
			for (int j = 0; j < QV_BATCH; j++)
				est[j] = batch->a[j] + q->norm2 - 2 * batch->b[j] *
					(q->lut_scale * sums[j] + query->entry_bias);
		else
			for (int j = 0; j < QV_BATCH; j++)
				est[j] = -batch->b[j] * (q->lut_scale * sums[j] + query->entry_bias);
		for (uint32 j = 0; j < batch->count; j++)
			PoolInsert(&pool, est[j], batch->ids[j], NULL);
	}
	found = PoolCopyWaiting(&pool, out);
	pfree(items);
	return found;
}

/* ---- changing ---- */

/*
 * Locks a page of entry points whose number page "from" gave.  Returns it pinned and
 * exclusively locked.
 */
static Buffer
lock_page(GraphHandle *handle, BlockNumber block, BlockNumber from)
{
	/* a page locked twice would wait for itself, and not answer Ctrl-C */
	if (block == from || block == QV_META_BLOCK)
		QvReportCorruption(handle->index, from, "The chain of entry point pages is broken.");
	return QvReadPage(handle->index, handle->hints, block, QV_PAGE_ENTRIES,
					  BUFFER_LOCK_EXCLUSIVE);
}

/*
 * Returns the page that follows a full tail, pinned and exclusively locked.  It is new, or
 * left from before the entry points were emptied.  *after is the page after it.
 */
static Buffer
next_tail(GraphHandle *handle, Buffer tail_buf, BlockNumber *after)
{
	BlockNumber next = QvPageGetHeader(BufferGetPage(tail_buf))->next;
	Buffer		buf;

	*after = InvalidBlockNumber;
	if (!BlockNumberIsValid(next))
		return QvNewPage(handle->index, MAIN_FORKNUM);
	buf = lock_page(handle, next, BufferGetBlockNumber(tail_buf));
	*after = QvPageGetHeader(BufferGetPage(buf))->next;
	return buf;
}

void
GraphAddEntryPoint(GraphHandle *handle, uint32 id, const float *x)
{
	GraphMetaData *meta;
	Buffer		meta_buf = GraphLockMeta(handle->index, handle->hints, &meta);
	Buffer		tail_buf = lock_page(handle, meta->entry_tail, QV_META_BLOCK);
	Buffer		next_buf = InvalidBuffer;
	BlockNumber after;
	uint32		at = meta->entry_count % EntriesPerPage(handle);
	Page		page;
	QvWrite		w;

	if (at == 0 && meta->entry_count > 0)
		next_buf = next_tail(handle, tail_buf, &after);

	QvWriteBegin(&w, handle->index, handle->building);
	meta = GraphRegisterMeta(&w, meta_buf);
	page = QvWriteRegister(&w, tail_buf);
	if (BufferIsValid(next_buf))
	{
		meta->entry_tail = BufferGetBlockNumber(next_buf);
		QvPageGetHeader(page)->next = meta->entry_tail;
		page = QvWriteRegisterNew(&w, next_buf, QV_PAGE_ENTRIES);
		memset(QvPageGetData(page), 0, QV_PAGE_SPACE);
		QvPageGetHeader(page)->next = after;
	}
	set_entry(handle, GraphPageEntryBatch(page, meta->entry_bits, at / QV_BATCH),
			  at % QV_BATCH, id, x);
	meta->entry_count++;
	QvWriteCommit(&w);
	if (BufferIsValid(next_buf))
		UnlockReleaseBuffer(next_buf);
	UnlockReleaseBuffer(tail_buf);
	UnlockReleaseBuffer(meta_buf);
	QvInjectionPoint("quiver-graph-entry-added");
}

/*
 * The chain of pages stays, since a backend that read the metapage before may be reading
 * it.  GraphAddEntryPoint() uses the pages again.
 */
void
GraphClearEntryPoints(GraphHandle *handle)
{
	GraphMetaData *meta;
	Buffer		meta_buf = GraphLockMeta(handle->index, handle->hints, &meta);
	Buffer		head_buf = lock_page(handle, meta->entry_head, QV_META_BLOCK);
	QvWrite		w;

	QvWriteBegin(&w, handle->index, handle->building);
	meta = GraphRegisterMeta(&w, meta_buf);
	meta->entry_count = 0;
	meta->entry_tail = meta->entry_head;
	meta->entry_version++;
	memset(QvPageGetData(QvWriteRegister(&w, head_buf)), 0, QV_PAGE_SPACE);
	QvWriteEnd(&w);
	QvInjectionPoint("quiver-graph-entries-emptied");
}

/*
 * Reads the numbers of the nodes of a page's entry points.  Returns how many.  *next is the
 * next page.
 */
static uint32
read_ids(GraphHandle *handle, BlockNumber block, uint32 *ids, BlockNumber *next)
{
	Buffer		buf = QvReadPage(handle->index, handle->hints, block, QV_PAGE_ENTRIES,
								 BUFFER_LOCK_SHARE);
	Page		page = BufferGetPage(buf);
	uint32		n = 0;

	for (int i = 0; i < BatchesPerPage(handle); i++)
	{
		const GraphEntryBatch *batch = GraphPageEntryBatch(page, handle->meta.entry_bits, i);

		for (uint32 j = 0; j < Min(batch->count, QV_BATCH); j++)
			ids[n++] = batch->ids[j];
	}
	*next = QvPageGetHeader(page)->next;
	UnlockReleaseBuffer(buf);
	return n;
}

/*
 * Sets the nodes of the first n entry points of a page, and changes the version of the
 * entry points, in one record.  Others only append entry points, so these n are still the
 * same.  Other backends read them again, even if VACUUM goes no further.
 */
static void
write_ids(GraphHandle *handle, BlockNumber block, const uint32 *ids, uint32 n)
{
	GraphMetaData *meta;
	Buffer		meta_buf = GraphLockMeta(handle->index, handle->hints, &meta);
	Buffer		buf = lock_page(handle, block, QV_META_BLOCK);
	uint32		at = 0;
	QvWrite		w;
	Page		page;

	QvWriteBegin(&w, handle->index, handle->building);
	GraphRegisterMeta(&w, meta_buf)->entry_version++;
	page = QvWriteRegister(&w, buf);
	for (int i = 0; i < BatchesPerPage(handle); i++)
	{
		GraphEntryBatch *batch = GraphPageEntryBatch(page, handle->meta.entry_bits, i);

		for (uint32 j = 0; j < Min(batch->count, QV_BATCH) && at < n; j++)
			batch->ids[j] = ids[at++];
	}
	QvWriteCommit(&w);
	UnlockReleaseBuffer(buf);
	UnlockReleaseBuffer(meta_buf);
	QvInjectionPoint("quiver-graph-entries-replaced");
}

/* Returns the page before a page of the chain.  The metapage is locked. */
static BlockNumber
page_before(GraphHandle *handle, BlockNumber head, BlockNumber page)
{
	BlockNumber pages = 0,
				limit = RelationGetNumberOfBlocks(handle->index);
	BlockNumber block = head;

	while (BlockNumberIsValid(block) && ++pages <= limit)
	{
		Buffer		buf = QvReadPage(handle->index, handle->hints, block, QV_PAGE_ENTRIES,
									 BUFFER_LOCK_SHARE);
		BlockNumber next = QvPageGetHeader(BufferGetPage(buf))->next;

		UnlockReleaseBuffer(buf);
		if (next == page)
			return block;
		block = next;
	}
	QvReportCorruption(handle->index, QV_META_BLOCK, "The chain of entry point pages is broken.");
}

/*
 * Drops entry point "at" of a page.  The last one takes its place, which gives a page less than *n
 * if it is of the same page.  Returns its node.  Backends that have read it in neither place read
 * the entry points again, because their version changes.
 */
static uint32
drop_entry(GraphHandle *handle, BlockNumber block, uint32 at, uint32 *n)
{
	GraphMetaData *meta;
	Buffer		meta_buf = GraphLockMeta(handle->index, handle->hints, &meta);
	uint32		last = (meta->entry_count - 1) % EntriesPerPage(handle);
	BlockNumber tail = meta->entry_tail;
	BlockNumber tail_after = last == 0 ? page_before(handle, meta->entry_head, tail) : tail;
	Buffer		buf = lock_page(handle, block, QV_META_BLOCK);
	Buffer		tail_buf = tail == block ? InvalidBuffer : lock_page(handle, tail, block);
	uint8		bits[GRAPH_MAX_ENTRY_BITS / 8];
	GraphEntryBatch *from,
			   *to;
	uint32		id;
	QvWrite		w;
	Page		page;

	if (meta->entry_count == 0)
		QvReportCorruption(handle->index, block, "There cannot be entry points.");
	QvWriteBegin(&w, handle->index, handle->building);
	meta = GraphRegisterMeta(&w, meta_buf);
	page = QvWriteRegister(&w, buf);
	to = GraphPageEntryBatch(page, meta->entry_bits, at / QV_BATCH);
	if (BufferIsValid(tail_buf))
		page = QvWriteRegister(&w, tail_buf);
	else
		(*n)--;
	from = GraphPageEntryBatch(page, meta->entry_bits, last / QV_BATCH);
	id = to->ids[at % QV_BATCH] = from->ids[last % QV_BATCH];
	to->a[at % QV_BATCH] = from->a[last % QV_BATCH];
	to->b[at % QV_BATCH] = from->b[last % QV_BATCH];
	QvUnpackSlot(from->codes, meta->entry_bits, last % QV_BATCH, bits);
	QvPackSlot(to->codes, meta->entry_bits, at % QV_BATCH, bits);
	from->count = last % QV_BATCH;
	meta->entry_count--;
	meta->entry_tail = tail_after;
	meta->entry_version++;
	QvWriteEnd(&w);
	QvInjectionPoint("quiver-graph-entry-dropped");
	return id;
}

/* Leaves each node one entry point. */
static void
drop_duplicates(GraphHandle *handle)
{
	uint32	   *ids = palloc(EntriesPerPage(handle) * sizeof(uint32));
	BlockNumber limit = RelationGetNumberOfBlocks(handle->index);
	uint64		end = (uint64) limit * handle->layout.per_page;
	uint8	   *seen = MemoryContextAllocExtended(CurrentMemoryContext, BitmapBytes(end),
												  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	GraphMetaData meta;
	BlockNumber next;
	BlockNumber pages = 0;

	GraphReadMeta(handle->index, &meta);
	for (BlockNumber block = meta.entry_head; BlockNumberIsValid(block); block = next)
	{
		uint32		n = read_ids(handle, block, ids, &next);

		CHECK_FOR_INTERRUPTS();
		if (++pages > limit)
			QvReportCorruption(handle->index, QV_META_BLOCK, "The chain of entry point pages is broken.");
		if (block == meta.entry_tail)
			next = InvalidBlockNumber;
		for (uint32 i = 0; i < n;)
		{
			/* of a page that was added meanwhile */
			if (ids[i] >= end)
				i++;
			else if (BitmapHas(seen, ids[i]))
				ids[i] = drop_entry(handle, block, i, &n);
			else
				BitmapSet(seen, ids[i++]);
		}
	}
	pfree(seen);
	pfree(ids);
}

void
GraphReplaceEntryPoints(GraphHandle *handle, uint32 (*replace) (void *arg, uint32 id),
						void *arg)
{
	uint32	   *ids = palloc(EntriesPerPage(handle) * sizeof(uint32));
	GraphMetaData meta;
	BlockNumber next;
	BlockNumber pages = 0,
				limit = RelationGetNumberOfBlocks(handle->index);

	/* the handle's metapage may be older than the last entry points */
	GraphReadMeta(handle->index, &meta);
	for (BlockNumber block = meta.entry_head; BlockNumberIsValid(block); block = next)
	{
		uint32		n = read_ids(handle, block, ids, &next);
		bool		changed = false;

		CHECK_FOR_INTERRUPTS();
		if (++pages > limit)
			QvReportCorruption(handle->index, QV_META_BLOCK, "The chain of entry point pages is broken.");
		if (block == meta.entry_tail)
			next = InvalidBlockNumber;
		for (uint32 i = 0; i < n; i++)
		{
			uint32		to = replace(arg, ids[i]);

			changed |= to != ids[i];
			ids[i] = to;
		}
		if (changed)
			write_ids(handle, block, ids, n);
	}
	pfree(ids);
	drop_duplicates(handle);
}
