/*
 * handle.h
 *		An open graph index.
 */
#ifndef QV_GRAPH_PAGE_HANDLE_H
#define QV_GRAPH_PAGE_HANDLE_H

#include "graph/page/format.h"
#include "rows/rows.h"
#include "space/relcache.h"

typedef struct GraphEntryPoints GraphEntryPoints;	/* entry_points.h */

/* An open index.  GraphOpen() makes it; a build makes its own, before there are pages. */
typedef struct GraphHandle
{
	Relation	index;
	bool		building;		/* pages are changed without WAL */
	GraphMetaData meta;			/* as read when the handle was opened */
	GraphLayout layout;
	QvSpace		space;
	QvRows		rows;			/* row pages: see QvRowsExist() */
	GraphEntryPoints *entry_points;
	QvBufferHints *hints;
	QvRelCacheUse cached;		/* its cache entry; none in a build */
} GraphHandle;

/* Prefetches bytes of a node's slot into the CPU's cache, from an offset in it on. */
static inline void
GraphPrefetchNode(const GraphHandle *handle, uint32 id, Size offset, Size bytes)
{
	const GraphLayout *layout = &handle->layout;

	QvPrefetchPage(handle->hints, GraphNodeBlock(layout, id),
				   QV_PAGE_START + (Size) GraphNodeSlot(layout, id) * layout->node_size + offset, bytes);
}

/* A row that many times as long as others needs care by inner product. */
#define GRAPH_MUCH_LONGER 4

/*
 * Is a row of power distances over GRAPH_MUCH_LONGER times as long as rows are?  The factors of its
 * neighbors are then those of inner products.
 */
static inline bool
GraphIsLong(const QvSpace *space, float norm2, float aux)
{
	const float most = GRAPH_MUCH_LONGER * GRAPH_MUCH_LONGER;

	return space->kind == QV_SPACE_POWER &&
		norm2 + 2 * aux + space->mean_norm2 > most * (space->level + space->mean_norm2);
}

/* Returns QvSpaceNorm2() of a node. */
static inline float
GraphNodeNorm2(const GraphHandle *handle, const GraphNodeData *node)
{
	return QvSpaceNorm2(&handle->space, node->norm2, node->aux);
}

#endif							/* QV_GRAPH_PAGE_HANDLE_H */
