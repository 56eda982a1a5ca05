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
static Size all_bytes = 0;		/* bytes of all entries, as counted last */

/* Counts the bytes of an entry again: hints and parts grow while a scan uses them. */
static void
count_bytes(QvRelCacheEntry *entry)
{
	all_bytes -= entry->bytes;
	entry->bytes = MemoryContextMemAllocated(entry->context, true);
	all_bytes += entry->bytes;
}

static void
discard(QvRelCacheEntry *entry)
{
	dlist_delete(&entry->node);
	all_bytes -= entry->bytes;
	MemoryContextDelete(entry->context);
}

/*
 * Evicts entries while all of them, with "more" bytes, exceed the limit.  An entry that
 * alone exceeds the limit is evicted first, because evicting the others would not help.
 * Then the least recently used entry without pins is evicted.  "spared" (or NULL) is not
 * evicted.
 */
static void
make_fit(Size more, const QvRelCacheEntry *spared)
{
	Size		bound = (Size) qv_cache_mem * 1024;

	while (all_bytes + more > bound)
	{
		QvRelCacheEntry *victim = NULL;
		Size		fitting = more > bound ? 0 : more;
		dlist_iter	iter;

		dlist_foreach(iter, &all)
		{
			QvRelCacheEntry *entry = dlist_container(QvRelCacheEntry, node, iter.cur);

			if (entry->bytes <= bound)
				fitting += entry->bytes;
			if (entry->pins == 0 && entry != spared &&
				(victim == NULL || victim->bytes <= bound || entry->bytes > bound))
				victim = entry;
		}
		if (victim == NULL || (victim->bytes <= bound && fitting <= bound))
			return;
		discard(victim);
	}
}

/* Frees an entry now, or with its last pin. */
static void
drop(QvRelCacheEntry *entry)
{
	if (entry->pins == 0)
		discard(entry);
	else
		entry->stale = true;
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

		if (entry->doubtful)
			drop(entry);
	}
	/* until now, the entry used last was allowed to exceed the limit */
	make_fit(0, NULL);
}

/* ---- entries ---- */

/* Returns the entry of an index, or NULL.  Drops an entry of another build. */
static QvRelCacheEntry *
find_entry(Relation index, uint64 build_id)
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
	entry->bytes = MemoryContextMemAllocated(entry->context, true);
	make_fit(entry->bytes, NULL);
	MemoryContextSetParent(entry->context, CacheMemoryContext);
	dlist_push_head(&all, &entry->node);
	all_bytes += entry->bytes;
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
	QvRelCacheEntry *next;

	if (entry ? !dlist_has_next(&all, &entry->node) : dlist_is_empty(&all))
		return NULL;
	next = entry ? dlist_container(QvRelCacheEntry, node, dlist_next_node(&all, &entry->node)) :
		dlist_head_element(QvRelCacheEntry, node, &all);
	count_bytes(next);
	return next;
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

static void
unpin_entry(QvRelCacheEntry *entry)
{
	if (--entry->pins > 0)
		return;
	if (entry->stale)
	{
		discard(entry);
		return;
	}
	count_bytes(entry);
	/* the next scan is likely to be of the same index */
	make_fit(0, entry);
}

/* Raises nothing, since it is called when a memory context is reset. */
static void
release(void *arg)
{
	QvRelCacheUse *use = arg;

	unpin_part(use->part);
	unpin_entry(use->entry);
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
