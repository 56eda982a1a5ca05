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
 * Most dimensions of a plain graph of dense vectors.  Values are no larger than the codes
 * of 32 neighbors there, and measured exactly in less time (src/graph/form/README.md, "Few
 * dimensions").
 */
#define GRAPH_MAX_FEW_DIMS 8

/* Returns the form of an index with that operator class and number of dimensions. */
extern QvForm GraphChooseForm(const QvOpclassInfo *opclass, int dims);

/* Fills in a metapage for a new index: sizes, seed, no pages yet. */
extern void GraphMetaInit(GraphMetaData *meta, int dims, int m,
						  int ef_construction, const QvOpclassInfo *opclass);

/*
 * Gives the nodes of a coded graph fewer neighbors if these rows of the table show that the
 * data are easy.  rows[n x pdim] are as they are indexed.  There must be no pages yet.
 */
extern void GraphMetaAdapt(GraphMetaData *meta, const float *rows, int n);

/*
 * Reads and checks the metapage alone.  Raises ERRCODE_INDEX_CORRUPTED, or the request to
 * REINDEX when the index was built by pgvector.
 */
extern void GraphReadMeta(Relation index, GraphMetaData *meta);

/*
 * Locks the metapage to change it.  Returns its buffer pinned and exclusively locked, with
 * *meta in it, checked as by GraphReadMeta().
 */
extern Buffer GraphLockMeta(Relation index, QvBufferHints *hints, GraphMetaData **meta);

/* Registers the locked metapage for a write.  Returns it as the write changes it. */
static inline GraphMetaData *
GraphRegisterMeta(QvWrite *w, Buffer buf)
{
	return (GraphMetaData *) QvPageGetData(QvWriteRegister(w, buf));
}

#endif							/* QV_GRAPH_PAGE_META_H */
