/*
 * tidset.h
 *		A set of heap TIDs: the rows of a table that a search is for.
 *
 * It has a bit for each block of the table, and for the blocks that have members a bit for each
 * line, found by counting the blocks before them.  A set that takes rows in any order has bits for
 * the lines of all blocks.  A set that would be too large has blocks only: then all rows of a block
 * are members.
 */
#ifndef QV_QUERY_TIDSET_H
#define QV_QUERY_TIDSET_H

#include "postgres.h"

#include "access/htup_details.h"
#include "port/pg_bitutils.h"
#include "storage/itemptr.h"

/* Lines in a word of a set: few tables have more on a page. */
#define QV_TIDSET_BITS 32

typedef struct QvTidSet
{
	BlockNumber nblocks;		/* of the table; none after them has members */
	uint64	   *blocks;			/* a bit a block */
	uint32	   *before;			/* for each 64 blocks: those with members
								 * before them */
	uint32		words;			/* of lines, for each block with members; 0:
								 * blocks only */
	uint32	   *lines;			/* "line 0" of a block is a member where all
								 * lines may be */
	BlockNumber used;			/* blocks that "lines" has room for */
	BlockNumber lossy;			/* blocks of which all lines may be members */
	uint64		members;		/* with all lines of these */
	Size		max_bytes;		/* of "lines" */
} QvTidSet;

/*
 * An empty set for a table of nblocks blocks; max_bytes at most.  NULL when even a bit for each
 * block takes more.
 */
extern QvTidSet *QvTidSetCreate(MemoryContext context, BlockNumber nblocks, Size max_bytes);

/*
 * Such a set is filled in three steps.  First, blocks that have members are noted, each with its
 * last line.  Then the set gets memory for their lines; false when that is too much: it has blocks
 * only.  Then the rows of each block are added, in the order of lines; offsets NULL: all that it
 * may have.
 */
extern void QvTidSetNote(QvTidSet *set, BlockNumber block, OffsetNumber last);
extern bool QvTidSetMakeRoom(QvTidSet *set);
extern void QvTidSetAdd(QvTidSet *set, BlockNumber block, const OffsetNumber *offsets, int n);

/*
 * A set that knows lines, of n rows in any order, some of them more than once; NULL when it takes
 * more than max_bytes.  all: it has bits for the lines of all blocks, so that further rows may be
 * added in any order.
 */
extern QvTidSet *QvTidSetOfRows(MemoryContext context, BlockNumber nblocks, Size max_bytes,
								const ItemPointerData *rows, Size n, bool all);
extern void QvTidSetFree(QvTidSet *set);

/* Add a row to such a set.  False when its line takes more than max_bytes. */
extern bool QvTidSetTake(QvTidSet *set, const ItemPointerData *tid);

/* Where the lines of a block with members are. */
static inline Size
QvTidSetPlace(const QvTidSet *set, BlockNumber block)
{
	uint64		before = set->blocks[block / 64] & ((UINT64_C(1) << (block % 64)) - 1);

	/* where all blocks have members, there is nothing to count */
	if (set->used == set->nblocks)
		return block;
	return set->before[block / 64] + pg_popcount64(before);
}

/* Is the row a member, as far as the set knows?  tid may be of a damaged page. */
static inline bool
QvTidSetHas(const QvTidSet *set, const ItemPointerData *tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);

	if (block >= set->nblocks)
		return false;
	if ((set->blocks[block / 64] & (UINT64_C(1) << (block % 64))) == 0)
		return false;
	if (set->words == 0)
		return true;
	if (offset / QV_TIDSET_BITS >= set->words)
		return false;
	return (set->lines[QvTidSetPlace(set, block) * set->words + offset / QV_TIDSET_BITS] &
			(UINT32_C(1) << (offset % QV_TIDSET_BITS))) != 0;
}

/* Are its members known by their lines, all of them? */
static inline bool
QvTidSetIsExact(const QvTidSet *set)
{
	return set->words > 0 && set->lossy == 0;
}

/* Does a set that knows lines know those of a block?  The block has members. */
static inline bool
QvTidSetKnowsBlock(const QvTidSet *set, BlockNumber block)
{
	return (set->lines[QvTidSetPlace(set, block) * set->words] & 1) == 0;
}

/*
 * Going through the members of a set that knows lines, block by block: those of the next block that
 * has some, from one on, which becomes the one after it.  Returns how many; 0: there are no more.
 */
extern int	QvTidSetNext(const QvTidSet *set, uint64 *block, ItemPointerData tids[MaxHeapTuplesPerPage]);

#endif							/* QV_QUERY_TIDSET_H */
