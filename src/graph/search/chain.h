/*
 * chain.h
 *		The heap TIDs of a node that are not in its own slot.
 */
#ifndef QV_GRAPH_SEARCH_CHAIN_H
#define QV_GRAPH_SEARCH_CHAIN_H

#include "containers/idset.h"
#include "graph/page/handle.h"

typedef struct GraphChain
{
	GraphHandle *handle;
	uint32		owner;			/* the node */
	uint32		next;			/* slot to read next, or GRAPH_NONE */
	IdSet		slots;			/* those returned so far */
	ItemPointerData *tids;		/* of the slot read last */
} GraphChain;

/* For chains of an index, in CurrentMemoryContext, where they are read, too; the first is empty. */
extern void GraphChainInit(GraphChain *chain, GraphHandle *handle);

/* Begin the chain of a node, from a slot on (GRAPH_NONE: there is none). */
extern void GraphChainStart(GraphChain *chain, uint32 owner, uint32 first);

/*
 * Have more heap TIDs in chain->tids; returns how many, 0 at the end.  When VACUUM has unlinked the
 * next slot meanwhile, starts over at the node and leaves out slots that were returned: rows that
 * the search sees stay in their slots.
 */
extern int	GraphChainNext(GraphChain *chain);

#endif							/* QV_GRAPH_SEARCH_CHAIN_H */
