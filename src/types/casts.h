/*
 * casts.h
 *		The cast of a dense value to its own type with other dimensions.
 */
#ifndef QV_CASTS_H
#define QV_CASTS_H

#include "types/dense.h"

extern Datum QvDenseTypmodCast(FunctionCallInfo fcinfo);

#endif							/* QV_CASTS_H */
