/*
 * sweep_codes.h
 *		Measuring a set's rows by codes that a backend keeps of all nodes.
 */
#ifndef QV_GRAPH_SEARCH_SWEEP_CODES_H
#define QV_GRAPH_SEARCH_SWEEP_CODES_H

#include "graph/search/sweep_results.h"

/*
 * What GraphSweep() does: begin it; which nodes may be nearest is found out when these are asked for.
 * False when there are no codes, or they do not do.
 */
extern bool GraphSweepByCodes(GraphHandle *handle, const GraphSweepParams *params, Size max_memory,
							  QvMemberSearch *search);

#endif							/* QV_GRAPH_SEARCH_SWEEP_CODES_H */
