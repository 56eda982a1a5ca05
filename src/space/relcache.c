/*
 * relcache.c
 *		What a backend keeps of indexes between queries; see relcache.h.
 */
#include "postgres.h"

#include "access/xact.h"
#include "space/relcache.h"
#include "utils/inval.h"
#include "utils/memutils.h"

/* Indexes remembered at once, and their memory, but for the one in use. */
#define MAX_ENTRIES 64
#define MAX_BYTES ((Size) 128 * 1024 * 1024)

static dlist_head all = DLIST_STATIC_INIT(all);
static int	nentries = 0;

static void
discard(QvRelCacheEntry *entry)
{
	dlist_delete(&entry->node);
	nentries--;
	MemoryContextDelete(entry->context);
}

/* Free an entry now or with its last pin. */
static void
drop(QvRelCacheEntry *entry)
{
	if (entry->pins == 0)
		discard(entry);
	else
		entry->stale = true;
}

/* ---- what the server says has changed ---- */

static bool some_doubtful = false;

/* An invalidation may come at any time, so this frees nothing. */
static void
relation_changed(Datum arg, Oid relid)
{
	dlist_iter	iter;

	dlist_foreach(iter, &all)
	{
		QvRelCacheEntry *entry = dlist_container(QvRelCacheEntry, node, iter.cur);

		if (!OidIsValid(relid) || entry->relid == relid)
			entry->doubtful = some_doubtful = true;
	}
}

static void
transaction_ends(XactEvent event, void *arg)
{
	dlist_mutable_iter iter;

	if (!some_doubtful)
		return;
	some_doubtful = false;
	dlist_foreach_modify(iter, &all)
	{
		QvRelCacheEntry *entry = dlist_container(QvRelCacheEntry, node, iter.cur);

		if (entry->doubtful)
			drop(entry);
	}
}

static void
watch_changes(void)
{
	static bool watching = false;

	if (watching)
		return;
	CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
	RegisterXactCallback(transaction_ends, NULL);
	watching = true;
}

/* ---- entries ---- */

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
			entry->doubtful = false;
			dlist_move_head(&all, &entry->node);
			return entry;
		}
		drop(entry);
	}
	return NULL;
}

/* Discard the least recently used entry that is not pinned; false when there is none. */
static bool
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
	return victim != NULL;
}

/* Memory of all entries.  Hints and parts grow, so it is asked for, not counted. */
static Size
all_bytes(void)
{
	Size		bytes = 0;
	dlist_iter	iter;

	dlist_foreach(iter, &all)
		bytes += MemoryContextMemAllocated(dlist_container(QvRelCacheEntry, node, iter.cur)->context,
										   true);
	return bytes;
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
	watch_changes();
	while ((nentries >= MAX_ENTRIES || all_bytes() > MAX_BYTES) && evict())
		;
	entry->locator = QvRelationLocator(index);
	entry->relid = RelationGetRelid(index);
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
