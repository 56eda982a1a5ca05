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
 * ReadRecentBuffer() does not raise a buffer's usage count, so a page read
 * only through hints would look unused to the clock sweep.  So that is done here, every
 * so often; when buffers are scarce, all reads take the long way, which does it, or pages
 * read once would stay longer.
 */
#define USED_EVERY 16

void
QvRememberBuffer(QvBufferHints *hints, BlockNumber block, Buffer buf)
{
	uint32		place = QvHintPlace(block);

	if (place >= hints->size)
	{
		/* for the index as it is, and when it has grown, for more */
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

/* The buffer manager names a damaged page by its file: say which index it is. */
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
 * Is the block there?  Block numbers come from pages, too: InvalidBlockNumber
 * would add a page.  Asking how many there are is a system call, so what hints
 * (or NULL) know of it comes first.
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

/* Read a block that is there. */
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
	/* the metapage's number is from no page, and is read most often */
	if (block > 0 && !has_block(index, NULL, block))
		QvReportCorruption(index, block, "The index has no such block.");
	return read_block(index, block, strategy);
}

/* As PinBuffer() does, but where somebody else is at it: it is no more than a hint for the clock sweep. */
static void
raise_usage(Buffer buf)
{
	BufferDesc *desc = GetBufferDescriptor(buf - 1);
	uint32		state = pg_atomic_read_u32(&desc->state);

	if ((state & BM_LOCKED) == 0 && BUF_STATE_GET_USAGECOUNT(state) < BM_MAX_USAGE_COUNT)
		(void) pg_atomic_compare_exchange_u32(&desc->state, &state, state + BUF_USAGECOUNT_ONE);
}

/*
 * Pin a block where it was found last; InvalidBuffer when it is to be looked up.  passing: who reads
 * it does not make it one that is used.
 */
static Buffer
read_recent(Relation relation, QvBufferHints *hints, BlockNumber block, bool passing)
{
	Buffer		buf = QvHintedBuffer(hints, block);

	if (buf == InvalidBuffer || (!passing && hints->scarce) ||
		!ReadRecentBuffer(QvRelationLocator(relation), MAIN_FORKNUM, block, buf))
		return InvalidBuffer;
	/* of a temporary table ReadRecentBuffer() has done it */
	if (!passing && !BufferIsLocal(buf) && ++hints->reads % USED_EVERY == 0)
		raise_usage(buf);
	/* what ReadBuffer() would have counted */
	pgstat_count_buffer_read(relation);
	pgstat_count_buffer_hit(relation);
	return buf;
}

Buffer
QvReadRecent(Relation table, QvBufferHints *hints, BlockNumber block)
{
	return read_recent(table, hints, block, false);
}

static Buffer
read_buffer(Relation index, QvBufferHints *hints, BlockNumber block,
			BufferAccessStrategy strategy, bool passing)
{
	Buffer		buf;

	if (hints == NULL)
		return QvReadBuffer(index, block, strategy);
	buf = read_recent(index, hints, block, passing);
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
	Buffer		buf = read_buffer(index, hints, block, strategy, false);

	LockBuffer(buf, lockmode);
	return buf;
}

Buffer
QvReadPassedPage(Relation index, QvBufferHints *hints, BlockNumber block,
				 BufferAccessStrategy strategy, int lockmode)
{
	Buffer		buf = read_buffer(index, hints, block, strategy, true);

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
	/*
	 * a look at the buffer's tag without its lock: it may be wrong, at no
	 * harm
	 */
	Buffer		buf = QvHintedBuffer(hints, block);

	if (buf > 0)
	{
		BufferDesc *desc = GetBufferDescriptor(buf - 1);

		if (desc->tag.blockNum == block &&
			QvBufferTagRelNumber(desc->tag) == QvRelationNumber(index))
			return false;
	}

	/*
	 * the block may come from a damaged page: reading it says so, with the
	 * index's name
	 */
	if (!has_block(index, hints, block))
		return false;
	return PrefetchBuffer(index, MAIN_FORKNUM, block).initiated_io;
}

Buffer
QvReadPage(Relation index, QvBufferHints *hints, BlockNumber block,
		   QvPageKind kind, int lockmode)
{
	Buffer		buf = read_buffer(index, hints, block, NULL, false);

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
