/*
 * store_mem_plain.c
 *		A plain graph under construction: nodes compared by their values.
 *
 * Values of a type whose size the column fixes are in the nodes; others are
 * apart, with a pointer in the node.
 */
#include "postgres.h"

#include "graph/node_value.h"
#include "graph/store_mem_plain.h"

/* Bytes of a value to ask for ahead of its distance. */
#define PREFETCH_VALUE 512

static void
prefetch_node(const GraphMem *mem, const GraphMemNode *node)
{
	const char *payload = (const char *) node + mem->payload_offset;

	for (Size i = 0; i < Min(mem->node_size - mem->payload_offset, PREFETCH_VALUE); i += 64)
		__builtin_prefetch(payload + i);
}

static inline float
distance(const GraphMem *mem, const GraphMemNode *a, const GraphMemNode *b)
{
	return GraphExactDistance(mem->opclass, GraphMemValue(mem, a), GraphMemValue(mem, b));
}

static float
mem_plain_pair(void *arg, uint32_t a, uint32_t b)
{
	const GraphMem *mem = arg;

	return distance(mem, GraphMemGet(mem, a), GraphMemGet(mem, b));
}

static void
mem_plain_expand(GraphStore *base, GraphSearch *search, uint32 id, float offered)
{
	GraphMemExpand((GraphMem *) base, search, id, distance, prefetch_node);
}

static bool
mem_plain_same(const GraphMem *mem, uint32 a, uint32 b)
{
	const void *x = GraphMemValue(mem, GraphMemGet(mem, a));
	const void *y = GraphMemValue(mem, GraphMemGet(mem, b));
	Size		size = mem->opclass->type->value_size(x);

	return size == mem->opclass->type->value_size(y) && memcmp(x, y, size) == 0;
}

void
GraphMemInitPlain(GraphMem *mem, const GraphHandle *handle, Size max_memory)
{
	const QvOpclassInfo *opclass = &handle->space.opclass;
	Size		size = opclass->type->fixed_size(handle->meta.dims);

	GraphMemInit(mem, &handle->layout, size > 0 ? size : sizeof(void *), max_memory);
	mem->base.expand = mem_plain_expand;
	mem->pair = mem_plain_pair;
	mem->same = mem_plain_same;
	mem->opclass = opclass;
	mem->separate_values = size == 0;
}

/* Room for a value outside the nodes. */
static void *
separate_value(GraphMem *mem, Size size)
{
	void	   *value;

	if (mem->values == NULL || mem->values_used + size > mem->chunk_bytes)
	{
		/* the rest of the last chunk is lost */
		Size		bytes = Max(mem->chunk_bytes, size);

		mem->values = MemoryContextAllocHuge(CurrentMemoryContext, bytes);
		mem->values_used = 0;
		mem->memory += bytes;
	}
	value = mem->values + mem->values_used;
	mem->values_used += size;
	return value;
}

uint32
GraphMemAddValue(GraphMem *mem, const void *value, ItemPointer tid)
{
	Size		size = mem->opclass->type->value_size(value);
	GraphMemNode *node = GraphMemNew(mem, tid);
	void	   *payload = (char *) node + mem->payload_offset;

	if (mem->separate_values)
	{
		void	   *copy = separate_value(mem, MAXALIGN(size));

		mem->last_value = MAXALIGN(size);
		memcpy(payload, &copy, sizeof(copy));
		payload = copy;
	}
	memcpy(payload, value, size);
	return mem->count - 1;
}
