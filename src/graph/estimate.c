/*
 * estimate.c
 *		What a graph index will be, before it is built.
 */
#include "postgres.h"

#include <math.h>

#include "graph/entry_points.h"
#include "graph/graph.h"
#include "graph/meta.h"
#include "graph/store_mem_plain.h"

/* What a value on a page of its own has beside itself. */
#define VALUE_OVERHEAD (offsetof(GraphPieceData, data) + sizeof(GraphValueLine))

static double
pages(double items, double per_page)
{
	return ceil(items / per_page);
}

void
GraphEstimateBuild(const QvOpclassInfo *opclass, int dims, const GraphOptions *options,
				   double rows, double value_size, GraphEstimate *estimate)
{
	GraphMetaData meta;
	GraphLayout layout;
	double		entries;
	Size		payload;
	Size		apart;

	GraphMetaInit(&meta, dims, options->m, options->ef_construction, opclass);
	if (!GraphLayoutFromMeta(&layout, &meta))
		elog(ERROR, "graph node layout does not fit together");
	entries = GRAPH_ENTRY_FACTOR * sqrt(rows);
	estimate->coded = layout.form == QV_FORM_CODED;
	estimate->pdim = layout.pdim;

	/* metapage, mean, entry points, nodes, values */
	estimate->blocks = 1 + pages(layout.pdim, QV_FLOATS_PER_PAGE) +
		Max(1, pages(pages(entries, QV_BATCH), GraphEntryBatchesPerPage(meta.entry_bits))) +
		pages(rows, layout.per_page);
	if (GraphValuesApart(&layout))
		estimate->blocks += pages(rows * (MAXALIGN(value_size) + VALUE_OVERHEAD), QV_PAGE_SPACE);

	payload = estimate->coded ? layout.pdim : GraphMemPlainPayload(opclass, dims);
	apart = estimate->coded || opclass->type->fixed_size(dims) > 0 ? 0 : value_size;
	estimate->memory = GraphMemEstimate(&layout, payload, apart, rows);
}
