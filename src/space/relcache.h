/*
 * relcache.h
 *		What a backend keeps of indexes between queries.
 *
 * An engine extends QvRelCacheEntry by what it wants to find again.  It is found by
 * relation file, which a rebuild changes, and verified by the build_id of the
 * metapage, a random number (so that no engine finds what is another's).
 * All engines together keep what fits into quiver.cache_mem.  What entries can do without goes
 * first, then the least recently used one without pins, and the one used last at the end of the transaction.  What the
 * server says has changed (an index that was dropped, rebuilt or vacuumed) goes then too,
 * unless it is used until then and still is what it was.
 *
 * A part of an entry (entry points, a directory of lists) is replaced when the index
 * has changed; the old one lives until its last pin is gone.
 */
#ifndef QV_SPACE_RELCACHE_H
#define QV_SPACE_RELCACHE_H

#include "compat.h"
#include "lib/ilist.h"
#include "space/space.h"

/* quiver.cache_mem, kB. */
#define QV_DEFAULT_CACHE_MEM (128 * 1024)

extern int	qv_cache_mem;

/* The first member of the engine's own struct. */
typedef struct QvRelCacheEntry
{
	dlist_node	node;			/* in use order, most recent first */
	QvRelLocator locator;
	Oid			relid;
	uint64		build_id;
	int			pins;
	bool		stale;			/* replaced: free when not pinned */
	bool		doubtful;		/* changed: free unless it is found again */
	MemoryContext context;		/* of all of it, this struct too */
	Size		bytes;			/* as counted when it was last not used any
								 * more */
	QvBufferHints hints;
	QvBufferHints table_hints;	/* of the table's pages */

	/*
	 * free what it can do without, before an entry has to go; of one without
	 * pins; raises nothing
	 */
	void		(*do_without) (struct QvRelCacheEntry *entry);
	QvSpace		space;			/* for the engine to fill in */
} QvRelCacheEntry;

/* The first member of a part. */
typedef struct QvRelCachePart
{
	MemoryContext context;		/* of all of it, this struct too */
	int			pins;
	bool		current;		/* its entry has it */
} QvRelCachePart;

/*
 * The entry of an index, NULL when there is none.  One of another build is freed, or
 * marked to be freed with its last pin.
 */
extern QvRelCacheEntry *QvRelCacheFind(Relation index, uint64 build_id);

/*
 * A new entry of size bytes, zeroed but for context and hints.  It lives below
 * CurrentMemoryContext, so that an error on the way does not leak it, until
 * QvRelCacheAdd() keeps it.
 */
extern QvRelCacheEntry *QvRelCacheNew(Size size);
extern void QvRelCacheAdd(QvRelCacheEntry *entry, Relation index, uint64 build_id);

/*
 * Between these two it stays where it is.  QvRelCacheUnpin() can be called from
 * a memory context's reset callback: it raises nothing.
 */
extern void QvRelCachePin(QvRelCacheEntry *entry);
extern void QvRelCacheUnpin(QvRelCacheEntry *entry);

/* The entry after that one (NULL: the first), most recent first; its bytes as they are now. */
extern QvRelCacheEntry *QvRelCacheNext(QvRelCacheEntry *entry);

/* A new part of size bytes, below CurrentMemoryContext until it is kept. */
extern void *QvRelCacheNewPart(Size size);

/* Let it belong to an entry, whose old one is retired: lives until not pinned. */
extern void QvRelCacheKeepPart(QvRelCachePart *part, QvRelCacheEntry *entry);
extern void QvRelCacheRetirePart(QvRelCachePart *part);

extern void QvRelCachePinPart(QvRelCachePart *part);
extern void QvRelCacheUnpinPart(QvRelCachePart *part);

/* Pin it until CurrentMemoryContext is reset. */
extern void QvRelCachePinPartHere(QvRelCachePart *part);

#endif							/* QV_SPACE_RELCACHE_H */
