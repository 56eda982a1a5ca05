/*
 * rest.h
 *		The rows that a long scan has left, sorted by distance, on disk when they are many.
 *
 * A scan that has proposed more rows than it can remember reads the lists once more and
 * puts all other rows here: from then on they come in order, each once, whatever happens
 * to the lists.
 */
#ifndef QV_IVF_SEARCH_REST_H
#define QV_IVF_SEARCH_REST_H

#include "ivf/search/window.h"
#include "utils/tuplesort.h"

typedef struct IvfRest
{
	Tuplesortstate *sort;
	int			memory;			/* kB, for a sort */
	struct TupleTableSlot *in;
	struct TupleTableSlot *out;
	float		most_error;		/* of its rows */
	uint32		nadded;
	uint32		room;
	IvfWindowRow *added;		/* and not in the sort yet */
} IvfRest;

/*
 * Nothing yet, in CurrentMemoryContext; a sort takes max_memory bytes (the least is
 * 64 kB), and at the end there may be two.  Up to room rows are added before IvfRestKeep().
 */
extern IvfRest *IvfRestBegin(uint32 room, Size max_memory);

/* Add a row; that of a page may be locked meanwhile. */
static inline void
IvfRestAdd(IvfRest *rest, const IvfWindowRow *row)
{
	Assert(rest->nadded < rest->room);
	rest->added[rest->nadded++] = *row;
	/* one without end is a damaged row's */
	if (isfinite(row->error))
		rest->most_error = Max(rest->most_error, row->error);
}

/* Let the sort have the rows added: it may write files, so no page is locked. */
extern void IvfRestKeep(IvfRest *rest);

/* All are there; with doubles, a heap TID may be there more than once. */
extern void IvfRestSort(IvfRest *rest, bool doubles);

/*
 * Fill the window with the next rows, nearest first, in the order of IvfWindowSort(): as
 * many as it takes, or all left.
 */
extern void IvfRestNext(IvfRest *rest, IvfWindow *window);

/* Close its files: to be called before its memory is freed, but for an error. */
extern void IvfRestEnd(IvfRest *rest);

#endif							/* QV_IVF_SEARCH_REST_H */
