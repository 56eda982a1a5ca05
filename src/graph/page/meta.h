/*
 * meta.h
 *		The metapage of a graph index.
 */
#ifndef QV_GRAPH_PAGE_META_H
#define QV_GRAPH_PAGE_META_H

#include "graph/page/format.h"
#include "pages/write.h"
#include "types/type_ops.h"

/*
 * Values of so few dimensions are no larger than the codes of the neighbors
 * beside them, and measured exactly in less time (src/graph/README.md, "Few
 * dimensions").
 */
#define GRAPH_MAX_FEW_DIMS 8

/* What form an index of that operator class and so many dimensions has. */
extern QvForm GraphChooseForm(const QvOpclassInfo *opclass, int dims);

/* Fill in a metapage for a new index: sizes, seed, no pages yet. */
extern void GraphMetaInit(GraphMetaData *meta, int dims, int m,
						  int ef_construction, const QvOpclassInfo *opclass);

/*
 * Fewer neighbors a node of a coded graph, where rows[n x pdim] of the table, as they
 * are indexed, say that these will do.  Before there are any pages.
 */
extern void GraphMetaAdapt(GraphMetaData *meta, const float *rows, int n);

/*
 * Read and check the metapage alone.  Raises ERRCODE_INDEX_CORRUPTED, or the
 * request to REINDEX when the index was built by pgvector.
 */
extern void GraphReadMeta(Relation index, GraphMetaData *meta);

/*
 * Lock the metapage to change it: returns its buffer pinned and exclusively
 * locked, with *meta in it, checked likewise.
 */
extern Buffer GraphLockMeta(Relation index, QvBufferHints *hints, GraphMetaData **meta);

/* The metapage as a write that it is registered for sees it. */
static inline GraphMetaData *
GraphRegisterMeta(QvWrite *w, Buffer buf)
{
	return (GraphMetaData *) QvPageGetData(QvWriteRegister(w, buf));
}

#endif							/* QV_GRAPH_PAGE_META_H */
