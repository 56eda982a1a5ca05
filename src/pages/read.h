/*
 * read.h
 *		Reading index pages through remembered buffer numbers.
 *
 * A search visits tens of pages at random; looking each up in the shared
 * buffer table costs more than reading it (src/pages/README.md, "Cost of a
 * page").  QvBufferHints remembers, in this backend, the buffer each block was
 * last found in; ReadRecentBuffer() verifies the tag, so a stale hint is slow
 * but never wrong.
 */
#ifndef QV_PAGES_READ_H
#define QV_PAGES_READ_H

#include "access/htup_details.h"
#include "pages/page.h"
#include "storage/bufmgr.h"

typedef struct QvBufferHints
{
	MemoryContext context;
	Buffer	   *buffers;		/* by QvHintPlace(); InvalidBuffer = unknown */
	uint32		size;			/* entries in buffers */
	uint32		reads;			/* of pages that this makes used */
	uint32		recent;			/* pages of a table pinned by it, in all
								 * searches */
	BlockNumber nblocks;		/* that the index had when it was last asked:
								 * it only grows */
	bool		scarce;			/* buffers are: let the clock sweep see every
								 * read */
} QvBufferHints;

/*
 * Where the hint of a block is.  Of an index much larger than shared buffers most blocks are
 * in none: then blocks share places, and whoever was read last has it.
 */
static inline uint32
QvHintPlace(BlockNumber block)
{
	uint32		places = 2 * (uint32) NBuffers;

	return block < places ? block : block % places;
}

/* The buffer that a block was last found in, or another's. */
static inline Buffer
QvHintedBuffer(const QvBufferHints *hints, BlockNumber block)
{
	uint32		place = QvHintPlace(block);

	return place < hints->size ? hints->buffers[place] : InvalidBuffer;
}

/*
 * Pin a block.  Like ReadBufferExtended(), but a block that is not there or
 * whose header is not that of a page raises ERRCODE_INDEX_CORRUPTED.
 */
extern Buffer QvReadBuffer(Relation index, BlockNumber block,
						   BufferAccessStrategy strategy);

/*
 * Pin and lock a block and check its kind.  Returns the buffer pinned and
 * locked in the given mode (BUFFER_LOCK_SHARE or _EXCLUSIVE): release with
 * UnlockReleaseBuffer().  hints may be NULL.
 */
extern Buffer QvReadPage(Relation index, QvBufferHints *hints,
						 BlockNumber block, QvPageKind kind, int lockmode);

/*
 * The same without a look at what kind of page it is.  strategy (may be NULL) is
 * for a page that is not in shared buffers.
 */
extern Buffer QvReadAnyPage(Relation index, QvBufferHints *hints,
							BlockNumber block, BufferAccessStrategy strategy,
							int lockmode);

/* Likewise, by who passes through all pages: that does not keep one in shared buffers. */
extern Buffer QvReadPassedPage(Relation index, QvBufferHints *hints,
							   BlockNumber block, BufferAccessStrategy strategy,
							   int lockmode);

/*
 * Have a block read into shared buffers in the background, unless it is likely
 * to be there.  Returns whether that was asked for.
 */
extern bool QvPrefetchBlock(Relation index, QvBufferHints *hints, BlockNumber block);

/*
 * Pin a page of a table that was found before and is where it was; InvalidBuffer: it has to be
 * read.
 */
extern Buffer QvReadRecent(Relation table, QvBufferHints *hints, BlockNumber block);

/* A block is in that buffer. */
extern void QvRememberBuffer(QvBufferHints *hints, BlockNumber block, Buffer buf);

/* Read n floats that lie on consecutive QV_PAGE_FLOATS pages from block on. */
extern void QvReadFloats(Relation index, QvBufferHints *hints, BlockNumber block,
						 float *out, uint32 n);

/* Ask the CPU for what it takes to pin and check a page, when its buffer is known. */
extern void QvPrefetchPin(const QvBufferHints *hints, BlockNumber block);

/* Ask the CPU for a page that will be read soon, when its buffer is known. */
static inline void
QvPrefetchPage(const QvBufferHints *hints, BlockNumber block, Size offset,
			   Size bytes)
{
	Buffer		buf = QvHintedBuffer(hints, block);

	if (buf > 0)
	{
		const char *at = (const char *) BufferGetBlock(buf) + offset;

		for (Size i = 0; i < bytes; i += 64)
			__builtin_prefetch(at + i);
		/* gcc drops calls of functions that do nothing else */
		__asm__ volatile ("");
	}
}

/*
 * Ask the CPU for the line pointer of a row that will be fetched soon, and a little later for what it
 * points to: it is looked at without a lock, and may be another by then, at no harm.
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
