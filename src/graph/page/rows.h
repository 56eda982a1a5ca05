/*
 * rows.h
 *		Node slots and the heap TIDs of nodes, in all graphs.
 */
#ifndef QV_GRAPH_PAGE_ROWS_H
#define QV_GRAPH_PAGE_ROWS_H

#include "graph/page/handle.h"
#include "pages/write.h"

/* The update lock: inserts share this page lock.  VACUUM takes it to wait for them. */
#define GRAPH_UPDATE_LOCK QV_META_BLOCK

/*
 * Pins and locks the page of node id, and finds the node.  Returns the buffer pinned and
 * locked.  *node is NULL if the slot is no node.
 */
extern Buffer GraphLockNode(GraphHandle *handle, uint32 id, int lockmode,
							GraphNode *node);

/*
 * Begins a change of slot "number", whose page is exclusively locked in buf.  Returns the slot as
 * the change has it.  The caller commits, or ends the write.
 */
extern GraphNode GraphBeginChange(GraphHandle *handle, QvWrite *w, Buffer buf, uint32 number);

/* Offer of an edge to a node. */
typedef enum GraphOffer
{
	GRAPH_EDGE,					/* an edge: a full node chooses again */
	GRAPH_ANCHOR_EDGE,			/* an edge that is an anchor once it is taken */
	GRAPH_ANCHOR_FORCED			/* an anchor; another edge has to give way */
} GraphOffer;

typedef enum GraphAnswer
{
	GRAPH_REFUSED,
	GRAPH_NO_MORE_ANCHORS,		/* no room for an anchor; an edge may be taken */
	GRAPH_TAKEN					/* taken now, or before */
} GraphAnswer;

/* A node that is asked.  Its page is pinned and exclusively locked. */
typedef struct GraphHost
{
	uint32		id;
	Buffer		buf;
	GraphNode	node;
	int			empty;			/* its first empty place; -1: none */
} GraphHost;

/*
 * Offers node id to node "to" as a neighbor, as far as the node need not choose again.
 * Returns whether the offer was settled, with *answer.  If not, the host is live, has no
 * edge to id, and has room for the anchor that is offered.  Its page is left locked in both
 * cases.
 */
extern bool GraphAsk(GraphHandle *handle, GraphHost *host, uint32 to, uint32 id,
					 GraphOffer offer, GraphAnswer *answer);

/*
 * Makes the edge from one node to another an anchor.  Returns false if there is no such
 * edge, or no room for an anchor.
 */
extern bool GraphMakeAnchor(GraphHandle *handle, uint32 from, uint32 to);

/* Has a page of nodes a free slot? */
extern bool GraphHasFreeSlot(const GraphLayout *layout, Page page);

/* Finds a free slot.  Returns its page pinned and exclusively locked. */
extern Buffer GraphAllocSlot(GraphHandle *handle, uint32 *number);

/* Raises ERRCODE_INDEX_CORRUPTED: the chain of heap TIDs of a node leads in circles, or away. */
pg_noreturn extern void GraphReportBrokenChain(const GraphHandle *handle, uint32 id);

/*
 * Tries to add a row to a node that this insert has seen live.  Returns false if the node
 * is live no longer.
 */
extern bool GraphAddRow(GraphHandle *handle, uint32 id, ItemPointer tid);

#endif							/* QV_GRAPH_PAGE_ROWS_H */
