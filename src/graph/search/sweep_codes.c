/*
 * sweep_codes.c
 *		Measuring a set's rows by codes in memory, and the nodes that may be nearest; see
 *		sweep_codes.h.
 */
#include "postgres.h"

#include "graph/page/cache.h"
#include "graph/search/sweep_codes.h"
#include "graph/search/sweep_known.h"
#include "storage/bufmgr.h"

/* What a search of members asks for nodes. */
typedef struct NodeReader
{
	GraphHandle *handle;
	GraphStore *store;
	QvScanCounters *counters;
} NodeReader;

/* Where a member's node has a part of its slot. */
static Size
place_on_page(const GraphLayout *layout, const QvMember *member, Size offset)
{
	return QV_PAGE_START + (Size) GraphNodeSlot(layout, member->number) * layout->node_size + offset;
}

static void
prefetch_member(void *arg, const QvMember *member)
{
	const GraphHandle *handle = ((NodeReader *) arg)->handle;
	const GraphLayout *layout = &handle->layout;
	BlockNumber block = GraphNodeBlock(layout, member->number);

	QvPrefetchPin(handle->hints, block);
	QvPrefetchPage(handle->hints, block, place_on_page(layout, member, 0), sizeof(GraphNodeData));
	QvPrefetchPage(handle->hints, block, place_on_page(layout, member, layout->own), layout->own_bytes);
}

/* Measure the node of a member; false when it has the row no more, in its own slot. */
static bool
measure_member(void *arg, const QvMember *member, QvMeasured *measured)
{
	NodeReader *reader = arg;
	const GraphLayout *layout = &reader->handle->layout;
	GraphResult result;
	BlockNumber block = GraphNodeBlock(layout, member->number);
	Buffer		buf = QvReadPassedPage(reader->handle->index, reader->handle->hints, block, NULL, BUFFER_LOCK_SHARE);
	GraphNode	node = GraphPageNode(layout, BufferGetPage(buf), GraphNodeSlot(layout, member->number));
	bool		found = false;

	QvPageCheck(reader->handle->index, block, BufferGetPage(buf), QV_PAGE_NODES);
	reader->counters->nodes++;
	if (node->state == GRAPH_SLOT_LIVE)
		for (int i = 0; i < Min(node->ntids, GRAPH_INLINE_TIDS) && !found; i++)
			found = ItemPointerEquals(&node->tids[i], (ItemPointer) &member->tid);
	if (found)
	{
		reader->store->measure(reader->store, node, &result);
		measured->distance = result.distance;
		measured->error = result.error;
	}
	UnlockReleaseBuffer(buf);
	return found;
}

bool
GraphSweepByCodes(GraphHandle *handle, const GraphSweepParams *params, Size max_memory,
				  QvMemberSearch *search)
{
	GraphTidMap *known = GraphKnownFor(handle, params->only);
	NodeReader *reader;
	QvKnownUse	use = {0};

	if (known == NULL || known->rows.codes.codes == NULL ||
		params->only->members > Min(max_memory / QV_MEMBER_BYTES, PG_INT32_MAX) ||
		(!params->known_only && GraphIsMapWanted(known, &use)))
		return false;
	reader = palloc(sizeof(NodeReader));
	reader->handle = handle;
	reader->store = &params->store->base;
	reader->counters = params->counters;
	memset(search, 0, sizeof(*search));
	search->measure = measure_member;
	search->prefetch = prefetch_member;
	search->arg = reader;
	search->counters = params->counters;
	search->certainty = params->certainty;
	if (!QvMemberSearchStart(search, &known->rows, params->only, &params->store->query->base, &use))
		return false;
	QvKnownNoteUse(&known->rows, &use);
	GraphForgetSpent(handle);
	QvRelCachePinPartHere(&known->part);
	return true;
}
