/*
 * read.h
 *		Reading index pages through buffer hints.
 *
 * A search visits tens of pages at random.  Looking up a page in the shared buffer table
 * costs more than reading it (src/pages/README.md, "Buffer hints").  QvBufferHints holds
 * the buffer in which this backend last found each block.  ReadRecentBuffer() verifies
 * the tag, so a wrong hint costs time only.
 */
#ifndef QV_PAGES_READ_H
#define QV_PAGES_READ_H

#include "access/htup_details.h"
#include "pages/page.h"
#include "storage/bufmgr.h"

typedef struct QvBufferHints
{
	MemoryContext context;
	Buffer	   *buffers;		/* by QvHintPlace(); InvalidBuffer: not known */
	uint32		size;			/* entries in buffers */
	uint32		reads;			/* pages read through hints, full passes left
								 * out */
	uint32		recent;			/* pages of the table that row readers pinned
								 * through hints */
	BlockNumber nblocks;		/* blocks of the index when it was last asked;
								 * an index only grows */
	bool		scarce;			/* buffers are scarce: all reads go through
								 * the buffer table, so that the clock sweep
								 * sees them */
} QvBufferHints;

/*
 * Returns the place of a block's hint.  Most blocks of an index much larger than shared
 * buffers are in no buffer.  Blocks then share places, and the block read last has the
 * place.
 */
static inline uint32
QvHintPlace(BlockNumber block)
{
	uint32		places = 2 * (uint32) NBuffers;

	return block < places ? block : block % places;
}

/* Returns the buffer that a block was last found in, or the buffer of another block. */
static inline Buffer
QvHintedBuffer(const QvBufferHints *hints, BlockNumber block)
{
	uint32		place = QvHintPlace(block);

	return place < hints->size ? hints->buffers[place] : InvalidBuffer;
}

/*
 * Pins a block.  Like ReadBufferExtended(), but raises ERRCODE_INDEX_CORRUPTED if the
 * index has no such block, or the block has no valid page header.
 */
extern Buffer QvReadBuffer(Relation index, BlockNumber block,
						   BufferAccessStrategy strategy);

/*
 * Pins and locks a block, and checks its kind.  The lock mode is BUFFER_LOCK_SHARE or
 * BUFFER_LOCK_EXCLUSIVE.  Returns the buffer, to be released by UnlockReleaseBuffer().
 * hints may be NULL.
 */
extern Buffer QvReadPage(Relation index, QvBufferHints *hints,
						 BlockNumber block, QvPageKind kind, int lockmode);

/*
 * Pins and locks a block as QvReadPage() does, but does not check its kind. strategy (may
 * be NULL) is for a page that is not in shared buffers.
 */
extern Buffer QvReadAnyPage(Relation index, QvBufferHints *hints,
							BlockNumber block, BufferAccessStrategy strategy,
							int lockmode);

/*
 * Asks for a block to be read into shared buffers in the background, unless it is likely
 * to be there, or effective_io_concurrency is 0.  Returns whether it was asked for.
 */
extern bool QvPrefetchBlock(Relation index, QvBufferHints *hints, BlockNumber block);

/*
 * Pins a block, if its hint is right.  Otherwise returns InvalidBuffer, and the block has to be
 * looked up.
 */
extern Buffer QvReadRecent(Relation relation, QvBufferHints *hints, BlockNumber block);

/* Records that a block is in that buffer. */
extern void QvRememberBuffer(QvBufferHints *hints, BlockNumber block, Buffer buf);

/* Reads n floats from consecutive QV_PAGE_FLOATS pages, from block on. */
extern void QvReadFloats(Relation index, QvBufferHints *hints, BlockNumber block,
						 float *out, uint32 n);

/*
 * Prefetches into the CPU's cache what pinning and checking a page needs, if the block
 * has a hint.
 */
extern void QvPrefetchPin(const QvBufferHints *hints, BlockNumber block);

/* Prefetches bytes into the CPU's cache. */
static inline void
QvPrefetchBytes(const void *at, Size bytes)
{
	for (Size i = 0; i < bytes; i += 64)
		__builtin_prefetch((const char *) at + i);
	/* gcc drops calls of functions that only prefetch */
	__asm__ volatile ("");
}

/*
 * Prefetches bytes of a page that will be read soon into the CPU's cache, if the block
 * has a hint.
 */
static inline void
QvPrefetchPage(const QvBufferHints *hints, BlockNumber block, Size offset,
			   Size bytes)
{
	Buffer		buf = QvHintedBuffer(hints, block);

	if (buf > 0)
		QvPrefetchBytes((const char *) BufferGetBlock(buf) + offset, bytes);
}

/*
 * Prefetch the line pointer of a row that will be fetched soon, and a little later the
 * tuple that it points to.  The line pointer is read without a lock.  That is safe
 * because a wrong one only prefetches other bytes.
 */
static inline void
QvPrefetchLine(const QvBufferHints *hints, ItemPointer tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	Size		line = (MaxHeapTuplesPerPage + ItemPointerGetOffsetNumberNoCheck(tid) - 1) % MaxHeapTuplesPerPage;

	QvPrefetchPin(hints, block);
	QvPrefetchPage(hints, block, SizeOfPageHeaderData + line * sizeof(ItemIdData), 1);
}

static inline void
QvPrefetchTuple(const QvBufferHints *hints, ItemPointer tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	Buffer		buf = QvHintedBuffer(hints, block);

	if (buf > 0)
	{
		ItemIdData *lines = ((PageHeader) BufferGetBlock(buf))->pd_linp;
		Size		line = (MaxHeapTuplesPerPage + ItemPointerGetOffsetNumberNoCheck(tid) - 1) % MaxHeapTuplesPerPage;

		QvPrefetchPage(hints, block, ItemIdGetOffset(&lines[line]), 1);
	}
}

#endif							/* QV_PAGES_READ_H */
