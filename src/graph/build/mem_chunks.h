/*
 * mem_chunks.h
 *		The memory of a graph under construction: chunks of one size.  They are in the
 *		backend's own memory, or in shared memory, where all participants of a parallel
 *		build see them.  When memory is used up, they are in temporary files.
 */
#ifndef QV_GRAPH_BUILD_MEM_CHUNKS_H
#define QV_GRAPH_BUILD_MEM_CHUNKS_H

#include "postgres.h"

#include "space/room.h"
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
		uint32		in_file;	/* chunks that the file has which begins with
								 * this one; 0: it is no file */
		uint32		index;		/* index in the segment or file */
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
	bool		full;			/* further chunks are in files */
	bool		no_shared_memory;	/* because the system had no shared memory */
	Size		beside;			/* bytes for each chunk that will be needed
								 * beside it */
	SharedFileSet files;		/* of a build with workers */
	GraphChunkTable nodes;
	GraphChunkTable values;
} GraphMemBudget;

/* The chunks of one kind, as one participant sees them. */
typedef struct GraphChunks
{
	GraphMemBudget *budget;
	GraphChunkTable *table;
	bool		shared;
	MemoryContext context;
	char	  **at;				/* addresses, aligned to 64; NULL: not
								 * attached */
	dsm_segment **segments;
	QvRoom	   *files;			/* by the first chunk of each */
	uint32		current;		/* chunk that this participant fills, or
								 * GRAPH_NO_CHUNK */
	uint32		spare;			/* chunks after it that are allocated already */
	uint32		added;			/* chunks added in all */
} GraphChunks;

#define GRAPH_NO_CHUNK UINT32_MAX

/* segment: of the participants' shared memory, or NULL. */
extern void GraphMemBudgetInit(GraphMemBudget *budget, Size max_bytes, dsm_segment *segment);

extern void GraphChunksInit(GraphChunks *chunks, GraphMemBudget *budget, GraphChunkTable *table,
							bool shared);

/* Gets another chunk, of the same size as always, and makes it the current one. */
extern void GraphChunksAdd(GraphChunks *chunks, Size bytes);

/* Attaches the chunks of the other participants, who have finished adding. */
extern void GraphChunksAttach(GraphChunks *chunks);

extern void GraphChunksDetach(GraphChunks *chunks);

#endif							/* QV_GRAPH_BUILD_MEM_CHUNKS_H */
