/*
 * knn_scan.h
 *		Plain index scans, which return rows in the order of their exact distances.
 */
#ifndef QV_AM_KNN_SCAN_H
#define QV_AM_KNN_SCAN_H

#include "postgres.h"

#include "access/genam.h"
#include "access/sdir.h"
#include "access/skey.h"
#include "utils/rel.h"

/* ambeginscan, amrescan, amgettuple, amendscan */
extern IndexScanDesc KnnBeginScan(Relation index, int nkeys, int norderbys);
extern void KnnRescan(IndexScanDesc scan, ScanKey keys, int nkeys,
					  ScanKey orderbys, int norderbys);
extern bool KnnGetTuple(IndexScanDesc scan, ScanDirection direction);
extern void KnnEndScan(IndexScanDesc scan);

#endif							/* QV_AM_KNN_SCAN_H */
