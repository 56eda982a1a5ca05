/*
 * sweep_known.h
 *		Measuring the nodes of a set's rows, where it is known which these are.
 */
#ifndef QV_GRAPH_SEARCH_SWEEP_KNOWN_H
#define QV_GRAPH_SEARCH_SWEEP_KNOWN_H

#include "graph/search/sweep_results.h"

/*
 * What is kept of an index, if it may be good for these members; NULL: nothing.  Codes are of the rows that there
 * were when it was made.  When VACUUM has removed some since then, others may have come to their
 * heap TIDs: then it has none any more, and nodes are asked for all members.
 */
extern GraphTidMap *GraphKnownFor(const GraphHandle *handle, const QvTidSet *only);

/* May another map be better? */
extern bool GraphIsMapWanted(const GraphTidMap *known, const QvKnownUse *use);

/*
 * Measure the nodes that a map says the members have.  False when it is worn, or does not do for
 * this set: then what was found is good for nothing.
 */
extern bool GraphSweepKnown(GraphSweepState *s, const GraphTidMap *map, QvKnownUse *use);

#endif							/* QV_GRAPH_SEARCH_SWEEP_KNOWN_H */
