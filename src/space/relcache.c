/*
 * relcache.c
 *		What a backend caches of indexes between queries; see relcache.h.
 */
#include "postgres.h"

#include "access/xact.h"
#include "space/relcache.h"
#include "utils/inval.h"
#include "utils/memutils.h"

int			qv_cache_mem = QV_DEFAULT_CACHE_MEM;

static dlist_head all = DLIST_STATIC_INIT(all);

/* Counts the bytes of an entry again: hints and parts grow while a scan uses them. */
static void
count_bytes(QvRelCacheEntry *entry)
{
	entry->bytes = MemoryContextMemAllocated(entry->context, true);
}

static void
discard(QvRelCacheEntry *entry)
{
	dlist_delete(&entry->node);
	MemoryContextDelete(entry->context);
}

/*
 * Keeps the entries used last, as many as fit, and evicts the others.  Pinned entries and "spared"
 * (or NULL) stay.  An entry that alone exceeds the limit does not count: evicting others would not
 * help.
 */
static void
make_fit(const QvRelCacheEntry *spared)
{
	Size		bound = (Size) qv_cache_mem * 1024;
	Size		kept = 0;
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &all)
	{
		QvRelCacheEntry *entry = dlist_container(QvRelCacheEntry, node, iter.cur);

		if (entry->pins == 0 && entry != spared && kept + entry->bytes > bound)
			discard(entry);
		else if (entry->bytes <= bound)
			kept += entry->bytes;
	}
}

/* ---- what the server says has changed ---- */

/* Marks entries.  An invalidation may come at any time, so nothing is freed here. */
static void
relation_changed(Datum arg, Oid relid)
{
	dlist_iter	iter;

	dlist_foreach(iter, &all)
	{
		QvRelCacheEntry *entry = dlist_container(QvRelCacheEntry, node, iter.cur);

		if (!OidIsValid(relid) || entry->relid == relid)
			entry->doubtful = true;
	}
}

static void
transaction_ends(XactEvent event, void *arg)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &all)
	{
		QvRelCacheEntry *entry = dlist_container(QvRelCacheEntry, node, iter.cur);

		if (entry->doubtful && entry->pins == 0)
			discard(entry);
	}
	/* until now, the entry used last was allowed to exceed the limit */
	make_fit(NULL);
}

/* ---- entries ---- */

/* Returns the entry of an index, or NULL. */
static QvRelCacheEntry *
find_entry(Relation index, uint64 build_id)
{
	QvRelLocator locator = QvRelationLocator(index);
	dlist_iter	iter;

	dlist_foreach(iter, &all)
	{
		QvRelCacheEntry *entry = dlist_container(QvRelCacheEntry, node, iter.cur);

		if (entry->build_id != build_id || !QvRelLocatorEquals(entry->locator, locator))
			continue;
		entry->doubtful = false;
		dlist_move_head(&all, &entry->node);
		return entry;
	}
	return NULL;
}

static void
add_entry(QvRelCacheEntry *entry)
{
	static bool watching = false;

	if (!watching)
	{
		CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
		RegisterXactCallback(transaction_ends, NULL);
		watching = true;
	}
	MemoryContextSetParent(entry->context, CacheMemoryContext);
	dlist_push_head(&all, &entry->node);
	count_bytes(entry);
	make_fit(entry);
}

QvRelCacheEntry *
QvRelCacheOpen(Relation index, const QvOpclassInfo *opclass, uint64 build_id, uint32 dims,
			   uint32 pdim, uint64 seed, QvSpaceKind kind, float level,
			   BlockNumber mean_block)
{
	QvRelCacheEntry *entry = find_entry(index, build_id);
	MemoryContext context,
				old;

	if (entry)
		return entry;
	context = AllocSetContextCreate(CurrentMemoryContext, "quiver index", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	entry = palloc0(sizeof(QvRelCacheEntry));
	entry->locator = QvRelationLocator(index);
	entry->relid = RelationGetRelid(index);
	entry->build_id = build_id;
	entry->context = context;
	entry->hints.context = entry->table_hints.context = context;
	MemoryContextSetIdentifier(context, pstrdup(RelationGetRelationName(index)));
	QvSpaceInit(&entry->space, opclass, dims, pdim, seed);
	if (pdim > 0)
	{
		float	   *mean = palloc(pdim * sizeof(float));

		QvReadFloats(index, &entry->hints, mean_block, mean, pdim);
		QvSpaceSetMean(&entry->space, mean);
		entry->space.kind = kind;
		entry->space.level = level;
	}
	MemoryContextSwitchTo(old);
	return entry;
}

QvRelCacheEntry *
QvRelCacheNext(QvRelCacheEntry *entry)
{
	dlist_node *node = entry ? &entry->node : &all.head;

	if (!dlist_has_next(&all, node))
		return NULL;
	entry = dlist_container(QvRelCacheEntry, node, dlist_next_node(&all, node));
	count_bytes(entry);
	return entry;
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

static void
unpin_part(QvRelCachePart *part)
{
	if (--part->pins == 0)
		MemoryContextDelete(part->context);
}

void
QvRelCacheSetPart(QvRelCacheEntry *entry, QvRelCachePart *part)
{
	QvRelCachePart *old = entry->part;

	MemoryContextSetParent(part->context, entry->context);
	part->pins++;
	entry->part = part;
	if (old)
		unpin_part(old);
	else
		add_entry(entry);
}

/* ---- pins ---- */

/* Raises nothing, since it is called when a memory context is reset. */
static void
release(void *arg)
{
	QvRelCacheUse *use = arg;

	unpin_part(use->part);
	if (--use->entry->pins > 0)
		return;
	count_bytes(use->entry);
	/* the next scan is likely to be of the same index */
	make_fit(use->entry);
}

void *
QvRelCachePin(QvRelCacheUse *use, QvRelCacheEntry *entry)
{
	use->entry = entry;
	use->part = entry->part;
	entry->pins++;
	entry->part->pins++;
	use->release.func = release;
	use->release.arg = use;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &use->release);
	return use->part;
}

void *
QvRelCachePinAgain(QvRelCacheUse *use)
{
	QvRelCachePart *old = use->part;

	use->part = use->entry->part;
	use->part->pins++;
	unpin_part(old);
	return use->part;
}
