/*
 * graph_engine.h
 *		What the settings of an access method mean to a graph.
 */
#ifndef QV_AM_GRAPH_ENGINE_H
#define QV_AM_GRAPH_ENGINE_H

#include "am/engine.h"
#include "graph/graph.h"

/* The ef of a search: as set, or as the recall wanted takes. */
extern int	KnnEfSearch(Relation index, const KnnSettings *settings);

#endif							/* QV_AM_GRAPH_ENGINE_H */
