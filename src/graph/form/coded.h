/*
 * coded.h
 *		The table of functions of coded graphs.
 */
#ifndef QV_GRAPH_FORM_CODED_H
#define QV_GRAPH_FORM_CODED_H

#include "graph/form/form.h"

extern const GraphFormOps graph_coded_ops;

#endif							/* QV_GRAPH_FORM_CODED_H */
