/*
 * rerank.h
 *		Exact distances of candidates, read from the table.
 *
 * An index proposes rows with approximate distances.  Reranker fetches each
 * visible row, computes the true distance and hands the rows out in its
 * order, as soon as no candidate to come can be nearer.  Why here and not in
 * the executor's reorder queue: src/am/README.md, "Exact order".
 */
#ifndef QV_AM_RERANK_H
#define QV_AM_RERANK_H

#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "stats/stats.h"
#include "types/type_ops.h"

typedef struct Reranker Reranker;

extern Reranker *RerankBegin(IndexScanDesc scan, const QvOpclassInfo *opclass);

/*
 * Start over for a query value (detoasted, lives on; NULL: any order).  table_hints: where pages of
 * the table were found, until it starts over again.
 */
extern void RerankStart(Reranker *r, const void *query, struct QvBufferHints *table_hints);

/*
 * Take a candidate: fetches the row; one that is not visible is dropped.
 * Returns its distance, infinity for a dropped one.
 */
extern double RerankAdd(Reranker *r, ItemPointer tid);

extern bool RerankEmpty(const Reranker *r);

/* Distance of the nearest row waiting; infinity when none waits. */
extern double RerankNearest(const Reranker *r);

/* The distances of the rows waiting, in no order: i below RerankCount(). */
extern uint32 RerankCount(const Reranker *r);
extern double RerankDistance(const Reranker *r, uint32 i);

/* Take the nearest row waiting; false when there is none. */
extern bool RerankPop(Reranker *r, ItemPointer tid, double *distance);

/* What was fetched and measured since the reranker was begun. */
extern void RerankGetTotals(const Reranker *r, QvScanTotals *totals);

extern void RerankEnd(Reranker *r);

#endif							/* QV_AM_RERANK_H */
