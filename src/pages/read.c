/*
 * read.c
 *		Pin, lock and check index pages; see read.h.
 */
#include "postgres.h"

#include "compat.h"
#include "pgstat.h"
#include "storage/buf_internals.h"
#include "pages/read.h"
#include "utils/memutils.h"

/*
 * ReadRecentBuffer() does not raise a buffer's usage count.  A page that is read only
 * through hints would look unused to the clock sweep.  One read in this many therefore
 * raises the count here.  When buffers are scarce, all reads go through the buffer table,
 * which raises it.  Otherwise pages that are read once would stay longer than pages in
 * use.
 */
#define USED_EVERY 16

void
QvRememberBuffer(QvBufferHints *hints, BlockNumber block, Buffer buf)
{
	uint32		place = QvHintPlace(block);

	if (place >= hints->size)
	{
		/* room for the index as it is, and more after it has grown */
		uint32		blocks = Max(hints->nblocks, block + 1);
		uint32		growth = hints->size == 0 ? 0 : blocks / 8 + 16;
		uint32		size = Min((uint64) blocks + growth, 2 * (uint32) NBuffers);

		if (hints->buffers == NULL)
			hints->buffers = MemoryContextAllocExtended(hints->context, size * sizeof(Buffer),
														MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
		else
		{
			hints->buffers = repalloc_huge(hints->buffers, size * sizeof(Buffer));
			memset(hints->buffers + hints->size, 0,
				   (size - hints->size) * sizeof(Buffer));
		}
		hints->size = size;
	}
	hints->buffers[place] = buf;
}

typedef struct ReadPosition
{
	Relation	index;
	BlockNumber block;
} ReadPosition;

/* The buffer manager names a damaged page by its file.  This adds the index's name. */
static void
name_damage(void *arg)
{
	ReadPosition *at = arg;

	if (geterrcode() != ERRCODE_DATA_CORRUPTED)
		return;
	errcode(ERRCODE_INDEX_CORRUPTED);
	errmsg("index \"%s\" is damaged at block %u",
		   RelationGetRelationName(at->index), at->block);
	errdetail("The page cannot be read, or its header is invalid.");
	errhint("Please REINDEX it.");
}

/*
 * Does the index have the block?  Block numbers come from pages, too, and reading
 * InvalidBlockNumber would add a page.  Asking for the number of blocks is a system call,
 * so the number in hints (or NULL) is used first.
 */
static bool
has_block(Relation index, QvBufferHints *hints, BlockNumber block)
{
	BlockNumber nblocks;

	if (hints && block < hints->nblocks)
		return true;
	nblocks = RelationGetNumberOfBlocks(index);
	if (hints)
		hints->nblocks = nblocks;
	return block < nblocks;
}

/* Reads a block that the index has. */
static Buffer
read_block(Relation index, BlockNumber block, BufferAccessStrategy strategy)
{
	ReadPosition at = {index, block};
	ErrorContextCallback context = {error_context_stack, name_damage, &at};
	Buffer		buf;

	error_context_stack = &context;
	buf = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
	error_context_stack = context.previous;
	return buf;
}

Buffer
QvReadBuffer(Relation index, BlockNumber block, BufferAccessStrategy strategy)
{
	/* the metapage's number is not from a page, and it is read most often */
	if (block > 0 && !has_block(index, NULL, block))
		QvReportCorruption(index, block, "The index has no such block.");
	return read_block(index, block, strategy);
}

/*
 * Raises the usage count, as PinBuffer() does, unless another backend changes the
 * buffer's state.  The count is only a hint for the clock sweep.
 */
static void
raise_usage(Buffer buf)
{
	BufferDesc *desc = GetBufferDescriptor(buf - 1);
	QvBufferState state = QvReadBufferState(desc);

	if ((state & BM_LOCKED) == 0 && BUF_STATE_GET_USAGECOUNT(state) < BM_MAX_USAGE_COUNT)
		(void) QvExchangeBufferState(desc, &state, state + BUF_USAGECOUNT_ONE);
}

Buffer
QvReadRecent(Relation relation, QvBufferHints *hints, BlockNumber block)
{
	Buffer		buf = QvHintedBuffer(hints, block);

	if (buf == InvalidBuffer || hints->scarce ||
		!ReadRecentBuffer(QvRelationLocator(relation), MAIN_FORKNUM, block, buf))
		return InvalidBuffer;
	/* ReadRecentBuffer() has done that for a temporary table */
	if (!BufferIsLocal(buf) && ++hints->reads % USED_EVERY == 0)
		raise_usage(buf);
	/* ReadBuffer() would have counted this */
	pgstat_count_buffer_read(relation);
	pgstat_count_buffer_hit(relation);
	return buf;
}

static Buffer
read_buffer(Relation index, QvBufferHints *hints, BlockNumber block,
			BufferAccessStrategy strategy)
{
	Buffer		buf;

	if (hints == NULL)
		return QvReadBuffer(index, block, strategy);
	buf = QvReadRecent(index, hints, block);
	if (BufferIsValid(buf))
		return buf;
	if (block > 0 && !has_block(index, hints, block))
		QvReportCorruption(index, block, "The index has no such block.");
	buf = read_block(index, block, strategy);
	QvRememberBuffer(hints, block, buf);
	return buf;
}

Buffer
QvReadAnyPage(Relation index, QvBufferHints *hints, BlockNumber block,
			  BufferAccessStrategy strategy, int lockmode)
{
	Buffer		buf = read_buffer(index, hints, block, strategy);

	LockBuffer(buf, lockmode);
	return buf;
}

void
QvPrefetchPin(const QvBufferHints *hints, BlockNumber block)
{
	Buffer		buf = QvHintedBuffer(hints, block);

	if (buf <= 0)
		return;
	__builtin_prefetch(GetBufferDescriptor(buf - 1));
	__builtin_prefetch(BufferGetBlock(buf));
}

bool
QvPrefetchBlock(Relation index, QvBufferHints *hints, BlockNumber block)
{
	Buffer		buf = QvHintedBuffer(hints, block);

	if (effective_io_concurrency == 0)
		return false;
	if (buf > 0)
	{
		/* the tag is read without its lock; a wrong answer only costs time */
		BufferDesc *desc = GetBufferDescriptor(buf - 1);

		if (desc->tag.blockNum == block &&
			QvBufferTagRelNumber(desc->tag) == QvRelationNumber(index))
			return false;
	}

	/*
	 * the block number may be from a damaged page; reading the block raises
	 * the error, with the index's name
	 */
	if (!has_block(index, hints, block))
		return false;
	return PrefetchBuffer(index, MAIN_FORKNUM, block).initiated_io;
}

Buffer
QvReadPage(Relation index, QvBufferHints *hints, BlockNumber block,
		   QvPageKind kind, int lockmode)
{
	Buffer		buf = read_buffer(index, hints, block, NULL);

	LockBuffer(buf, lockmode);
	QvPageCheck(index, block, BufferGetPage(buf), kind);
	return buf;
}

void
QvReadFloats(Relation index, QvBufferHints *hints, BlockNumber block,
			 float *out, uint32 n)
{
	for (uint32 done = 0; done < n; done += QV_FLOATS_PER_PAGE, block++)
	{
		Buffer		buf = QvReadPage(index, hints, block, QV_PAGE_FLOATS, BUFFER_LOCK_SHARE);

		memcpy(out + done, QvPageGetData(BufferGetPage(buf)),
			   Min(n - done, QV_FLOATS_PER_PAGE) * sizeof(float));
		UnlockReleaseBuffer(buf);
	}
}
