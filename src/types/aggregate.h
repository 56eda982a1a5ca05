/*
 * aggregate.h
 *		The aggregates avg and sum of vector and halfvec.
 */
#ifndef QV_AGGREGATE_H
#define QV_AGGREGATE_H

#include "types/dense.h"

extern Datum QvDenseAdd(FunctionCallInfo fcinfo, const DenseType *type);
extern Datum QvDenseAccum(FunctionCallInfo fcinfo, const DenseType *type);
extern Datum QvDenseAvg(FunctionCallInfo fcinfo, const DenseType *type);

#endif							/* QV_AGGREGATE_H */
