/*
 * store_mem.c
 *		A coded graph under construction; see store_mem.h.
 */
#include "postgres.h"

#include <sys/mman.h>

#include "graph/select.h"
#include "graph/store_mem.h"
#include "utils/memutils.h"

/* About the size of a chunk: small against any maintenance_work_mem. */
#define CHUNK_BYTES (4 * 1024 * 1024)

/* Bytes of a code to ask for ahead of its distance. */
#define PREFETCH_CODE 768

static void
prefetch_node(const GraphMem *mem, const GraphMemNode *node)
{
	const char *code = (const char *) GraphMemCode(mem, node);

	__builtin_prefetch(node);
	/* the rest follows by the hardware prefetcher */
	for (uint32 i = 0; i < Min(mem->layout->pdim, PREFETCH_CODE); i += 64)
		__builtin_prefetch(code + i);
}

/* The edges of the node that is expanded next. */
static void
prefetch_edges(GraphStore *base, uint32 id)
{
	GraphMem   *mem = (GraphMem *) base;
	const char *node = (const char *) GraphMemGet(mem, id);

	for (Size i = 0; i < mem->code_offset; i += 64)
		__builtin_prefetch(node + i);
}

static void
expand(GraphStore *base, GraphSearch *search, uint32 id)
{
	GraphMem   *mem = (GraphMem *) base;
	GraphMemNode *node = GraphMemGet(mem, id);
	uint32		ids[GRAPH_MAX_SLOTS + GRAPH_MEM_SLACK];
	int			n = 0;

	/* all prefetches first: their misses overlap */
	for (int i = 0; i < node->degree; i++)
		if (!IdSetHas(&search->seen, node->edges[i].id))
		{
			ids[n++] = node->edges[i].id;
			prefetch_node(mem, GraphMemGet(mem, node->edges[i].id));
		}
	for (int i = 0; i < n; i++)
		GraphSearchOffer(search,
						 GraphMemDistance(mem, mem->query, GraphMemGet(mem, ids[i])),
						 ids[i]);
}

void
GraphMemInit(GraphMem *mem, const GraphLayout *layout, GraphSpace space,
			 float mean_norm2)
{
	memset(mem, 0, sizeof(*mem));
	mem->base.expand = expand;
	mem->base.prefetch = prefetch_edges;
	mem->layout = layout;
	mem->space = space;
	mem->mean_norm2 = mean_norm2;
	mem->max_edges = layout->slots + GRAPH_MEM_SLACK;
	mem->code_offset = TYPEALIGN(64, offsetof(GraphMemNode, edges) +
								 mem->max_edges * sizeof(Candidate));
	mem->node_size = TYPEALIGN(64, mem->code_offset + layout->pdim);
	mem->chunk_nodes = 1;
	while (mem->chunk_nodes * 2 * mem->node_size <= CHUNK_BYTES)
	{
		mem->chunk_nodes *= 2;
		mem->chunk_shift++;
	}
}

Size
GraphMemNodeCost(const GraphMem *mem)
{
	return mem->count >> mem->chunk_shift == mem->nchunks ?
		mem->chunk_nodes * mem->node_size + 64 : 0;
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

uint32
GraphMemAdd(GraphMem *mem, const GraphCode *code, ItemPointer tid)
{
	uint32		id = mem->count;
	GraphMemNode *node;

	if (id >> mem->chunk_shift == mem->nchunks)
		add_chunk(mem);
	mem->count++;
	node = GraphMemGet(mem, id);
	node->norm2 = code->norm2;
	node->scale = code->scale;
	node->residual = code->residual;
	node->aux = code->aux;
	node->sum = code->sum;
	node->list = 0;
	node->duplicates = GRAPH_NONE;
	node->degree = 0;
	node->tid = *tid;
	memcpy(GraphMemCode(mem, node), code->bytes, mem->layout->pdim);
	return id;
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
GraphMemGetCode(const GraphMem *mem, const GraphMemNode *node, GraphCode *code)
{
	code->norm2 = node->norm2;
	code->scale = node->scale;
	code->residual = node->residual;
	code->aux = node->aux;
	code->sum = node->sum;
	code->bytes = GraphMemCode(mem, node);
}

void
GraphMemRemoveLast(GraphMem *mem)
{
	mem->count--;
}

float
GraphMemDistance(const GraphMem *mem, const GraphMemNode *a,
				 const GraphMemNode *b)
{
	float		ip = QvCodePairIp(GraphMemCode(mem, a), a->scale, a->sum,
								  GraphMemCode(mem, b), b->scale, b->sum,
								  mem->layout->pdim, mem->layout->own_bits);

	if (mem->space == GRAPH_SPACE_L2)
		return a->norm2 + b->norm2 - 2 * ip;
	return -(ip + a->aux + b->aux + mem->mean_norm2);
}

float
GraphMemPair(void *arg, uint32_t a, uint32_t b)
{
	const GraphMem *mem = arg;

	return GraphMemDistance(mem, GraphMemGet(mem, a), GraphMemGet(mem, b));
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
	if (node->degree <= mem->layout->slots)
		return;
	sort_edges(node->edges, node->degree);
	node->degree = GraphSelectNeighbors(node->edges, node->degree,
										mem->layout->slots, GraphMemPair, mem,
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
