/*
 * chain.c
 *		The heap TIDs of a node that are not in its own slot; see chain.h.
 */
#include "postgres.h"

#include "graph/page/rows.h"
#include "graph/search/chain.h"
#include "graph/walk/search.h"
#include "miscadmin.h"

/* How often a chain of heap TIDs may change while it is read. */
#define MAX_CHAIN_RESTARTS 100

/* Room for slots of a chain to begin with. */
#define FIRST_SLOTS 64

void
GraphChainInit(GraphChain *chain, GraphHandle *handle)
{
	memset(chain, 0, sizeof(*chain));
	chain->handle = handle;
	chain->next = GRAPH_NONE;
	IdSetInit(&chain->slots, palloc(IdSetBytes(FIRST_SLOTS)), FIRST_SLOTS);
	chain->tids = palloc(handle->layout.tids_per_slot * sizeof(ItemPointerData));
}

void
GraphChainStart(GraphChain *chain, uint32 owner, uint32 first)
{
	chain->owner = owner;
	chain->next = first;
	chain->again = 0;
	chain->restarts = 0;
	IdSetClear(&chain->slots);
}

/* Where the chain starts now; GRAPH_NONE when its node is gone. */
static uint32
chain_head(GraphChain *chain)
{
	GraphNode	node;
	Buffer		buf = GraphLockNode(chain->handle, chain->owner, BUFFER_LOCK_SHARE, &node);
	uint32		head = node ? node->overflow : GRAPH_NONE;

	UnlockReleaseBuffer(buf);
	return head;
}

/*
 * Copy the heap TIDs of the chain's next slot and go on to the one after it.
 * Returns how many; -1 when the slot is no longer the chain's.  It may be the
 * chain's again and lead to what was returned: vacuum freed it, and an insert
 * made it the first.
 */
static int
read_slot(GraphChain *chain)
{
	const GraphLayout *layout = &chain->handle->layout;
	uint32		slot = chain->next;
	Buffer		buf = QvReadPage(chain->handle->index, chain->handle->hints,
								 GraphNodeBlock(layout, slot), QV_PAGE_NODES, BUFFER_LOCK_SHARE);
	GraphTids	tids = (GraphTids) GraphPageNode(layout, BufferGetPage(buf),
												 GraphNodeSlot(layout, slot));
	int			n = -1;
	bool		added;

	if (tids->state == GRAPH_SLOT_TIDS && tids->owner == chain->owner)
	{
		n = Min(tids->ntids, layout->tids_per_slot);
		memcpy(chain->tids, tids->tids, n * sizeof(ItemPointerData));
		chain->next = tids->next;
	}
	UnlockReleaseBuffer(buf);
	if (n < 0)
		return n;
	if (IdSetFull(&chain->slots))
		GraphGrowSet(&chain->slots, CurrentMemoryContext);
	IdSetPut(&chain->slots, slot, 0, &added);
	if (added)
	{
		chain->again = 0;
		return n;
	}
	/* a chain that leads nowhere else goes in circles */
	if (++chain->again > chain->slots.count)
		GraphReportBrokenChain(chain->handle, chain->owner);
	return 0;
}

int
GraphChainNext(GraphChain *chain)
{
	int			n = 0;

	while (n <= 0 && chain->next != GRAPH_NONE)
	{
		CHECK_FOR_INTERRUPTS();
		n = read_slot(chain);
		if (n < 0)
		{
			/* a chain that is always broken is not being changed, but damaged */
			if (++chain->restarts > MAX_CHAIN_RESTARTS)
				GraphReportBrokenChain(chain->handle, chain->owner);
			chain->again = 0;
			chain->next = chain_head(chain);
		}
	}
	return Max(n, 0);
}
