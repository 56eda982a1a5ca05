/*
 * store_plain.h
 *		A plain graph on its pages, as a search sees it.
 */
#ifndef QV_GRAPH_WALK_STORE_PLAIN_H
#define QV_GRAPH_WALK_STORE_PLAIN_H

#include "graph/page/node_value.h"
#include "graph/walk/search.h"

typedef struct GraphPlainStore
{
	GraphStore	base;
	GraphHandle *handle;
	const void *query;			/* NULL: all distances are 0 */
	GraphScratch scratch;

	/* if set: called for each live node expanded, without locks held */
	void		(*visit) (void *arg, uint32 id, float distance);
	void	   *visit_arg;
} GraphPlainStore;

extern void GraphPlainStoreInit(GraphPlainStore *store, GraphHandle *handle,
								const void *query);

#endif							/* QV_GRAPH_WALK_STORE_PLAIN_H */
