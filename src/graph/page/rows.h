/*
 * rows.h
 *		Node slots and the heap TIDs of nodes, alike in all graphs.
 */
#ifndef QV_GRAPH_PAGE_ROWS_H
#define QV_GRAPH_PAGE_ROWS_H

#include "graph/page/handle.h"
#include "pages/write.h"

/* The page lock that inserts share and vacuum takes to wait for them. */
#define GRAPH_UPDATE_LOCK QV_META_BLOCK

/*
 * Pin and lock the page of node id and find the node.  Returns the buffer
 * pinned and locked.  *node is NULL when there is no such slot in use.
 */
extern Buffer GraphLockNode(GraphHandle *handle, uint32 id, int lockmode,
							GraphNode *node);

/*
 * Begin to change slot "number" on its page, which is exclusively locked in
 * buf, and end it: commit, unlock and unpin.
 */
extern GraphNode GraphBeginChange(GraphHandle *handle, QvWrite *w, Buffer buf, uint32 number);
extern void GraphEndChange(QvWrite *w, Buffer buf);

/* What a node is asked for by another that wants it to lead there. */
typedef enum GraphOffer
{
	GRAPH_EDGE,					/* an edge: a full node takes it as it judges */
	GRAPH_ANCHOR_EDGE,			/* likewise, but once taken it stays */
	GRAPH_ANCHOR_FORCED			/* an anchor; another has to give way */
} GraphOffer;

typedef enum GraphAnswer
{
	GRAPH_REFUSED,
	GRAPH_NO_MORE_ANCHORS,		/* an edge may do */
	GRAPH_TAKEN					/* or it was there before */
} GraphAnswer;

/* A node that is asked, on its page, which is pinned and exclusively locked. */
typedef struct GraphHost
{
	uint32		id;
	Buffer		buf;
	GraphNode	node;
	int			empty;			/* its first empty place; -1: none */
} GraphHost;

/*
 * Offer node id to node "to" as a neighbor, as far as that needs no judgment.
 * Returns whether it was settled, with *answer; if not, the host is live, has no
 * edge to id, and may have the anchor that it is asked for.  Its page is left
 * locked in both cases.
 */
extern bool GraphAsk(GraphHandle *handle, GraphHost *host, uint32 to, uint32 id,
					 GraphOffer offer, GraphAnswer *answer);

/* Make the edge from one node to another an anchor.  False: there is none, or no room. */
extern bool GraphMakeAnchor(GraphHandle *handle, uint32 from, uint32 to);

/* Find a free slot.  Returns its page pinned and exclusively locked. */
extern Buffer GraphAllocSlot(GraphHandle *handle, uint32 *number);

/*
 * Try to give one more row to a node that this insert has seen live.  Returns
 * false when it is no longer.
 */
extern bool GraphAddRow(GraphHandle *handle, uint32 id, ItemPointer tid);

#endif							/* QV_GRAPH_PAGE_ROWS_H */
