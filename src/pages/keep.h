/*
 * keep.h
 *		What a backend keeps of indexes between queries.
 *
 * An engine extends QvRelCacheEntry by what it wants to find again: found by relation
 * file, which a rebuild changes, and verified by the build_id of the metapage, a
 * random number (so that no engine finds what is another's).
 * At most 64 are kept for all engines together; the least recently used one
 * without users goes first.
 */
#ifndef QV_PAGES_KEEP_H
#define QV_PAGES_KEEP_H

#include "compat.h"
#include "lib/ilist.h"

/* The first member of the engine's own struct. */
typedef struct QvRelCacheEntry
{
	dlist_node	node;			/* in use order, most recent first */
	QvRelLocator locator;
	uint64		build_id;
	int			users;
	bool		stale;			/* replaced: free when unused */
	MemoryContext context;		/* of all of it, this struct too */
} QvRelCacheEntry;

/*
 * What is kept of an index, NULL when there is nothing.  Something of another
 * build is freed, or marked to be freed by its last user.
 */
extern QvRelCacheEntry *QvRelCacheFind(Relation index, uint64 build_id);

/*
 * Keep something from now on.  kept->context is set, and below a context of
 * the caller's until now, so that an error on the way does not leak it; here
 * it goes below CacheMemoryContext.  Users are counted separately.
 */
extern void QvRelCacheAdd(QvRelCacheEntry *kept, Relation index, uint64 build_id);

/*
 * Between these two it stays where it is.  QvRelCacheUnpin() can be called from
 * a memory context's reset callback: it raises nothing.
 */
extern void QvRelCachePin(QvRelCacheEntry *kept);
extern void QvRelCacheUnpin(QvRelCacheEntry *kept);

#endif							/* QV_PAGES_KEEP_H */
