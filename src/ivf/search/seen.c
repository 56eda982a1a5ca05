/*
 * seen.c
 *		Rows that a scan has proposed; see seen.h.
 */
#include "postgres.h"

#include "ivf/search/seen.h"
#include "space/tidhash.h"
#include "utils/memutils.h"

/* Bits that there have to be, for so many rows. */
typedef struct Extent
{
	uint64		nblocks;
	uint32		stride;
} Extent;

IvfSeen *
IvfSeenCreate(MemoryContext context, Size max_bytes)
{
	IvfSeen    *seen = MemoryContextAllocZero(context, sizeof(IvfSeen));

	seen->context = context;
	seen->max_bytes = max_bytes;
	seen->hash = QvTids_create(context, 256, NULL);
	return seen;
}

void
IvfSeenFree(IvfSeen *seen)
{
	if (seen->hash)
		QvTids_destroy(seen->hash);
	if (seen->bits)
		pfree(seen->bits);
	pfree(seen);
}

static const ItemPointerData *
nth(const ItemPointerData *first, Size step, uint32 i)
{
	return (const ItemPointerData *) ((const char *) first + step * i);
}

static void
extend(Extent *extent, const ItemPointerData *tid)
{
	extent->nblocks = Max(extent->nblocks, (uint64) ItemPointerGetBlockNumberNoCheck(tid) + 1);
	extent->stride = Max(extent->stride, ItemPointerGetOffsetNumberNoCheck(tid) / 8 + 1);
}

/* Have room for that; false when it is too much, the old bits and the new ones together. */
static bool
make_room(IvfSeen *seen, const Extent *extent)
{
	Size		old = seen->nblocks * seen->stride;
	Size		least = extent->nblocks * extent->stride;
	uint64		nblocks = extent->nblocks;
	uint8	   *bits;

	if (extent->nblocks <= seen->nblocks && extent->stride <= seen->stride)
		return true;
	/* the hash table takes about half of the memory, when it is there */
	if (old + least > seen->max_bytes / 2)
		return false;
	/* a few more blocks, while these fit */
	if (old + least + least / 8 <= seen->max_bytes / 2)
		nblocks += nblocks / 8;
	bits = MemoryContextAllocExtended(seen->context, nblocks * extent->stride,
									  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (uint64 i = 0; i < seen->nblocks; i++)
		memcpy(bits + i * extent->stride, seen->bits + i * seen->stride, seen->stride);
	if (seen->bits)
		pfree(seen->bits);
	seen->bits = bits;
	seen->nblocks = nblocks;
	seen->stride = extent->stride;
	return true;
}

static void
set_bit(IvfSeen *seen, const ItemPointerData *tid)
{
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);

	seen->bits[(Size) ItemPointerGetBlockNumberNoCheck(tid) * seen->stride + offset / 8] |= 1 << offset % 8;
}

/* Bits instead of the hash table. */
static void
drop_hash(IvfSeen *seen)
{
	QvTids_iterator iterator;
	QvTidEntry *entry;

	QvTids_start_iterate(seen->hash, &iterator);
	while ((entry = QvTids_iterate(seen->hash, &iterator)) != NULL)
		set_bit(seen, &entry->tid);
	QvTids_destroy(seen->hash);
	seen->hash = NULL;
}

bool
IvfSeenAdd(IvfSeen *seen, const ItemPointerData *first, Size step, uint32 n)
{
	Extent		extent = {seen->nblocks, seen->stride};

	if (seen->hash && ((Size) seen->hash->members + n) * IVF_SEEN_BYTES <= seen->max_bytes)
	{
		bool		found;

		for (uint32 i = 0; i < n; i++)
			(void) QvTids_insert(seen->hash, *nth(first, step, i), &found);
		return true;
	}
	for (uint32 i = 0; i < n; i++)
		extend(&extent, nth(first, step, i));
	if (seen->hash)
	{
		QvTids_iterator iterator;
		QvTidEntry *entry;

		QvTids_start_iterate(seen->hash, &iterator);
		while ((entry = QvTids_iterate(seen->hash, &iterator)) != NULL)
			extend(&extent, &entry->tid);
	}
	if (!make_room(seen, &extent))
		return false;
	if (seen->hash)
		drop_hash(seen);
	for (uint32 i = 0; i < n; i++)
		set_bit(seen, nth(first, step, i));
	return true;
}

bool
IvfSeenHas(const IvfSeen *seen, const ItemPointerData *tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);

	if (seen->hash)
		return QvTids_lookup(seen->hash, *tid) != NULL;
	return block < seen->nblocks && offset / 8 < seen->stride &&
		(seen->bits[(Size) block * seen->stride + offset / 8] & 1 << offset % 8) != 0;
}
