/*
 * opclass.h
 *		From an index's operator class to its type and metric.
 */
#ifndef QV_AM_OPCLASS_H
#define QV_AM_OPCLASS_H

#include "types/type_ops.h"
#include "utils/rel.h"

/* Support functions of the operator classes, with pgvector's numbers. */
#define HNSW_DISTANCE_PROC 1
#define HNSW_NORM_PROC 2
#define HNSW_TYPE_INFO_PROC 3

/*
 * Fill in info for the first column of an index.  Raises
 * ERRCODE_FEATURE_NOT_SUPPORTED for an operator class that is not ours.
 */
extern void QvGetOpclass(Relation index, QvOpclassInfo *info);

/*
 * The same by the operator class's distance function, whether it has a norm function,
 * and the name of what is asked for, for the error.
 */
extern void QvGetOpclassOf(Oid distance, bool has_norm, const char *name, QvOpclassInfo *info);

#endif							/* QV_AM_OPCLASS_H */
