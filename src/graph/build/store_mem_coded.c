/*
 * store_mem_coded.c
 *		A coded graph under construction: nodes are compared by their codes.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "graph/build/store_mem_coded.h"

#define GraphMemCode(mem, node) ((uint8 *) GraphMemPayload(mem, node))

/* Bytes of a code that are prefetched. */
#define PREFETCH_CODE 768

static void
prefetch_node(const GraphMem *mem, const GraphMemNode *node)
{
	const char *code = (const char *) GraphMemCode(mem, node);
	uint32		bytes = mem->layout->pdim + GRAPH_MEM_FACTORS;

	/* the hardware prefetcher reads the rest */
	for (uint32 i = 0; i < Min(bytes, PREFETCH_CODE); i += 64)
		__builtin_prefetch(code + i);
	if (bytes > PREFETCH_CODE)
		__builtin_prefetch(node);
}

static inline float
distance(const GraphMem *mem, const GraphMemNode *a, const GraphMemNode *b)
{
	float		ip = QvCodePairIp(GraphMemCode(mem, a), a->scale, a->sum,
								  GraphMemCode(mem, b), b->scale, b->sum,
								  mem->layout->pdim, mem->layout->own_bits);

	if (mem->space == QV_SPACE_L2)
		return a->norm2 + b->norm2 - 2 * ip;
	return -(ip + a->aux + b->aux + mem->mean_norm2);
}

static inline float
mem_coded_pair(void *arg, uint32_t a, uint32_t b)
{
	const GraphMem *mem = arg;

	return distance(mem, GraphMemGet(mem, a), GraphMemGet(mem, b));
}

static int
mem_coded_select(Candidate *candidates, int n, int max, GraphMem *mem, Candidate *scratch,
				 int *chosen)
{
	for (int i = 0; i < n; i++)
		prefetch_node(mem, GraphMemGet(mem, candidates[i].id & ~GRAPH_AGREED));
	return GraphSelect(candidates, n, max, mem_coded_pair, mem, scratch, chosen);
}

static void
mem_coded_expand(GraphStore *base, GraphSearch *search, uint32 id, float offered)
{
	GraphMemExpand((GraphMem *) base, search, id, distance, prefetch_node);
}

static bool
mem_coded_same(const GraphMem *mem, const GraphMemNode *x, const GraphMemNode *y)
{
	return x->sum == y->sum && x->scale == y->scale && x->norm2 == y->norm2 &&
		memcmp(GraphMemCode(mem, x), GraphMemCode(mem, y), mem->layout->pdim) == 0;
}

void
GraphMemInitCoded(GraphMem *mem, const GraphHandle *handle, GraphMemBudget *budget, bool shared,
				  double rows)
{
	GraphMemInit(mem, &handle->layout, handle->layout.pdim, budget, shared, rows);
	mem->base.expand = mem_coded_expand;
	mem->pair = mem_coded_pair;
	mem->select = mem_coded_select;
	mem->same = mem_coded_same;
	mem->space = handle->meta.space;
	mem->mean_norm2 = handle->space.mean_norm2;
}

GraphMemNode *
GraphMemAdd(GraphMem *mem, const GraphCode *code, ItemPointer tid)
{
	GraphMemNode *node = GraphMemNew(mem, tid);

	node->norm2 = code->norm2;
	node->scale = code->scale;
	node->residual = code->residual;
	node->aux = code->aux;
	node->sum = code->sum;
	memcpy(GraphMemCode(mem, node), code->bytes, mem->layout->pdim);
	/* hash of what mem_coded_same() compares */
	GraphMemLoadedOf(node)->hash =
		hash_bytes_extended(code->bytes, mem->layout->pdim,
							hash_bytes_extended((const unsigned char *) &node->norm2,
												2 * sizeof(float), 0));
	return node;
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
