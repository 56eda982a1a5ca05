/*
 * tidmap.h
 *		From the heap TIDs of a table to where an index has them, in the memory of a backend.
 *
 * A number for each line of each block.  Nobody tells a backend of rows that come or go, so it
 * is for the engine to find out whether what is in the map is so still.
 */
#ifndef QV_SPACE_TIDMAP_H
#define QV_SPACE_TIDMAP_H

#include "postgres.h"

#include "storage/itemptr.h"

/* Of a row that is not known. */
#define QV_NOWHERE PG_UINT32_MAX

typedef struct QvTidMap
{
	MemoryContext context;
	BlockNumber blocks;			/* of the table; rows after them are not known */
	uint32		lines;			/* of a block */
	uint32	   *places;			/* [blocks * lines] */
	Size		max_bytes;
} QvTidMap;

/*
 * So many bytes the map of an index may take, with one-bit codes: a quarter of quiver.cache_mem.  (Lower bits of
 * codes take as much again, and go first.)
 */
extern Size QvTidMapMemory(void);

/*
 * An empty map in a context, for a table of so many blocks and rows, more or less; false when
 * that takes more than max_bytes.
 */
extern bool QvTidMapInit(QvTidMap *map, MemoryContext context, BlockNumber blocks, double rows,
						 Size max_bytes);

/* What that takes to begin with. */
extern Size QvTidMapSize(BlockNumber blocks, double rows);

/* Room for a table of so many blocks that grows. */
static inline BlockNumber
QvTidMapRoom(BlockNumber blocks)
{
	return Min((uint64) MaxBlockNumber, (uint64) blocks + blocks / 8);
}

/* Have room for so many blocks, and more; false when it would become too large. */
extern bool QvTidMapExtend(QvTidMap *map, BlockNumber blocks);

/*
 * Put a row into it; false when it would become too large.  Rows of further blocks, and
 * those of damaged pages, stay unknown.
 */
extern bool QvTidMapPut(QvTidMap *map, uint32 place, const ItemPointerData *tid);

static inline uint32
QvTidMapFind(const QvTidMap *map, const ItemPointerData *tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	uint32		line = ItemPointerGetOffsetNumberNoCheck(tid) - 1;

	return block < map->blocks && line < map->lines ?
		map->places[(Size) block * map->lines + line] : QV_NOWHERE;
}

/* Ask the CPU for what it takes to find a row. */
static inline void
QvTidMapPrefetch(const QvTidMap *map, const ItemPointerData *tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	uint32		line = ItemPointerGetOffsetNumberNoCheck(tid) - 1;

	if (block < map->blocks && line < map->lines)
		__builtin_prefetch(&map->places[(Size) block * map->lines + line], 0, 2);
}

#endif							/* QV_SPACE_TIDMAP_H */
