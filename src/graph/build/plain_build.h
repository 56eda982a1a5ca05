/*
 * plain_build.h
 *		The plain graph's part of a build.
 */
#ifndef QV_GRAPH_BUILD_PLAIN_BUILD_H
#define QV_GRAPH_BUILD_PLAIN_BUILD_H

#include "graph/build/build_form.h"

extern const GraphBuildOps graph_plain_build;

#endif							/* QV_GRAPH_BUILD_PLAIN_BUILD_H */
