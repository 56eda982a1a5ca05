/*
 * relcache.c
 *		What a backend keeps of indexes between queries; see relcache.h.
 */
#include "postgres.h"

#include "space/relcache.h"
#include "utils/memutils.h"

/* Indexes remembered at once. */
#define MAX_ENTRIES 64

static dlist_head all = DLIST_STATIC_INIT(all);
static int	nentries = 0;

static void
discard(QvRelCacheEntry *entry)
{
	dlist_delete(&entry->node);
	nentries--;
	MemoryContextDelete(entry->context);
}

QvRelCacheEntry *
QvRelCacheFind(Relation index, uint64 build_id)
{
	QvRelLocator locator = QvRelationLocator(index);
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &all)
	{
		QvRelCacheEntry *entry = dlist_container(QvRelCacheEntry, node, iter.cur);

		if (entry->stale || !QvRelLocatorEquals(entry->locator, locator))
			continue;
		if (entry->build_id == build_id)
		{
			dlist_move_head(&all, &entry->node);
			return entry;
		}
		if (entry->pins == 0)
			discard(entry);
		else
			entry->stale = true;
	}
	return NULL;
}

/* Discard the least recently used entry that is not pinned. */
static void
evict(void)
{
	QvRelCacheEntry *victim = NULL;
	dlist_iter	iter;

	dlist_foreach(iter, &all)
	{
		QvRelCacheEntry *entry = dlist_container(QvRelCacheEntry, node, iter.cur);

		if (entry->pins == 0)
			victim = entry;
	}
	if (victim)
		discard(victim);
}

QvRelCacheEntry *
QvRelCacheNew(Size size)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver index",
												  ALLOCSET_DEFAULT_SIZES);
	QvRelCacheEntry *entry = MemoryContextAllocZero(context, size);

	entry->context = context;
	entry->hints.context = context;
	return entry;
}

void
QvRelCacheAdd(QvRelCacheEntry *entry, Relation index, uint64 build_id)
{
	if (nentries >= MAX_ENTRIES)
		evict();
	entry->locator = QvRelationLocator(index);
	entry->build_id = build_id;
	MemoryContextSetParent(entry->context, CacheMemoryContext);
	dlist_push_head(&all, &entry->node);
	nentries++;
}

void
QvRelCachePin(QvRelCacheEntry *entry)
{
	entry->pins++;
}

void
QvRelCacheUnpin(QvRelCacheEntry *entry)
{
	if (--entry->pins == 0 && entry->stale)
		discard(entry);
}

/* ---- parts ---- */

void *
QvRelCacheNewPart(Size size)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "quiver index part",
												  ALLOCSET_SMALL_SIZES);
	QvRelCachePart *part = MemoryContextAllocZero(context, size);

	part->context = context;
	return part;
}

void
QvRelCacheKeepPart(QvRelCachePart *part, QvRelCacheEntry *entry)
{
	MemoryContextSetParent(part->context, entry->context);
	part->current = true;
}

static void
free_unused(QvRelCachePart *part)
{
	if (part->pins == 0 && !part->current)
		MemoryContextDelete(part->context);
}

void
QvRelCacheRetirePart(QvRelCachePart *part)
{
	part->current = false;
	free_unused(part);
}

void
QvRelCachePinPart(QvRelCachePart *part)
{
	part->pins++;
}

void
QvRelCacheUnpinPart(QvRelCachePart *part)
{
	part->pins--;
	free_unused(part);
}
