/*
 * entry_values.h
 *		Values of a plain graph's entry points, which a search measures all at once.
 */
#ifndef QV_GRAPH_PAGE_ENTRY_VALUES_H
#define QV_GRAPH_PAGE_ENTRY_VALUES_H

#include "graph/page/entry_points.h"

/*
 * Finds the n entry points nearest to a value, ascending.  For a NULL query all distances
 * are 0.  Returns how many it has found.  The first call for an index reads the values.
 */
extern int	GraphNearestEntryValues(GraphHandle *handle, const void *query,
									Candidate *out, int n);

#endif							/* QV_GRAPH_PAGE_ENTRY_VALUES_H */
