/*
 * keep.c
 *		What a backend keeps of indexes between queries; see keep.h.
 */
#include "postgres.h"

#include "pages/keep.h"
#include "utils/memutils.h"

/* Indexes remembered at once. */
#define MAX_ENTRIES 64

static dlist_head all = DLIST_STATIC_INIT(all);
static int	nentries = 0;

static void
discard(QvRelCacheEntry *kept)
{
	dlist_delete(&kept->node);
	nentries--;
	MemoryContextDelete(kept->context);
}

QvRelCacheEntry *
QvRelCacheFind(Relation index, uint64 build_id)
{
	QvRelLocator locator = QvRelationLocator(index);
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &all)
	{
		QvRelCacheEntry	   *kept = dlist_container(QvRelCacheEntry, node, iter.cur);

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
	QvRelCacheEntry	   *victim = NULL;
	dlist_iter	iter;

	dlist_foreach(iter, &all)
	{
		QvRelCacheEntry	   *kept = dlist_container(QvRelCacheEntry, node, iter.cur);

		if (kept->users == 0)
			victim = kept;
	}
	if (victim)
		discard(victim);
}

void
QvRelCacheAdd(QvRelCacheEntry *kept, Relation index, uint64 build_id)
{
	if (nentries >= MAX_ENTRIES)
		evict();
	kept->locator = QvRelationLocator(index);
	kept->build_id = build_id;
	kept->users = 0;
	kept->stale = false;
	MemoryContextSetParent(kept->context, CacheMemoryContext);
	dlist_push_head(&all, &kept->node);
	nentries++;
}

void
QvRelCachePin(QvRelCacheEntry *kept)
{
	kept->users++;
}

void
QvRelCacheUnpin(QvRelCacheEntry *kept)
{
	if (--kept->users == 0 && kept->stale)
		discard(kept);
}
