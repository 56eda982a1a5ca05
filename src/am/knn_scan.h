/*
 * knn_scan.h
 *		Index scans that return rows in the order of their exact distances,
 *		whatever engine proposes them.
 *
 * The engine proposes rows with approximate distances (space/scan.h); here they
 * are reranked, returned as soon as nothing nearer can come, and the engine is
 * asked to search on when a scan is iterative.  See src/am/README.md, "Exact
 * order" and "Iterative scans".
 */
#ifndef QV_AM_KNN_SCAN_H
#define QV_AM_KNN_SCAN_H

#include "postgres.h"

#include "access/genam.h"
#include "access/sdir.h"
#include "access/skey.h"
#include "am/methods.h"
#include "utils/rel.h"

/* ambeginscan */
extern IndexScanDesc KnnBeginScan(Relation index, int nkeys, int norderbys,
								  const KnnMethod *method);

/* amrescan, amgettuple, amendscan */
extern void KnnRescan(IndexScanDesc scan, ScanKey keys, int nkeys,
					  ScanKey orderbys, int norderbys);
extern bool KnnGetTuple(IndexScanDesc scan, ScanDirection direction);
extern void KnnEndScan(IndexScanDesc scan);

#endif							/* QV_AM_KNN_SCAN_H */
