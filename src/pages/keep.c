/*
 * keep.c
 *		What a backend keeps of indexes between queries; see keep.h.
 */
#include "postgres.h"

#include "pages/keep.h"
#include "utils/memutils.h"

/* Indexes remembered at once. */
#define MAX_KEPT 64

static dlist_head all = DLIST_STATIC_INIT(all);
static int	nkept = 0;

static void
discard(QvKept *kept)
{
	dlist_delete(&kept->node);
	nkept--;
	MemoryContextDelete(kept->context);
}

QvKept *
QvKeepFind(Relation index, uint64 build_id)
{
	QvRelLocator locator = QvRelationLocator(index);
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &all)
	{
		QvKept	   *kept = dlist_container(QvKept, node, iter.cur);

		if (kept->stale || !QvRelLocatorEquals(kept->locator, locator))
			continue;
		if (kept->build_id == build_id)
		{
			dlist_move_head(&all, &kept->node);
			return kept;
		}
		if (kept->users == 0)
			discard(kept);
		else
			kept->stale = true;
	}
	return NULL;
}

/* Discard the least recently used one that has no users. */
static void
evict(void)
{
	QvKept	   *victim = NULL;
	dlist_iter	iter;

	dlist_foreach(iter, &all)
	{
		QvKept	   *kept = dlist_container(QvKept, node, iter.cur);

		if (kept->users == 0)
			victim = kept;
	}
	if (victim)
		discard(victim);
}

void
QvKeepAdd(QvKept *kept, Relation index, uint64 build_id)
{
	if (nkept >= MAX_KEPT)
		evict();
	kept->locator = QvRelationLocator(index);
	kept->build_id = build_id;
	kept->users = 0;
	kept->stale = false;
	MemoryContextSetParent(kept->context, CacheMemoryContext);
	dlist_push_head(&all, &kept->node);
	nkept++;
}

void
QvKeepUse(QvKept *kept)
{
	kept->users++;
}

void
QvKeepRelease(QvKept *kept)
{
	if (--kept->users == 0 && kept->stale)
		discard(kept);
}
