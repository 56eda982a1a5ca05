/*
 * glance.c
 *		Estimating the deleted nodes of a graph index from a few of its pages.
 */
#include "postgres.h"

#include "graph/graph.h"
#include "graph/page/meta.h"
#include "pages/sample.h"

typedef struct Glance
{
	GraphLayout layout;
	uint64		deleted;
} Glance;

static void
look(Page page, void *arg)
{
	Glance	   *g = arg;

	if (PageIsNew(page) || !QvPageIs(page, QV_PAGE_NODES))
		return;
	for (uint32 slot = 0; slot < g->layout.per_page; slot++)
		g->deleted += GraphPageNode(&g->layout, page, slot)->state == GRAPH_SLOT_DELETED;
}

void
GraphGlance(Relation index, BlockNumber most, GraphGlanced *glanced)
{
	GraphMetaData meta;
	Glance		g = {.deleted = 0};
	double		pages;

	GraphReadMeta(index, &meta);
	if (!GraphLayoutFromMeta(&g.layout, &meta))
		QvReportCorruption(index, QV_META_BLOCK, "The metapage's numbers do not fit together.");
	pages = QvSamplePages(index, meta.seed, most, look, &g);
	glanced->deleted = g.deleted * pages;
	glanced->old_format = meta.form == QV_FORM_CODED && !GraphCanHaveRows(&meta);
}
