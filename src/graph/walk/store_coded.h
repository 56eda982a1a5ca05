/*
 * store_coded.h
 *		A coded graph on its pages, as a search sees it.
 */
#ifndef QV_GRAPH_WALK_STORE_CODED_H
#define QV_GRAPH_WALK_STORE_CODED_H

#include "graph/page/query.h"
#include "graph/walk/search.h"

typedef struct GraphCodedStore
{
	GraphStore	base;
	GraphHandle *handle;
	const GraphQuery *query;
	uint8	   *unpacked;		/* pdim bytes, if own codes are packed */

	/*
	 * If set: called for every live node that is expanded, while its page is
	 * locked.  It raises no error, and reads no page.
	 */
	void		(*visit) (void *arg, uint32 id, float distance,
						  GraphNode node, const uint8 *code);
	void	   *visit_arg;
} GraphCodedStore;

extern void GraphCodedStoreInit(GraphCodedStore *store, GraphHandle *handle,
								const GraphQuery *query);

#endif							/* QV_GRAPH_WALK_STORE_CODED_H */
