/*
 * cache.h
 *		What a backend keeps of a graph index between queries: the frozen
 *		parts of the metapage, the mean, the rotation, the entry points and
 *		where its pages were last found in shared buffers.
 */
#ifndef QV_GRAPH_CACHE_H
#define QV_GRAPH_CACHE_H

#include "graph/format.h"
#include "space/relcache.h"

/* The value of a plain graph's entry. */
typedef struct GraphEntryValue
{
	uint32		id;
	void	   *value;
} GraphEntryValue;

/* The table of entry points as one sweep wants it. */
typedef struct GraphEntryPoints
{
	QvRelCachePart part;
	uint32		version;		/* GraphMetaData.entry_version and _count, */
	uint32		count;			/* of when it was read */
	uint32		nbatches;
	Size		batch_size;
	char	   *batches;			/* GraphEntryBatches, block_size apart */
	GraphEntryValue *values;	/* plain graphs: those that are kept */
	uint32		nvalues;
} GraphEntryPoints;

typedef struct GraphHandle
{
	Relation	index;
	const struct GraphFormOps *ops;	/* form.h */
	GraphMetaData meta;			/* as read when the handle was opened */
	GraphLayout layout;
	QvSpace		space;
	GraphEntryPoints *entry_points;
	QvBufferHints *hints;
	struct GraphRelCache *entry;
	MemoryContextCallback release;
} GraphHandle;

/*
 * Open an index for reading: reads the metapage (always) and the rest when it
 * is not cached.  The handle lives in CurrentMemoryContext and is released
 * with it.  Raises ERRCODE_INDEX_CORRUPTED, or the request to REINDEX when
 * the index was built by pgvector.
 */
extern GraphHandle *GraphOpen(Relation index, const QvOpclassInfo *opclass);

/* Read and check the metapage alone. */
extern void GraphReadMeta(Relation index, GraphMetaData *meta);

/* Take the metapage of a page in hand, checked: see GraphReadMeta. */
extern GraphMetaData *GraphPageMeta(Relation index, Page page);

#define GraphEntryBatchAt(entry_points, i) \
	((GraphEntryBatch *) ((entry_points)->batches + (Size) (i) * (entry_points)->batch_size))

#endif							/* QV_GRAPH_CACHE_H */
