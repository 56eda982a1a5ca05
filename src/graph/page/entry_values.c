/*
 * entry_values.c
 *		Values of a plain graph's entry points; see entry_values.h.
 */
#include "postgres.h"

#include "graph/page/entry_values.h"
#include "graph/page/node_value.h"
#include "utils/memutils.h"

/* Most memory for the values of one index's entry points, in each backend, in bytes. */
#define MAX_ENTRY_MEMORY (4 * 1024 * 1024)

/* Frees every second value that was read.  Returns the bytes of the others. */
static Size
thin_out(const VectorTypeOps *type, GraphEntryValue *values, uint32 *n)
{
	Size		memory = 0;
	uint32		kept = 0;

	for (uint32 i = 0; i < *n; i++)
	{
		if (i % 2 != 0)
		{
			pfree(values[i].value);
			continue;
		}
		memory += type->value_size(values[i].value);
		values[kept++] = values[i];
	}
	*n = kept;
	return memory;
}

/*
 * Reads the values, or an even share of them if all need too much memory.  Whenever the
 * memory is full, every second value is freed, and half as many of the next ones are read.
 * Any even share will do, because entry points are in no order that matters.
 */
static GraphEntryValue *
read_values(GraphHandle *handle, uint32 *n)
{
	const VectorTypeOps *type = handle->space.opclass.type;
	const GraphEntryPoints *entry_points = handle->entry_points;
	GraphEntryValue *values = MemoryContextAllocHuge(CurrentMemoryContext,
													 Max(1, (Size) entry_points->nbatches * QV_BATCH) *
													 sizeof(GraphEntryValue));
	GraphScratch scratch = {NULL, 0};
	uint32		stride = 1,
				number = 0;
	Size		memory = 0;

	*n = 0;
	for (uint32 i = 0; i < entry_points->nbatches; i++)
		for (uint32 j = 0; j < GraphEntryBatchAt(entry_points, i)->count; j++)
		{
			GraphEntryValue *to = &values[*n];

			if (number++ % stride != 0)
				continue;
			to->id = GraphEntryBatchAt(entry_points, i)->ids[j];
			to->value = GraphCopyValue(handle, to->id, &scratch);
			if (to->value == NULL)
				continue;
			(*n)++;
			memory += type->value_size(to->value);
			if (memory > MAX_ENTRY_MEMORY && *n > 1)
			{
				memory = thin_out(type, values, n);
				stride *= 2;
			}
		}
	if (scratch.data)
		pfree(scratch.data);
	return values;
}

/* Reads the values into memory that lives as long as the entry points. */
static void
load_values(GraphHandle *handle)
{
	GraphEntryPoints *entry_points = handle->entry_points;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver entry values",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	uint32		n;
	GraphEntryValue *values = read_values(handle, &n);

	MemoryContextSwitchTo(old);
	MemoryContextSetParent(context, entry_points->part.context);
	entry_points->values = values;
	entry_points->nvalues = n;
}

int
GraphNearestEntryValues(GraphHandle *handle, const void *query, Candidate *out, int n)
{
	const GraphEntryPoints *entry_points = handle->entry_points;
	Candidate  *items = palloc(PoolEntries(n) * sizeof(Candidate));
	Pool		pool;
	int			found;

	if (entry_points->values == NULL)
		load_values(handle);
	PoolReset(&pool, items, n);
	for (uint32 i = 0; i < entry_points->nvalues; i++)
		PoolInsert(&pool, query == NULL ? 0 :
				   GraphExactDistance(&handle->space.opclass, query,
									  entry_points->values[i].value),
				   entry_points->values[i].id, NULL);
	found = PoolCopyWaiting(&pool, out);
	pfree(items);
	return found;
}
