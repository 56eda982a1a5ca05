/*
 * tid_map.c
 *		From heap TIDs to the nodes that have them; see tid_map.h.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "graph/tid_map.h"
#include "utils/memutils.h"

/* Lines of a block to begin with. */
#define FIRST_LINES 4

static Size
map_bytes(BlockNumber blocks, uint32 lines)
{
	return (Size) blocks * lines * sizeof(uint32);
}

/*
 * Memory for so many lines of each block, all not known; NULL: too much, with what there is
 * already, or there is none.
 */
static uint32 *
alloc_nodes(const GraphTidMap *map, uint32 lines)
{
	Size		bytes = map_bytes(map->blocks, lines);
	uint32	   *nodes;

	if (bytes + (map->nodes ? map_bytes(map->blocks, map->lines) : 0) > map->max_bytes)
		return NULL;
	nodes = MemoryContextAllocExtended(map->part.context, Max(1, bytes),
									   MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (nodes)
		memset(nodes, 0xff, bytes);
	return nodes;
}

GraphTidMap *
GraphTidMapNew(BlockNumber blocks, Size max_bytes)
{
	GraphTidMap *map;

	StaticAssertStmt(GRAPH_NONE == PG_UINT32_MAX, "memset() makes no GRAPH_NONE");
	if (map_bytes(blocks, FIRST_LINES) > max_bytes)
		return NULL;
	map = QvRelCacheNewPart(sizeof(GraphTidMap));
	map->blocks = blocks;
	map->lines = FIRST_LINES;
	map->max_bytes = max_bytes;
	map->nodes = alloc_nodes(map, map->lines);
	if (map->nodes)
		return map;
	MemoryContextDelete(map->part.context);
	return NULL;
}

/* A block has more lines than was known. */
static bool
add_lines(GraphTidMap *map, uint32 line)
{
	uint32		lines = Min(Max(line + 1, map->lines + map->lines / 2), MaxHeapTuplesPerPage);
	uint32	   *nodes = alloc_nodes(map, lines);

	if (nodes == NULL)
		return false;
	for (BlockNumber block = 0; block < map->blocks; block++)
		memcpy(nodes + (Size) block * lines, map->nodes + (Size) block * map->lines,
			   map->lines * sizeof(uint32));
	pfree(map->nodes);
	map->nodes = nodes;
	map->lines = lines;
	return true;
}

bool
GraphTidMapPut(GraphTidMap *map, uint32 node, const ItemPointerData *tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	uint32		line = ItemPointerGetOffsetNumberNoCheck(tid) - 1;

	/* of a block that is new, or of a damaged page */
	if (block >= map->blocks || line >= MaxHeapTuplesPerPage)
		return true;
	if (line >= map->lines && !add_lines(map, line))
		return false;
	map->nodes[(Size) block * map->lines + line] = node;
	return true;
}
