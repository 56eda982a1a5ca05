/*
 * window.h
 *		The nearest so many rows that a scan has met, without those that it has
 *		proposed before.
 */
#ifndef QV_IVF_SEARCH_WINDOW_H
#define QV_IVF_SEARCH_WINDOW_H

#include <math.h>

#include "ivf/codec/format.h"
#include "ivf/search/seen.h"

typedef struct IvfWindowRow
{
	float		distance;
	float		error;			/* how far that may be off */
	float		bound;			/* IvfWindowSetBounds() */
	ItemPointerData tid;
	uint16		rank;			/* of its list among those nearest to the
								 * query */
} IvfWindowRow;

StaticAssertDecl(IVF_MAX_LISTS <= PG_UINT16_MAX + 1, "rank of a list is too narrow");

/* A heap with the farthest row on top; in order after IvfWindowSort(). */
typedef struct IvfWindow
{
	IvfWindowRow *rows;
	uint32		size;			/* rows it takes; may change while it is empty */
	uint32		allocated;
	uint32		count;
	float		limit;			/* rows of this distance or more are not
								 * wanted */
	double		certainty;		/* share of a row's error that counts */
	double		left;			/* no row that did not stay is nearer, error
								 * and all */
	IvfSeen    *seen;			/* rows it does not take, or NULL */
	bool		by_tid;			/* nor those that it has, in that order */
} IvfWindow;

/* An empty window of size rows, in CurrentMemoryContext; certainty is a share of errors. */
extern void IvfWindowInit(IvfWindow *window, uint32 size, double certainty);

/* Take rows anew. */
static inline void
IvfWindowClear(IvfWindow *window)
{
	window->count = 0;
	window->left = INFINITY;
}

/* Distances at or above this cannot enter. */
static inline float
IvfWindowThreshold(const IvfWindow *window)
{
	/* a row of the same distance may come before by its heap TID */
	return window->count < window->size ? window->limit :
		Min(window->limit, nextafterf(window->rows[0].distance, INFINITY));
}

/* In the order of IvfWindowSort(), is a before b? */
static inline bool
IvfWindowRowBefore(const IvfWindowRow *a, const IvfWindowRow *b)
{
	if (a->distance != b->distance)
		return a->distance < b->distance;
	return ItemPointerCompare((ItemPointer) &a->tid, (ItemPointer) &b->tid) < 0;
}

/* What the row's distance is not below, whatever its code has lost. */
static inline double
IvfWindowRowBound(const IvfWindow *window, const IvfWindowRow *row)
{
	return row->distance - row->error * window->certainty;
}

extern void IvfWindowOffer(IvfWindow *window, const IvfWindowRow *row);

/* Nearest first; rows of the same distance by their heap TIDs. */
extern void IvfWindowSort(IvfWindow *window);

/*
 * Once it is in order: of each row, what neither it nor one that comes after it, in the
 * window or not, is nearer than.
 */
extern void IvfWindowSetBounds(IvfWindow *window);

/* Take the n nearest out of a window that is in order, and have it take others again. */
extern void IvfWindowTakeOut(IvfWindow *window, uint32 n);

/* Is the row one that it does not take? */
extern bool IvfWindowExcludes(const IvfWindow *window, const ItemPointerData *tid);

/*
 * Take none of the rows that it has either, though there is no memory to note them: they
 * stay where they are, and no others come, until IvfWindowForget().
 */
extern void IvfWindowExcludeOwn(IvfWindow *window);

/* Take any row, empty, and with room for no more than a few. */
extern void IvfWindowForget(IvfWindow *window);

#endif							/* QV_IVF_SEARCH_WINDOW_H */
