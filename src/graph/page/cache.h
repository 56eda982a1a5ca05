/*
 * cache.h
 *		Opening a graph index.  Its mean, rotation and entry points are cached, and where
 *		its pages were last found in shared buffers.
 */
#ifndef QV_GRAPH_PAGE_CACHE_H
#define QV_GRAPH_PAGE_CACHE_H

#include "graph/page/handle.h"
#include "space/members.h"

/*
 * What a backend keeps of a graph that it has swept: the nodes that have the rows of the
 * table.  A node says itself whether it has a row, and a row that the map does not know may be
 * in any node.  It knows those in the slots of the nodes themselves.
 */
typedef struct GraphTidMap
{
	QvRelCachePart part;
	QvKnownRows rows;			/* their numbers are those of nodes */
	bool		had_codes;		/* until VACUUM came; */
	uint32		without_codes;	/* searches since then */
} GraphTidMap;

/*
 * Opens an index.  Reads the metapage always, and the rest if it is not cached.  The handle
 * is allocated in CurrentMemoryContext, and released with it.  Raises
 * ERRCODE_INDEX_CORRUPTED, or the request to REINDEX when the index was built by pgvector.
 */
extern GraphHandle *GraphOpen(Relation index, const QvOpclassInfo *opclass);

/* What is kept of an open index: NULL, none yet.  A new one, or NULL, takes its place. */
extern GraphTidMap *GraphKeptTidMap(const GraphHandle *handle);
extern void GraphKeepTidMap(GraphHandle *handle, GraphTidMap *map);

/* A map would be too large: do not try again, but with more memory. */
extern bool GraphTidMapIsTooLarge(const GraphHandle *handle);
extern void GraphNoteTooLarge(GraphHandle *handle);

/*
 * The map of an index, if there is one.  If not, what was said to have been spent for want of
 * it, in whatever unit (0 where there can be none); and say that more was.
 */
extern const GraphTidMap *GraphFindTidMap(Relation index, const GraphMetaData *meta, double *spent);
extern void GraphNoteSpent(GraphHandle *handle, double cost);
extern void GraphForgetSpent(GraphHandle *handle);

#endif							/* QV_GRAPH_PAGE_CACHE_H */
