/*
 * build_plain.h
 *		The plain graph's part of a build.
 */
#ifndef QV_GRAPH_BUILD_PLAIN_H
#define QV_GRAPH_BUILD_PLAIN_H

#include "graph/build_form.h"

extern const GraphBuildOps graph_plain_build;

#endif							/* QV_GRAPH_BUILD_PLAIN_H */
