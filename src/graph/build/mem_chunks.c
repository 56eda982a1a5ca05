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
GraphMemBudgetInit(GraphMemBudget *budget, Size max_bytes, dsm_segment *segment)
{
	memset(budget, 0, sizeof(*budget));
	SpinLockInit(&budget->mutex);
	budget->max_bytes = max_bytes;
	if (segment)
		SharedFileSetInit(&budget->files, segment);
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
	chunks->files = palloc0(GRAPH_MAX_CHUNKS * sizeof(QvRoom));
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

/* Reserves n chunks that follow one another, in the table.  Returns the first. */
static uint32
reserve(GraphChunks *chunks, Size bytes, uint32 n)
{
	uint32		number;

	SpinLockAcquire(&chunks->budget->mutex);
	number = chunks->table->count;
	if (number + n <= GRAPH_MAX_CHUNKS)
		chunks->table->count += n;
	SpinLockRelease(&chunks->budget->mutex);
	if (number + n > GRAPH_MAX_CHUNKS)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("graph is too large to be built"),
				 errhint("Increase maintenance_work_mem.")));
	for (uint32 i = 0; i < n; i++)
	{
		chunks->table->chunks[number + i].handle = DSM_HANDLE_INVALID;
		chunks->table->chunks[number + i].in_file = 0;
		chunks->table->chunks[number + i].index = i;
		chunks->table->chunks[number + i].bytes = bytes;
		chunks->table->chunks[number + i].used = 0;
	}
	return number;
}

/* Takes memory from the budget.  Returns false if there is not that much. */
static bool
take_memory(GraphChunks *chunks, Size size)
{
	GraphMemBudget *budget = chunks->budget;
	bool		no_shared_memory = chunks->shared && !budget->full &&
		!QvHasSharedMemory(TIMES_FREE * size + (budget->nodes.count + budget->values.count) * budget->beside);
	bool		taken;

	SpinLockAcquire(&budget->mutex);
	taken = !budget->full && !no_shared_memory && budget->bytes + size <= budget->max_bytes;
	if (taken)
		budget->bytes += size;
	budget->full |= !taken;
	budget->no_shared_memory |= no_shared_memory;
	SpinLockRelease(&budget->mutex);
	return taken;
}

/* Returns memory for n chunks, or NULL. */
static char *
get_memory(GraphChunks *chunks, Size bytes, uint32 number, uint32 n)
{
	dsm_segment *segment;
	char	   *memory;

	if (!chunks->shared)
		memory = MemoryContextAllocHuge(chunks->context, n * bytes + 64);
	else
	{
		segment = dsm_create(n * bytes, DSM_CREATE_NULL_IF_MAXSEGMENTS);
		if (segment == NULL)
		{
			chunks->budget->no_shared_memory = true;
			return NULL;
		}
		chunks->segments[number] = segment;
		for (uint32 i = 0; i < n; i++)
			chunks->table->chunks[number + i].handle = dsm_segment_handle(segment);
		memory = dsm_segment_address(segment);
	}
	want_huge_pages(memory, n * bytes);
	return (char *) TYPEALIGN(64, memory);
}

/* Returns the name of the file that begins with a chunk. */
static char *
file_name(const GraphChunks *chunks, uint32 number)
{
	return psprintf("%s%u", chunks->table == &chunks->budget->nodes ? "nodes" : "values", number);
}

/* Returns n chunks of a new file. */
static char *
get_file(GraphChunks *chunks, Size bytes, uint32 number, uint32 n)
{
	MemoryContext old = MemoryContextSwitchTo(chunks->context);
	QvRoom	   *file = &chunks->files[number];

	if (chunks->shared)
		(void) QvRoomMakeShared(file, &chunks->budget->files, file_name(chunks, number), n * bytes);
	else
		(void) QvRoomMake(file, n * bytes, 0);
	chunks->table->chunks[number].in_file = n;
	MemoryContextSwitchTo(old);
	return file->memory;
}

void
GraphChunksAdd(GraphChunks *chunks, Size bytes)
{
	uint32		number;
	uint32		n = 1 + chunks->added / ONE_AT_A_TIME;
	char	   *memory = NULL;

	bytes = TYPEALIGN(64, bytes);
	if (chunks->spare > 0 && chunks->table->chunks[chunks->current + 1].bytes >= bytes)
	{
		chunks->spare--;
		chunks->current++;
		return;
	}
	if (!chunks->shared && !chunks->budget->full)
		n = 1;
	number = reserve(chunks, bytes, n);
	if (take_memory(chunks, n * bytes))
		memory = get_memory(chunks, bytes, number, n);
	if (memory == NULL)
	{
		chunks->budget->full = true;
		memory = get_file(chunks, bytes, number, n);
	}
	for (uint32 i = 0; i < n; i++)
		chunks->at[number + i] = memory + i * bytes;
	chunks->current = number;
	chunks->spare = n - 1;
	chunks->added += n;
}

void
GraphChunksAttach(GraphChunks *chunks)
{
	for (uint32 i = 0; i < chunks->table->count; i++)
	{
		uint32		index = chunks->table->chunks[i].index;
		Size		bytes = chunks->table->chunks[i].bytes;
		dsm_segment *segment;

		if (chunks->at[i])
			continue;
		if (index > 0)
		{
			chunks->at[i] = chunks->at[i - index] + index * bytes;
			continue;
		}
		if (chunks->table->chunks[i].in_file > 0)
		{
			chunks->at[i] = QvRoomOpenShared(&chunks->files[i], &chunks->budget->files, file_name(chunks, i),
											 chunks->table->chunks[i].in_file * bytes);
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
	{
		if (chunks->segments[i])
			dsm_detach(chunks->segments[i]);
		QvRoomFree(&chunks->files[i]);
	}
}
