/*
 * tidset.c
 *		A set of heap TIDs; see tidset.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "space/tidset.h"
#include "utils/memutils.h"

/* Blocks that there is room for at first. */
#define FIRST_ROOM 64

QvTidSet *
QvTidSetCreate(BlockNumber nblocks, Size max_bytes)
{
	Size		groups = (Size) nblocks / 64 + 1;
	Size		bytes = groups * (sizeof(uint64) + sizeof(uint32));
	QvTidSet   *set;

	if (bytes > max_bytes)
		return NULL;
	set = palloc0(sizeof(QvTidSet));
	set->nblocks = nblocks;
	set->blocks = MemoryContextAllocExtended(CurrentMemoryContext, groups * sizeof(uint64),
											 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	set->before = MemoryContextAllocExtended(CurrentMemoryContext, groups * sizeof(uint32),
											 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	set->words = 1;
	set->max_bytes = max_bytes - bytes;
	set->context = CurrentMemoryContext;
	return set;
}

/*
 * Have room for so many words of so many blocks, with those that there are; else the set
 * has blocks only from now on.
 */
static bool
make_room(QvTidSet *set, BlockNumber room, uint32 words)
{
	Size		bytes = (Size) room * words * sizeof(uint64);
	uint64	   *lines;

	if (bytes > set->max_bytes)
	{
		if (set->lines)
			pfree(set->lines);
		set->lines = NULL;
		set->words = 0;
		return false;
	}
	lines = MemoryContextAllocExtended(set->context, bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (BlockNumber i = 0; i < set->used; i++)
		memcpy(lines + (Size) i * words, set->lines + (Size) i * set->words, set->words * sizeof(uint64));
	if (set->lines)
		pfree(set->lines);
	set->lines = lines;
	set->room = room;
	set->words = words;
	return true;
}

/* Have room for one more block with lines up to that offset; false: blocks only. */
static bool
make_room_for(QvTidSet *set, OffsetNumber last)
{
	Size		most = set->max_bytes / sizeof(uint64) / set->words;

	if (set->used >= set->room &&
		!make_room(set, Max(set->used + 1, Min(set->nblocks, Min(most, Max(FIRST_ROOM, (Size) set->room * 2)))), set->words))
		return false;
	return last / 64 < set->words || make_room(set, set->room, last / 64 + 1);
}

void
QvTidSetAdd(QvTidSet *set, BlockNumber block, const OffsetNumber *offsets, int n)
{
	OffsetNumber last = offsets == NULL ? MaxHeapTuplesPerPage : n > 0 ? offsets[n - 1] : 0;
	uint64	   *lines;

	set->members += offsets ? n : MaxHeapTuplesPerPage;
	set->lossy += offsets == NULL;
	/* the table has been truncated meanwhile: no row is there */
	if (block >= set->nblocks)
		return;
	/* the first of its group: count those before */
	if (set->blocks[block / 64] == 0)
		set->before[block / 64] = set->used;
	set->blocks[block / 64] |= UINT64_C(1) << (block % 64);
	if (set->words == 0 || !make_room_for(set, last))
	{
		set->used++;
		return;
	}
	lines = set->lines + (Size) set->used * set->words;
	set->used++;
	if (offsets == NULL)
		memset(lines, 0xff, set->words * sizeof(uint64));
	for (int i = 0; offsets && i < n; i++)
		lines[offsets[i] / 64] |= UINT64_C(1) << (offsets[i] % 64);
}
