/*
 * tidset.c
 *		A set of heap TIDs; see tidset.h.
 */
#include "postgres.h"

#include "space/tidset.h"

QvTidSet *
QvTidSetCreate(BlockNumber nblocks, BlockNumber nmembers, OffsetNumber max_offset,
			   Size max_bytes)
{
	Size		groups = (Size) nblocks / 64 + 1;
	Size		bytes = groups * (sizeof(uint64) + sizeof(uint32));
	uint32		words = max_offset / 64 + 1;
	QvTidSet   *set;

	if (bytes > max_bytes)
		return NULL;
	set = palloc0(sizeof(QvTidSet));
	set->nblocks = nblocks;
	set->blocks = MemoryContextAllocExtended(CurrentMemoryContext, groups * sizeof(uint64),
											 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	set->before = MemoryContextAllocExtended(CurrentMemoryContext, groups * sizeof(uint32),
											 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	if (bytes + (Size) nmembers * words * sizeof(uint64) <= max_bytes)
	{
		set->words = words;
		set->lines = MemoryContextAllocExtended(CurrentMemoryContext,
												Max(1, (Size) nmembers * words) * sizeof(uint64),
												MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	}
	return set;
}

void
QvTidSetAdd(QvTidSet *set, BlockNumber block, const OffsetNumber *offsets, int n)
{
	uint64	   *lines;

	/* the table has been truncated meanwhile: no row is there */
	if (block >= set->nblocks)
		return;
	/* the first of its group: count those before */
	if (set->blocks[block / 64] == 0)
		set->before[block / 64] = set->used;
	set->blocks[block / 64] |= UINT64_C(1) << (block % 64);
	lines = set->lines + (Size) set->used * set->words;
	set->used++;
	if (set->words == 0)
		return;
	if (offsets == NULL)
		memset(lines, 0xff, set->words * sizeof(uint64));
	for (int i = 0; offsets && i < n; i++)
		lines[offsets[i] / 64] |= UINT64_C(1) << (offsets[i] % 64);
}
