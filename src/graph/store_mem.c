/*
 * store_mem.c
 *		A graph under construction; see store_mem.h.
 */
#include "postgres.h"

#include <sys/mman.h>

#include "graph/select.h"
#include "graph/store_mem.h"
#include "utils/memutils.h"

/* Most bytes of a chunk; fewer when maintenance_work_mem is small. */
#define CHUNK_BYTES (4 * 1024 * 1024)
#define CHUNKS_IN_MEMORY 16

/* The edges of the node that is expanded next. */
static void
mem_prefetch(GraphStore *base, uint32 id)
{
	GraphMem   *mem = (GraphMem *) base;
	const char *node = (const char *) GraphMemGet(mem, id);

	for (Size i = 0; i < mem->payload_offset; i += 64)
		__builtin_prefetch(node + i);
}

void
GraphMemInit(GraphMem *mem, const GraphLayout *layout, Size payload,
			 Size max_memory)
{
	memset(mem, 0, sizeof(*mem));
	mem->base.exact = true;
	mem->base.prefetch = mem_prefetch;
	mem->layout = layout;
	mem->max_edges = layout->degree + GRAPH_MEM_SLACK;
	mem->payload_offset = TYPEALIGN(64, offsetof(GraphMemNode, edges) +
									mem->max_edges * sizeof(Candidate));
	mem->node_size = TYPEALIGN(64, mem->payload_offset + payload);
	mem->chunk_nodes = 1;
	mem->chunk_bytes = Min(CHUNK_BYTES, max_memory / CHUNKS_IN_MEMORY);
	while (mem->chunk_nodes * 2 * mem->node_size <= mem->chunk_bytes)
	{
		mem->chunk_nodes *= 2;
		mem->chunk_shift++;
	}
}

Size
GraphMemNodeCost(const GraphMem *mem, Size value_size)
{
	Size		cost = 0;

	if (mem->count >> mem->chunk_shift == mem->nchunks)
		cost += mem->chunk_nodes * mem->node_size + 64;
	value_size = MAXALIGN(value_size);
	if (mem->separate_values &&
		(mem->values == NULL || mem->values_used + value_size > mem->chunk_bytes))
		cost += Max(mem->chunk_bytes, value_size);
	return cost;
}

static void
add_chunk(GraphMem *mem)
{
	Size		size = mem->chunk_nodes * mem->node_size + 64;
	char	   *chunk;

	if (mem->nchunks % 64 == 0)
	{
		Size		bytes = (mem->nchunks + 64) * sizeof(char *);

		mem->chunks = mem->chunks ? repalloc(mem->chunks, bytes) : palloc(bytes);
	}
	chunk = palloc(size);
#ifdef MADV_HUGEPAGE
	/* random reads over all of it: TLB misses are a good part of the cost */
	{
		Size		huge = 2 * 1024 * 1024;
		char	   *from = (char *) TYPEALIGN(huge, chunk);
		char	   *to = (char *) TYPEALIGN_DOWN(huge, chunk + size);

		if (to > from)
			(void) madvise(from, to - from, MADV_HUGEPAGE);
	}
#endif
	mem->chunks[mem->nchunks++] = (char *) TYPEALIGN(64, chunk);
	mem->memory += size;
}

GraphMemNode *
GraphMemNew(GraphMem *mem, ItemPointer tid)
{
	uint32		id = mem->count;
	GraphMemNode *node;

	if (id >> mem->chunk_shift == mem->nchunks)
		add_chunk(mem);
	mem->count++;
	node = GraphMemGet(mem, id);
	node->list = 0;
	node->duplicates = GRAPH_NONE;
	node->degree = 0;
	node->tid = *tid;
	return node;
}

void
GraphMemAddDuplicate(GraphMem *mem, uint32 id, ItemPointer tid)
{
	GraphMemNode *node = GraphMemGet(mem, id);

	if (mem->nduplicates == mem->max_duplicates)
	{
		uint32		size = Max(1024, mem->max_duplicates * 2);
		Size		bytes = size * sizeof(GraphMemDuplicate);

		mem->duplicates = mem->duplicates ?
			repalloc_huge(mem->duplicates, bytes) :
			MemoryContextAllocHuge(CurrentMemoryContext, bytes);
		mem->memory += bytes - mem->max_duplicates * sizeof(GraphMemDuplicate);
		mem->max_duplicates = size;
	}
	mem->duplicates[mem->nduplicates].tid = *tid;
	mem->duplicates[mem->nduplicates].next = node->duplicates;
	node->duplicates = mem->nduplicates++;
}

void
GraphMemRemoveLast(GraphMem *mem)
{
	mem->count--;
	if (mem->separate_values)
		mem->values_used -= mem->last_value;
}

/* Ascending insertion sort: lists are short and nearly sorted. */
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
	sort_edges(node->edges, node->degree);
	node->degree = GraphSelectNeighbors(node->edges, node->degree,
										mem->layout->degree, mem->pair, mem,
										scratch);
}

void
GraphMemConnect(GraphMem *mem, uint32 id, const Candidate *edges, int n,
				Candidate *scratch)
{
	GraphMemNode *node = GraphMemGet(mem, id);

	node->degree = n;
	memcpy(node->edges, edges, n * sizeof(Candidate));
	for (int i = 0; i < n; i++)
	{
		GraphMemNode *to = GraphMemGet(mem, edges[i].id);

		if (to->degree == mem->max_edges)
			GraphMemShrink(mem, to, scratch);
		to->edges[to->degree].distance = edges[i].distance;
		to->edges[to->degree].id = id;
		to->degree++;
	}
}
