/*
 * tid_map.h
 *		From heap TIDs to the nodes that have them, in memory.
 *
 * What a backend keeps of a graph that it has swept (cache.h).  Nobody tells it of rows that
 * come or go: a node says itself whether it has a row, and a row that the map does not
 * know may be in any node.  It knows those in the slots of the nodes themselves.
 */
#ifndef QV_GRAPH_TID_MAP_H
#define QV_GRAPH_TID_MAP_H

#include "graph/format.h"
#include "space/relcache.h"
#include "storage/itemptr.h"

typedef struct GraphTidMap
{
	QvRelCachePart part;
	BlockNumber blocks;			/* of the table; rows after them are not known */
	uint32		lines;			/* of a block */
	uint32	   *nodes;			/* [blocks * lines], GRAPH_NONE: not known */
	Size		max_bytes;
	double		absent;			/* share of the members of the last sweeps
								 * that it does not know, at most */
} GraphTidMap;

/*
 * An empty map for a table of so many blocks, below CurrentMemoryContext until it is kept;
 * NULL when it would take more than max_bytes.
 */
extern GraphTidMap *GraphTidMapNew(BlockNumber blocks, Size max_bytes);

/* Put a row into it; false when it would become too large. */
extern bool GraphTidMapPut(GraphTidMap *map, uint32 node, const ItemPointerData *tid);

static inline uint32
GraphTidMapFind(const GraphTidMap *map, const ItemPointerData *tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	uint32		line = ItemPointerGetOffsetNumberNoCheck(tid) - 1;

	return block < map->blocks && line < map->lines ?
		map->nodes[(Size) block * map->lines + line] : GRAPH_NONE;
}

#endif							/* QV_GRAPH_TID_MAP_H */
