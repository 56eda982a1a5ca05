/*
 * store_mem.c
 *		A graph under construction; see store_mem.h.
 */
#include "postgres.h"

#include "graph/build/store_mem.h"
#include "graph/walk/select.h"

/*
 * Size of a chunk: this part of the whole graph, but at least LEAST_CHUNK bytes, and at
 * most this part of the memory.  A graph has MOST_CHUNKS at most.
 */
#define CHUNKS_IN_GRAPH 64
#define LEAST_CHUNK (1024 * 1024)
#define CHUNKS_IN_MEMORY 16
#define MOST_CHUNKS 1024

/*
 * Bytes beside each node: its place in the order of insertion, the head of its list of
 * links (connect.c), its share of the links' memory, and what the leader sorts by.  Later,
 * in the memory of that, a byte of each participant (GraphMem.seen).
 */
#define BESIDE_NODE (8 * sizeof(uint32))

/* Prefetches the edges of the node that is expanded next. */
static void
mem_prefetch(GraphStore *base, uint32 id)
{
	GraphMem   *mem = (GraphMem *) base;
	const char *node = (const char *) GraphMemGet(mem, id);

	for (const char *at = (const char *) TYPEALIGN_DOWN(64, node); at < node + mem->edges_end; at += 64)
		__builtin_prefetch(at);
}

static Size
edges_end(const GraphLayout *layout)
{
	return offsetof(GraphMemNode, edges) +
		(layout->degree + GRAPH_MEM_SLACK) * sizeof(Candidate);
}

static Size
node_size(const GraphLayout *layout, Size payload)
{
	return TYPEALIGN(64, MAXALIGN(payload) + edges_end(layout));
}

static Size
chunk_size(double graph, Size max_memory)
{
	return Max(Min(Max(graph / CHUNKS_IN_GRAPH, LEAST_CHUNK), max_memory / CHUNKS_IN_MEMORY),
			   graph / MOST_CHUNKS);
}

void
GraphMemInit(GraphMem *mem, const GraphLayout *layout, Size payload, GraphMemBudget *budget,
			 bool shared, double rows)
{
	memset(mem, 0, sizeof(*mem));
	mem->base.exact = true;
	mem->base.prefetch = mem_prefetch;
	mem->layout = layout;
	mem->max_edges = layout->degree + GRAPH_MEM_SLACK;
	mem->payload_room = MAXALIGN(payload);
	mem->payload_size = payload;
	mem->edges_end = edges_end(layout);
	mem->node_size = node_size(layout, payload);
	mem->chunk_nodes = 1;
	mem->chunk_bytes = chunk_size(rows * mem->node_size, budget->max_bytes);
	while (mem->chunk_nodes * 2 * mem->node_size <= mem->chunk_bytes)
	{
		mem->chunk_nodes *= 2;
		mem->chunk_shift++;
	}
	budget->beside = mem->chunk_nodes * BESIDE_NODE;
	GraphChunksInit(&mem->nodes, budget, &budget->nodes, shared);
	GraphChunksInit(&mem->values, budget, &budget->values, shared);
}

double
GraphMemEstimate(const GraphLayout *layout, Size payload, Size value_size, double rows)
{
	double		graph = rows * (node_size(layout, payload) + MAXALIGN(value_size));

	/* the last chunk of each participant is not full */
	return graph + rows * BESIDE_NODE +
		4 * Min(Max(graph / CHUNKS_IN_GRAPH, LEAST_CHUNK), graph / (CHUNKS_IN_MEMORY - 4));
}

void *
GraphMemRoom(const GraphMem *mem, QvRoom *room, Size size)
{
	return QvRoomMake(room, size, mem->nodes.budget->full ? 0 : MaxAllocHugeSize);
}

Size
GraphMemNodesShare(const GraphLayout *layout, Size payload, Size max_memory)
{
	Size		size = node_size(layout, payload);

	return max_memory * ((double) size / (size + BESIDE_NODE));
}

GraphMemNode *
GraphMemNew(GraphMem *mem, ItemPointer tid)
{
	GraphChunks *chunks = &mem->nodes;
	GraphMemNode *node;

	if (chunks->current == GRAPH_NO_CHUNK ||
		chunks->table->chunks[chunks->current].used == mem->chunk_nodes)
		GraphChunksAdd(chunks, mem->chunk_nodes * mem->node_size);
	node = GraphMemNodeAt(mem, chunks->at[chunks->current] +
						  chunks->table->chunks[chunks->current].used++ * mem->node_size);
	node->list = 0;
	node->duplicates = GRAPH_NONE;
	node->degree = 0;
	node->chosen = 0;
	node->tid = *tid;
	node->overflow = GRAPH_NONE;
	GraphMemLoadedOf(node)->nlists = 0;
	GraphMemLoadedOf(node)->to_centroid = 0;
	GraphMemLoadedOf(node)->ip = 0;
	return node;
}

void
GraphMemMove(const GraphMem *mem, GraphMemNode *to, const GraphMemNode *from)
{
	memcpy(to, from, offsetof(GraphMemNode, edges) + sizeof(GraphMemLoaded));
	memcpy(GraphMemPayload(mem, to), GraphMemPayload(mem, from), mem->payload_size);
}

void
GraphMemSearch(GraphMem *mem, GraphSearch *search, uint32 id, uint32 ef, const uint32 *entries,
			   int nentries)
{
	if (mem->seen == NULL)
		mem->seen = memset(GraphMemRoom(mem, &mem->seen_room, mem->count), 0, mem->count);
	if (++mem->number == 0)
	{
		memset(mem->seen, 0, mem->count);
		mem->number = 1;
	}
	mem->query = GraphMemGet(mem, id);
	GraphSearchReset(search, ef);
	for (int i = 0; i < nentries; i++)
		if (GraphMemSee(mem, entries[i]))
			(void) PoolInsert(&search->pool, mem->pair(mem, id, entries[i]), entries[i], NULL);
	GraphSearchRun(search, &mem->base);
}

/* Sorts edges by insertion, ascending: lists are short and nearly sorted. */
static void
sort_edges(Candidate *edges, int n)
{
	for (int i = 1; i < n; i++)
	{
		Candidate	e = edges[i];
		int			j = i;

		for (; j > 0 && edges[j - 1].distance > e.distance; j--)
			edges[j] = edges[j - 1];
		edges[j] = e;
	}
}

void
GraphMemShrink(GraphMem *mem, GraphMemNode *node, Candidate *scratch)
{
	if (node->degree <= mem->layout->degree)
		return;
	for (int i = 0; i < node->chosen; i++)
		node->edges[i].id |= GRAPH_AGREED;
	sort_edges(node->edges, node->degree);
	GraphMemChoose(mem, node, node->edges, node->degree, scratch);
}

void
GraphMemChoose(GraphMem *mem, GraphMemNode *node, Candidate *candidates, int n, Candidate *scratch)
{
	int			chosen;

	node->degree = mem->select(candidates, n, mem->layout->degree, mem, scratch, &chosen);
	node->chosen = chosen;
	if (candidates != node->edges)
		memcpy(node->edges, candidates, node->degree * sizeof(Candidate));
}

void
GraphMemAddEdge(GraphMem *mem, GraphMemNode *node, Candidate edge, Candidate *scratch)
{
	if (node->degree == mem->max_edges)
		GraphMemShrink(mem, node, scratch);
	node->edges[node->degree++] = edge;
}
