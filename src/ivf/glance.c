/*
 * glance.c
 *		What a few pages of an index of posting lists tell of all.
 */
#include "postgres.h"

#include "ivf/ivf.h"
#include "ivf/page/cache.h"
#include "pages/sample.h"

typedef struct Glance
{
	const IvfLists *lists;
	uint64		dead;
	uint64		lost;
} Glance;

/* Is a page one that nothing leads to?  A list's pages are of its generation. */
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
IvfGlance(Relation index, const QvOpclassInfo *opclass, BlockNumber most, IvfGlanced *glanced)
{
	IvfHandle  *handle = IvfOpen(index, opclass);
	Glance		g = {.lists = handle->lists};
	double		pages = QvSamplePages(index, handle->meta.seed, most, look, &g);

	glanced->dead = g.dead * pages;
	glanced->lost_pages = g.lost * pages;
	glanced->measured = handle->meta.probes[0] > 0 && handle->meta.deep_lists > 0 &&
		!(handle->meta.flags & IVF_MEASURE);
}
