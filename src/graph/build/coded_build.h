/*
 * coded_build.h
 *		The coded graph's part of a build.
 */
#ifndef QV_GRAPH_BUILD_CODED_BUILD_H
#define QV_GRAPH_BUILD_CODED_BUILD_H

#include "graph/build/build_form.h"

extern const GraphBuildOps graph_coded_build;

#endif							/* QV_GRAPH_BUILD_CODED_BUILD_H */
