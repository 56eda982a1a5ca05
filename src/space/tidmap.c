/*
 * tidmap.c
 *		From heap TIDs to where an index has them; see tidmap.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "space/relcache.h"
#include "space/tidmap.h"
#include "utils/memutils.h"

/* The fewest lines of a block, and lines for each row that a block has on average. */
#define LEAST_LINES 4
#define LINES_PER_ROW 1.25

Size
QvTidMapMemory(void)
{
	return (Size) qv_cache_mem * 1024 / 4;
}

static Size
map_bytes(BlockNumber blocks, uint32 lines)
{
	return (Size) blocks * lines * sizeof(uint32);
}

/*
 * Have so many lines of so many blocks, none of them fewer than before; false: too much,
 * with what there is already, or there is no memory.
 */
static bool
make_room(QvTidMap *map, BlockNumber blocks, uint32 lines)
{
	Size		bytes = map_bytes(blocks, lines);
	uint32	   *places;

	StaticAssertStmt(QV_NOWHERE == 0xffffffff, "memset() makes no QV_NOWHERE");
	if (bytes + (map->places ? map_bytes(map->blocks, map->lines) : 0) > map->max_bytes)
		return false;
	places = MemoryContextAllocExtended(map->context, Max(1, bytes), MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (places == NULL)
		return false;
	memset(places, 0xff, bytes);
	if (map->places)
	{
		for (BlockNumber block = 0; block < map->blocks; block++)
			memcpy(places + (Size) block * lines, map->places + (Size) block * map->lines,
				   map->lines * sizeof(uint32));
		pfree(map->places);
	}
	map->places = places;
	map->blocks = blocks;
	map->lines = lines;
	return true;
}

/* Lines of a block when there are so many rows. */
static uint32
usual_lines(BlockNumber blocks, double rows)
{
	double		lines = rows / Max(1, blocks) * LINES_PER_ROW;

	return Max(LEAST_LINES, Min(lines, MaxHeapTuplesPerPage));
}

Size
QvTidMapSize(BlockNumber blocks, double rows)
{
	return map_bytes(blocks, usual_lines(blocks, rows));
}

bool
QvTidMapInit(QvTidMap *map, MemoryContext context, BlockNumber blocks, double rows, Size max_bytes)
{
	memset(map, 0, sizeof(*map));
	map->context = context;
	map->max_bytes = max_bytes;
	return make_room(map, blocks, usual_lines(blocks, rows));
}

bool
QvTidMapExtend(QvTidMap *map, BlockNumber blocks)
{
	return blocks <= map->blocks ||
		make_room(map, QvTidMapRoom(blocks), map->lines);
}

bool
QvTidMapPut(QvTidMap *map, uint32 place, const ItemPointerData *tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	uint32		line = ItemPointerGetOffsetNumberNoCheck(tid) - 1;

	if (block >= map->blocks || line >= MaxHeapTuplesPerPage)
		return true;
	if (line >= map->lines &&
		!make_room(map, map->blocks, Min(Max(line + 1, map->lines + map->lines / 2), MaxHeapTuplesPerPage)))
		return false;
	map->places[(Size) block * map->lines + line] = place;
	return true;
}
