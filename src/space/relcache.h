/*
 * relcache.h
 *		What a backend caches of indexes between queries.
 *
 * An engine extends QvRelCacheEntry by what it caches itself.  An entry is found by
 * relation file, which a rebuild changes.  It is verified by the build_id of the
 * metapage, a random number, so that no engine finds another engine's entry.
 *
 * quiver.cache_mem limits the memory of all entries.  When it is exceeded, the least
 * recently used entry without pins is evicted.  The entry used last is evicted at the end
 * of the transaction only.  An entry of an index that the server reports as changed
 * (dropped, rebuilt or vacuumed) is freed then, too, unless a search has found it valid
 * in the meantime.
 *
 * A part of an entry (entry points, a directory of lists) is replaced when the index has
 * changed.  The old part lives until its last pin is released.
 */
#ifndef QV_SPACE_RELCACHE_H
#define QV_SPACE_RELCACHE_H

#include "compat.h"
#include "lib/ilist.h"
#include "space/space.h"

/* Default of quiver.cache_mem, in kB. */
#define QV_DEFAULT_CACHE_MEM (128 * 1024)

extern int	qv_cache_mem;

/* The first member of an engine's entry. */
typedef struct QvRelCacheEntry
{
	dlist_node	node;			/* in order of use, most recent first */
	QvRelLocator locator;
	Oid			relid;
	uint64		build_id;
	int			pins;
	bool		stale;			/* replaced: to be freed with its last pin */
	bool		doubtful;		/* reported as changed: to be freed unless it
								 * is found again */
	MemoryContext context;		/* of the whole entry, this struct included */
	Size		bytes;			/* as counted when its last pin was released */
	QvBufferHints hints;
	QvBufferHints table_hints;	/* hints of the table's pages */

	QvSpace		space;			/* the engine fills this in */
} QvRelCacheEntry;

/* The first member of a part. */
typedef struct QvRelCachePart
{
	MemoryContext context;		/* of the whole part, this struct included */
	int			pins;
	bool		current;		/* it is the part that its entry uses */
} QvRelCachePart;

/*
 * Returns the entry of an index, or NULL.  An entry of another build is freed, or marked
 * to be freed with its last pin.
 */
extern QvRelCacheEntry *QvRelCacheFind(Relation index, uint64 build_id);

/*
 * Makes an entry of size bytes, zeroed but for context and hints.  It lives below
 * CurrentMemoryContext until QvRelCacheAdd() keeps it, so that an error in between does
 * not leak it.
 */
extern QvRelCacheEntry *QvRelCacheNew(Size size);
extern void QvRelCacheAdd(QvRelCacheEntry *entry, Relation index, uint64 build_id);

/*
 * Between these two an entry is not freed.  QvRelCacheUnpin() raises nothing, so it can
 * be called from a memory context's reset callback.
 */
extern void QvRelCachePin(QvRelCacheEntry *entry);
extern void QvRelCacheUnpin(QvRelCacheEntry *entry);

/*
 * Returns the entry after this one (NULL: the first), most recent first, and counts its
 * bytes.
 */
extern QvRelCacheEntry *QvRelCacheNext(QvRelCacheEntry *entry);

/* Makes a part of size bytes, below CurrentMemoryContext until it is kept. */
extern void *QvRelCacheNewPart(Size size);

/*
 * Makes a part belong to an entry, or retires it.  A retired part lives until it is not
 * pinned.
 */
extern void QvRelCacheKeepPart(QvRelCachePart *part, QvRelCacheEntry *entry);
extern void QvRelCacheRetirePart(QvRelCachePart *part);

extern void QvRelCachePinPart(QvRelCachePart *part);
extern void QvRelCacheUnpinPart(QvRelCachePart *part);

/* Pins a part until CurrentMemoryContext is reset. */
extern void QvRelCachePinPartHere(QvRelCachePart *part);

#endif							/* QV_SPACE_RELCACHE_H */
