/*
 * store_page.h
 *		The graph on its pages, as a search sees it.
 */
#ifndef QV_GRAPH_STORE_PAGE_H
#define QV_GRAPH_STORE_PAGE_H

#include "graph/query.h"
#include "graph/search.h"

/* A node's own code, copied out of its page for neighbour choice. */
typedef struct GraphCodeCopy
{
	uint32		id;
	float		norm2;
	float		scale;
	float		aux;
	int32		sum;			/* of the code's bytes */
	uint8		code[FLEXIBLE_ARRAY_MEMBER];	/* pdim bytes, unpacked */
} GraphCodeCopy;

typedef struct GraphPageStore
{
	GraphStore	base;
	GraphHandle *handle;
	const GraphQuery *query;
	uint8	   *unpacked;		/* pdim bytes, when own codes are packed */

	/*
	 * When set, called for every live node expanded, while its page is
	 * locked: no error, no page access.
	 */
	void		(*visit) (void *arg, uint32 id, float distance,
						  GraphNode node, const uint8 *code);
	void	   *visit_arg;
} GraphPageStore;

extern void GraphPageStoreInit(GraphPageStore *store, GraphHandle *handle,
							   const GraphQuery *query);

/* Offer the n nearest entries of the entry table. */
extern void GraphPageStoreEnter(GraphPageStore *store, GraphSearch *search, int n);

/*
 * Pin and lock the page of node id and find the node.  Returns the buffer
 * pinned and locked.  *node is NULL when there is no such slot in use.
 */
extern Buffer GraphLockNode(GraphHandle *handle, uint32 id, int lockmode,
							GraphNode *node);

#endif							/* QV_GRAPH_STORE_PAGE_H */
