/*
 * tidset.h
 *		A set of heap TIDs: the rows of a table that a search is for.
 *
 * A bit for each block of the table, and for the blocks that have members a bit for
 * each line, found by counting the blocks before them.  A set that would be too large
 * has blocks only: then it says "yes" for all rows of a block.
 */
#ifndef QV_SPACE_TIDSET_H
#define QV_SPACE_TIDSET_H

#include "postgres.h"

#include "port/pg_bitutils.h"
#include "storage/itemptr.h"

typedef struct QvTidSet
{
	BlockNumber nblocks;		/* of the table; none after them has members */
	uint64	   *blocks;			/* a bit a block */
	uint32	   *before;			/* for each 64 blocks: those with members
								 * before them */
	uint32		words;			/* of 64 lines, for each block with members;
								 * 0: blocks only */
	uint64	   *lines;
	BlockNumber used;			/* blocks with members so far */
} QvTidSet;

/*
 * An empty set for a table of nblocks blocks, of which up to nmembers have members, none
 * at a higher offset than max_offset; in CurrentMemoryContext, max_bytes at most.  NULL
 * when even a bit for each block takes more.
 */
extern QvTidSet *QvTidSetCreate(BlockNumber nblocks, BlockNumber nmembers,
								OffsetNumber max_offset, Size max_bytes);

/* Add rows of a block, in the order of blocks; offsets NULL: all that it may have. */
extern void QvTidSetAdd(QvTidSet *set, BlockNumber block, const OffsetNumber *offsets, int n);

/* Is the row a member, as far as the set knows?  tid may be of a damaged page. */
static inline bool
QvTidSetHas(const QvTidSet *set, const ItemPointerData *tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);
	uint64		bits;
	Size		at;

	if (block >= set->nblocks)
		return false;
	bits = set->blocks[block / 64];
	if ((bits & (UINT64_C(1) << (block % 64))) == 0)
		return false;
	if (set->words == 0)
		return true;
	if (offset / 64 >= set->words)
		return false;
	at = set->before[block / 64] + pg_popcount64(bits & ((UINT64_C(1) << (block % 64)) - 1));
	return (set->lines[at * set->words + offset / 64] & (UINT64_C(1) << (offset % 64))) != 0;
}

/* Leave the members of n rows in their places' order; returns how many. */
static inline int
QvTidSetKeep(const QvTidSet *set, ItemPointerData *tids, int n)
{
	int			kept = 0;

	for (int i = 0; i < n; i++)
		if (QvTidSetHas(set, &tids[i]))
			tids[kept++] = tids[i];
	return kept;
}

#endif							/* QV_SPACE_TIDSET_H */
