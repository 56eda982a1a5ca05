/*
 * mem_chunks.h
 *		The memory of a graph under construction: chunks of one size, in the
 *		backend's own memory or in shared memory, where all participants of a
 *		parallel build see them.
 */
#ifndef QV_GRAPH_BUILD_MEM_CHUNKS_H
#define QV_GRAPH_BUILD_MEM_CHUNKS_H

#include "postgres.h"

#include "storage/dsm.h"
#include "storage/spin.h"

/* Chunks of a kind, at most. */
#define GRAPH_MAX_CHUNKS 8192

/* What all participants know of the chunks of one kind. */
typedef struct GraphChunkTable
{
	uint32		count;
	struct
	{
		dsm_handle	handle;		/* of the segment, with several chunks perhaps */
		uint32		index;		/* in it */
		Size		bytes;
		uint32		used;		/* items or bytes; its owner's */
	}			chunks[GRAPH_MAX_CHUNKS];
} GraphChunkTable;

/* Shared by the participants, or one backend's own. */
typedef struct GraphMemBudget
{
	slock_t		mutex;			/* for the rest, and the counts of the tables */
	Size		bytes;
	Size		max_bytes;
	bool		full;			/* a chunk was refused, */
	bool		no_shared_memory;	/* because the system had none */
	Size		beside;			/* bytes a chunk that will be wanted beside it */
	GraphChunkTable nodes;
	GraphChunkTable values;
} GraphMemBudget;

/* A participant's view of the chunks of one kind. */
typedef struct GraphChunks
{
	GraphMemBudget *budget;
	GraphChunkTable *table;
	bool		shared;
	MemoryContext context;		/* of chunks that are not shared */
	char	  **at;				/* where they are, aligned to 64; NULL: not
								 * attached */
	dsm_segment **segments;
	uint32		current;		/* the one this participant fills, or none */
	uint32		spare;			/* chunks after it that it has got already */
	uint32		added;			/* in all */
} GraphChunks;

#define GRAPH_NO_CHUNK UINT32_MAX

extern void GraphMemBudgetInit(GraphMemBudget *budget, Size max_bytes);

extern void GraphChunksInit(GraphChunks *chunks, GraphMemBudget *budget, GraphChunkTable *table,
							bool shared);

/*
 * Get another chunk, of the same size as always, and make it the current one.  False:
 * there is no memory.
 */
extern bool GraphChunksAdd(GraphChunks *chunks, Size bytes);

/* Attach those of the other participants, who have finished adding. */
extern void GraphChunksAttach(GraphChunks *chunks);

extern void GraphChunksDetach(GraphChunks *chunks);

#endif							/* QV_GRAPH_BUILD_MEM_CHUNKS_H */
