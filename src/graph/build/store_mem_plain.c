/*
 * store_mem_plain.c
 *		A plain graph under construction: nodes are compared by their values.
 *
 * Values are in the nodes if the column fixes their size.  Otherwise they are apart, and
 * the node has their place.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "graph/build/store_mem_plain.h"
#include "graph/page/node_value.h"

/* Bytes of a value that are prefetched. */
#define PREFETCH_VALUE 512

static void
prefetch_node(const GraphMem *mem, const GraphMemNode *node)
{
	const char *payload = GraphMemPayload(mem, node);

	for (Size i = 0; i < Min(mem->payload_size, PREFETCH_VALUE); i += 64)
		__builtin_prefetch(payload + i);
}

static inline float
distance(const GraphMem *mem, const GraphMemNode *a, const GraphMemNode *b)
{
	return GraphExactDistance(mem->opclass, GraphMemValue(mem, a), GraphMemValue(mem, b));
}

static inline float
mem_plain_pair(void *arg, uint32_t a, uint32_t b)
{
	const GraphMem *mem = arg;

	return distance(mem, GraphMemGet(mem, a), GraphMemGet(mem, b));
}

static int
mem_plain_select(Candidate *candidates, int n, int max, GraphMem *mem, Candidate *scratch,
				 int *chosen)
{
	return GraphSelect(candidates, n, max, mem_plain_pair, mem, scratch, chosen);
}

static void
mem_plain_expand(GraphStore *base, GraphSearch *search, uint32 id, float offered)
{
	GraphMemExpand((GraphMem *) base, search, id, distance, prefetch_node);
}

static bool
mem_plain_same(const GraphMem *mem, const GraphMemNode *a, const GraphMemNode *b)
{
	const void *x = GraphMemValue(mem, a);
	const void *y = GraphMemValue(mem, b);
	Size		size = mem->opclass->type->value_size(x);

	return size == mem->opclass->type->value_size(y) && memcmp(x, y, size) == 0;
}

Size
GraphMemPlainPayload(const QvOpclassInfo *opclass, int dims)
{
	Size		size = opclass->type->fixed_size(dims);

	return size > 0 ? size : sizeof(GraphMemValueRef);
}

void
GraphMemInitPlain(GraphMem *mem, const GraphHandle *handle, GraphMemBudget *budget, bool shared,
				  double rows)
{
	const QvOpclassInfo *opclass = &handle->space.opclass;

	GraphMemInit(mem, &handle->layout, GraphMemPlainPayload(opclass, handle->meta.dims), budget,
				 shared, rows);
	mem->base.expand = mem_plain_expand;
	mem->pair = mem_plain_pair;
	mem->select = mem_plain_select;
	mem->same = mem_plain_same;
	mem->opclass = opclass;
	mem->separate_values = opclass->type->fixed_size(handle->meta.dims) == 0;
}

/*
 * Values outside the nodes have larger chunks as they become more, since nobody knows how large
 * they will be.
 */
#define MORE_BYTES_AFTER 1024
#define MOST_BYTES ((Size) 1024 * 1024 * 1024)

/* Returns memory for a value outside the nodes. */
static void *
separate_value(GraphMem *mem, Size size, GraphMemValueRef *ref)
{
	GraphChunks *chunks = &mem->values;
	GraphChunkTable *table = chunks->table;

	size = MAXALIGN(size);
	/* the rest of the last chunk is lost */
	if (chunks->current == GRAPH_NO_CHUNK ||
		table->chunks[chunks->current].used + size > table->chunks[chunks->current].bytes)
		GraphChunksAdd(chunks, Max(Min(mem->chunk_bytes << (table->count / MORE_BYTES_AFTER), MOST_BYTES), size));
	ref->chunk = chunks->current;
	ref->offset = table->chunks[chunks->current].used;
	table->chunks[chunks->current].used += size;
	return chunks->at[ref->chunk] + ref->offset;
}

GraphMemNode *
GraphMemAddValue(GraphMem *mem, const void *value, ItemPointer tid)
{
	Size		size = mem->opclass->type->value_size(value);
	GraphMemNode *node = GraphMemNew(mem, tid);
	void	   *payload = GraphMemPayload(mem, node);

	if (mem->separate_values)
		payload = separate_value(mem, size, (GraphMemValueRef *) payload);
	memcpy(payload, value, size);
	GraphMemLoadedOf(node)->hash = hash_bytes_extended(payload, size, 0);
	return node;
}
