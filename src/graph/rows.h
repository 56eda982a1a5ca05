/*
 * rows.h
 *		Node slots and the heap TIDs of nodes, alike in all graphs.
 */
#ifndef QV_GRAPH_ROWS_H
#define QV_GRAPH_ROWS_H

#include "graph/handle.h"
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

/* Find a free slot.  Returns its page pinned and exclusively locked. */
extern Buffer GraphAllocSlot(GraphHandle *handle, uint32 *number);

/*
 * Try to give one more row to a node that this insert has seen live.  Returns
 * false when it is no longer.
 */
extern bool GraphAddRow(GraphHandle *handle, uint32 id, ItemPointer tid);

#endif							/* QV_GRAPH_ROWS_H */
