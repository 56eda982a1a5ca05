/*
 * tidset.c
 *		A set of heap TIDs; see tidset.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "query/tidset.h"
#include "space/grow.h"

/* Blocks that there is room for at first. */
#define FIRST_ROOM 64

/* Bytes of a set without its lines. */
static Size
bytes_of_blocks(BlockNumber nblocks)
{
	return ((Size) nblocks / 64 + 1) * (sizeof(uint64) + sizeof(uint32));
}

QvTidSet *
QvTidSetCreate(BlockNumber nblocks, Size max_bytes)
{
	Size		groups = (Size) nblocks / 64 + 1;
	Size		bytes = bytes_of_blocks(nblocks);
	QvTidSet   *set;

	if (bytes > max_bytes)
		return NULL;
	set = palloc0(sizeof(QvTidSet));
	set->nblocks = nblocks;
	set->blocks = palloc_extended(groups * sizeof(uint64), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	set->before = palloc_extended(groups * sizeof(uint32), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	set->words = 1;
	set->max_bytes = max_bytes - bytes;
	set->context = CurrentMemoryContext;
	return set;
}

/* Have room for the lines of that many blocks, with that many words for each. */
static void
set_room(QvTidSet *set, BlockNumber room, uint32 words)
{
	set->lines = QvResize(set->context, set->lines, (Size) room * words * sizeof(uint32));
	/* from the last block on, as they become longer where they are */
	for (Size i = set->used; words > set->words && i-- > 0;)
	{
		memmove(set->lines + i * words, set->lines + i * set->words, set->words * sizeof(uint32));
		memset(set->lines + i * words + set->words, 0, (words - set->words) * sizeof(uint32));
	}
	set->room = room;
	set->words = words;
}

/*
 * Have room for one more block, with that many words for each.  When there is no memory for that,
 * the set has blocks only from now on.
 */
static bool
make_room(QvTidSet *set, uint32 words)
{
	Size		most = set->max_bytes / sizeof(uint32) / words;
	Size		wanted = Max(FIRST_ROOM, (Size) set->room * (set->used < set->room ? 1 : 2));
	Size		room = Min(most, Min(set->nblocks, wanted));

	if (room <= set->used)
	{
		if (set->lines)
			pfree(set->lines);
		set->lines = NULL;
		set->words = 0;
		return false;
	}
	set_room(set, room, words);
	return true;
}

void
QvTidSetAdd(QvTidSet *set, BlockNumber block, const OffsetNumber *offsets, int n)
{
	OffsetNumber last = offsets == NULL ? MaxHeapTuplesPerPage : n > 0 ? offsets[n - 1] : 0;
	uint32	   *lines;

	set->members += offsets ? n : MaxHeapTuplesPerPage;
	set->lossy += offsets == NULL;
	/* the table has been truncated meanwhile: no row is there */
	if (block >= set->nblocks)
		return;
	/* the first of its group: count those before */
	if (set->blocks[block / 64] == 0)
		set->before[block / 64] = set->used;
	set->blocks[block / 64] |= UINT64_C(1) << (block % 64);
	if (set->words == 0 ||
		((set->used >= set->room || last / QV_TIDSET_BITS >= set->words) &&
		 !make_room(set, Max(set->words, last / QV_TIDSET_BITS + 1))))
	{
		set->used++;
		return;
	}
	lines = set->lines + (Size) set->used * set->words;
	set->used++;
	memset(lines, offsets ? 0 : 0xff, set->words * sizeof(uint32));
	for (int i = 0; offsets && i < n; i++)
		lines[offsets[i] / QV_TIDSET_BITS] |= UINT32_C(1) << (offsets[i] % QV_TIDSET_BITS);
}

/* Note the blocks of rows; returns the last line of the rows. */
static OffsetNumber
note_rows(QvTidSet *set, const ItemPointerData *rows, Size n)
{
	OffsetNumber last = 0;

	for (Size i = 0; i < n; i++)
	{
		BlockNumber block = ItemPointerGetBlockNumberNoCheck(&rows[i]);

		if (block >= set->nblocks)
			continue;
		set->blocks[block / 64] |= UINT64_C(1) << (block % 64);
		last = Max(last, ItemPointerGetOffsetNumberNoCheck(&rows[i]));
	}
	return last;
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

/* Make the line of the block at a place a member. */
static inline void
take_line(QvTidSet *set, Size place, OffsetNumber line)
{
	uint32	   *lines = &set->lines[place * set->words + line / QV_TIDSET_BITS];
	uint32		bit = UINT32_C(1) << (line % QV_TIDSET_BITS);

	/* of a damaged page */
	if (line == 0)
		return;
	set->members += (*lines & bit) == 0;
	*lines |= bit;
}

Size
QvTidSetAllBytes(BlockNumber nblocks)
{
	return (Size) nblocks * sizeof(uint32) + bytes_of_blocks(nblocks);
}

QvTidSet *
QvTidSetOfRows(BlockNumber nblocks, Size max_bytes, const ItemPointerData *rows, Size n, bool all)
{
	QvTidSet   *set = QvTidSetCreate(nblocks, max_bytes);
	Size		bytes;

	if (set == NULL)
		return NULL;
	set->words = note_rows(set, rows, n) / QV_TIDSET_BITS + 1;
	if (all)
		note_all_blocks(set);
	for (Size group = 0; group <= nblocks / 64; group++)
	{
		set->before[group] = set->used;
		set->used += pg_popcount64(set->blocks[group]);
	}
	bytes = (Size) set->used * set->words * sizeof(uint32);
	if (bytes > set->max_bytes)
	{
		QvTidSetFree(set);
		return NULL;
	}
	set->room = set->used;
	set->lines = palloc_extended(Max(1, bytes), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (Size i = 0; i < n; i++)
	{
		BlockNumber block = ItemPointerGetBlockNumberNoCheck(&rows[i]);

		/* else the table has been truncated meanwhile: no row is there */
		if (block < nblocks)
			take_line(set, QvTidSetPlace(set, block), ItemPointerGetOffsetNumberNoCheck(&rows[i]));
	}
	return set;
}

bool
QvTidSetTake(QvTidSet *set, const ItemPointerData *tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber line = ItemPointerGetOffsetNumberNoCheck(tid);
	uint32		words = line / QV_TIDSET_BITS + 1;

	/* the table has been truncated meanwhile: no row is there */
	if (block >= set->nblocks)
		return true;
	if (unlikely(words > set->words))
	{
		if ((Size) set->room * words * sizeof(uint32) > set->max_bytes)
			return false;
		set_room(set, set->room, words);
	}
	take_line(set, block, line);
	return true;
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
