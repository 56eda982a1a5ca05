/*
 * link.c
 *		Edges back: offering a node to a neighbor that it chose; see link.h.
 */
#include "postgres.h"

#include "compat.h"
#include "graph/form/forms.h"
#include "graph/page/rows.h"
#include "graph/update/link.h"
#include "miscadmin.h"

/* Attempts to offer an edge to a full node that others change meanwhile. */
#define LINK_ATTEMPTS 3

/* An offer to a node, and how far it has come. */
typedef struct Offer
{
	uint32		id;
	uint32		to;
	GraphOffer	offer;
	int			chosen;			/* place for the edge when none is empty; -1:
								 * none yet */
	uint32		places[GRAPH_MAX_DEGREE];	/* edges of the full node at that
											 * time */
} Offer;

/*
 * Makes the offer.  The edge gets an empty place, or the chosen one if that is still as it
 * was.  Returns false if the node is full: o->places are its edges.
 */
static bool
try_link(const GraphNeighborhood *nb, Offer *o, GraphAnswer *answer)
{
	GraphHandle *handle = nb->handle;
	GraphHost	host;
	bool		settled = GraphAsk(handle, &host, o->to, o->id, o->offer, answer);

	if (!settled)
	{
		const uint32 *now = GraphNodeIds(&handle->layout, host.node);
		int			place = host.empty;

		if (place < 0 && o->chosen >= 0 && now[o->chosen] == o->places[o->chosen])
			place = o->chosen;
		settled = place >= 0;
		if (settled)
		{
			GraphFormOf(handle)->edge_back(nb, o->id, &host, place, o->offer != GRAPH_EDGE);
			*answer = GRAPH_TAKEN;
		}
		else
			memcpy(o->places, now, handle->layout.degree * sizeof(uint32));
	}
	UnlockReleaseBuffer(host.buf);
	return settled;
}

GraphAnswer
GraphLinkBack(GraphNeighborhood *nb, uint32 id, uint32 to, GraphOffer offer)
{
	Offer		o = {id, to, offer, -1};

	for (int attempt = 0; attempt < LINK_ATTEMPTS; attempt++)
	{
		GraphAnswer answer;

		if (try_link(nb, &o, &answer))
		{
			if (answer == GRAPH_TAKEN)
				QvInjectionPoint("quiver-graph-edge-back");
			return answer;
		}
		if (attempt == LINK_ATTEMPTS - 1)
			break;
		CHECK_FOR_INTERRUPTS();
		o.chosen = GraphFormOf(nb->handle)->choose_place(nb, to, o.places,
														 offer == GRAPH_ANCHOR_FORCED);
		if (o.chosen < 0)
			break;
	}
	return GRAPH_REFUSED;
}
