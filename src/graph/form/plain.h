/*
 * plain.h
 *		The table of functions of plain graphs.
 */
#ifndef QV_GRAPH_FORM_PLAIN_H
#define QV_GRAPH_FORM_PLAIN_H

#include "graph/form/form.h"

extern const GraphFormOps graph_plain_ops;

#endif							/* QV_GRAPH_FORM_PLAIN_H */
