/*
 * estimate.c
 *		Size and memory of a graph index, before it is built.
 */
#include "postgres.h"

#include <math.h>

#include "graph/build/store_mem_plain.h"
#include "graph/graph.h"
#include "graph/page/entry_points.h"
#include "graph/page/meta.h"
#include "rows/rows.h"

/* Bytes that a value on a value page has besides itself. */
#define VALUE_OVERHEAD (offsetof(GraphPieceData, data) + sizeof(GraphValueLine))

static double
pages(double items, double per_page)
{
	return ceil(items / per_page);
}

/* Lays the nodes out as a build does that has these values for its sample. */
static void
adapt(GraphMetaData *meta, const QvOpclassInfo *opclass, void *const *values, int nvalues)
{
	float	   *rows = palloc_extended(Max(1, nvalues) * (Size) meta->pdim * sizeof(float),
									   MCXT_ALLOC_HUGE);
	float	   *scratch = palloc(meta->pdim * sizeof(float));
	QvSpace		space;
	int			n = 0;

	QvSpaceInit(&space, opclass, meta->dims, meta->pdim, meta->seed);
	for (int i = 0; i < nvalues; i++)
		if (QvIsIndexed(opclass, values[i]))
			QvSpaceRotateValue(&space, values[i], scratch, rows + n++ * (Size) meta->pdim);
	GraphMetaAdapt(meta, rows, n);
	pfree(scratch);
	pfree(rows);
}

void
GraphCheckOptions(const QvIndexOptions *options)
{
	if (options->ef_construction < 2 * options->m)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("ef_construction must be greater than or equal to 2 * m")));
}

void
GraphEstimateBuild(const QvOpclassInfo *opclass, int dims, const QvIndexOptions *options,
				   double rows, double value_size, void *const *values, int nvalues,
				   GraphEstimate *estimate)
{
	GraphMetaData meta;
	GraphLayout layout;
	double		entries;
	Size		payload;
	Size		apart;

	GraphCheckOptions(options);
	GraphMetaInit(&meta, dims, options->m, options->ef_construction, opclass);
	/* a build has no larger sample than there are rows */
	if (meta.form == QV_FORM_CODED)
		adapt(&meta, opclass, values, Min(rows, nvalues));
	if (!GraphLayoutFromMeta(&layout, &meta))
		elog(ERROR, "graph node layout does not fit together");
	entries = GRAPH_ENTRY_FACTOR * sqrt(rows);
	estimate->coded = layout.form == QV_FORM_CODED;
	estimate->pdim = layout.pdim;

	/* metapage, mean, entry points, nodes, values */
	estimate->blocks = 1 + pages(layout.pdim, QV_FLOATS_PER_PAGE) +
		Max(1, pages(pages(entries, QV_BATCH), GraphEntryBatchesPerPage(meta.entry_bits))) +
		pages(rows, layout.per_page);
	if (estimate->coded)
		estimate->blocks += QvRowsEstimatePages(rows, estimate->table_rows,
												QvRowEntrySize(layout.pdim) + estimate->included);
	if (GraphValuesApart(&layout))
		estimate->blocks += pages(rows * (MAXALIGN(value_size) + VALUE_OVERHEAD), QV_PAGE_SPACE);

	payload = estimate->coded ? layout.pdim : GraphMemPlainPayload(opclass, dims);
	apart = estimate->coded || opclass->type->fixed_size(dims) > 0 ? 0 : value_size;
	estimate->memory = GraphMemEstimate(&layout, payload, apart, rows);
}
