/*
 * entry_values.h
 *		Entry points of a plain graph: their values, as a sweep measures them.
 */
#ifndef QV_GRAPH_PAGE_ENTRY_VALUES_H
#define QV_GRAPH_PAGE_ENTRY_VALUES_H

#include "graph/page/entry_points.h"

/*
 * The n entry points nearest to a value (NULL: all distances are 0), ascending.
 * Returns how many there are.  The first call for a table reads their values.
 */
extern int	GraphNearestEntryValues(GraphHandle *handle, const void *query,
									Candidate *out, int n);

#endif							/* QV_GRAPH_PAGE_ENTRY_VALUES_H */
