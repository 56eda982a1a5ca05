/*
 * relcache.h
 *		What a backend caches of indexes between queries.
 *
 * An entry is found by relation file, which a rebuild changes.  It is verified by the
 * build_id of the metapage, a random number, so that no engine finds another engine's entry.
 *
 * quiver.cache_mem limits the memory of all entries.  When it is exceeded, the least
 * recently used entries without pins are evicted.  The entry used last is evicted at the end
 * of the transaction only.  An entry of an index that the server reports as changed
 * (dropped, rebuilt or vacuumed) is freed then, too, unless it is pinned, or a search has found
 * it valid in the meantime.
 *
 * The part of an entry (entry points, a directory of lists) is the engine's.  It is replaced
 * when the index has changed.  The old part lives until its last pin is released.
 */
#ifndef QV_SPACE_RELCACHE_H
#define QV_SPACE_RELCACHE_H

#include "compat.h"
#include "lib/ilist.h"
#include "space/space.h"

/* Default of quiver.cache_mem, in kB. */
#define QV_DEFAULT_CACHE_MEM (128 * 1024)

extern int	qv_cache_mem;

/* The first member of an engine's part. */
typedef struct QvRelCachePart
{
	MemoryContext context;		/* of the whole part, this struct included */
	int			pins;			/* one of them is of the entry that uses it */
} QvRelCachePart;

typedef struct QvRelCacheEntry
{
	dlist_node	node;			/* in order of use, most recent first */
	QvRelLocator locator;
	Oid			relid;
	uint64		build_id;
	int			pins;
	bool		doubtful;		/* reported as changed: to be freed unless it
								 * is found again */
	MemoryContext context;		/* of the whole entry, this struct included */
	Size		bytes;			/* as counted when its last pin was released */
	QvBufferHints hints;
	QvBufferHints table_hints;	/* hints of the table's pages */
	QvSpace		space;
	QvRelCachePart *part;		/* NULL: not read yet */
	uint32		cold;			/* coming scans of lists that should read
								 * ahead */
} QvRelCacheEntry;

/* What an open index uses: a member of an engine's handle. */
typedef struct QvRelCacheUse
{
	QvRelCacheEntry *entry;		/* pinned */
	QvRelCachePart *part;		/* pinned: the entry may have another by now */
	MemoryContextCallback release;
} QvRelCacheUse;

/*
 * Returns the entry of an index whose metapage has that build_id.  If there is none, reads the
 * space into a new one, which has no part: see QvSpaceInit(), and a mean of consecutive float
 * pages.  Raises ERRCODE_INDEX_CORRUPTED.
 */
extern QvRelCacheEntry *QvRelCacheOpen(Relation index, const QvOpclassInfo *opclass,
									   uint64 build_id, uint32 dims, uint32 pdim, uint64 seed,
									   QvSpaceKind kind, float level, BlockNumber mean_block);

/* Makes a part of size bytes, zeroed, below CurrentMemoryContext until an entry has it. */
extern void *QvRelCacheNewPart(Size size);

/*
 * Gives an entry its part.  A new entry is cached from then on: an error before that leaks
 * nothing.  The part that the entry had lives until it is not pinned.
 */
extern void QvRelCacheSetPart(QvRelCacheEntry *entry, QvRelCachePart *part);

/*
 * Pins an entry and its part until CurrentMemoryContext is reset.  Neither is freed before that.
 * Returns the part.
 */
extern void *QvRelCachePin(QvRelCacheUse *use, QvRelCacheEntry *entry);

/* Pins the part that the entry has now, in place of the one that is pinned.  Returns it. */
extern void *QvRelCachePinAgain(QvRelCacheUse *use);

/*
 * Returns the entry after this one (NULL: the first), most recent first, and counts its
 * bytes.
 */
extern QvRelCacheEntry *QvRelCacheNext(QvRelCacheEntry *entry);

#endif							/* QV_SPACE_RELCACHE_H */
