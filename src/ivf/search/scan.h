/*
 * scan.h
 *		A search without an access method: where the nearest rows are.
 */
#ifndef QV_IVF_SEARCH_SCAN_H
#define QV_IVF_SEARCH_SCAN_H

#include "ivf/codec/handle.h"

/*
 * The lists that the k nearest rows of a query are in, each as its rank among the
 * lists nearest to the query, which is prepared for reading them.  self is a row
 * that does not count.  Reads at most "lists" lists.  Returns how many rows there
 * were.
 */
extern uint32 IvfSearchRanks(IvfHandle *handle, const IvfQuery *query, ItemPointer self,
							 uint32 k, uint32 lists, uint32 *ranks);

#endif							/* QV_IVF_SEARCH_SCAN_H */
