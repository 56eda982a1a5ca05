/*
 * chain.c
 *		The heap TIDs of a node that are not in its own slot; see chain.h.
 */
#include "postgres.h"

#include "graph/page/rows.h"
#include "graph/search/chain.h"
#include "graph/walk/search.h"
#include "miscadmin.h"

/* Reads that find nothing new, one after the other, besides those of slots that were returned. */
#define MAX_IDLE_READS 100

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
 * Returns how many; -1 when the slot is no longer the chain's.
 */
static int
read_slot(GraphChain *chain)
{
	const GraphLayout *layout = &chain->handle->layout;
	Buffer		buf = QvReadPage(chain->handle->index, chain->handle->hints,
								 GraphNodeBlock(layout, chain->next), QV_PAGE_NODES, BUFFER_LOCK_SHARE);
	GraphTids	tids = (GraphTids) GraphPageNode(layout, BufferGetPage(buf),
												 GraphNodeSlot(layout, chain->next));
	int			n = -1;

	if (tids->state == GRAPH_SLOT_TIDS && tids->owner == chain->owner)
	{
		n = Min(tids->ntids, layout->tids_per_slot);
		memcpy(chain->tids, tids->tids, n * sizeof(ItemPointerData));
		chain->next = tids->next;
	}
	UnlockReleaseBuffer(buf);
	return n;
}

int
GraphChainNext(GraphChain *chain)
{
	for (uint32 idle = 0; chain->next != GRAPH_NONE; idle++)
	{
		uint32		slot = chain->next;
		bool		added;
		int			n;

		CHECK_FOR_INTERRUPTS();
		/* it is not being changed, but damaged: always broken, or in circles */
		if (idle > MAX_IDLE_READS + chain->slots.count)
			GraphReportBrokenChain(chain->handle, chain->owner);
		n = read_slot(chain);
		if (n < 0)
		{
			chain->next = chain_head(chain);
			continue;
		}

		/*
		 * It may have been returned: vacuum freed it, and an insert made it
		 * the first.
		 */
		if (IdSetFull(&chain->slots))
			GraphGrowSet(&chain->slots, CurrentMemoryContext);
		IdSetPut(&chain->slots, slot, 0, &added);
		if (added && n > 0)
			return n;
	}
	return 0;
}
