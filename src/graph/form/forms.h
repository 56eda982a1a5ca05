/*
 * forms.h
 *		The table of functions (form.h) of an index.
 */
#ifndef QV_GRAPH_FORM_FORMS_H
#define QV_GRAPH_FORM_FORMS_H

#include "graph/form/coded.h"
#include "graph/form/plain.h"

static inline const GraphFormOps *
GraphFormOf(const GraphHandle *handle)
{
	return handle->layout.form == QV_FORM_CODED ? &graph_coded_ops : &graph_plain_ops;
}

#endif							/* QV_GRAPH_FORM_FORMS_H */
