/*
 * glance.c
 *		Estimating dead rows and lost pages from a few pages of an index.
 */
#include "postgres.h"

#include "ivf/ivf.h"
#include "ivf/page/cache.h"
#include "ivf/update/calibrate.h"
#include "pages/sample.h"

typedef struct Glance
{
	const IvfLists *lists;
	uint64		dead;
	uint64		lost;
} Glance;

/* Returns whether a page is lost: empty, or not of its list's current generation. */
static bool
is_lost(const IvfLists *lists, Page page)
{
	IvfListPage head = IvfPageList(page);

	if (PageIsNew(page))
		return true;
	return IvfIsListPage(page) &&
		(head->list >= lists->count || head->generation != lists->refs[head->list].generation);
}

static void
look(Page page, void *arg)
{
	Glance	   *g = arg;

	if (is_lost(g->lists, page))
		g->lost++;
	else if (QvPageIs(page, QV_PAGE_CODES))
		g->dead += IvfDeadSlots(IvfPageList(page));
}

void
IvfGlance(Relation index, const QvOpclassInfo *opclass, BlockNumber most, double table_rows,
		  IvfGlanced *glanced)
{
	IvfHandle  *handle = IvfOpen(index, opclass);
	const IvfMetaData *meta = &handle->meta;
	Glance		g = {.lists = handle->lists};
	double		pages = QvSamplePages(index, meta->seed, most, look, &g);

	glanced->dead = g.dead * pages;
	glanced->lost_pages = g.lost * pages;
	glanced->measured = meta->probes[0] > 0 && !(meta->flags & IVF_MEASURE) &&
		!IvfIsOverdue(meta, IvfRowsOf(meta, table_rows));
	glanced->sketches = handle->layout.sketch_bytes > 0;
	glanced->old_format = meta->form == QV_FORM_CODED && !IvfCanHaveRows(meta);
}
