/*
 * mem_chunks.c
 *		The memory of a graph under construction; see mem_chunks.h.
 */
#include "postgres.h"

#include <sys/mman.h>

#include "graph/build/mem_chunks.h"
#include "space/parallel.h"
#include "utils/memutils.h"

void
GraphMemBudgetInit(GraphMemBudget *budget, Size max_bytes)
{
	memset(budget, 0, sizeof(*budget));
	SpinLockInit(&budget->mutex);
	budget->max_bytes = max_bytes;
}

void
GraphChunksInit(GraphChunks *chunks, GraphMemBudget *budget, GraphChunkTable *table, bool shared)
{
	chunks->budget = budget;
	chunks->table = table;
	chunks->shared = shared;
	chunks->context = CurrentMemoryContext;
	chunks->at = palloc0(GRAPH_MAX_CHUNKS * sizeof(char *));
	chunks->segments = palloc0(GRAPH_MAX_CHUNKS * sizeof(dsm_segment *));
	chunks->current = GRAPH_NO_CHUNK;
}

/*
 * Asks for huge pages.  Reads are random over all of the memory, and TLB misses are a good
 * part of their cost.
 */
static void
want_huge_pages(char *memory, Size bytes)
{
#ifdef MADV_HUGEPAGE
	Size		huge = 2 * 1024 * 1024;
	char	   *from = (char *) TYPEALIGN(huge, memory);
	char	   *to = (char *) TYPEALIGN_DOWN(huge, memory + bytes);

	if (to > from)
		(void) madvise(from, to - from, MADV_HUGEPAGE);
#endif
}

/*
 * Chunks after which one more is allocated at a time.  A server has few segments of shared
 * memory, and the estimate of the rows may have been far off.
 */
#define ONE_AT_A_TIME 16

/* Times the memory that must be free, since other participants ask at the same time. */
#define TIMES_FREE 4

/*
 * Reserves n chunks that follow one another, in the table and in the budget.  Returns the
 * first, or GRAPH_NO_CHUNK.
 */
static uint32
reserve(GraphChunks *chunks, Size bytes, uint32 n)
{
	GraphMemBudget *budget = chunks->budget;
	uint32		number = GRAPH_NO_CHUNK;

	SpinLockAcquire(&budget->mutex);
	if (budget->bytes + n * bytes <= budget->max_bytes &&
		chunks->table->count + n <= GRAPH_MAX_CHUNKS)
	{
		budget->bytes += n * bytes;
		number = chunks->table->count;
		chunks->table->count += n;
	}
	SpinLockRelease(&budget->mutex);
	if (number != GRAPH_NO_CHUNK)
		for (uint32 i = 0; i < n; i++)
		{
			chunks->table->chunks[number + i].handle = DSM_HANDLE_INVALID;
			chunks->table->chunks[number + i].index = i;
			chunks->table->chunks[number + i].bytes = bytes;
			chunks->table->chunks[number + i].used = 0;
		}
	return number;
}

/* Returns memory for n chunks, or NULL. */
static char *
get_memory(GraphChunks *chunks, Size bytes, uint32 number, uint32 n)
{
	dsm_segment *segment;

	if (!chunks->shared)
		return MemoryContextAllocHuge(chunks->context, n * bytes + 64);
	segment = dsm_create(n * bytes, DSM_CREATE_NULL_IF_MAXSEGMENTS);
	if (segment == NULL)
		return NULL;
	chunks->segments[number] = segment;
	for (uint32 i = 0; i < n; i++)
		chunks->table->chunks[number + i].handle = dsm_segment_handle(segment);
	return dsm_segment_address(segment);
}

static bool
refuse(GraphMemBudget *budget, bool no_shared_memory)
{
	SpinLockAcquire(&budget->mutex);
	budget->full = true;
	budget->no_shared_memory |= no_shared_memory;
	SpinLockRelease(&budget->mutex);
	return false;
}

bool
GraphChunksAdd(GraphChunks *chunks, Size bytes)
{
	GraphMemBudget *budget = chunks->budget;
	uint32		number;
	uint32		n = chunks->shared ? 1 + chunks->added / ONE_AT_A_TIME : 1;
	char	   *memory;

	bytes = TYPEALIGN(64, bytes);
	if (chunks->spare > 0 && chunks->table->chunks[chunks->current + 1].bytes >= bytes)
	{
		chunks->spare--;
		chunks->current++;
		return true;
	}
	if (budget->full)
		return false;
	if (chunks->shared &&
		!QvHasSharedMemory(TIMES_FREE * n * bytes +
						   (budget->nodes.count + budget->values.count) * budget->beside))
		return refuse(budget, true);
	number = reserve(chunks, bytes, n);
	if (number == GRAPH_NO_CHUNK && n > 1)
		number = reserve(chunks, bytes, n = 1);
	if (number == GRAPH_NO_CHUNK)
		return refuse(budget, false);
	memory = get_memory(chunks, bytes, number, n);
	if (memory == NULL)
		return refuse(budget, true);
	want_huge_pages(memory, n * bytes);
	memory = (char *) TYPEALIGN(64, memory);
	for (uint32 i = 0; i < n; i++)
		chunks->at[number + i] = memory + i * bytes;
	chunks->current = number;
	chunks->spare = n - 1;
	chunks->added += n;
	return true;
}

void
GraphChunksAttach(GraphChunks *chunks)
{
	for (uint32 i = 0; i < chunks->table->count; i++)
	{
		uint32		index = chunks->table->chunks[i].index;
		dsm_segment *segment;

		/* places for which no memory was found have none */
		if (chunks->at[i] || chunks->table->chunks[i].handle == DSM_HANDLE_INVALID)
			continue;
		if (index > 0)
		{
			chunks->at[i] = chunks->at[i - index] + index * chunks->table->chunks[i].bytes;
			continue;
		}
		segment = dsm_attach(chunks->table->chunks[i].handle);
		if (segment == NULL)
			elog(ERROR, "could not attach shared memory of a parallel build");
		chunks->segments[i] = segment;
		chunks->at[i] = dsm_segment_address(segment);
	}
}

void
GraphChunksDetach(GraphChunks *chunks)
{
	for (uint32 i = 0; i < chunks->table->count; i++)
		if (chunks->segments[i])
			dsm_detach(chunks->segments[i]);
}
