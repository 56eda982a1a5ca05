/*
 * mem_chunks.h
 *		The memory of a graph under construction: chunks of one size.  They are in the
 *		backend's own memory, or in shared memory, where all participants of a parallel
 *		build see them.
 */
#ifndef QV_GRAPH_BUILD_MEM_CHUNKS_H
#define QV_GRAPH_BUILD_MEM_CHUNKS_H

#include "postgres.h"

#include "storage/dsm.h"
#include "storage/spin.h"

/* Most chunks of a kind. */
#define GRAPH_MAX_CHUNKS 8192

/* The chunks of one kind, for all participants. */
typedef struct GraphChunkTable
{
	uint32		count;
	struct
	{
		dsm_handle	handle;		/* of the segment, which may have several
								 * chunks */
		uint32		index;		/* index in the segment */
		Size		bytes;
		uint32		used;		/* items or bytes in use; set by its owner */
	}			chunks[GRAPH_MAX_CHUNKS];
} GraphChunkTable;

/* Memory budget, shared by the participants, or of one backend. */
typedef struct GraphMemBudget
{
	slock_t		mutex;			/* protects the rest, and the counts of the
								 * tables */
	Size		bytes;
	Size		max_bytes;
	bool		full;			/* a chunk was refused */
	bool		no_shared_memory;	/* it was refused because the system had
									 * no shared memory */
	Size		beside;			/* bytes for each chunk that will be needed
								 * beside it */
	GraphChunkTable nodes;
	GraphChunkTable values;
} GraphMemBudget;

/* The chunks of one kind, as one participant sees them. */
typedef struct GraphChunks
{
	GraphMemBudget *budget;
	GraphChunkTable *table;
	bool		shared;
	MemoryContext context;		/* of chunks that are not shared */
	char	  **at;				/* addresses, aligned to 64; NULL: not
								 * attached */
	dsm_segment **segments;
	uint32		current;		/* chunk that this participant fills, or
								 * GRAPH_NO_CHUNK */
	uint32		spare;			/* chunks after it that are allocated already */
	uint32		added;			/* chunks added in all */
} GraphChunks;

#define GRAPH_NO_CHUNK UINT32_MAX

extern void GraphMemBudgetInit(GraphMemBudget *budget, Size max_bytes);

extern void GraphChunksInit(GraphChunks *chunks, GraphMemBudget *budget, GraphChunkTable *table,
							bool shared);

/*
 * Gets another chunk, of the same size as always, and makes it the current one.  Returns
 * false if there is no memory.
 */
extern bool GraphChunksAdd(GraphChunks *chunks, Size bytes);

/* Attaches the chunks of the other participants, who have finished adding. */
extern void GraphChunksAttach(GraphChunks *chunks);

extern void GraphChunksDetach(GraphChunks *chunks);

#endif							/* QV_GRAPH_BUILD_MEM_CHUNKS_H */
