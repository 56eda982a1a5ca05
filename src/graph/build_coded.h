/*
 * build_coded.h
 *		The coded graph's part of a build.
 */
#ifndef QV_GRAPH_BUILD_CODED_H
#define QV_GRAPH_BUILD_CODED_H

#include "graph/build_form.h"

extern const GraphBuildOps graph_coded_build;

#endif							/* QV_GRAPH_BUILD_CODED_H */
