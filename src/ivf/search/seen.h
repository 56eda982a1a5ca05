/*
 * seen.h
 *		Rows that a scan has proposed, by their heap TIDs: few in a hash table, many as a
 *		bit for each line of the table.  It never takes one row for another.
 */
#ifndef QV_IVF_SEARCH_SEEN_H
#define QV_IVF_SEARCH_SEEN_H

#include "postgres.h"

#include "storage/itemptr.h"

typedef struct IvfSeen
{
	MemoryContext context;
	Size		max_bytes;
	struct QvTids_hash *hash;	/* NULL: it is bits */
	uint64		nblocks;		/* that there are bits for, */
	uint32		stride;			/* bytes for each, */
	uint8	   *bits;			/* line 0 first */
} IvfSeen;

/* What each of a few takes at most, while the hash table grows. */
#define IVF_SEEN_BYTES 48

/* None yet; context is where they are kept, in max_bytes. */
extern IvfSeen *IvfSeenCreate(MemoryContext context, Size max_bytes);
extern void IvfSeenFree(IvfSeen *seen);

/*
 * Add n rows, whose heap TIDs are step bytes apart.  False when they would take too much:
 * then none is added.
 */
extern bool IvfSeenAdd(IvfSeen *seen, const ItemPointerData *first, Size step, uint32 n);

/* tid may be of a damaged page. */
extern bool IvfSeenHas(const IvfSeen *seen, const ItemPointerData *tid);

#endif							/* QV_IVF_SEARCH_SEEN_H */
