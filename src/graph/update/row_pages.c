/*
 * row_pages.c
 *		The rows of an index, from its nodes; see row_pages.h.
 */
#include "postgres.h"

#include "compat.h"
#include "graph/page/node.h"
#include "graph/page/rows.h"
#include "graph/update/row_pages.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

/* The node whose rows are offered, with memory to work in. */
typedef struct Offer
{
	GraphHandle *handle;
	const QvRowVisitor *visitor;
	uint32		id;
	GraphNode	node;			/* in an image of its page */
	bool		decoded;
	uint8	   *bytes;			/* pdim */
	float	   *x;				/* its vector, if decoded */
} Offer;

/* Offers some rows of the node. */
static void
offer_tids(Offer *o, const ItemPointerData *tids, uint32 n)
{
	const GraphLayout *layout = &o->handle->layout;

	for (uint32 i = 0; i < n; i++)
	{
		if (!o->visitor->wants(o->visitor->arg, &tids[i]))
			continue;
		if (!o->decoded)
		{
			GraphCode	code;

			GraphNodeCode(layout, o->node, &code, o->bytes);
			qv_kernels.decode_u8(code.bytes, code.scale, QvCodeOffset(layout->own_bits), o->x,
								 layout->pdim);
			o->decoded = true;
		}
		o->visitor->take(o->visitor->arg, &tids[i], (QvRowPlace) {.block = o->id},
						 &(QvRowVector) {o->x, o->node->residual, GraphNodeNorm2(o->handle, o->node)});
	}
}

/*
 * Offers the rows in further slots of the node.  If a chain changes meanwhile, the rest of
 * it is left out.
 */
static void
offer_chain(Offer *o)
{
	GraphHandle *handle = o->handle;
	const GraphLayout *layout = &handle->layout;
	ItemPointerData *copy = palloc(layout->tids_per_slot * sizeof(ItemPointerData));
	uint32		steps = 0;

	for (uint32 slot = o->node->overflow; slot != GRAPH_NONE;)
	{
		Buffer		buf = QvReadPage(handle->index, handle->hints, GraphNodeBlock(layout, slot),
									 QV_PAGE_NODES, BUFFER_LOCK_SHARE);
		GraphTids	tids = (GraphTids) GraphPageNode(layout, BufferGetPage(buf),
													 GraphNodeSlot(layout, slot));
		uint32		n = 0;

		slot = GRAPH_NONE;
		if (tids->state == GRAPH_SLOT_TIDS && tids->owner == o->id)
		{
			n = Min(tids->ntids, layout->tids_per_slot);
			memcpy(copy, tids->tids, n * sizeof(ItemPointerData));
			slot = tids->next;
		}
		UnlockReleaseBuffer(buf);
		CHECK_FOR_INTERRUPTS();
		if (++steps > GRAPH_MAX_ID / layout->tids_per_slot)
			GraphReportBrokenChain(handle, o->id);
		offer_tids(o, copy, n);
	}
	pfree(copy);
}

/* Offers the rows of the nodes of a page, of which an image is given. */
static void
offer_page(Offer *o, BlockNumber block, Page page)
{
	const GraphLayout *layout = &o->handle->layout;

	for (uint32 slot = 0; slot < layout->per_page; slot++)
	{
		o->node = GraphPageNode(layout, page, slot);
		if (o->node->state != GRAPH_SLOT_LIVE)
			continue;
		o->id = GraphNodeNumber(layout, block, slot);
		o->decoded = false;
		offer_tids(o, o->node->tids, Min(o->node->ntids, GRAPH_INLINE_TIDS));
		if (o->node->overflow != GRAPH_NONE)
			offer_chain(o);
	}
}

void
GraphVisitRows(void *engine, const QvRowVisitor *visitor)
{
	Offer		offer = {.handle = engine, .visitor = visitor};
	Offer	   *o = &offer;
	BlockNumber nblocks = RelationGetNumberOfBlocks(o->handle->index);
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	PGAlignedBlock image;

	o->bytes = palloc(o->handle->layout.pdim);
	o->x = palloc(o->handle->layout.pdim * sizeof(float));

	for (BlockNumber block = 1; block < nblocks; block++)
	{
		Buffer		buf;

		if (o->handle->building)
			CHECK_FOR_INTERRUPTS();
		else
			QvVacuumDelayPoint();
		buf = QvReadAnyPage(o->handle->index, NULL, block, strategy, BUFFER_LOCK_SHARE);
		memcpy(image.data, BufferGetPage(buf), BLCKSZ);
		UnlockReleaseBuffer(buf);
		if (!PageIsNew((Page) image.data) && QvPageIs((Page) image.data, QV_PAGE_NODES))
			offer_page(o, block, (Page) image.data);
	}
	FreeAccessStrategy(strategy);
	pfree(o->bytes);
	pfree(o->x);
}
