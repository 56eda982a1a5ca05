/*
 * load.h
 *		The rows of a table, encoded for their nearest lists and sorted by them,
 *		together with workers.
 */
#ifndef QV_IVF_BUILD_LOAD_H
#define QV_IVF_BUILD_LOAD_H

#include "ivf/build/params.h"
#include "ivf/codec/handle.h"

typedef struct IvfLoad IvfLoad;

/*
 * Reads and sorts all rows.  The index has all its pages but the pages of lists.  Sets
 * heap_tuples and index_tuples of the result, and which rows were left out (pages/meta.h).  If
 * there are workers, the server is in parallel mode from here to IvfLoadEnd().
 */
extern IvfLoad *IvfLoadBegin(const IvfBuildParams *build, IvfHandle *handle,
							 IndexBuildResult *result, int *left_out);

/*
 * Returns the next row, in the order of the lists; false if there is none.  What the row refers
 * to lives until the next call.
 */
extern bool IvfLoadNext(IvfLoad *load, uint32 *list, IvfRow *row);
extern void IvfLoadEnd(IvfLoad *load);

#endif							/* QV_IVF_BUILD_LOAD_H */
