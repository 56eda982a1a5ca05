/*
 * insert.c
 *		Inserting a row into a graph on its pages.
 *
 * One search finds the neighbours and copies their codes; the node is written
 * with its neighbours' codes; then each neighbour is offered the node in
 * return, which changes that neighbour's page alone.  A full neighbour decides
 * by the codes it has beside it, without reading other pages (GraphLinkBack).
 *
 * Locks: the update lock, shared, for the whole insert; then one page at a
 * time (two when the entry table or the index grows: metapage first).  See
 * src/graph/README.md, "Locks".
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "graph/graph.h"
#include "graph/insert.h"
#include "graph/pages.h"
#include "graph/select.h"
#include "storage/indexfsm.h"
#include "storage/lmgr.h"
#include "storage/write.h"
#include "utils/memutils.h"

#define INSERT_ENTRIES 8

/* ---- finding neighbours ---- */

void
GraphNeighborhoodInit(GraphNeighborhood *nb, GraphHandle *handle, uint32 capacity)
{
	nb->handle = handle;
	nb->count = 0;
	nb->capacity = capacity;
	nb->candidates = palloc(capacity * sizeof(Candidate));
	nb->ids = palloc(capacity * sizeof(uint32));
	nb->codes = palloc(capacity * sizeof(GraphCode));
	nb->bytes = MemoryContextAllocHuge(CurrentMemoryContext,
									   (Size) capacity * handle->layout.pdim);
	nb->exclude = GRAPH_NONE;
}

/* A page store's visit callback: copy the node's code. */
static void
copy_code(void *arg, uint32 id, float distance, GraphNode node, const uint8 *code)
{
	GraphNeighborhood *nb = arg;
	uint32		pdim = nb->handle->layout.pdim;
	uint32		i = nb->count;
	uint8	   *to;

	if (i == nb->capacity || id == nb->exclude)
		return;
	to = nb->bytes + (Size) i * pdim;
	memcpy(to, code, pdim);
	nb->codes[i].norm2 = node->norm2;
	nb->codes[i].scale = node->scale;
	nb->codes[i].residual = node->residual;
	nb->codes[i].aux = node->aux;
	nb->codes[i].sum = 0;		/* filled in outside the page lock */
	nb->codes[i].bytes = to;
	nb->ids[i] = id;
	nb->candidates[i].distance = distance;
	nb->candidates[i].id = i;
	nb->count++;
}

static int
compare_candidates(const void *a, const void *b)
{
	float		x = ((const Candidate *) a)->distance;
	float		y = ((const Candidate *) b)->distance;

	return (x > y) - (x < y);
}

void
GraphFindNeighborhood(GraphNeighborhood *nb, GraphQuery *query, uint32 ef,
					  uint32 enter)
{
	GraphPageStore store;
	GraphSearch search;

	GraphPageStoreInit(&store, nb->handle, query);
	store.visit = copy_code;
	store.visit_arg = nb;
	nb->count = 0;
	GraphSearchInit(&search, false, false);
	/* the pool holds a node under several estimates: see pool_size() in scan.c */
	GraphSearchReset(&search, 2 * ef);
	if (enter != GRAPH_NONE)
		GraphSearchOffer(&search, 0, enter);
	GraphPageStoreEnter(&store, &search, INSERT_ENTRIES);
	GraphSearchRun(&search, &store.base);
	for (uint32 i = 0; i < nb->count; i++)
		nb->codes[i].sum = qv_kernels.sum_u8(nb->codes[i].bytes, nb->handle->layout.pdim);
	qsort(nb->candidates, nb->count, sizeof(Candidate), compare_candidates);
}

static float
neighborhood_pair(void *arg, uint32_t a, uint32_t b)
{
	GraphNeighborhood *nb = arg;
	GraphHandle *handle = nb->handle;

	/* search distances of inner product graphs leave out <mean, query> */
	float		d = GraphCodeDistance(&handle->layout, handle->meta.space,
									  handle->mean_norm2, &nb->codes[a], &nb->codes[b]);

	return d;
}

int
GraphChooseNeighbors(GraphNeighborhood *nb, int max)
{
	Candidate  *scratch = palloc(Max(1, nb->count) * sizeof(Candidate));
	int			n = GraphSelectNeighbors(nb->candidates, nb->count, max,
										 neighborhood_pair, nb, scratch);

	pfree(scratch);
	return n;
}

/* ---- rows of a node ---- */

static bool
same_code(const GraphLayout *layout, GraphNode node, const GraphCode *code,
		  uint8 *scratch)
{
	GraphCode	other;

	if (node->norm2 != code->norm2 || node->scale != code->scale)
		return false;
	GraphNodeCode(layout, node, &other, scratch);
	return memcmp(other.bytes, code->bytes, layout->pdim) == 0;
}

/*
 * Find a free slot.  Returns its page pinned and exclusively locked.
 */
static Buffer
alloc_slot(GraphHandle *handle, bool building, uint32 *number)
{
	Relation	index = handle->index;
	const GraphLayout *layout = &handle->layout;
	BlockNumber block = handle->meta.insert_block;

	for (;;)
	{
		Buffer		buf,
					meta_buf;
		GraphMetaData *meta;
		QvWrite		w;

		if (BlockNumberIsValid(block))
		{
			buf = QvReadPage(index, handle->hints, block, QV_PAGE_NODES,
							 BUFFER_LOCK_EXCLUSIVE);
			for (uint32 slot = 0; slot < layout->per_page; slot++)
				if (GraphPageNode(layout, BufferGetPage(buf), slot)->state == GRAPH_SLOT_FREE)
				{
					*number = GraphNodeNumber(layout, block, slot);
					return buf;
				}
			UnlockReleaseBuffer(buf);
		}

		/* another page: one that vacuum freed, or a new one */
		meta_buf = QvReadPage(index, handle->hints, GRAPH_META_BLOCK, QV_PAGE_META,
							  BUFFER_LOCK_EXCLUSIVE);
		meta = GraphPageMeta(index, BufferGetPage(meta_buf));
		if (meta->insert_block != block)
		{
			/* somebody found one */
			block = meta->insert_block;
			UnlockReleaseBuffer(meta_buf);
			continue;
		}
		block = building ? InvalidBlockNumber : GetFreeIndexPage(index);
		if (BlockNumberIsValid(block) && block < RelationGetNumberOfBlocks(index))
			buf = InvalidBuffer;
		else
		{
			buf = QvNewPage(index, MAIN_FORKNUM);
			block = BufferGetBlockNumber(buf);
			if (GraphNodeNumber(layout, (uint64) block + 1, 0) > (uint64) POOL_MAX_ID ||
				(uint64) (block + 1) * layout->per_page > POOL_MAX_ID)
				ereport(ERROR,
						(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						 errmsg("index \"%s\" has too many nodes",
								RelationGetRelationName(index))));
		}
		QvWriteBegin(&w, index, building);
		meta = (GraphMetaData *) QvPageGetData(QvWriteRegister(&w, meta_buf));
		meta->insert_block = block;
		if (BufferIsValid(buf))
			QvWriteRegisterNew(&w, buf, QV_PAGE_NODES);
		QvWriteCommit(&w);
		if (BufferIsValid(buf))
			UnlockReleaseBuffer(buf);
		UnlockReleaseBuffer(meta_buf);
	}
}

/*
 * Try to give an existing node one more row.  Returns false when the node is
 * no longer there or no longer has this code.
 */
static bool
add_row(GraphHandle *handle, uint32 id, const GraphCode *code, ItemPointer tid,
		uint8 *scratch, bool building)
{
	const GraphLayout *layout = &handle->layout;
	Relation	index = handle->index;
	GraphNode	node;
	Buffer		buf;
	QvWrite		w;
	Page		page;
	uint32		head,
				next,
				added;
	GraphTids	tids;

	buf = GraphLockNode(handle, id, BUFFER_LOCK_EXCLUSIVE, &node);
	if (node == NULL || node->state != GRAPH_SLOT_LIVE ||
		!same_code(layout, node, code, scratch))
	{
		UnlockReleaseBuffer(buf);
		return false;
	}
	if (node->ntids < GRAPH_INLINE_TIDS)
	{
		QvWriteBegin(&w, index, building);
		page = QvWriteRegister(&w, buf);
		node = GraphPageNode(layout, page, GraphNodeSlot(layout, id));
		node->tids[node->ntids++] = *tid;
		QvWriteCommit(&w);
		UnlockReleaseBuffer(buf);
		return true;
	}
	head = node->overflow;
	UnlockReleaseBuffer(buf);

	/* a slot of the chain with room: the newest is first */
	for (next = head; next != GRAPH_NONE;)
	{
		buf = QvReadPage(index, handle->hints, GraphNodeBlock(layout, next),
						 QV_PAGE_NODES, BUFFER_LOCK_EXCLUSIVE);
		tids = (GraphTids) GraphPageNode(layout, BufferGetPage(buf),
										 GraphNodeSlot(layout, next));
		if (tids->state != GRAPH_SLOT_TIDS || tids->owner != id)
		{
			UnlockReleaseBuffer(buf);
			return false;
		}
		if (tids->ntids < layout->tids_per_slot)
		{
			QvWriteBegin(&w, index, building);
			page = QvWriteRegister(&w, buf);
			tids = (GraphTids) GraphPageNode(layout, page, GraphNodeSlot(layout, next));
			tids->tids[tids->ntids++] = *tid;
			QvWriteCommit(&w);
			UnlockReleaseBuffer(buf);
			return true;
		}
		next = tids->next;
		UnlockReleaseBuffer(buf);
	}

	/* a new one, linked in afterwards: until then nobody sees it */
	buf = alloc_slot(handle, building, &added);
	QvWriteBegin(&w, index, building);
	page = QvWriteRegister(&w, buf);
	tids = (GraphTids) GraphPageNode(layout, page, GraphNodeSlot(layout, added));
	memset(tids, 0, layout->node_size);
	tids->state = GRAPH_SLOT_TIDS;
	tids->owner = id;
	tids->next = head;
	tids->tids[tids->ntids++] = *tid;
	QvWriteCommit(&w);
	UnlockReleaseBuffer(buf);

	buf = GraphLockNode(handle, id, BUFFER_LOCK_EXCLUSIVE, &node);
	if (node != NULL && node->state == GRAPH_SLOT_LIVE && node->overflow == head)
	{
		QvWriteBegin(&w, index, building);
		page = QvWriteRegister(&w, buf);
		GraphPageNode(layout, page, GraphNodeSlot(layout, id))->overflow = added;
		QvWriteCommit(&w);
		UnlockReleaseBuffer(buf);
		return true;
	}
	UnlockReleaseBuffer(buf);

	/* somebody else linked one in meanwhile: give ours back */
	buf = QvReadPage(index, handle->hints, GraphNodeBlock(layout, added),
					 QV_PAGE_NODES, BUFFER_LOCK_EXCLUSIVE);
	QvWriteBegin(&w, index, building);
	page = QvWriteRegister(&w, buf);
	memset(GraphPageNode(layout, page, GraphNodeSlot(layout, added)), 0,
		   layout->node_size);
	QvWriteCommit(&w);
	UnlockReleaseBuffer(buf);
	return false;
}

void
GraphEncodeNeighbors(GraphNeighborhood *nb, const GraphCode *code, int n,
					 GraphEdge *edges, uint8 *bits)
{
	const GraphLayout *layout = &nb->handle->layout;
	Size		stride = layout->code_bits / 8;
	float	   *decoded = palloc(layout->pdim * sizeof(float));

	qv_kernels.decode_u8(code->bytes, code->scale, QvCodeOffset(layout->own_bits),
						 decoded, layout->pdim);
	for (int i = 0; i < n; i++)
	{
		uint32		at = nb->candidates[i].id;

		GraphEncodeEdge(layout, nb->handle->meta.space, code, decoded,
						&nb->codes[at], nb->ids[at], &edges[i], bits + i * stride);
	}
	pfree(decoded);
}

/* ---- the insert ---- */

void
GraphInsertRotated(Relation index, const float *rotated, ItemPointer tid,
				   bool building)
{
	GraphHandle *handle = GraphOpen(index);
	const GraphLayout *layout = &handle->layout;
	uint32		ef = handle->meta.ef_construction;
	GraphNeighborhood nb;
	GraphQuery	query;
	GraphCode	code;
	GraphEdge	edges[GRAPH_MAX_SLOTS];
	uint8	   *bits = palloc((Size) layout->slots * layout->code_bits / 8);
	uint8	   *bytes = palloc(layout->pdim);
	uint8	   *scratch = palloc(layout->pdim);
	float	   *centred = palloc(layout->pdim * sizeof(float));
	uint32		id;
	int			n;
	Buffer		buf;
	QvWrite		w;
	GraphNode	node;

	for (uint32 i = 0; i < layout->pdim; i++)
		centred[i] = rotated[i] - handle->mean[i];
	GraphEncode(layout, centred, handle->mean, &code, bytes);
	GraphQueryInit(handle, &query, rotated);

	GraphNeighborhoodInit(&nb, handle, 2 * ef);
	GraphFindNeighborhood(&nb, &query, ef, GRAPH_NONE);

	for (uint32 i = 0; i < Min(nb.count, 8); i++)
	{
		uint32		at = nb.candidates[i].id;

		if (nb.codes[at].norm2 == code.norm2 && nb.codes[at].scale == code.scale &&
			memcmp(nb.codes[at].bytes, bytes, layout->pdim) == 0 &&
			add_row(handle, nb.ids[at], &code, tid, scratch, building))
			return;
	}

	/* the pairwise distances of inner product graphs are whole ones */
	for (uint32 i = 0; i < nb.count; i++)
		nb.candidates[i].distance += query.offset;
	n = GraphChooseNeighbors(&nb, layout->slots);
	GraphEncodeNeighbors(&nb, &code, n, edges, bits);

	buf = alloc_slot(handle, building, &id);
	QvWriteBegin(&w, index, building);
	node = GraphPageNode(layout, QvWriteRegister(&w, buf), GraphNodeSlot(layout, id));
	GraphNodeInit(layout, node, &code);
	GraphNodeSetEdges(layout, node, edges, bits, n);
	node->tids[node->ntids++] = *tid;
	QvWriteCommit(&w);
	UnlockReleaseBuffer(buf);

	GraphLinkAllBack(&nb, &query, n, id, &code, building);

	/*
	 * Keep the entry table at about 2 sqrt(n) entries: adding with probability
	 * 2 / entries makes it so (the derivative of 2 sqrt(n) is 2 / (2 sqrt(n))).
	 * A node without neighbours is the start of a graph.
	 */
	if (n == 0 || handle->meta.route_count == 0 ||
		pg_prng_double(&pg_global_prng_state) < 2.0 / handle->meta.route_count)
		GraphAddRoute(index, id, centred, building);
}

void
GraphInsert(Relation index, const QvOpclassInfo *opclass, const void *value,
			ItemPointer tid)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver insert",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GraphHandle *handle;
	float	   *floats;
	float	   *rotated;
	int			dims = opclass->type->dims(value);

	/* inserts share this lock; vacuum takes it to wait for those under way */
	LockPage(index, GRAPH_UPDATE_LOCK, ShareLock);
	handle = GraphOpen(index);
	if (dims != handle->meta.dims)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_EXCEPTION),
				 errmsg("expected %d dimensions, not %d", handle->meta.dims, dims)));
	floats = palloc(dims * sizeof(float));
	rotated = palloc(handle->meta.pdim * sizeof(float));
	opclass->type->to_float(value, floats);
	if (GraphRotate(handle, floats, rotated))
		GraphInsertRotated(index, rotated, tid, false);
	UnlockPage(index, GRAPH_UPDATE_LOCK, ShareLock);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
