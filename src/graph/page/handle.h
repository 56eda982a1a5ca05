/*
 * handle.h
 *		An open graph index: what its operations know of it.
 */
#ifndef QV_GRAPH_PAGE_HANDLE_H
#define QV_GRAPH_PAGE_HANDLE_H

#include "graph/page/format.h"
#include "rows/rows.h"
#include "space/relcache.h"

typedef struct GraphEntryPoints GraphEntryPoints;	/* entry_points.h */

/* Opened by GraphOpen(); a build makes its own, before there are pages. */
typedef struct GraphHandle
{
	Relation	index;
	bool		building;		/* pages are changed without WAL */
	GraphMetaData meta;			/* as read when the handle was opened */
	GraphLayout layout;
	QvSpace		space;
	QvRows		rows;			/* row pages, */
	bool		has_rows;		/* if there are any */
	GraphEntryPoints *entry_points;
	QvBufferHints *hints;
	QvBufferHints *table_hints; /* of the table's pages; NULL in a build */

	/* cache.c's */
	struct GraphRelCache *entry;
	MemoryContextCallback release;
} GraphHandle;

#endif							/* QV_GRAPH_PAGE_HANDLE_H */
