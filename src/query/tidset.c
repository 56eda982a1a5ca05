/*
 * tidset.c
 *		A set of heap TIDs; see tidset.h.
 */
#include "postgres.h"

#include "query/tidset.h"
#include "utils/memutils.h"

QvTidSet *
QvTidSetCreate(MemoryContext context, BlockNumber nblocks, Size max_bytes)
{
	Size		groups = (Size) nblocks / 64 + 1;
	Size		bytes = groups * (sizeof(uint64) + sizeof(uint32));
	QvTidSet   *set;

	if (bytes > max_bytes)
		return NULL;
	set = MemoryContextAllocZero(context, sizeof(QvTidSet));
	set->nblocks = nblocks;
	set->blocks = MemoryContextAllocExtended(context, groups * sizeof(uint64), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	set->before = MemoryContextAllocExtended(context, groups * sizeof(uint32), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	set->words = 1;
	set->max_bytes = max_bytes - bytes;
	return set;
}

void
QvTidSetNote(QvTidSet *set, BlockNumber block, OffsetNumber last)
{
	/* else the table has been truncated meanwhile: no row is there */
	if (block >= set->nblocks)
		return;
	set->blocks[block / 64] |= UINT64_C(1) << (block % 64);
	set->words = Max(set->words, last / QV_TIDSET_BITS + 1);
}

bool
QvTidSetMakeRoom(QvTidSet *set)
{
	Size		bytes;

	for (Size group = 0; group <= set->nblocks / 64; group++)
	{
		set->before[group] = set->used;
		set->used += pg_popcount64(set->blocks[group]);
	}
	bytes = (Size) set->used * set->words * sizeof(uint32);
	if (bytes > set->max_bytes)
	{
		set->words = 0;
		return false;
	}
	set->lines = MemoryContextAllocExtended(GetMemoryChunkContext(set), Max(1, bytes),
											MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	return true;
}

void
QvTidSetAdd(QvTidSet *set, BlockNumber block, const OffsetNumber *offsets, int n)
{
	uint32	   *lines;

	set->members += offsets ? n : MaxHeapTuplesPerPage;
	set->lossy += offsets == NULL;
	if (block >= set->nblocks || set->words == 0)
		return;
	lines = set->lines + QvTidSetPlace(set, block) * set->words;
	if (offsets == NULL)
		memset(lines, 0xff, set->words * sizeof(uint32));
	for (int i = 0; i < n; i++)
		lines[offsets[i] / QV_TIDSET_BITS] |= UINT32_C(1) << (offsets[i] % QV_TIDSET_BITS);
}

/* Take all blocks to have members, some of them none of their lines. */
static void
note_all_blocks(QvTidSet *set)
{
	Size		groups = set->nblocks / 64;

	memset(set->blocks, 0xff, groups * sizeof(uint64));
	/* those of the last group that are there */
	set->blocks[groups] = (UINT64_C(1) << (set->nblocks % 64)) - 1;
}

/* Have that many words for the lines of each block; false when they take more than max_bytes. */
static bool
have_words(QvTidSet *set, uint32 words)
{
	Size		bytes = (Size) set->used * words * sizeof(uint32);

	if (bytes > set->max_bytes)
		return false;
	set->lines = repalloc_huge(set->lines, bytes);
	/* from the last block on, as they become longer where they are */
	for (Size i = set->used; i-- > 0;)
	{
		memmove(set->lines + i * words, set->lines + i * set->words, set->words * sizeof(uint32));
		memset(set->lines + i * words + set->words, 0, (words - set->words) * sizeof(uint32));
	}
	set->words = words;
	return true;
}

bool
QvTidSetTake(QvTidSet *set, const ItemPointerData *tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber line = ItemPointerGetOffsetNumberNoCheck(tid);
	uint32		bit = UINT32_C(1) << (line % QV_TIDSET_BITS);
	uint32	   *lines;

	/* the table has been truncated meanwhile, or line 0 is of a damaged page */
	if (block >= set->nblocks || line == 0)
		return true;
	if (unlikely(line / QV_TIDSET_BITS >= set->words) && !have_words(set, line / QV_TIDSET_BITS + 1))
		return false;
	lines = &set->lines[QvTidSetPlace(set, block) * set->words + line / QV_TIDSET_BITS];
	set->members += (*lines & bit) == 0;
	*lines |= bit;
	return true;
}

QvTidSet *
QvTidSetOfRows(MemoryContext context, BlockNumber nblocks, Size max_bytes,
			   const ItemPointerData *rows, Size n, bool all)
{
	QvTidSet   *set = QvTidSetCreate(context, nblocks, max_bytes);

	if (set == NULL)
		return NULL;
	for (Size i = 0; i < n; i++)
		QvTidSetNote(set, ItemPointerGetBlockNumberNoCheck(&rows[i]), ItemPointerGetOffsetNumberNoCheck(&rows[i]));
	if (all)
		note_all_blocks(set);
	if (!QvTidSetMakeRoom(set))
	{
		QvTidSetFree(set);
		return NULL;
	}
	for (Size i = 0; i < n; i++)
		(void) QvTidSetTake(set, &rows[i]);
	return set;
}

int
QvTidSetNext(const QvTidSet *set, uint64 *block, ItemPointerData tids[MaxHeapTuplesPerPage])
{
	int			n = 0;

	while (n == 0 && *block < set->nblocks)
	{
		uint64		blocks = set->blocks[*block / 64] >> (*block % 64);
		const uint32 *lines;

		if (blocks == 0)
		{
			*block += 64 - *block % 64;
			continue;
		}
		*block += pg_rightmost_one_pos64(blocks);
		lines = set->lines + QvTidSetPlace(set, *block) * set->words;
		for (uint32 word = 0; word < set->words; word++)
		{
			/* line 0 is none */
			uint32		left = word == 0 ? lines[0] & ~UINT32_C(1) : lines[word];

			for (; left != 0 && n < MaxHeapTuplesPerPage; left &= left - 1, n++)
				ItemPointerSet(&tids[n], *block, word * QV_TIDSET_BITS + pg_rightmost_one_pos32(left));
		}
		++*block;
	}
	return n;
}

void
QvTidSetFree(QvTidSet *set)
{
	if (set->lines)
		pfree(set->lines);
	pfree(set->before);
	pfree(set->blocks);
	pfree(set);
}
